#![doc = include_str!("../README.md")]

mod msgpack;

pub use crate::msgpack::{DEPTH, Msgpack, parse};

forebay_core::export_plugin! { state_version: 1, decoders: [Msgpack] }
