//! What a flat map does in each entry of the table.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use forebay_abi::{Chunk, Key, Outcome, Pipe, Port, State};

use super::{
    guard::{Instance, catch_within},
    outcome,
    pipes::{Calls, Table, idle, step},
    slots::{Slots, Turns, WithTurns},
};
use crate::{
    Context, Error, ErrorKind, FlatMap, Io, Items, Length, Options, Output, Result, Sample,
    descriptor::{Class, Described},
    export::PipeEntry,
};

/// How many samples of one stream are made before it is looked whether the run was stopped.
const STRETCH: u64 = 64;

/// How many streams that failed are kept; one more than that is opened anew.
const PARKED: usize = 64;

/// The entry of a flat map.
#[must_use]
pub const fn flat_map_entry<T: FlatMap>() -> PipeEntry {
    // What is worked on at once has no turns.
    let options = if T::INFO.placement.parallel {
        T::Options::SPECS
    } else {
        <WithTurns<T::Options> as Options>::SPECS
    };
    PipeEntry { class: Class::FlatMap, described: Described { info: T::INFO, options }, make: make::<T> }
}

fn make<T: FlatMap>(options: &str, _: &'static str) -> Result<Pipe> {
    let (options, turns) = match T::INFO.placement.parallel {
        true => (T::Options::parse(options)?, Turns::ONE),
        false => {
            let WithTurns { own, turns } = WithTurns::<T::Options>::parse(options)?;
            (own, turns)
        }
    };
    let pipe = FlatMapOf { pipe: T::new(options)?, slots: Slots::new(turns), parked: Mutex::default() };
    let instance = Box::into_raw(Box::new(Instance::new(pipe))).cast();
    Ok(Pipe { instance, table: Table::<FlatMapOf<T>>::REF })
}

/// A flat map without options, several of whose samples are worked on at once.
pub(super) fn parallel<T: FlatMap>(pipe: T) -> Pipe {
    let pipe = FlatMapOf { pipe, slots: Slots::new(Turns::ONE), parked: Mutex::default() };
    Pipe { instance: Box::into_raw(Box::new(Instance::new(pipe))).cast(), table: Table::<FlatMapOf<T>>::REF }
}

pub(super) struct FlatMapOf<T: FlatMap> {
    pipe: T,
    slots: Slots<T::Items>,
    /// Streams that failed and go on: the host comes back for each at once, and to open it anew would read again what came before
    /// every error.
    parked: Mutex<VecDeque<(Whose, Open<T::Items>)>>,
}

/// What tells streams apart: epoch, pass, and the uid of the sample.
type Whose = [u64; 3];

/// The stream of one sample, and how many answers it has given: samples, and errors that it went on after.
pub(super) struct Open<I> {
    key: Key,
    pub(super) items: I,
    pub(super) given: u64,
}

/// Opens the stream of `sample`.
pub(super) fn open<T: FlatMap>(pipe: &T, mut sample: Sample, cx: &Context) -> Result<Open<T::Items>> {
    let mut place = None;
    open_at(&mut place, pipe, &mut sample, cx)?;
    place.ok_or_else(|| Error::bug("a stream that was opened is not there"))
}

/// As [`open`], straight in `place`: each move from hand to hand costs as much as to make it.
#[inline]
pub(super) fn open_at<T: FlatMap>(
    place: &mut Option<Open<T::Items>>,
    pipe: &T,
    sample: &mut Sample,
    cx: &Context,
) -> Result<()> {
    let key = sample.key().clone();
    cx.note.at(&raw const key);
    let opened = catch_within(|| {
        let items = pipe.open(std::mem::take(sample), cx)?;
        *place = Some(Open { key: Key::default(), items, given: 0 });
        Ok(())
    });
    cx.note.at(std::ptr::null());
    opened.map_err(|error| error.of_sample(&key))?;
    if let Some(open) = place {
        open.key = key;
    }
    Ok(())
}

impl<I: Items> Open<I> {
    /// Adds what comes next to `out`, until there is no room or no more; says which. Whether more may come after an error is told
    /// beside it.
    pub(super) fn fill(&mut self, out: &mut Output, cx: &Context) -> Result<bool, (Error, bool)> {
        let room = out.room();
        cx.note.at(&raw const self.key);
        let filled = catch_within(|| self.items.fill(out, cx));
        cx.note.at(std::ptr::null()); // It may be dropped before the call ends.
        self.given += (room - out.room()) as u64 + u64::from(filled.is_err());
        // Where there is no room an end is not asked for: some know of it at their last sample, and others only behind it.
        filled.map(|more| more || out.room() == 0).map_err(|error| {
            // What is left of a broken input cannot be told apart, unless the stream can.
            let goes_on = error.kind() != ErrorKind::Panic && self.items.goes_on();
            (error.of_sample(&self.key), goes_on)
        })
    }

