//! What a source with random access becomes where a sampler draws from it: a source of its count, and a flat map that gets
//! the samples drawn.

use forebay_abi::{Chunk, Key, Outcome, Port, Schema, State, Str, Value, code};

use super::{
    outcome,
    pipes::{Calls, make},
};
use crate::{
    Context, DataPipe, Error, Indexed, Length, Options, Output, PipeInfo, PipePlacement, Result, StateExt,
    descriptor::{Class, Described},
    export::PipeEntry,
    sampling::{AGAIN, COUNT, COUNTS, DRAWN, GETS},
};

/// The most bytes of a name with what is added to it.
const MOST: usize = 128;

/// The entry of the source of an indexed source's count: `NAME.len`.
#[must_use]
pub const fn count_entry<T: Indexed>() -> PipeEntry {
    let info = PipeInfo {
        name: Names::<T>::LEN,
        summary: "How many samples there are",
        placement: PipePlacement { parallel: false, ..T::INFO.placement },
        ..T::INFO
    };
    entry::<T>(Class::Source, info, make::<T, CountOf<T>>)
}

/// The entry of the flat map that gets samples of an indexed source: `NAME.get`.
#[must_use]
pub const fn get_entry<T: Indexed>() -> PipeEntry {
    let info = PipeInfo {
        name: Names::<T>::GET,
        summary: "The samples that were drawn",
        placement: PipePlacement { parallel: true, ..T::INFO.placement },
        ..T::INFO
    };
    entry::<T>(Class::FlatMap, info, make::<T, GetOf<T>>)
}

const fn entry<T: DataPipe>(
    class: Class,
    info: PipeInfo,
    make: crate::export::Make<forebay_abi::Pipe>,
) -> PipeEntry {
    PipeEntry { class, described: Described { info, options: T::Options::SPECS }, make }
}

/// The names of the pipes that are made of a source.
struct Names<T>(std::marker::PhantomData<T>);

impl<T: DataPipe> Names<T> {
    const LEN_BYTES: [u8; MOST] = join(T::INFO.name, COUNTS);
    const LEN: &'static str = text(&Self::LEN_BYTES, T::INFO.name.len() + COUNTS.len());
    const GET_BYTES: [u8; MOST] = join(T::INFO.name, GETS);
    const GET: &'static str = text(&Self::GET_BYTES, T::INFO.name.len() + GETS.len());
}

const fn join(name: &str, end: &str) -> [u8; MOST] {
    let mut bytes = [0; MOST];
    let mut at = 0;
    while at < name.len() + end.len() {
        bytes[at] = if at < name.len() { name.as_bytes()[at] } else { end.as_bytes()[at - name.len()] };
        at += 1;
    }
    bytes
}

const fn text(bytes: &'static [u8; MOST], len: usize) -> &'static str {
    match std::str::from_utf8(bytes.split_at(len).0) {
        Ok(text) => text,
        Err(_) => panic!("two texts joined are a text"),
    }
}

/// Gives one sample: how many there are.
struct CountOf<T> {
    source: T,
    given: bool,
    /// How many there were, and what tells them from others.
    known: Option<(u64, u64)>,
}

impl<T> From<T> for CountOf<T> {
    fn from(source: T) -> Self {
        Self { source, given: false, known: None }
    }
}

impl<T: Indexed> Calls for CountOf<T> {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.given = false;
        Ok(())
    }

    fn poll(&mut self, cx: &Context, _: &mut [Port], outs: &mut [Chunk], _: usize) -> Outcome {
        let out = outs.first_mut().filter(|_| !self.given);
        let Some(out) = out else { return Outcome::of(code::END, 0) };
        self.given = true;
        match self.look(cx) {
            Ok((count, _)) => {
                let key = Key::whole(Str::from_static(T::INFO.name));
                out.push(0, key, &Schema::new([COUNT]), [count.cast_signed().into()]);
                Outcome::of(code::END, 0)
            }
            Err(error) => Outcome::failed(error.into()),
        }
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &(self.given, self.known))
    }

    fn restore(&mut self, cx: &Context, state: &State) -> Result<()> {
        if state.version == 1 {
            // Without what the samples were.
            self.given = state.parse(1)?;
            return Ok(());
        }
        let (given, known): (bool, Option<(u64, u64)>) = state.parse(VERSION)?;
        self.given = given;
        let Some((count, identity)) = known else { return Ok(()) };
        let now = self.look(cx)?;
        if now == (count, identity) {
            return Ok(());
        }
        let found = match now.0 == count {
            true => format!("found {count} other samples"),
            false => format!("found {} samples", now.0),
        };
        let error = Error::invalid(format!("{found}, but the saved position is among {count}"));
        Err(error.context("next", "resume on the same data, or start again without the snapshot"))
    }
}

/// The version of a saved position's form.
const VERSION: u32 = 2;

impl<T: Indexed> CountOf<T> {
    fn look(&mut self, cx: &Context) -> Result<(u64, u64)> {
        let now = (self.source.count(cx)?, self.source.identity(cx)?);
        self.known = Some(now);
        Ok(now)
    }
}

/// Puts samples in the place of their numbers.
struct GetOf<T>(T);

impl<T> From<T> for GetOf<T> {
    fn from(source: T) -> Self {
        Self(source)
    }
}

impl<T: Indexed> Calls for GetOf<T> {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn length(&self, _: &Context, inputs: &[Option<Length>]) -> Option<Length> {
        inputs.first().copied()?
    }

    fn expand(&self, cx: &Context, input: &mut Chunk, at: &mut u64, out: &mut Chunk) -> Outcome {
        // Each number stands for one sample: there is nothing of one to pass over.
        *at = 0;
        outcome(self.get(cx, input, out))
    }
}

impl<T: Indexed> GetOf<T> {
    fn get(&self, cx: &Context, input: &mut Chunk, out: &mut Chunk) -> Result<()> {
        let mut keys = Vec::with_capacity(input.len());
        let mut agains = Vec::with_capacity(input.len());
        let before = out.len();
        let mut odd = false;
        // The last schema, and where it has the two fields.
        let mut known = (Schema::empty(), [None; 2]);
        input.for_each_mut(|_, schema, values| {
            if !known.0.is(schema) {
                known = (schema.clone(), [DRAWN, AGAIN].map(|name| schema.position(name)));
            }
            let word = |at: Option<usize>| {
                let value = at.and_then(|at| values.get(at));
                value.and_then(Value::as_i64).map(i64::cast_unsigned)
            };
            let [key, again] = known.1.map(word);
            odd |= key.is_none() || again.is_none();
            keys.push(key.unwrap_or(u64::MAX));
            agains.push(again.unwrap_or(0));
        });
        if odd {
            input.advance();
            return Err(Error::invalid(
                "found a sample that a sampler did not give, expected the number of a sample",
            ));
        }
        let got = self.0.get(&keys, &mut Output::new(out, keys.len()), cx);
        let added = out.len() - before;
        out.change_uids(before, |at, uid| match agains.get(at) {
            None => uid,
            Some(&again) => cx.uid_of(uid, [again]),
        });
        (0..added).for_each(|_| input.advance());
        match (got, keys.get(added)) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(key)) => {
                input.clear();
                Err(Error::bug(format!(
                    "the source gave {added} samples of {}, none for number {key}",
                    keys.len()
                )))
            }
            (Err(error), key) => {
                input.advance();
                Err(match key {
                    Some(key) => error.context("number", key),
                    None => error,
                })
            }
        }
    }
}
