#![doc = include_str!("../README.md")]

mod assert_length;
mod batch;
mod bucket_by_length;
mod cache;
mod cast;
mod collate;
mod collect;
mod concat;
mod decode;
mod demux;
mod drop;
mod enumerate;
mod filter;
mod flat_map;
mod flatten;
mod fork;
mod group;
mod group_by;
mod in_batch_shuffle;
mod label;
mod lookup;
mod map;
mod max_tokens;
mod mix;
mod mux;
mod pack;
mod pad_to_length;
mod padded_batch;
mod plumbing;
mod ragged_batch;
mod random_split;
mod range;
mod rebatch;
#[cfg(test)]
mod references;
mod rejection_resample;
mod rename;
mod repeat;
mod repeat_each;
mod sampler;
mod scan;
mod select;
mod shard;
mod shuffle;
mod skip;
mod skip_while;
mod slice;
mod sort;
mod subsample;
mod take;
mod take_while;
#[cfg(test)]
mod testing;
mod unbatch;
mod unique;
mod window;
mod window_shuffle;
mod zip;
mod zip_by_key;

pub use crate::{
    assert_length::{AssertLength, AssertLengthOptions},
    batch::{Batch, BatchOptions},
    bucket_by_length::{BucketByLength, BucketByLengthOptions},
    cache::{Cache, CacheOptions},
    cast::{Cast, CastOptions},
    collate::{Collate, CollateOptions, dense},
    collect::{Collect, CollectGet, CollectLen, CollectOptions},
    concat::Concat,
    decode::{Decode, DecodeOptions},
    demux::{Demux, DemuxOptions},
    drop::{Drop, DropOptions},
    enumerate::{Enumerate, EnumerateOptions},
    filter::{Filter, FilterOptions},
    flat_map::{Each, FlatMap, FlatMapOptions},
    flatten::{Flatten, FlattenOptions},
    fork::{Fork, ForkOptions},
    group::{Group, GroupOptions},
    group_by::{GroupBy, GroupByOptions},
    in_batch_shuffle::InBatchShuffle,
    label::{Label, LabelOptions},
    lookup::{Lookup, LookupOptions},
    map::{Map, MapOptions},
    max_tokens::{MaxTokens, MaxTokensOptions},
    mix::{Mix, MixOptions},
    mux::{Mux, MuxOptions},
    pack::{Pack, PackOptions},
    pad_to_length::{PadToLength, PadToLengthOptions},
    padded_batch::{PaddedBatch, PaddedBatchOptions},
    ragged_batch::{RaggedBatch, RaggedBatchOptions},
    random_split::{RandomSplit, RandomSplitOptions},
    range::{Range, RangeOptions},
    rebatch::{Rebatch, RebatchOptions},
    rejection_resample::{RejectionResample, RejectionResampleOptions},
    rename::{Rename, RenameOptions},
    repeat::{Repeat, RepeatOptions},
    repeat_each::{Copies, RepeatEach, RepeatEachOptions},
    sampler::{
        Distributed, DistributedSampler, DistributedSamplerOptions, Draw, Random, RandomSampler,
        RandomSamplerOptions, Sampler, Sequential, SequentialSampler, Subset, SubsetSampler,
        SubsetSamplerOptions, Weighted, WeightedSampler, WeightedSamplerOptions,
    },
    scan::{Scan, ScanOptions},
    select::{Select, SelectOptions},
    shard::{Shard, ShardOptions},
    shuffle::{Shuffle, ShuffleOptions},
    skip::{Skip, SkipOptions},
    skip_while::{SkipWhile, SkipWhileOptions},
    slice::{Slice, SliceOptions},
    sort::{Sort, SortOptions},
    subsample::{Subsample, SubsampleOptions},
    take::{Take, TakeOptions},
    take_while::{TakeWhile, TakeWhileOptions},
    unbatch::{Rows, Unbatch, UnbatchOptions},
    unique::{Unique, UniqueOptions},
    window::{Window, WindowOptions},
    window_shuffle::{WindowShuffle, WindowShuffleOptions},
    zip::{Zip, ZipOptions},
    zip_by_key::{ZipByKey, ZipByKeyOptions},
};

forebay_core::export_plugin! {
    state_version: 1,
    indexed: [Range],
    maps: [Cast, Collate, Decode, Drop, Flatten, InBatchShuffle, Label, Map, Rename, Select],
    flat_maps: [FlatMap, RepeatEach, Unbatch],
    streams: [AssertLength, Batch, BucketByLength, Cache, Collect, CollectGet, CollectLen, Concat, Demux, DistributedSampler, Enumerate, Filter, Fork, Group, GroupBy, Lookup, MaxTokens, Mix, Mux, Pack, PadToLength, PaddedBatch, RaggedBatch, RandomSampler, RandomSplit, Rebatch, RejectionResample, Repeat, Scan, SequentialSampler, Shard, Shuffle, Skip, SkipWhile, Slice, Sort, Subsample, SubsetSampler, Take, TakeWhile, Unique, WeightedSampler, Window, WindowShuffle, Zip, ZipByKey],
}
