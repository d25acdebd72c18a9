//! The tables of the four classes of DataPipe; what a flat map does stands in `flat_map`.

use forebay_abi::{
    Chunk, Context as RawContext, Outcome, Pipe, PipeTable, PipeTableRef, Port, State,
    abi_stable::{
        prefix_type::WithMetadata,
        std_types::{RSlice, RSliceMut, RStr},
    },
    code,
};

use super::{
    give_state,
    guard::{Instance, catch_within},
    note::Note,
    outcome,
};
use crate::{
    Context, DataPipe, Error, Io, Length, Map, Options, Output, Result, Sample, Source, Step, Stream,
    descriptor::{Class, Described},
    export::{Make, PipeEntry},
};

/// The entry of a source.
#[must_use]
pub const fn source_entry<T: Source>() -> PipeEntry {
    entry::<T>(Class::Source, make::<T, SourceOf<T>>)
}

/// The entry of a map.
#[must_use]
pub const fn map_entry<T: Map>() -> PipeEntry {
    entry::<T>(Class::Map, make::<T, MapOf<T>>)
}

/// The entry of a stream.
#[must_use]
pub const fn stream_entry<T: Stream>() -> PipeEntry {
    entry::<T>(Class::Stream, make::<T, StreamOf<T>>)
}

const fn entry<T: DataPipe>(class: Class, make: Make<Pipe>) -> PipeEntry {
    PipeEntry { class, described: Described { info: T::INFO, options: T::Options::SPECS }, make }
}

pub(super) fn make<T: DataPipe, C: Calls + From<T>>(options: &str, _: &'static str) -> Result<Pipe> {
    Ok(pipe(C::from(T::new(T::Options::parse(options)?)?)))
}

/// A pipe that the host itself has for a source of another language.
#[must_use]
pub fn source<T: Source>(source: T) -> Pipe {
    pipe(SourceOf(source))
}

pub(super) fn pipe<C: Calls>(calls: C) -> Pipe {
    let instance = Box::into_raw(Box::new(Instance::new(calls))).cast();
    Pipe { instance, table: Table::<C>::REF }
}

/// What a class does in each entry of the table; what it has no use for fails.
pub(super) trait Calls: Send + Sized + 'static {
    fn reset(&mut self, cx: &Context) -> Result<()>;

    fn poll(&mut self, _cx: &Context, _ports: &mut [Port], _outs: &mut [Chunk], _room: usize) -> Outcome {
        wrong_class("poll")
    }

    fn map(&self, _cx: &Context, _input: &mut Chunk, _out: &mut Chunk) -> Outcome {
        wrong_class("map")
    }

    fn expand(&self, _cx: &Context, _input: &mut Chunk, _at: &mut u64, _out: &mut Chunk) -> Outcome {
        wrong_class("expand")
    }

    fn state(&self) -> Result<State> {
        Ok(State::default())
    }

    fn restore(&mut self, _cx: &Context, _state: &State) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Option<u64> {
        None
    }

    fn length(&self, _cx: &Context, _inputs: &[Option<Length>]) -> Option<Length> {
        None
    }

    fn probe(_head: &[u8], _extension: &str) -> u8 {
        0
    }
}

fn wrong_class(call: &str) -> Outcome {
    Outcome::failed(Error::bug(format!("pipes of this class have no {call}")).into())
}

pub(super) struct Table<C>(std::marker::PhantomData<C>);

impl<C: Calls> Table<C> {
    const TABLE: &'static WithMetadata<PipeTable> = &WithMetadata::new(PipeTable {
        free: free::<C>,
        reset: reset::<C>,
        poll: poll::<C>,
        map: map::<C>,
        state: state::<C>,
        restore: restore::<C>,
        len: len::<C>,
        expand: expand::<C>,
        probe: probe::<C>,
        length: length::<C>,
    });
    pub(super) const REF: PipeTableRef = PipeTableRef(Self::TABLE.static_as_prefix());
}

unsafe extern "C" fn free<C: Calls>(this: *mut ()) -> Outcome {
    super::guard::guard(|| {
        // SAFETY: `make` made the instance of this box, and the host frees it once.
        drop(unsafe { Box::from_raw(this.cast::<Instance<C>>()) });
        Outcome::of(code::READY, 0)
    })
}

