//! The command, as a person calls it.

mod cli;
mod examples;
mod lints;
