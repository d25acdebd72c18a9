#![doc = include_str!("../README.md")]

mod batch;
mod cache;
mod collate;
mod decode;
mod range;
mod rename;
mod repeat;
mod select;
mod shuffle;
mod skip;
mod stack;
mod take;
#[cfg(test)]
mod testing;

pub use crate::{
    batch::{Batch, BatchOptions},
    collate::{Collate, CollateOptions, dense},
    decode::{Decode, DecodeOptions},
    range::{Range, RangeOptions},
    rename::{Rename, RenameOptions},
    repeat::{Repeat, RepeatOptions},
    select::{Select, SelectOptions},
    shuffle::{Shuffle, ShuffleOptions},
    skip::{Skip, SkipOptions},
    take::{Take, TakeOptions},
};

forebay_core::export_plugin! {
    sources: [Range],
    maps: [Collate, Decode, Rename, Select],
    streams: [Batch, Repeat, Shuffle, Skip, Take],
}
