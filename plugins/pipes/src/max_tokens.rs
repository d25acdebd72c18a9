//! `max_tokens`: batches of as many samples as so many tokens allow.

#[cfg(test)]
mod tests;

use std::{cmp::Reverse, collections::BinaryHeap};

use forebay_core::{
    Chunk, Context, DataPipe, Error, Io, OneOrMany, PipeInfo, Result, Sample, State, Step, Stream, options,
};

use crate::{
    again::Held,
    length::Length,
    pad::{Padding, Pads},
    rows::Rows,
    stack::Place,
};

/// Samples in a batch for which there is place at first.
const PLACE: usize = 16;

options! {
    /// Options of `max_tokens`.
    pub struct MaxTokensOptions {
        /// An expression for the length of a sample: a number, or something that has a length.
        length: String = required;
        /// The greatest sum of the lengths in a batch.
        most: usize = required, in 1..=1_000_000_000;
        /// Samples that are sorted by their length, of which the shortest comes next.
        buffer: usize = 1000, in 1..=10_000_000;
        /// The least length; shorter samples are left out.
        min: usize = 1, in 1..=1_000_000_000;
        /// The greatest length; longer samples are left out. Null for `most`.
        max: Option<usize> = null, in 1..=1_000_000_000;
        /// Count each sample as long as the longest in its batch.
        padding: bool = false;
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
        /// A new field for the uids of the samples in a batch, in their order; null for none.
        uids: Option<String> = null;
    }
}

/// Sorts samples by their length in a buffer, and puts the shortest ones together for as long as their lengths sum up to no more
/// than `most`.
///
/// The buffer is filled, then gives its shortest sample for each that comes in, the first of those that are equally long. A batch is
/// padded as `padded_batch` does, and has the key and uid of its first sample. Memory: `buffer` samples and those of one batch, of
/// which each has a length of 1 at least. State: how old each of them is; all samples from the oldest on come again.
pub struct MaxTokens {
    length: Length,
    most: usize,
    buffer: usize,
    lengths: std::ops::RangeInclusive<usize>,
    padding: bool,
    /// The samples of the buffer, and the places that are free.
    slots: Vec<Sample>,
    free: Vec<usize>,
    /// The buffer, the shortest first.
    heap: BinaryHeap<Reverse<Waiting>>,
    /// The unfinished batch, for how many samples it has place, what their lengths sum up to, and the greatest.
    rows: Rows<Padding>,
    capacity: usize,
    sum: usize,
    longest: usize,
    /// Takes each sample on its way into the batch.
    one: Chunk,
    /// The samples in the batch; while they come again, those in the buffer too.
    held: Held,
    /// Those that came again, with their lists and their places in these.
    back: Vec<((usize, usize), Waiting)>,
}

/// A sample in the buffer: its length, its number and its slot.
type Waiting = (usize, u64, usize);

impl DataPipe for MaxTokens {
    const INFO: PipeInfo = PipeInfo {
        name: "max_tokens",
        summary: "Batches of as many samples as so many tokens allow",
        uids_option: "uids",
        drops: "*",
        ..PipeInfo::DEFAULT
    };
    type Options = MaxTokensOptions;

    fn new(options: MaxTokensOptions) -> Result<Self> {
        let MaxTokensOptions { most, buffer, min, padding, uids, .. } = options;
        let max = options.max.unwrap_or(most);
        let refuse = |option: &str, message: String| Err(Error::invalid(message).context("option", option));
        if max > most {
            return refuse("max", format!("found {max}, expected no more than `most`, which is {most}"));
        }
        if min > max {
            return refuse("min", format!("found {min}, expected no more than the greatest length, {max}"));
        }
        let MaxTokensOptions { multiple, fields, values, mask, lengths, .. } = options;
        let pads = Padding::new(
            Pads { fields: fields.map(|fields| fields.0), multiple, values, mask, lengths },
            Vec::new(),
        )?;
        Ok(Self {
            length: Length::new(&options.length)?,
            most,
            buffer,
            lengths: min..=max,
            padding,
            slots: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            rows: Rows::new(pads, uids.as_deref()),
            capacity: PLACE,
            sum: 0,
            longest: 0,
            one: Chunk::new(),
            held: Held::new(2),
            back: Vec::new(),
        })
    }
}

