//! `sort`: samples by what an expression gives, within a bound.
//!
//! ```toml
//! [sort]
//! page = "order"
//! examples = ['forebay head -n 3 "range 100 | shuffle 100 | sort value size=100 reverse=true"']
//! cases = [
//!     "range N | sort '-value' size=6",
//!     "range N | sort 'value % 5' size=6 mode=window",
//! ]
//! ```

mod blocks;
mod buffer;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use forebay_core::{
    Chunk, Context, DataPipe, Error, Io, Length, PipeInfo, Result, State, Step, Stream, options,
};

use self::{blocks::Blocks, buffer::Buffer};
use crate::plumbing::expression::{Rank, Running};

options! {
    /// Options of `sort`.
    pub struct SortOptions {
        /// What to sort by: an expression that gives numbers, text, bytes, truth values or null.
        by: String = required;
        /// The most samples to hold.
        size: usize = required, in 1..=1000000000;
        /// Give the greatest first.
        reverse: bool = false;
        /// `buffer` holds `size` samples and always gives the first in order; `window` sorts each `size` samples by
        /// themselves.
        mode: String = "buffer", one_of ["buffer", "window"];
    }
}

/// Sorts samples by an expression over their fields, as far as `size` of them reach; those that are equal keep their order.
///
/// A buffer sorts whole streams of which no sample is `size` or more places too late. Null comes first, then truth values, numbers
/// whatever their types, NaN, text and bytes; of text and bytes, the bytes count. State: with `buffer` how old each sample held is, two to
/// three bytes for each, and the input comes again from the oldest on, which may be long ago; with `window` the place in
/// the window, which comes again.
#[derive(Debug)]
pub struct Sort {
    by: By,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Buffer(Buffer),
    Window(Blocks),
}

/// What is sorted by, and which way.
#[derive(Debug)]
struct By {
    expression: Running,
    reverse: bool,
}

/// A sample that is held: the greatest of them is the one to give first.
#[derive(Debug)]
struct Place {
    rank: Rank,
    reverse: bool,
    /// Which of all samples it is.
    ordinal: u64,
    /// Where it lies.
    slot: usize,
}

impl Ord for Place {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let ranks = self.rank.cmp(&other.rank);
        let ranks = if self.reverse { ranks } else { ranks.reverse() };
        ranks.then_with(|| other.ordinal.cmp(&self.ordinal))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}

impl By {
    /// The place of the foremost sample of an input, which has one.
    ///
    /// # Errors
    /// As the expression, with the sample.
    #[inline]
    fn place(&mut self, input: &Chunk, ordinal: u64, slot: usize) -> Result<Option<Place>> {
        let Some((_, key, schema, values)) = input.peek() else { return Ok(None) };
        let (expression, places) = self.expression.of(schema);
        let rank =
            expression.rank(places, key, schema, values).map_err(|error| error.context("sample", key))?;
        Ok(Some(Place { rank, reverse: self.reverse, ordinal, slot }))
    }
}

impl DataPipe for Sort {
    const INFO: PipeInfo = PipeInfo {
        name: "sort",
        summary: "Samples by what an expression gives, within a bound",
        ..PipeInfo::DEFAULT
    };
    type Options = SortOptions;

    fn new(options: SortOptions) -> Result<Self> {
        let SortOptions { by, size, reverse, mode } = options;
        let mode = match mode.as_str() {
            "window" => Mode::Window(Blocks::new(size)),
            _ => Mode::Buffer(Buffer::new(size)),
        };
        Ok(Self { by: By { expression: Running::new(&by, "by")?, reverse }, mode })
    }
}

impl Stream for Sort {
    fn reset(&mut self, _: &Context) -> Result<()> {
        match &mut self.mode {
            Mode::Buffer(buffer) => buffer.reset(),
            Mode::Window(blocks) => blocks.reset(),
        }
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        match &mut self.mode {
            Mode::Buffer(buffer) => buffer.poll(&mut self.by, io),
            Mode::Window(blocks) => blocks.poll(&mut self.by, io),
        }
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    fn state(&self) -> Result<State> {
        match &self.mode {
            Mode::Buffer(buffer) => Ok(buffer.state()),
            Mode::Window(blocks) => blocks.state(),
        }
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        match &mut self.mode {
            Mode::Buffer(buffer) => buffer.restore(state),
            Mode::Window(blocks) => blocks.restore(state),
        }
    }
}

/// Refuses the position of a sort of another size.
fn same_size(found: u64, expected: usize) -> Result<()> {
    if found == expected as u64 {
        return Ok(());
    }
    let message = format!("found the state of a sort of {found} samples, expected {expected}");
    Err(Error::invalid(message).context("option", "size"))
}
