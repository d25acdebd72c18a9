//! A buffer that gives the first of its samples, and then takes the next.

use std::collections::BinaryHeap;

use forebay_core::{Error, Io, Result, Sample, State, StateExt, Step};

use super::{By, Place};
use crate::plumbing::{
    numbers,
    replay::{self, Replay},
};

/// The version of the saved position's form: the numbers of [`numbers::write`], which are the size of the buffer, how many samples were
/// taken, and for each that is held how many were taken after it.
const VERSION: u32 = 1;
/// The ordinal of a slot that holds nothing.
const NONE: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Buffer {
    size: usize,
    /// What is held, the first to give at the top.
    heap: BinaryHeap<Place>,
    /// The samples held, each in its slot, and which of all that were taken each is.
    slots: Vec<Sample>,
    ordinals: Vec<u64>,
    /// Whether the top was given: the next sample takes its place and its slot.
    vacant: bool,
    taken: u64,
    /// After a restore: what is still to be taken again.
    replay: Option<Replay>,
}

impl Buffer {
    pub(super) fn new(size: usize) -> Self {
        let (heap, slots, ordinals) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Self { size, heap, slots, ordinals, vacant: false, taken: 0, replay: None }
    }

    pub(super) fn reset(&mut self) {
        self.heap.clear();
        self.ordinals.clear();
        (self.vacant, self.taken, self.replay) = (false, 0, None);
    }

    pub(super) fn poll(&mut self, by: &mut By, io: &mut Io) -> Result<Step> {
        if !self.take_again(by, io)? {
            return Ok(Step::NeedInput(0));
        }
        while io.room() > 0 {
            if !self.fill(by, io)? && !io.ended(0) {
                return Ok(Step::NeedInput(0));
            }
            if self.vacant {
                self.heap.pop();
                self.vacant = false;
            }
            let Some(top) = self.heap.peek() else { return Ok(Step::End) };
            io.push(&mut self.slots[top.slot]);
            self.ordinals[top.slot] = NONE;
            self.vacant = true;
        }
        Ok(Step::Ready)
    }

    /// Takes samples until the buffer is full or none waits; says whether it is full.
    fn fill(&mut self, by: &mut By, io: &mut Io) -> Result<bool> {
        let Some(input) = io.input(0) else { return Ok(false) };
        while self.vacant || self.heap.len() < self.size {
            let slot = match self.heap.peek() {
                Some(top) if self.vacant => top.slot,
                _ => self.ordinals.len(),
            };
            let place = match by.place(input, self.taken, slot) {
                Ok(Some(place)) => place,
                Ok(None) => return Ok(false),
                Err(error) => {
                    input.advance();
                    self.taken += 1;
                    return Err(error);
                }
            };
            if slot == self.slots.len() {
                self.slots.push(Sample::default());
            }
            input.pop_into(&mut self.slots[slot]);
            if self.vacant {
                if let Some(mut top) = self.heap.peek_mut() {
                    *top = place;
                }
            } else {
                self.heap.push(place);
                self.ordinals.push(NONE);
            }
            self.ordinals[slot] = self.taken;
            self.vacant = false;
            self.taken += 1;
        }
        Ok(true)
    }

    /// Takes again what waits; says whether all is there that was held.
    fn take_again(&mut self, by: &mut By, io: &mut Io) -> Result<bool> {
        let Self { heap, slots, ordinals, replay, .. } = self;
        let took = replay::take_again(replay, io, |slot, input| {
            heap.extend(by.place(input, ordinals[slot], slot)?);
            input.pop_into(&mut slots[slot]);
            Ok(())
        });
        took.inspect_err(|_| {
            *replay = None;
            heap.clear();
            ordinals.clear();
        })
    }

    pub(super) fn state(&self) -> State {
        let held = || self.ordinals.iter().filter(|&&ordinal| ordinal != NONE);
        let ages = held().map(|ordinal| self.taken - 1 - ordinal);
        let bytes = numbers::write([self.size as u64, self.taken].into_iter().chain(ages));
        let again = match &self.replay {
            Some(replay) => replay.taken(),
            None => held().min().map_or(0, |oldest| self.taken - oldest),
        };
        State { version: VERSION, bytes: bytes.into(), ..State::default() }.again(0, again)
    }

    pub(super) fn restore(&mut self, state: &State) -> Result<()> {
        let unreadable = || Error::invalid("unreadable state of a sort");
        if state.version != VERSION {
            let found = state.version;
            return Err(Error::invalid(format!("found a state of version {found}, expected {VERSION}")));
        }
        let saved = numbers::read(&state.bytes).ok_or_else(unreadable)?;
        let [size, taken, ages @ ..] = saved.as_slice() else { return Err(unreadable()) };
        super::same_size(*size, self.size)?;
        let ordinals = ages.iter().map(|age| taken.checked_sub(1)?.checked_sub(*age));
        let ordinals = ordinals.collect::<Option<Vec<_>>>().filter(|ordinals| ordinals.len() <= self.size);
        let ordinals = ordinals.ok_or_else(unreadable)?;
        self.replay = Replay::new(&ordinals, *taken).ok_or_else(unreadable)?;
        self.slots.resize_with(ordinals.len(), Sample::default);
        (self.taken, self.ordinals) = (*taken, ordinals);
        Ok(())
    }
}
