//! The streams of a serial flat map that are open at a time, and whose turn it is.

use std::collections::VecDeque;

use forebay_abi::{Sample, State};
use serde::{Deserialize, Serialize};

use super::flat_map::{Open, open, open_at};
use crate::{
    Context, Error, ErrorKind, FlatMap, Io, Items, OptionType, Options, Result, StateExt as _, Step,
    descriptor::OptionSpec, options::Reader,
};

/// How many streams are open at a time, and how many answers each gives in its turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    cycle: usize,
    block: u64,
}

impl Turns {
    /// One stream after the other.
    pub(super) const ONE: Self = Self { cycle: 1, block: 1 };

    /// How many answers are left of a turn in which so many came.
    fn left(self, given: u64) -> usize {
        match self.cycle {
            // Alone it is always its turn.
            0 | 1 => usize::MAX,
            _ => usize::try_from(self.block.saturating_sub(given)).unwrap_or(usize::MAX),
        }
    }
}

/// The options of a serial flat map: its own, and those of its turns.
pub(super) struct WithTurns<O> {
    pub(super) own: O,
    pub(super) turns: Turns,
}

const fn number(name: &'static str, max: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec { name, kind: u64::KIND, default: "1", min: "1", max, choices: &[], doc }
}

const TURNS: [OptionSpec; 2] = [
    number(
        "interleave",
        "65536",
        " How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.",
    ),
    number("interleave_block", "1000000000", " How many samples one gives before it is the next one's turn."),
];

/// The most options that a flat map has.
const MOST: usize = 64;

impl<O: Options> WithTurns<O> {
    const ALL: [OptionSpec; MOST] = {
        let mut all = [TURNS[0]; MOST];
        let mut at = 0;
        while at < O::SPECS.len() {
            all[at] = O::SPECS[at];
            at += 1;
        }
        all[at] = TURNS[0];
        all[at + 1] = TURNS[1];
        all
    };
}

impl<O: Options> Options for WithTurns<O> {
    const SPECS: &'static [OptionSpec] = Self::ALL.split_at(O::SPECS.len() + TURNS.len()).0;

    fn read(reader: &mut Reader) -> Result<Self> {
        let turns = Turns { cycle: reader.option("interleave")?, block: reader.option("interleave_block")? };
        Ok(Self { own: O::read(reader)?, turns })
    }
}

/// A slot for each stream that is open at a time.
///
/// A stream that has ended leaves its slot in its turn, and the next sample is opened there when the turn comes
/// round again: so `tf.data` and Grain interleave.
pub(super) struct Slots<I> {
    turns: Turns,
    slots: Vec<Slot<I>>,
    /// Whose turn it is, and how many answers of it came.
    at: usize,
    given: u64,
    /// How many samples were taken.
    taken: u64,
    /// After a restore: the samples that come again.
    back: Option<Back>,
}

/// A stream that is open, and the number of its sample among those taken.
struct Slot<I> {
    open: Option<Open<I>>,
    sample: u64,
}

impl<I> Slot<I> {
    const EMPTY: Self = Self { open: None, sample: 0 };
}

/// Samples that come again after a restore: those that were open, and those between them that had ended.
struct Back {
    /// The streams that were open and have not come yet.
    streams: VecDeque<Saved>,
    next: u64,
    end: u64,
}

/// A saved position: whose turn it is, how many answers of it came, how many samples come again, and the streams that were open.
#[derive(Default, Serialize, Deserialize)]
struct Position {
    at: usize,
    given: u64,
    again: u64,
    streams: Vec<Saved>,
}

/// A stream that was open: of which of the samples that come again, in which slot, and where it was.
#[derive(Clone, Serialize, Deserialize)]
struct Saved {
    sample: u64,
    slot: usize,
    given: u64,
    /// The stream's own state, with its version, if it saves any.
    own: Option<(u32, Vec<u8>)>,
}

/// The version of a saved position.
const VERSION: u32 = 2;

impl<I: Items> Slots<I> {
    pub(super) fn new(turns: Turns) -> Self {
        Self { turns, slots: Vec::new(), at: 0, given: 0, taken: 0, back: None }
    }

    pub(super) fn reset(&mut self) {
        self.slots.clear();
        (self.at, self.given, self.taken, self.back) = (0, 0, 0, None);
    }

    /// Gives samples until there is no room left, or it cannot go on.
    pub(super) fn fill<T: FlatMap<Items = I>>(
        &mut self,
        pipe: &T,
        cx: &Context,
        io: &mut Io,
    ) -> Result<Step> {
        if !self.come_back(pipe, cx, io)? {
            return Ok(Step::NeedInput(0));
        }
        let mut sample = Sample::default();
        while io.room() > 0 {
            if self.slots.len() <= self.at {
                // More than one behind the last after a restore, where those before had ended.
                self.slots.resize_with(self.at + 1, || Slot::EMPTY);
            }
            let slot = &mut self.slots[self.at];
            if let Some(open) = &mut slot.open {
                let before = open.given;
                let most = self.turns.left(self.given);
                let Some(filled) = io.fill(most, |out| open.fill(out, cx)) else { return Ok(Step::End) };
                let gave = open.given - before;
                match filled {
                    Ok(false) | Err((_, false)) => self.leave(),
                    Ok(true) | Err((_, true)) => self.gave(gave),
                }
                filled.map_err(|(error, _)| error)?;
            } else if io.pop_into(0, &mut sample) {
                slot.sample = self.taken;
                self.taken += 1;
                open_at(&mut slot.open, pipe, &mut sample, cx)?;
            } else if !io.ended(0) {
                return Ok(Step::NeedInput(0));
            } else if self.slots.iter().all(|slot| slot.open.is_none()) {
                return Ok(Step::End);
            } else {
                self.next_turn();
            }
        }
        Ok(Step::Ready)
    }