/// # Safety
/// `this` was made by `make` for this class, and nothing else uses it during the call.
unsafe fn exclusive<'a, C: Calls>(this: *mut ()) -> &'a mut Instance<C> {
    // SAFETY: the caller's promise.
    unsafe { &mut *this.cast() }
}

/// # Safety
/// `this` was made by `make` for this class, and nothing changes it during the call.
unsafe fn shared<'a, C: Calls>(this: *const ()) -> &'a Instance<C> {
    // SAFETY: the caller's promise.
    unsafe { &*this.cast() }
}

/// The context of a call that works on samples.
fn noting(cx: &RawContext) -> Context<'_> {
    let mut noting = Context::new(cx);
    noting.note = Note::of(cx);
    noting
}

unsafe extern "C" fn reset<C: Calls>(this: *mut (), cx: &RawContext) -> Outcome {
    // SAFETY: the table's rule for `*mut ()`, here and below.
    unsafe { exclusive::<C>(this) }.with_mut(|calls| outcome(calls.reset(&Context::new(cx))))
}

unsafe extern "C" fn poll<C: Calls>(
    this: *mut (),
    cx: &RawContext,
    mut ports: RSliceMut<'_, Port>,
    mut outs: RSliceMut<'_, Chunk>,
    room: usize,
) -> Outcome {
    // SAFETY: as above.
    let this = unsafe { exclusive::<C>(this) };
    this.with_mut(|calls| calls.poll(&noting(cx), ports.as_mut_slice(), outs.as_mut_slice(), room))
}

unsafe extern "C" fn map<C: Calls>(
    this: *const (),
    cx: &RawContext,
    input: &mut Chunk,
    out: &mut Chunk,
) -> Outcome {
    // SAFETY: the table's rule for `*const ()`, here and below; maps are Sync.
    unsafe { shared::<C>(this) }.with(|calls| calls.map(&noting(cx), input, out))
}

unsafe extern "C" fn expand<C: Calls>(
    this: *const (),
    cx: &RawContext,
    input: &mut Chunk,
    at: &mut u64,
    out: &mut Chunk,
) -> Outcome {
    // SAFETY: as above; flat maps are Sync, and what belongs to one thread is not touched by this call.
    unsafe { shared::<C>(this) }.with(|calls| calls.expand(&noting(cx), input, at, out))
}

unsafe extern "C" fn state<C: Calls>(this: *const (), place: &mut State) -> Outcome {
    // SAFETY: as above; the host saves no pipe that is being polled.
    unsafe { shared::<C>(this) }.with(|calls| give_state(calls.state(), place))
}

unsafe extern "C" fn restore<C: Calls>(this: *mut (), cx: &RawContext, state: &State) -> Outcome {
    // SAFETY: as for `reset`.
    unsafe { exclusive::<C>(this) }.with_mut(|calls| outcome(calls.restore(&Context::new(cx), state)))
}

unsafe extern "C" fn len<C: Calls>(this: *const (), place: &mut u64) -> Outcome {
    // SAFETY: as for `state`.
    unsafe { shared::<C>(this) }.with(|calls| {
        let len = calls.len();
        *place = len.unwrap_or(0);
        Outcome::of(code::READY, len.is_some().into())
    })
}

unsafe extern "C" fn length<C: Calls>(
    this: *const (),
    cx: &RawContext,
    inputs: RSlice<'_, u64>,
    place: &mut u64,
) -> Outcome {
    // SAFETY: as for `state`.
    unsafe { shared::<C>(this) }.with(|calls| {
        let inputs: Vec<_> = inputs.iter().map(|&input| Length::of_word(input)).collect();
        *place = Length::word(calls.length(&Context::new(cx), &inputs));
        Outcome::of(code::READY, 0)
    })
}

unsafe extern "C" fn probe<C: Calls>(this: *const (), head: RSlice<'_, u8>, extension: RStr<'_>) -> Outcome {
    // SAFETY: as for `map`.
    unsafe { shared::<C>(this) }
        .with(|_| Outcome::of(code::READY, C::probe(head.as_slice(), extension.as_str()).into()))
}

