//! Runs checked graphs.
//!
//! A [`Plan`](plan::Plan) says how a graph is cut. What is [`Prepared`](prepared::Prepared) outlives what is
//! [`Running`](running::Running), on an [`Executor`]: on the caller's thread, on threads, or on threads and
//! [`worker`] processes. The [`Host`](host::Host) is what pipes find while they run: memory, decoders, a log.

mod executor;
pub mod host;
mod make;
mod messages;
pub mod plan;
pub mod prepared;
mod problem;
mod program;
pub mod record;
mod resume;
pub mod run;
pub mod running;
pub mod sandbox;
mod setup;
pub mod stall;
pub mod stats;
mod stop;
mod takes;
pub mod worker;

pub use self::{
    executor::Executor,
    program::{WorkerProgram, worker_program},
};
