//! Runs checked graphs.
//!
//! A [`Plan`](plan::Plan) says how a graph is cut. A graph is [`Prepared`](prepared::Prepared) once, and can then
//! be [`Running`](running::Running) several times on an [`Executor`]: on the caller's thread, on threads, or on
//! threads and [`worker`] processes. The [`Host`](host::Host) gives pipes memory, decoders and a log while they
//! run.

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
