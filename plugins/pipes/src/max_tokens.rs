//! `max_tokens`: batches of as many samples as so many tokens allow.
//!
//! ```toml
//! [max_tokens]
//! page = "batches"
//! examples = ['''forebay run "range 40 | map 'ids = [1, 2, 3, 4].filter(x, x <= value % 4 + 1)' | max_tokens 'size(ids)' most=16"''']
//! cases = ["range N | map 'n=1 + value % 7' | max_tokens n most=20 buffer=5"]
//! counted = false
//! ```

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    iter,
};

use forebay_core::{
    Chunk, Context, DataPipe, Drops, Error, Io, Noun, OneOrMany, PipeAudit, PipeInfo, PipeLayout, Result,
    Sample, Schema, State, Step, Stream, options,
};

use crate::plumbing::{
    length::Length,
    lists::Lists,
    pad::{Padding, padding_options},
    rows::Rows,
    stack::Place,
};

/// Samples in a batch for which there is place at first.
const PLACE: usize = 16;

padding_options! {
    /// Options of `max_tokens`.
    pub struct MaxTokensOptions {
        /// An expression for the length of a sample: a number, or a value that has a length.
        length: String = required;
        /// The greatest sum of the lengths in a batch.
        most: usize = required, in 1..=1_000_000_000;
        /// How many samples wait in a buffer, from which the shortest is taken next.
        buffer: usize = 1000, in 1..=10_000_000;
        /// The least length; shorter samples are left out.
        min: usize = 1, in 1..=1_000_000_000;
        /// The greatest length; longer samples are left out. Null for `most`.
        max: Option<usize> = null, in 1..=1_000_000_000;
        /// Count each sample as long as the longest in its batch.
        padding: bool = false;
    }
    then {
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
    waiting: Waiting,
    /// The unfinished batch, for how many samples it has place, what their lengths sum up to, and the greatest.
    rows: Rows<Padding>,
    capacity: usize,
    sum: usize,
    longest: usize,
    /// The samples in the batch; while they come again, those in the buffer too.
    held: Lists,
    /// Those that came again, with their lists and their places in these, lengths and slots.
    back: Vec<((usize, usize), usize, usize)>,
}

/// The samples of the buffer.
#[derive(Debug, Default)]
struct Waiting {
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// The first and the last slot of the samples of each length; those of one length are in the order in which they came.
    by_length: BTreeMap<usize, (usize, usize)>,
    count: usize,
}

#[derive(Debug, Default)]
struct Slot {
    sample: Sample,
    number: u64,
    /// The next one of the same length; of the last one anything.
    next: usize,
}

impl DataPipe for MaxTokens {
    const INFO: PipeInfo = PipeInfo {
        name: "max_tokens",
        summary: "Batches with a bound on the sum of lengths",
        also: &["max_token_bucketize"],
        audit: PipeAudit { uids_option: Some("uids"), drops: Drops::Always, ..PipeAudit::DEFAULT },
        layout: PipeLayout { gives: Some(Noun::BATCH), ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = MaxTokensOptions;

    fn new(options: MaxTokensOptions) -> Result<Self> {
        let pads = options.pads();
        let MaxTokensOptions { most, buffer, min, padding, uids, .. } = options;
        let max = options.max.unwrap_or(most);
        let refuse = |option: &str, message: String| Err(Error::invalid(message).context("option", option));
        if max > most {
            return refuse("max", format!("found {max}, expected no more than `most`, which is {most}"));
        }
        if min > max {
            return refuse("min", format!("found {min}, expected no more than the greatest length, {max}"));
        }
        let pads = Padding::new(pads, Vec::new())?;
        Ok(Self {
            length: Length::new(&options.length)?,
            most,
            buffer,
            lengths: min..=max,
            padding,
            waiting: Waiting::default(),
            rows: Rows::new(pads, uids.as_deref()),
            capacity: PLACE,
            sum: 0,
            longest: 0,
            held: Lists::new(2),
            back: Vec::new(),
        })
    }
}

impl Waiting {
    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Moves the foremost sample, which has this number, to a free slot; gives that.
    fn store(&mut self, input: &mut Chunk, number: u64) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        input.pop_into(&mut self.slots[slot].sample);
        self.slots[slot].number = number;
        slot
    }

    /// Adds what lies in a slot, behind those of its length.
    fn push(&mut self, length: usize, slot: usize) {
        self.count += 1;
        match self.by_length.entry(length) {
            Entry::Occupied(ends) => {
                let (_, last) = ends.into_mut();
                self.slots[*last].next = slot;
                *last = slot;
            }
            Entry::Vacant(place) => drop(place.insert((slot, slot))),
        }
    }

    /// The least length.
    fn shortest(&self) -> Option<usize> {
        self.by_length.first_key_value().map(|(length, _)| *length)
    }

    /// Takes the first of the shortest: its length and its slot, which stays taken.
    fn pop(&mut self) -> Option<(usize, usize)> {
        let mut entry = self.by_length.first_entry()?;
        let (length, (first, last)) = (*entry.key(), *entry.get());
        if first == last {
            entry.remove();
        } else {
            entry.get_mut().0 = self.slots[first].next;
        }
        self.count -= 1;
        Some((length, first))
    }

    /// The numbers of all, the shortest first.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.by_length.values().flat_map(move |&(first, last)| {
            let slots =
                iter::successors(Some(first), move |&slot| (slot != last).then(|| self.slots[slot].next));
            slots.map(|slot| self.slots[slot].number)
        })
    }
}

