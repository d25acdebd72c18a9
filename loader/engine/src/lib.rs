//! Runs checked graphs.
//!
//! A [`Plan`](plan::Plan) says how a graph is cut. [`launch`] makes its pipes, and starts them on an [`Executor`]: on the caller's thread, on
//! threads, or on threads and [worker](worker) processes. The [`Host`](host::Host) is what pipes find while they run: memory, decoders, a log.

pub mod executor;
pub mod host;
pub mod launch;
pub mod make;
pub mod plan;
pub mod record;
pub mod stall;
pub mod stats;
mod takes;
pub mod worker;

pub use executor::Executor;
