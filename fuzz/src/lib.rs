#![doc = include_str!("../README.md")]

#[path = "../../tests/mutations/host.rs"]
mod host;
#[path = "../../tests/mutations/parsers.rs"]
mod parsers;

pub use parsers::*;
