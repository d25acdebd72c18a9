//! Samples that wait in a pipe for others, in the order in which they came, and what a saved position says of them.

use forebay_core::{Chunk, Error, Io, Result, Sample};

use crate::plumbing::replay::{self, Next, Replay, Wanted};

/// Samples of one input that wait. Each has a slot, a small number that is its own until it is let go.
///
/// A saved position holds no samples but which of those taken were held: how many, how many not, how many again, and so on,
/// from the oldest one on. They come again, and what was not held is passed over.
#[derive(Debug, Default)]
pub(crate) struct Held {
    slots: Vec<Slot>,
    free: Vec<u32>,
    oldest: Option<u32>,
    newest: Option<u32>,
    len: usize,
    /// How many samples were taken.
    taken: u64,
    /// After a restore: what is still to be taken again.
    replay: Option<Replay<Runs>>,
}

#[derive(Debug, Default)]
struct Slot {
    sample: Sample,
    /// Which of the samples taken it is, from 0.
    ordinal: u64,
    older: Option<u32>,
    newer: Option<u32>,
}

/// How many samples were held, how many not, how many again, and so on, from the oldest one on.
#[derive(Debug)]
struct Runs {
    all: Vec<u64>,
    /// The run, and how many of it are behind.
    at: usize,
    within: u64,
}

impl Wanted for Runs {
    /// Its ordinal.
    type Place = u64;

    fn take(&mut self, ordinal: u64) -> Option<u64> {
        if self.all.get(self.at).is_some_and(|&run| run == self.within) {
            (self.at, self.within) = (self.at + 1, 0);
        }
        self.within += 1;
        self.at.is_multiple_of(2).then_some(ordinal)
    }
}

/// How taking samples again went.
pub(crate) enum Again {
    /// This one was held, and is again.
    Kept(u32),
    /// The input has no more for now.
    Wait,
    /// All are there.
    Done,
}

impl Held {
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many samples wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slot of the sample that has waited longest.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.oldest
    }

    /// The sample in a slot.
    #[inline]
    pub(crate) fn sample(&mut self, slot: u32) -> &mut Sample {
        &mut self.slots[slot as usize].sample
    }

    /// Takes the foremost sample and keeps it; gives its slot.
    #[inline]
    pub(crate) fn keep(&mut self, input: &mut Chunk) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let older = self.newest.replace(slot);
        let place = &mut self.slots[slot as usize];
        input.pop_into(&mut place.sample);
        (place.ordinal, place.older, place.newer) = (self.taken, older, None);
        match older {
            Some(older) => self.slots[older as usize].newer = Some(slot),
            None => self.oldest = Some(slot),
        }
        self.taken += 1;
        self.len += 1;
        slot
    }

    /// Takes the foremost sample into `sample`, and does not keep it.
    #[inline]
    pub(crate) fn pass_into(&mut self, input: &mut Chunk, sample: &mut Sample) {
        input.pop_into(sample);
        self.taken += 1;
    }

    /// Takes the foremost sample, and lets it go.
    pub(crate) fn pass(&mut self, input: &mut Chunk) {
        input.advance();
        self.taken += 1;
    }

    /// Lets the sample in a slot go, or what is left of it.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        let Slot { older, newer, .. } = self.slots[slot as usize];
        match older {
            Some(older) => self.slots[older as usize].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.slots[newer as usize].older = older,
            None => self.newest = older,
        }
        self.free.push(slot);
        self.len -= 1;
    }

    /// For a saved position: how many samples from the oldest on were held, how many not, how many again, and so on.
    pub(crate) fn runs(&self) -> Vec<u64> {
        if let Some(replay) = &self.replay {
            return replay.wanted().all.clone();
        }
        let mut runs: Vec<u64> = Vec::new();
        let (mut at, mut next) = (self.oldest, None);
        while let Some(slot) = at.and_then(|at| self.slots.get(at as usize)) {
            match (runs.last_mut(), next) {
                (Some(run), Some(next)) if slot.ordinal == next => *run += 1,
                (_, next) => {
                    runs.extend(next.map(|next| slot.ordinal - next));
                    runs.push(1);
                }
            }
            (at, next) = (slot.newer, Some(slot.ordinal + 1));
        }
        runs.extend(next.map(|next| self.taken - next).filter(|&passed| passed > 0));
        runs
    }

    /// For a saved position: how many samples are to come again.
    pub(crate) fn again(&self) -> u64 {
        match (&self.replay, self.oldest) {
            (Some(replay), _) => replay.taken(),
            (None, Some(oldest)) => self.taken - self.slots[oldest as usize].ordinal,
            (None, None) => 0,
        }
    }

    /// Goes to a saved position: the samples come again by [`take_again`](Held::take_again).
    ///
    /// # Errors
    /// `Invalid` when these are no runs.
    pub(crate) fn restore(&mut self, runs: Vec<u64>) -> Result<()> {
        let all = runs.iter().try_fold(0_u64, |sum, &run| sum.checked_add(run).filter(|_| run > 0));
        let Some(all) = all else {
            return Err(Error::invalid("unreadable state: found a run of no samples, or of too many"));
        };
        self.clear();
        let wanted = Runs { all: runs, at: 0, within: 0 };
        self.replay = (all > 0).then(|| Replay::from_the_first(wanted, all));
        Ok(())
    }

    /// After a restore: takes samples again, up to the next one that was held.
    ///
    /// # Errors
    /// `Invalid` when the input ends before the saved position; then nothing is held.
    #[inline]
    pub(crate) fn take_again(&mut self, io: &mut Io, input: usize) -> Result<Again> {
        if self.replay.is_none() { Ok(Again::Done) } else { self.take_next_again(io, input) }
    }

    fn take_next_again(&mut self, io: &mut Io, input: usize) -> Result<Again> {
        let end = self.replay.as_ref().map_or(0, Replay::end);
        let next = replay::next(&mut self.replay, io, input).inspect_err(|_| self.clear())?;
        Ok(match (next, io.input(input)) {
            (Next::Held(ordinal), Some(chunk)) => {
                self.taken = ordinal;
                Again::Kept(self.keep(chunk))
            }
            (Next::Done, _) => {
                self.taken = end;
                Again::Done
            }
            _ => Again::Wait,
        })
    }
}
