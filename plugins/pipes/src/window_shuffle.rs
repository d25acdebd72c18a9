//! `window_shuffle`: each so many consecutive samples in random order.
//!
//! ```toml
//! [window_shuffle]
//! page = "order"
//! examples = ['''forebay head -n 3 "range 1000 | window_shuffle 100 within='value / 10'"''']
//! cases = ["range N | window_shuffle 6 within='value / 9'"]
//! ```

#[cfg(test)]
mod tests;

use forebay_core::{
    Context, DataPipe, Error, Io, Length, PipeInfo, PipeOrder, Result, Sample, State, StateExt, Step, Stream,
    options,
};

use crate::plumbing::keys::By;

options! {
    /// Options of `window_shuffle`.
    pub struct WindowShuffleOptions {
        /// The most samples in a window; 1 keeps the order.
        window_size: usize = required, in 1..=1_000_000_000;
        /// An expression: a window ends when its value changes. Null for windows that end when they are full.
        within: Option<String> = null;
    }
}

/// Gives each `window_size` consecutive samples, which it holds, in random order: none moves out of its window.
///
/// With `within` a window ends sooner, where what the expression gives changes. Every order of a window is alike. The draws are keyed by seed,
/// epoch, pass, node and the number of the window. State: the window, and how many of it were given; its samples come again.
#[derive(Debug)]
pub struct WindowShuffle {
    size: usize,
    within: Option<By>,
    /// How many windows were given.
    window: u64,
    /// The samples of this window come first; the rest keep their memory for the next ones.
    slots: Vec<Sample>,
    count: usize,
    /// What `within` gives for the samples of this window, and for the foremost one.
    value: Vec<u8>,
    next: Vec<u8>,
    /// How many samples were taken for this window: those in it, and those between them that fail.
    taken: u64,
    /// How many of them were taken before a restore: what fails among these was told.
    told: u64,
    /// Once the window is whole: its slots in the order in which they are given, and how many were.
    order: Option<Vec<u32>>,
    given: usize,
    /// An order that was given, for its memory.
    spare: Vec<u32>,
}

/// The version of the saved position's form: the size of the windows, how many were given, how many samples were given of this one, and how
/// many were taken for it.
const VERSION: u32 = 1;

impl DataPipe for WindowShuffle {
    const INFO: PipeInfo = PipeInfo {
        name: "window_shuffle",
        summary: "Random order within windows of consecutive samples",
        order: PipeOrder { shuffles: true, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = WindowShuffleOptions;

    fn new(options: WindowShuffleOptions) -> Result<Self> {
        let WindowShuffleOptions { window_size, within } = options;
        Ok(Self {
            size: window_size,
            within: within.map(|text| By::new("within", Some(&text))).transpose()?,
            window: 0,
            slots: Vec::new(),
            count: 0,
            value: Vec::new(),
            next: Vec::new(),
            taken: 0,
            told: 0,
            order: None,
            given: 0,
            spare: Vec::new(),
        })
    }
}

impl Stream for WindowShuffle {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.slots.clear();
        self.empty();
        self.window = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            if self.order.is_none() {
                if !self.gather(io)? && !io.ended(0) {
                    return Ok(Step::NeedInput(0));
                }
                self.close(cx)?;
            }
            let Some(order) = &self.order else { return Ok(Step::End) };
            let most = order.len().min(self.given.saturating_add(io.room()));
            for &slot in order.get(self.given..most).unwrap_or_default() {
                io.push(&mut self.slots[slot as usize]);
            }
            self.given = most;
            if most == order.len() {
                self.empty();
                self.window += 1;
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    fn state(&self) -> Result<State> {
        let place = (self.size, self.window, self.given, self.taken.max(self.told));
        Ok(State::json(VERSION, &place)?.again(0, self.taken))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (size, window, given, told): (usize, u64, usize, u64) = state.parse(VERSION)?;
        if size != self.size {
            let error =
                Error::invalid(format!("found the state of windows of {size}, expected {}", self.size));
            return Err(error.context("option", "window_size"));
        }
        if given as u64 > told {
            return Err(Error::invalid("unreadable state of a window shuffle"));
        }
        (self.window, self.given, self.told) = (window, given, told);
        Ok(())
    }
}

impl WindowShuffle {
    /// Begins the next window.
    fn empty(&mut self) {
        self.spare = self.order.take().unwrap_or_default();
        (self.count, self.taken, self.told, self.given) = (0, 0, 0, 0);
    }

    /// Takes samples until the window is whole or none waits; says whether it is whole.
    fn gather(&mut self, io: &mut Io) -> Result<bool> {
        let Some(input) = io.input(0) else { return Ok(false) };
        while self.count < self.size && !input.is_empty() {
            if let Some(within) = &mut self.within {
                if let Some(Err(error)) = within.read(input, &mut self.next) {
                    input.advance();
                    self.taken += 1;
                    let again = self.taken <= self.told;
                    if self.count == 0 {
                        self.taken = 0; // The window begins behind it.
                    }
                    if again {
                        continue;
                    }
                    return Err(error);
                }
                if self.count == 0 {
                    std::mem::swap(&mut self.value, &mut self.next);
                } else if self.value != self.next {
                    return Ok(true);
                }
            }
            if self.count == self.slots.len() {
                self.slots.push(Sample::default());
            }
            input.pop_into(&mut self.slots[self.count]);
            self.count += 1;
            self.taken += 1;
        }
        Ok(self.count == self.size)
    }

    /// Draws the order of the window, if there are samples in it.
    fn close(&mut self, cx: &Context) -> Result<()> {
        if self.told > self.taken || self.given > self.count {
            let message = format!("the window has {} samples, fewer than at the saved position", self.count);
            self.empty();
            return Err(Error::invalid(message));
        }
        if self.count == 0 {
            return Ok(());
        }
        let mut order = std::mem::take(&mut self.spare);
        order.clear();
        // Windows are no longer than 32 bits count.
        order.extend(0..self.count as u32);
        let mut rng = cx.rng(self.window);
        for end in (1..order.len()).rev() {
            order.swap(end, rng.below(end as u64 + 1) as usize);
        }
        self.order = Some(order);
        Ok(())
    }
}