/// Moves the foremost sample to a free slot, which it gives.
fn store(input: &mut Chunk, slots: &mut Vec<Sample>, free: &mut Vec<usize>) -> usize {
    let slot = free.pop().unwrap_or_else(|| {
        slots.push(Sample::default());
        slots.len() - 1
    });
    input.pop_into(&mut slots[slot]);
    slot
}

impl MaxTokens {
    /// Takes the foremost sample into the buffer, unless it is too short or too long.
    fn take(&mut self, input: &mut Chunk) -> Result<()> {
        let number = self.held.take();
        let Some((_, key, schema, values)) = input.peek() else { return Ok(()) };
        let length = self.length.of(key, schema, values);
        match length {
            Ok(length) if self.lengths.contains(&length) => {
                let slot = store(input, &mut self.slots, &mut self.free);
                self.heap.push(Reverse((length, number, slot)));
            }
            other => {
                input.advance();
                other?;
            }
        }
        Ok(())
    }

    /// Takes again what was held; says whether all is there.
    fn come_back(&mut self, io: &mut Io, cx: &Context) -> Result<bool> {
        let Self { held, length, slots, free, back, .. } = self;
        let all = held.again(io, |input, place, number| {
            let Some((_, key, schema, values)) = input.peek() else { return Ok(()) };
            let length = length.of(key, schema, values);
            let slot = store(input, slots, free);
            back.push((place, (length?, number, slot)));
            Ok(())
        });
        if !*all.as_ref().unwrap_or(&true) {
            return Ok(false);
        }
        let mut back = std::mem::take(&mut self.back);
        all?;
        back.sort_unstable_by_key(|(place, _)| *place);
        for ((list, _), waiting) in back {
            match list {
                0 => self.join(waiting, cx)?,
                _ => self.heap.push(Reverse(waiting)),
            }
        }
        self.held.list(1).clear();
        Ok(true)
    }

    /// Whether a sample of this length may join the batch.
    fn fits(&self, length: usize) -> bool {
        let tokens = match self.padding {
            true => (self.rows.count() + 1).saturating_mul(length.max(self.longest)),
            false => self.sum.saturating_add(length),
        };
        self.rows.count() == 0 || tokens <= self.most
    }

    /// Puts a sample of the buffer into the batch.
    fn join(&mut self, (length, _, slot): Waiting, cx: &Context) -> Result<()> {
        self.one.push_sample(&mut self.slots[slot]);
        self.free.push(slot);
        if self.rows.count() == 0 {
            (self.capacity, self.sum, self.longest) = (PLACE.min(self.most), 0, 0);
        }
        let mut place = Place { capacity: self.capacity, strict: true, cx };
        if self.rows.count() == self.capacity {
            place.capacity *= 2;
            if let Err(error) = self.rows.grow(&place) {
                self.one.clear();
                return Err(error);
            }
            self.capacity = place.capacity;
        }
        self.rows.take(&mut self.one, &place)?;
        self.sum += length;
        self.longest = self.longest.max(length);
        Ok(())
    }

    fn give(&mut self, io: &mut Io, cx: &Context) -> Result<()> {
        self.held.list(0).clear();
        io.push(&mut self.rows.finish(cx)?);
        Ok(())
    }
}

impl Stream for MaxTokens {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.slots.clear();
        self.free.clear();
        self.heap.clear();
        self.rows.clear();
        self.held.clear();
        self.back.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if !self.come_back(io, cx)? {
            return Ok(Step::NeedInput(0));
        }
        while io.room() > 0 {
            if self.heap.len() < self.buffer {
                if let Some(input) = io.input(0).filter(|input| !input.is_empty()) {
                    self.take(input)?;
                    continue;
                }
                if !io.ended(0) {
                    return Ok(Step::NeedInput(0));
                }
            }
            let shortest = self.heap.peek().map(|Reverse((length, ..))| *length);
            if self.rows.count() > 0 && !shortest.is_some_and(|length| self.fits(length)) {
                self.give(io, cx)?;
            } else if let Some(Reverse(waiting)) = self.heap.pop() {
                self.join(waiting, cx)?;
                self.held.list(0).push(waiting.1);
            } else {
                self.reset(cx)?;
                return Ok(Step::End);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        let buffered = self.heap.iter().map(|Reverse((_, number, _))| *number);
        Ok(self.held.state_with(1, buffered))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.held.restore(state, |list, count| count <= [self.most, self.buffer][list])
    }
}
