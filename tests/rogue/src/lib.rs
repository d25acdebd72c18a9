//! A plugin for tests: pipes and a decoder that behave, or misbehave as their options say.
//!
//! Nothing in here sleeps or looks at a clock: what is to wait waits at a [gate].

mod alone;
mod asked;
mod burst;
mod crash;
mod decoder;
mod expand;
pub mod gate;
mod hermit;
mod increment;
mod keep;
mod lag;
mod map;
mod reach;
mod source;
mod stream;

pub use crate::{
    alone::RogueAlone,
    asked::{RogueAsked, RogueAskedOptions},
    burst::{RogueBurst, RogueBurstOptions},
    decoder::{RogueDecoder, RogueDecoderOptions},
    expand::{RogueExpand, RogueExpandOptions},
    hermit::RogueHermit,
    increment::Increment,
    keep::{RogueKeep, RogueKeepOptions},
    lag::{RogueLag, RogueLagOptions},
    map::{RogueMap, RogueMapOptions},
    reach::{RogueReach, RogueReachOptions},
    source::{RogueSource, RogueSourceOptions},
    stream::{RogueStream, RogueStreamOptions},
};

forebay_core::export_plugin! {
    sources: [RogueSource],
    indexed: [RogueAsked],
    maps: [Increment, RogueAlone, RogueMap, RogueReach],
    flat_maps: [RogueBurst, RogueExpand],
    streams: [RogueHermit, RogueKeep, RogueLag, RogueStream],
    decoders: [RogueDecoder],
}
