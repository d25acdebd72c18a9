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

/// Exports the crate's pipes: what their modules have for programs, and the plugin.
macro_rules! pipes {
    ($($class:ident: [$($module:ident::{$($pipe:ident),*},)*],)*) => {
        $($(pub use crate::$module::*;)*)*

        forebay_core::export_plugin! { state_version: 1, $($class: [$($(crate::$module::$pipe,)*)*],)* }
    };
}

// A line for each pipe, beside that of its module.
pipes! {
    indexed: [
        range::{Range},
    ],
    maps: [
        cast::{Cast},
        collate::{Collate},
        decode::{Decode},
        drop::{Drop},
        flatten::{Flatten},
        in_batch_shuffle::{InBatchShuffle},
        label::{Label},
        map::{Map},
        rename::{Rename},
        select::{Select},
    ],
    flat_maps: [
        flat_map::{FlatMap},
        repeat_each::{RepeatEach},
        unbatch::{Unbatch},
    ],
    streams: [
        assert_length::{AssertLength},
        batch::{Batch},
        bucket_by_length::{BucketByLength},
        cache::{Cache},
        collect::{Collect, CollectGet, CollectLen},
        concat::{Concat},
        demux::{Demux},
        enumerate::{Enumerate},
        filter::{Filter},
        fork::{Fork},
        group::{Group},
        group_by::{GroupBy},
        lookup::{Lookup},
        max_tokens::{MaxTokens},
        mix::{Mix},
        mux::{Mux},
        pack::{Pack},
        pad_to_length::{PadToLength},
        padded_batch::{PaddedBatch},
        ragged_batch::{RaggedBatch},
        random_split::{RandomSplit},
        rebatch::{Rebatch},
        rejection_resample::{RejectionResample},
        repeat::{Repeat},
        sampler::{DistributedSampler, RandomSampler, SequentialSampler, SubsetSampler, WeightedSampler},
        scan::{Scan},
        shard::{Shard},
        shuffle::{Shuffle},
        skip::{Skip},
        skip_while::{SkipWhile},
        slice::{Slice},
        sort::{Sort},
        subsample::{Subsample},
        take::{Take},
        take_while::{TakeWhile},
        unique::{Unique},
        window::{Window},
        window_shuffle::{WindowShuffle},
        zip::{Zip},
        zip_by_key::{ZipByKey},
    ],
}
