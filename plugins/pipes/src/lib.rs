#![doc = include_str!("../README.md")]

mod batch;
mod cache;
mod cache_pipe;
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
mod sampler;
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
    cache_pipe::{Cache, CacheOptions},
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
    sampler::{
        Distributed, DistributedSampler, DistributedSamplerOptions, Draw, Random, RandomSampler,
        RandomSamplerOptions, Sampler, Sequential, SequentialSampler, Subset, SubsetSampler,
        SubsetSamplerOptions, Weighted, WeightedSampler, WeightedSamplerOptions,
    },
    select::{Select, SelectOptions},
    shard::{Shard, ShardOptions},
    shuffle::{Shuffle, ShuffleOptions},
    skip::{Skip, SkipOptions},
    take::{Take, TakeOptions},
    unbatch::{Rows, Unbatch},
    zip::{Zip, ZipOptions},
};

forebay_core::export_plugin! {
    indexed: [Range],
    maps: [Collate, Decode, Label, Map, Rename, Select],
    flat_maps: [Unbatch],
    streams: [
        Batch, Cache, Concat, Demux, DistributedSampler, Filter, Fork, Group, Mix, Mux, RandomSampler, Repeat, SequentialSampler, Shard, Shuffle, Skip,
        SubsetSampler, Take, WeightedSampler, Zip,
    ],
}
