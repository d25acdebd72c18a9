//! Calls of plugins, watched.
//!
//! While a plugin runs, its thread has a record of who is called and for which sample ([`call`]). So a crash ([`crash`],
//! [`signals`]), an end of the program, a stall and a file that is cut short while it is mapped ([`maps`]) are told with pipe,
//! plugin and sample.

pub mod call;
mod counter;
pub mod crash;
pub mod decoding;
mod handler;
pub mod maps;
mod post;
pub mod signals;
