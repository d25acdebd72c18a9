//! `padded_batch`: consecutive samples stacked into one, with fields that differ in shape padded.
//!
//! ```toml
//! [padded_batch]
//! page = "batches"
//! examples = ['''forebay head -n 1 "range 5 | map 'ids = [1, 2, 3].filter(x, x <= value)' | skip 1 | padded_batch 4 fields=ids mask=_mask"''']
//! cases = ["range N | map 'n=value % 3' | flat_map '[1, 2]' keep=false | padded_batch 4"]
//! ```

#[cfg(test)]
mod tests;

use forebay_core::{
    Context, DataPipe, Drops, Noun, OneOrMany, PipeAudit, PipeInfo, PipeLayout, Result, options,
};

use crate::plumbing::{
    pad::{Padding, padding_options},
    rows::{Cut, stream_of_cut},
};

padding_options! {
    /// Options of `padded_batch`.
    pub struct PaddedBatchOptions {
        /// Samples in one batch.
        size: usize = required, in 1..=1_000_000_000;
        /// The padded length of the first axis, or of each of the first axes. 0, null and further axes take the
        /// longest in the batch.
        pad_to: Option<OneOrMany<usize>> = null, in 0..=1_000_000_000;
    }
    then {
        /// Leave out the last batch if it is shorter.
        drop_last: bool = false;
        /// A new field for the uids of the samples in a batch, in their order; null for none.
        uids: Option<String> = null;
    }
}

/// Stacks `size` consecutive samples into one, as `batch` does, where tensors and lists of numbers may differ in shape.
///
/// Tensors of one type and number of axes, and lists of numbers of one type, become one tensor: each axis is as long as that of the
/// longest in the batch, or as `pad_to` says. What is padded is written once; tensors of one shape that lie side by side are joined
/// without a copy. State: none of its own; the samples of the unfinished batch come again.
#[derive(Debug)]
pub struct PaddedBatch {
    cut: Cut<Padding>,
}

impl DataPipe for PaddedBatch {
    const INFO: PipeInfo = PipeInfo {
        name: "padded_batch",
        summary: "Consecutive samples stacked into one, padded where they differ in shape",
        layout: PipeLayout {
            // Places that the host lays out go to waste only until it sees that lengths differ.
            stacks: Some("size"),
            gives: Some(Noun::BATCH),
            ..PipeLayout::DEFAULT
        },
        audit: PipeAudit {
            uids_option: Some("uids"),
            drops: Drops::With(&["drop_last"]),
            ..PipeAudit::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
    type Options = PaddedBatchOptions;

    fn new(options: PaddedBatchOptions) -> Result<Self> {
        let pads = options.pads();
        let padding = Padding::new(pads, options.pad_to.map_or_else(Vec::new, |pad_to| pad_to.0))?;
        Ok(Self { cut: Cut::new(padding, options.size, options.drop_last, options.uids.as_deref()) })
    }
}

stream_of_cut!(PaddedBatch);