struct SourceOf<T>(T);

impl<T> From<T> for SourceOf<T> {
    fn from(pipe: T) -> Self {
        Self(pipe)
    }
}

impl<T: Source> Calls for SourceOf<T> {
    fn reset(&mut self, cx: &Context) -> Result<()> {
        self.0.reset(cx)
    }

    fn poll(&mut self, cx: &Context, _: &mut [Port], outs: &mut [Chunk], room: usize) -> Outcome {
        let Some(out) = outs.first_mut() else { return wrong_class("poll without an output") };
        match self.0.fill(&mut Output::new(out, room), cx) {
            Ok(more) => Outcome::of(if more { code::READY } else { code::END }, 0),
            Err(error) => Outcome::failed(error.into()),
        }
    }

    fn state(&self) -> Result<State> {
        self.0.state()
    }

    fn restore(&mut self, cx: &Context, state: &State) -> Result<()> {
        self.0.restore(state, cx)
    }

    fn len(&self) -> Option<u64> {
        self.0.len()
    }
}

struct MapOf<T>(T);

impl<T> From<T> for MapOf<T> {
    fn from(pipe: T) -> Self {
        Self(pipe)
    }
}

impl<T: Map> Calls for MapOf<T> {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn map(&self, cx: &Context, input: &mut Chunk, out: &mut Chunk) -> Outcome {
        let mut mapped = None;
        self.0.around(&mut || mapped = Some(map_each(input, out, cx, |sample| self.0.map(sample, cx))));
        mapped.unwrap_or_else(idle)
    }

    fn probe(head: &[u8], extension: &str) -> u8 {
        T::probe(head, extension)
    }
}

/// The outcome where `around` did not do the work.
pub(super) fn idle() -> Outcome {
    Outcome::failed(Error::bug("the pipe did not do the work that it was given").into())
}

/// Changes every sample of a chunk.
pub(super) fn map_each(
    input: &mut Chunk,
    out: &mut Chunk,
    cx: &Context,
    map: impl Fn(&mut Sample) -> Result<()>,
) -> Outcome {
    if !out.is_empty() {
        return Outcome::failed(Error::bug("a map is given an empty chunk to fill").into());
    }
    outcome(input.map_into(out, |sample| {
        cx.note.at(sample.key());
        let mapped = catch_within(|| map(sample));
        mapped.map_err(|error| {
            let error = error.of_sample(sample.key());
            cx.note.at(std::ptr::null()); // The sample goes, and its key with it before its values.
            error
        })
    }))
}

struct StreamOf<T>(T);

impl<T> From<T> for StreamOf<T> {
    fn from(pipe: T) -> Self {
        Self(pipe)
    }
}

impl<T: Stream> Calls for StreamOf<T> {
    fn reset(&mut self, cx: &Context) -> Result<()> {
        self.0.reset(cx)
    }

    fn poll(&mut self, cx: &Context, ports: &mut [Port], outs: &mut [Chunk], room: usize) -> Outcome {
        step(self.0.poll(&mut Io::new(ports, outs, room), cx))
    }

    fn length(&self, cx: &Context, inputs: &[Option<Length>]) -> Option<Length> {
        self.0.length(inputs, cx)
    }

    fn state(&self) -> Result<State> {
        self.0.state()
    }

    fn restore(&mut self, cx: &Context, state: &State) -> Result<()> {
        self.0.restore(state, cx)
    }
}

pub(super) fn step(result: Result<Step>) -> Outcome {
    match result {
        Ok(Step::Ready) => Outcome::of(code::READY, 0),
        Ok(Step::NeedInput(input)) => Outcome::of(code::NEED_INPUT, input as u32),
        Ok(Step::Pending) => Outcome::of(code::PENDING, 0),
        Ok(Step::End) => Outcome::of(code::END, 0),
        Ok(Step::Rewind(input)) => Outcome::of(code::REWIND, input as u32),
        Err(error) => Outcome::failed(error.into()),
    }
}