    /// Counts answers of the stream whose turn it is.
    fn gave(&mut self, answers: u64) {
        if self.turns.cycle > 1 {
            self.given += answers;
            if self.given >= self.turns.block {
                self.next_turn();
            }
        }
    }

    fn leave(&mut self) {
        self.slots[self.at].open = None;
        self.next_turn();
    }

    fn next_turn(&mut self) {
        (self.at, self.given) = ((self.at + 1) % self.turns.cycle, 0);
    }

    /// Takes the samples again that were open when it was saved, and goes to where each was; says whether all are there.
    fn come_back<T: FlatMap<Items = I>>(&mut self, pipe: &T, cx: &Context, io: &mut Io) -> Result<bool> {
        let Some(back) = &mut self.back else { return Ok(true) };
        while back.next < back.end {
            let Some(sample) = io.pop(0) else {
                if !io.ended(0) {
                    return Ok(false);
                }
                let missing = back.end - back.next;
                self.back = None;
                return Err(Error::invalid(format!(
                    "the input ended {missing} samples before the saved position"
                )));
            };
            let number = back.next;
            back.next += 1;
            if back.streams.front().is_some_and(|saved| saved.sample == number)
                && let Some(saved) = back.streams.pop_front()
            {
                if self.slots.len() <= saved.slot {
                    self.slots.resize_with(saved.slot + 1, || Slot::EMPTY);
                }
                let open = go_to(pipe, sample, &saved, cx)?;
                self.slots[saved.slot] = Slot { open: Some(open), sample: number };
            }
        }
        self.taken = back.end;
        self.back = None;
        Ok(true)
    }

    pub(super) fn state(&self) -> Result<State> {
        let first = self.slots.iter().filter(|slot| slot.open.is_some()).map(|slot| slot.sample).min();
        let (first, again, taken_again) = match &self.back {
            Some(back) => (0, back.end, back.next),
            None => first.map_or((self.taken, 0, 0), |first| (first, self.taken - first, self.taken - first)),
        };
        let mut streams = Vec::new();
        for (slot, Slot { open, sample }) in self.slots.iter().enumerate() {
            let Some(open) = open else { continue };
            let own = match open.items.state() {
                Ok(state) => Some((state.version, state.bytes.into())),
                Err(error) if error.kind() == ErrorKind::Unsupported => None,
                Err(error) => return Err(error),
            };
            streams.push(Saved { sample: sample - first, slot, given: open.given, own });
        }
        streams.extend(self.back.iter().flat_map(|back| &back.streams).cloned());
        streams.sort_unstable_by_key(|saved| saved.sample);
        let position = Position { at: self.at, given: self.given, again, streams };
        if (position.at, position.given, position.again) == (0, 0, 0) {
            return Ok(State::default());
        }
        Ok(State::json(VERSION, &position)?.again(0, taken_again))
    }

    pub(super) fn restore(&mut self, state: &State) -> Result<()> {
        let position = if state.bytes.is_empty() { Position::default() } else { state.parse(VERSION)? };
        let Position { at, given, again, streams } = position;
        let fits = |saved: &Saved| saved.slot < self.turns.cycle && saved.sample < again;
        if self.turns.cycle > 1 && given >= self.turns.block {
            let error = format!("found {given} samples of a turn of {}", self.turns.block);
            return Err(Error::invalid(error).context("option", "interleave_block"));
        }
        let sorted = streams.windows(2).all(|pair| pair[0].sample < pair[1].sample);
        if at >= self.turns.cycle || !streams.iter().all(fits) || !sorted {
            let error = format!("found the state of more streams than {} at a time", self.turns.cycle);
            return Err(Error::invalid(error).context("option", "interleave"));
        }
        (self.at, self.given) = (at, given);
        self.back = (again > 0).then(|| Back { streams: streams.into(), next: 0, end: again });
        Ok(())
    }
}

/// Opens the stream of `sample` where it was.
fn go_to<T: FlatMap>(pipe: &T, sample: Sample, saved: &Saved, cx: &Context) -> Result<Open<T::Items>> {
    let mut open = open(pipe, sample, cx)?;
    match &saved.own {
        Some((version, bytes)) => {
            let state = State { version: *version, bytes: bytes.clone().into(), ..State::default() };
            open.restore(&state, saved.given, cx)?;
        }
        None => open.pass_over(saved.given, cx)?,
    }
    Ok(open)
}
