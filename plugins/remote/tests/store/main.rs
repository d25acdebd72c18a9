//! The store against servers on loopback, and against a proxy that spoils their answers.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod azure;
mod bucket;
mod google;
mod listing;
mod odd;
mod proxy;
mod reads;
mod s3;
mod server;
mod tls;
