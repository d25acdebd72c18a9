#![doc = include_str!("../README.md")]

mod batch;
mod cache;
mod collate;
mod concat;
mod decode;
mod demux;
mod expression;
mod filter;
mod fork;
mod group;
mod label;
mod map;
mod mix;
mod mux;
mod range;
mod rename;
mod repeat;
mod select;
mod shard;
mod shuffle;
mod skip;
mod stack;
mod take;
#[cfg(test)]
mod testing;
mod unbatch;
mod zip;

pub use crate::{
    batch::{Batch, BatchOptions},
    collate::{Collate, CollateOptions, dense},
    concat::Concat,
    decode::{Decode, DecodeOptions},
    demux::{Demux, DemuxOptions},
    filter::{Filter, FilterOptions},
    fork::{Fork, ForkOptions},
    group::{Group, GroupOptions},
    label::{Label, LabelOptions},
    map::{Map, MapOptions},
    mix::{Mix, MixOptions},
    mux::{Mux, MuxOptions},
    range::{Range, RangeOptions},
    rename::{Rename, RenameOptions},
    repeat::{Repeat, RepeatOptions},
    select::{Select, SelectOptions},
    shard::{Shard, ShardOptions},
    shuffle::{Shuffle, ShuffleOptions},
    skip::{Skip, SkipOptions},
    take::{Take, TakeOptions},
    unbatch::{Rows, Unbatch},
    zip::{Zip, ZipOptions},
};

forebay_core::export_plugin! {
    sources: [Range],
    maps: [Collate, Decode, Label, Map, Rename, Select],
    flat_maps: [Unbatch],
    streams: [Batch, Concat, Demux, Filter, Fork, Group, Mix, Mux, Repeat, Shard, Shuffle, Skip, Take, Zip],
}
