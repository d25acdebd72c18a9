//! A plugin for tests: pipes and a decoder that behave, or misbehave as their options say.
//!
//! Nothing in here sleeps or looks at a clock: what is to wait waits at a [gate].

mod decoder;
pub mod gate;
mod increment;
mod map;
mod source;
mod stream;

pub use crate::{
    decoder::RogueDecoder,
    increment::Increment,
    map::{RogueMap, RogueMapOptions},
    source::{RogueSource, RogueSourceOptions},
    stream::{RogueStream, RogueStreamOptions},
};

forebay_core::export_plugin! {
    sources: [RogueSource],
    maps: [Increment, RogueMap],
    streams: [RogueStream],
    decoders: [RogueDecoder],
}
