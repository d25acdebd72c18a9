//! What a flat map does in each entry of the table.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use forebay_abi::{Chunk, Outcome, Port, State};

use super::{
    guard::catch,
    outcome,
    pipes::{Calls, step},
};
use crate::{Context, Error, ErrorKind, FlatMap, Io, Items, Result, Sample, StateExt as _, Step};

/// How many samples of one stream are made before it is looked whether the run was stopped.
const STRETCH: u64 = 64;

/// How many streams that failed are kept; one more than that is opened anew.
const PARKED: usize = 64;

pub(super) struct FlatMapOf<T: FlatMap> {
    pipe: T,
    open: Option<Open<T::Items>>,
    /// Where to go on in the next sample that is opened.
    place: Option<Place>,
    /// Streams that failed and go on: the host comes back for each at once, and to open it anew would read again what came before
    /// every error.
    parked: Mutex<VecDeque<(Whose, Open<T::Items>)>>,
}

/// What tells streams apart: epoch, pass, and the uid of the sample.
type Whose = [u64; 3];

/// The stream of one sample, and how many answers it has given: samples, and errors that it went on after.
struct Open<I> {
    key: forebay_abi::Key,
    items: I,
    given: u64,
}

/// A saved position within the stream of one sample.
#[derive(serde::Serialize, serde::Deserialize)]
struct Place {
    given: u64,
    /// The stream's own state, with its version, if it saves any.
    own: Option<(u32, Vec<u8>)>,
}

/// The version of a flat map's saved position.
const PLACE: u32 = 1;

impl<T: FlatMap> From<T> for FlatMapOf<T> {
    fn from(pipe: T) -> Self {
        Self { pipe, open: None, place: None, parked: Mutex::default() }
    }
}

impl<I: Items> Open<I> {
    /// The next answer, into `sample`; whether more may come after an error is told beside it.
    fn next(&mut self, sample: &mut Sample, cx: &Context) -> Result<bool, (Error, bool)> {
        let next = catch(|| self.items.next_into(sample, cx));
        self.given += u64::from(!matches!(next, Ok(false)));
        next.map_err(|error| {
            // What is left of a broken input cannot be told apart, unless the stream can.
            let goes_on = error.kind() != ErrorKind::Panic && self.items.goes_on();
            (error.context("sample", &self.key), goes_on)
        })
    }

    /// Passes over so many answers, which were given before.
    fn pass_over(&mut self, given: u64, cx: &Context) -> Result<()> {
        let mut sample = Sample::default();
        for at in 0..given {
            match self.next(&mut sample, cx) {
                Ok(true) | Err((_, true)) => {}
                Ok(false) => {
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
    /// Opens the stream of `sample`.
    fn open(&self, sample: Sample, cx: &Context) -> Result<Open<T::Items>> {
        let key = sample.key().clone();
        match catch(|| self.pipe.open(sample, cx)) {
            Ok(items) => Ok(Open { key, items, given: 0 }),
            Err(error) => Err(error.context("sample", &key)),
        }
    }

    /// Opens the stream of `sample`, where a saved position says or at its start.
    fn open_there(&mut self, sample: Sample, cx: &Context) -> Result<Open<T::Items>> {
        let place = self.place.take();
        let mut open = self.open(sample, cx)?;
        let Some(place) = place else { return Ok(open) };
        match place.own {
            Some((version, bytes)) => {
                let state = State { version, bytes: bytes.into(), ..State::default() };
                let restored = catch(|| open.items.restore(&state, cx));
                restored.map_err(|error| error.context("sample", &open.key))?;
                open.given = place.given;
            }
            None => open.pass_over(place.given, cx)?,
        }
        Ok(open)
    }

    fn fill(&mut self, cx: &Context, io: &mut Io) -> Result<Step> {
        let mut sample = Sample::default();
        while io.room() > 0 {
            if let Some(open) = &mut self.open {
                match open.next(&mut sample, cx) {
                    Ok(true) => io.push(&mut sample),
                    Ok(false) => self.open = None,
                    Err((error, goes_on)) => {
                        self.open = self.open.take().filter(|_| goes_on);
                        return Err(error);
                    }
                }
            } else if let Some(sample) = io.pop(0) {
                self.open = Some(self.open_there(sample, cx)?);
            } else {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
        }
        Ok(Step::Ready)
    }

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
                let mut open = self.open(sample, cx).map_err(|error| (error, None))?;
                open.pass_over(at, cx).map_err(|error| (error, None))?;
                open
            }
        };
        let mut sample = Sample::default();
        loop {
            match open.next(&mut sample, cx) {
                Ok(true) => out.push_sample(&mut sample),
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
            if open.given % STRETCH == 0 && cx.cancelled() {
                return Err((Error::new(ErrorKind::Cancelled, "the run was stopped"), None));
            }
        }
    }
}

impl<T: FlatMap> FlatMapOf<T> {
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
        (self.open, self.place) = (None, None);
        self.parked.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }

    fn probe(head: &[u8], extension: &str) -> u8 {
        T::probe(head, extension)
    }

    fn poll(&mut self, cx: &Context, ports: &mut [Port], outs: &mut [Chunk], room: usize) -> Outcome {
        step(self.fill(cx, &mut Io::new(ports, outs, room)))
    }

    fn expand(&self, cx: &Context, input: &mut Chunk, at: &mut u64, out: &mut Chunk) -> Outcome {
        while let Some(sample) = input.pop() {
            let kept = sample.clone();
            let Err((error, given)) = self.expand_one(sample, std::mem::take(at), out, cx) else { continue };
            if let Some(given) = given {
                // Back to the front, for the next call.
                let mut whole = Chunk::new();
                whole.push_sample(&mut { kept });
                whole.take_from(input, usize::MAX);
                *input = whole;
                *at = given;
            }
            return outcome(Err(error));
        }
        outcome(Ok(()))
    }

    fn state(&self) -> Result<State> {
        let place = match (&self.open, &self.place) {
            (Some(open), _) => {
                let own = match open.items.state() {
                    Ok(state) => Some((state.version, state.bytes.into())),
                    Err(error) if error.kind() == ErrorKind::Unsupported => None,
                    Err(error) => return Err(error),
                };
                Place { given: open.given, own }
            }
            (None, Some(place)) => Place { given: place.given, own: place.own.clone() },
            (None, None) => return Ok(State::default()),
        };
        // A place not yet gone to belongs to a sample not yet taken.
        let again = u64::from(self.open.is_some());
        Ok(State::json(PLACE, &place)?.again(0, again))
    }

    fn restore(&mut self, _: &Context, state: &State) -> Result<()> {
        self.place = match state.bytes.is_empty() {
            true => None,
            false => Some(state.parse(PLACE)?),
        };
        Ok(())
    }
}
