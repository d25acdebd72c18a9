//! `padded_batch`: consecutive samples stacked into one, with fields that differ in shape padded.

#[cfg(test)]
mod tests;

use forebay_core::{Context, DataPipe, Io, OneOrMany, PipeInfo, Result, State, Step, Stream, options};

use crate::{
    pad::{Padding, Pads},
    rows::Cut,
};

options! {
    /// Options of `padded_batch`.
    pub struct PaddedBatchOptions {
        /// Samples in one batch.
        size: usize = required, in 1..=1_000_000_000;
        /// The length of the first axis, or of each of the first axes; 0, null and axes beyond these for that of the longest in the batch.
        pad_to: Option<OneOrMany<usize>> = null, in 0..=1_000_000_000;
        /// What the length of the first axis, or of each of the first axes, is a multiple of, where it is that of the longest.
        multiple: OneOrMany<usize> = 1, in 1..=1_000_000;
        /// The fields to pad; null for all tensors with axes and all lists of numbers.
        fields: Option<OneOrMany<String>> = null;
        /// `field=number`: what fields are padded with; 0 for the others.
        values: OneOrMany<String> = [];
        /// `_mask` for new fields called that after each padded one, of its shape, true where something was; or `field=name`.
        mask: Option<OneOrMany<String>> = null;
        /// `_length` for new fields called that after each padded one, with the lengths of the first axis before; or `field=name`.
        lengths: Option<OneOrMany<String>> = null;
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
        // Places that the host lays out go to waste only until it sees that lengths differ.
        stacks: "size",
        uids_option: "uids",
        drops: "drop_last",
        ..PipeInfo::DEFAULT
    };
    type Options = PaddedBatchOptions;

    fn new(options: PaddedBatchOptions) -> Result<Self> {
        let PaddedBatchOptions { size, pad_to, multiple, fields, values, mask, lengths, drop_last, uids } =
            options;
        let pads = Pads { fields: fields.map(|fields| fields.0), multiple, values, mask, lengths };
        let padding = Padding::new(pads, pad_to.map_or_else(Vec::new, |pad_to| pad_to.0))?;
        Ok(Self { cut: Cut::new(padding, size, drop_last, uids.as_deref()) })
    }
}

impl Stream for PaddedBatch {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.cut.reset();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        self.cut.poll(io, cx)
    }

    fn state(&self) -> Result<State> {
        self.cut.state()
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.cut.restore(state)
    }
}