impl MaxTokens {
    /// Takes the foremost sample into the buffer, unless it is too short or too long.
    fn take(&mut self, input: &mut Chunk) -> Result<()> {
        let number = self.held.take();
        let Some((_, key, schema, values)) = input.peek() else { return Ok(()) };
        let length = self.length.of(key, schema, values);
        match length {
            Ok(length) if self.lengths.contains(&length) => {
                let slot = self.waiting.store(input, number);
                self.waiting.push(length, slot);
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
        let Self { held, length, waiting, back, .. } = self;
        let all = held.again(io, |input, place, number| {
            let Some((_, key, schema, values)) = input.peek() else { return Ok(()) };
            let length = length.of(key, schema, values);
            let slot = waiting.store(input, number);
            back.push((place, length?, slot));
            Ok(())
        });
        if !*all.as_ref().unwrap_or(&true) {
            return Ok(false);
        }
        let mut back = std::mem::take(&mut self.back);
        all?;
        // Those of the batch in its order; those of the buffer as they came.
        back.sort_by_key(|&((list, place), ..)| (list, if list == 0 { place } else { 0 }));
        for ((list, _), length, slot) in back {
            match list {
                0 => self.join(length, slot, cx)?,
                _ => self.waiting.push(length, slot),
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
    fn join(&mut self, length: usize, slot: usize, cx: &Context) -> Result<()> {
        self.waiting.free.push(slot);
        if self.rows.count() == 0 {
            (self.capacity, self.sum, self.longest) = (PLACE.min(self.most), 0, 0);
        }
        let mut place = Place { capacity: self.capacity, strict: true, cx };
        if self.rows.count() == self.capacity {
            place.capacity *= 2;
            self.rows.grow(&place)?;
            self.capacity = place.capacity;
        }
        let (rows, sample) = (&mut self.rows, &mut self.waiting.slots[slot].sample);
        let uid = sample.uid();
        // Nothing is left of it but its memory.
        sample.reshape(&Schema::empty(), |key, schema, values| rows.put(uid, key, schema, values, &place))?;
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
        self.waiting.clear();
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
            if self.waiting.count < self.buffer {
                if let Some(input) = io.input(0).filter(|input| !input.is_empty()) {
                    self.take(input)?;
                    continue;
                }
                if !io.ended(0) {
                    return Ok(Step::NeedInput(0));
                }
            }
            let shortest = self.waiting.shortest();
            if self.rows.count() > 0 && !shortest.is_some_and(|length| self.fits(length)) {
                self.give(io, cx)?;
            } else if let Some((length, slot)) = self.waiting.pop() {
                let number = self.waiting.slots[slot].number;
                self.join(length, slot, cx)?;
                self.held.list(0).push(number);
            } else {
                self.reset(cx)?;
                return Ok(Step::End);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        Ok(self.held.state_with(1, self.waiting.numbers()))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.held.restore(state, |list, count| count <= [self.most, self.buffer][list])
    }
}
