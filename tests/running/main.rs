//! Where and how graphs run, with the same samples wherever that is.

mod closures;
mod embedding;
mod executors;
mod finished;
mod placement;
mod processes;
mod ranks;
mod stalls;
