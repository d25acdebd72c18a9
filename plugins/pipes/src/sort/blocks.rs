//! Windows of consecutive samples, each sorted by itself.

use forebay_core::{Error, Io, Result, Sample, State, StateExt, Step};

use super::{By, Place};

/// The version of the saved position's form: the size of the windows, how many samples of this one were given, and up to which of
/// them those that fail were told.
const VERSION: u32 = 2;

#[derive(Debug)]
pub(super) struct Blocks {
    size: usize,
    /// The samples of this window; once it is whole, the first to give last.
    places: Vec<Place>,
    slots: Vec<Sample>,
    whole: bool,
    /// How many samples were taken for this window: those in it, and those between them that fail.
    taken: u64,
    /// Up to which of them it told of those that fail, at times before a restore.
    told: u64,
    given: usize,
    /// How many samples it has when it is whole.
    count: usize,
}

impl Blocks {
    pub(super) fn new(size: usize) -> Self {
        let (places, slots) = (Vec::new(), Vec::new());
        Self { size, places, slots, whole: false, taken: 0, told: 0, given: 0, count: 0 }
    }

    pub(super) fn reset(&mut self) {
        self.places.clear();
        (self.whole, self.taken, self.told, self.given) = (false, 0, 0, 0);
    }

    pub(super) fn poll(&mut self, by: &mut By, io: &mut Io) -> Result<Step> {
        while io.room() > 0 {
            if !self.whole {
                if !self.gather(by, io)? && !io.ended(0) {
                    return Ok(Step::NeedInput(0));
                }
                self.places.sort_unstable();
                self.count = self.places.len();
                self.whole = true;
                // After a restore: those were given before.
                self.places.truncate(self.count.saturating_sub(self.given));
            }
            while io.room() > 0
                && let Some(place) = self.places.pop()
            {
                io.push(&mut self.slots[place.slot]);
                self.given += 1;
            }
            if self.places.is_empty() {
                let last = self.count < self.size;
                self.reset();
                if last {
                    return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
                }
            }
        }
        Ok(Step::Ready)
    }

    /// Takes samples until the window is full or none waits; says whether it is full.
    fn gather(&mut self, by: &mut By, io: &mut Io) -> Result<bool> {
        let Some(input) = io.input(0) else { return Ok(false) };
        while self.places.len() < self.size {
            let slot = self.places.len();
            let place = by.place(input, self.taken, slot);
            if let Ok(None) = place {
                return Ok(false);
            }
            self.taken += 1;
            match place {
                Ok(place) => {
                    if slot == self.slots.len() {
                        self.slots.push(Sample::default());
                    }
                    input.pop_into(&mut self.slots[slot]);
                    self.places.extend(place);
                }
                Err(error) => {
                    input.advance();
                    let again = self.taken <= self.told;
                    if slot == 0 {
                        self.taken = 0; // The window begins behind it.
                    }
                    if !again {
                        return Err(error);
                    }
                }
            }
        }
        Ok(true)
    }

    pub(super) fn state(&self) -> Result<State> {
        let state = State::json(VERSION, &(self.size, self.given, self.taken.max(self.told)))?;
        Ok(state.again(0, self.taken))
    }

    pub(super) fn restore(&mut self, state: &State) -> Result<()> {
        let (size, given, told): (u64, usize, u64) = state.parse(VERSION)?;
        super::same_size(size, self.size)?;
        if given > self.size {
            return Err(Error::invalid("unreadable state of a sort"));
        }
        (self.given, self.told) = (given, told);
        Ok(())
    }
}
