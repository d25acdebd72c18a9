//! Runs checked graphs.
//!
//! A [`Plan`](plan::Plan) says how a graph is cut. What is [`Prepared`](prepared::Prepared) outlives what is
//! [`Running`](running::Running), on an [`Executor`]: on the caller's thread, on threads, or on threads and [worker](worker) processes. The [`Host`](host::Host) is what pipes find while they run: memory, decoders, a log.

pub mod executor;
pub mod host;
mod make;
pub mod plan;
pub mod prepared;
mod problem;
pub mod record;
pub mod running;
pub mod stall;
pub mod stats;
mod stop;
mod takes;
pub mod worker;

pub use executor::Executor;