    /// Goes to where it had given so many answers.
    pub(super) fn restore(&mut self, state: &State, given: u64, cx: &Context) -> Result<()> {
        let restored = catch_within(|| self.items.restore(state, cx));
        restored.map_err(|error| error.of_sample(&self.key))?;
        self.given = given;
        Ok(())
    }

    /// Passes over so many answers, which were given before.
    pub(super) fn pass_over(&mut self, given: u64, cx: &Context) -> Result<()> {
        let mut passed = Chunk::new();
        while self.given < given {
            passed.clear();
            let most = (given - self.given).min(STRETCH) as usize;
            match self.fill(&mut Output::new(&mut passed, most), cx) {
                Ok(true) | Err((_, true)) => {}
                Ok(false) => {
                    let at = self.given;
                    let error = format!("the saved position is after {given} samples, found {at}");
                    return Err(Error::invalid(error));
                }
                Err((error, false)) => return Err(error),
            }
        }
        Ok(())
    }
}

impl<T: FlatMap> FlatMapOf<T> {
    /// Moves all that `sample` becomes to `out`, behind the first `at` answers of its stream. An error comes with how many
    /// there were by then, if more may come after it.
    fn expand_one(
        &self,
        sample: Sample,
        at: u64,
        out: &mut Chunk,
        cx: &Context,
    ) -> Result<(), (Error, Option<u64>)> {
        let whose = [cx.epoch(), cx.pass(), sample.uid()];
        let mut open = match self.parked(whose, at, &sample) {
            Some(open) => open,
            None => {
                let mut open = open(&self.pipe, sample, cx).map_err(|error| (error, None))?;
                open.pass_over(at, cx).map_err(|error| (error, None))?;
                open
            }
        };
        loop {
            match open.fill(&mut Output::new(out, STRETCH as usize), cx) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err((error, false)) => return Err((error, None)),
                Err((error, true)) => {
                    let given = open.given;
                    let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
                    // Of a run that was stopped nobody comes back.
                    parked.truncate(PARKED - 1);
                    parked.push_front((whose, open));
                    return Err((error, Some(given)));
                }
            }
            if cx.cancelled() {
                return Err((Error::new(ErrorKind::Cancelled, "the run was stopped"), None));
            }
        }
    }
}

impl<T: FlatMap> FlatMapOf<T> {
    /// Moves all that every sample of a chunk becomes to `out`.
    fn expand_each(&self, cx: &Context, input: &mut Chunk, at: &mut u64, out: &mut Chunk) -> Outcome {
        let mut done = Sample::default();
        while let Some((uid, key, schema, values)) = input.peek() {
            let sample = Sample::with_schema(uid, key.clone(), schema.clone(), values.to_vec());
            let from = std::mem::take(at);
            // What panics where its stream is dropped is lost as one that fails is.
            let done_with = catch_within(|| Ok(self.expand_one(sample, from, out, cx)));
            match done_with.unwrap_or_else(|error| Err((error, None))) {
                Err((error, Some(given))) => {
                    // It stays at the front, for the next call.
                    *at = given;
                    return outcome(Err(error));
                }
                other => {
                    input.pop_into(&mut done);
                    if let Err((error, None)) = other {
                        return outcome(Err(error));
                    }
                }
            }
        }
        outcome(Ok(()))
    }

    /// The stream of this sample that has given so many answers, if it is kept.
    fn parked(&self, whose: Whose, at: u64, sample: &Sample) -> Option<Open<T::Items>> {
        if at == 0 {
            return None;
        }
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(of, open): &(Whose, Open<T::Items>)| {
            *of == whose && open.given == at && open.key == *sample.key()
        };
        let place = parked.iter().position(is_it)?;
        parked.remove(place).map(|(_, open)| open)
    }
}

impl<T: FlatMap> Calls for FlatMapOf<T> {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.slots.reset();
        self.parked.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }

    fn probe(head: &[u8], extension: &str) -> u8 {
        T::probe(head, extension)
    }

    fn length(&self, _: &Context, inputs: &[Option<Length>]) -> Option<Length> {
        self.pipe.length(inputs.first().copied()??)
    }

    fn poll(&mut self, cx: &Context, ports: &mut [Port], outs: &mut [Chunk], room: usize) -> Outcome {
        step(self.slots.fill(&self.pipe, cx, &mut Io::new(ports, outs, room)))
    }

    fn expand(&self, cx: &Context, input: &mut Chunk, at: &mut u64, out: &mut Chunk) -> Outcome {
        let mut expanded = None;
        self.pipe.around(&mut || expanded = Some(self.expand_each(cx, input, at, out)));
        expanded.unwrap_or_else(idle)
    }

    fn state(&self) -> Result<State> {
        self.slots.state()
    }

    fn restore(&mut self, _: &Context, state: &State) -> Result<()> {
        self.slots.restore(state)
    }
}
