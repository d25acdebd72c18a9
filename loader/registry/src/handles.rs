//! Safe calls of what plugins made.
#![expect(unsafe_code, reason = "calls of C functions; each handle pairs an instance with its own table")]

use std::ptr;

use forebay_core::{
    AnyDecoder, AnyStore, Chunk, Error, Length, Port, Result, State,
    abi::{
        Context, Outcome, Pipe, PipeTableRef, PluginRef,
        abi_stable::std_types::{ROption, RSlice, RSliceMut, RStr},
    },
    shim::{Closure, check},
};
use forebay_guard::{
    call::{Callee, call, call_with},
    decoding::told,
};

use crate::CPlugin;

/// What the entry of a plugin led to.
#[derive(Clone)]
pub(crate) enum Loaded {
    /// Tables that abi_stable checked.
    Rust(PluginRef),
    /// Those of C.
    C(CPlugin),
}

/// A pipe that a plugin made; none for one that only worker processes may make.
pub struct PipeHandle {
    pipe: Option<Pipe>,
    callee: Callee,
}

/// Makes a pipe of `plugin`.
pub(crate) fn make_pipe(plugin: Loaded, name: &str, options: &str, callee: Callee) -> Result<PipeHandle> {
    let mut place = ROption::RNone;
    let made = call(&callee, || match plugin {
        Loaded::Rust(plugin) => {
            // SAFETY: the loader checked the plugin's layout; texts and place live through the call. Likewise below.
            check(unsafe { plugin.pipe()(RStr::from(name), RStr::from(options), &mut place) }).map(drop)
        }
        Loaded::C(plugin) => plugin.source(name, options).map(|pipe| place = ROption::RSome(pipe)),
    });
    made?;
    place.into_option().map(|pipe| PipeHandle { pipe: Some(pipe), callee }).ok_or_else(nothing_made)
}

/// Makes a pipe of a closure of this program.
pub(crate) fn closure(closure: Closure) -> PipeHandle {
    PipeHandle { pipe: Some(closure.into_pipe()), callee: Callee::default() }
}

/// Makes a decoder of `plugin`.
pub(crate) fn make_decoder(plugin: Loaded, name: &str, options: &str, callee: Callee) -> Result<AnyDecoder> {
    let made = call(&callee, || {
        let plugin = match plugin {
            Loaded::Rust(plugin) => plugin,
            Loaded::C(plugin) => return plugin.decoder(name, options),
        };
        let mut place = ROption::RNone;
        // SAFETY: as above.
        check(unsafe { plugin.decoder()(RStr::from(name), RStr::from(options), &mut place) })?;
        place.into_option().map(AnyDecoder::new).ok_or_else(nothing_made)
    });
    Ok(told(made?, callee))
}

/// Makes a store of `plugin`.
pub(crate) fn make_store(plugin: Loaded, name: &str, options: &str) -> Result<AnyStore> {
    let Loaded::Rust(plugin) = plugin else { return Err(nothing_made()) };
    let mut place = ROption::RNone;
    // SAFETY: as above.
    check(unsafe { plugin.store()(RStr::from(name), RStr::from(options), &mut place) })?;
    place.into_option().map(AnyStore::new).ok_or_else(nothing_made)
}

fn nothing_made() -> Error {
    Error::bug("the plugin gave nothing and no reason")
}

impl PipeHandle {
    /// What stands for a pipe that only worker processes make.
    pub fn elsewhere() -> Self {
        Self { pipe: None, callee: Callee::default() }
    }

    /// What it is called in its graph.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.callee.name);
    }

    fn parts(&self) -> (*mut (), PipeTableRef) {
        // Invariant: the pipe is taken only by `free`, which consumes the handle, and by its drop; one that stands for another process's
        // pipe is in no segment that runs here, as `Registry::check_isolation` sees to.
        match &self.pipe {
            Some(pipe) => (pipe.instance, pipe.table),
            None => unreachable!("a pipe was called that is not here"),
        }
    }

    /// Starts an epoch or a pass.
    ///
    /// # Errors
    /// Those of the plugin.
    pub fn reset(&mut self, cx: &Context) -> Result<()> {
        let (instance, table) = self.parts();
        // SAFETY: the handle pairs instance and table, and `&mut` keeps other calls away.
        check(call(&self.callee, || unsafe { table.reset()(instance, cx) })).map(drop)
    }

    /// Takes from the inputs and adds to the outputs.
    pub fn poll(&mut self, cx: &Context, ports: &mut [Port], outs: &mut [Chunk], room: usize) -> Outcome {
        let (instance, table) = self.parts();
        let given = ports.first().map_or(ptr::null(), |port| &raw const port.chunk);
        let made = outs.first().map_or(ptr::null(), ptr::from_ref);
        let (ports, outs) = (RSliceMut::from(ports), RSliceMut::from(outs));
        // SAFETY: as above; the chunks are borrowed for the call.
        unsafe { call_with(&self.callee, (given, made), || table.poll()(instance, cx, ports, outs, room)) }
    }

    /// Moves all samples of `input`, changed, to `out`.
    ///
    /// # Errors
    /// Those of the plugin.
    pub fn map(&self, cx: &Context, input: &mut Chunk, out: &mut Chunk) -> Result<()> {
        let (instance, table) = self.parts();
        let samples = (&raw const *input, &raw const *out);
        // SAFETY: as above; maps may be called from many threads at once.
        check(unsafe { call_with(&self.callee, samples, || table.map()(instance, cx, input, out)) }).map(drop)
    }

    /// Moves all that the samples of `input` become to `out`; see [`PipeTable::expand`](forebay_core::abi::PipeTable::expand) for
    /// what an error leaves.
    ///
    /// # Errors
    /// Those of the plugin.
    pub fn expand(&self, cx: &Context, input: &mut Chunk, at: &mut u64, out: &mut Chunk) -> Result<()> {
        let (instance, table) = self.parts();
        let samples = (&raw const *input, ptr::null());
        // SAFETY: as for `map`.
        check(unsafe { call_with(&self.callee, samples, || table.expand()(instance, cx, input, at, out)) })
            .map(drop)
    }

    /// What the pipe saves of itself.
    ///
    /// # Errors
    /// Those of the plugin.
    pub fn state(&self) -> Result<State> {
        let (instance, table) = self.parts();
        let mut state = State::default();
        // SAFETY: as above; `&self` keeps changing calls away.
        check(call(&self.callee, || unsafe { table.state()(instance, &mut state) }))?;
        Ok(state)
    }

    /// Goes to a saved position; after a reset.
    ///
    /// # Errors
    /// Those of the plugin.
    pub fn restore(&mut self, cx: &Context, state: &State) -> Result<()> {
        let (instance, table) = self.parts();
        // SAFETY: as for `reset`.
        check(call(&self.callee, || unsafe { table.restore()(instance, cx, state) })).map(drop)
    }

    /// How many samples an epoch has, where the pipe knows.
    pub fn samples(&self) -> Option<u64> {
        let (instance, table) = self.pipe.as_ref().map(|pipe| (pipe.instance, pipe.table))?;
        let mut len = 0;
        // SAFETY: as above; `&self` keeps changing calls away.
        let known = check(call(&self.callee, || unsafe { table.len()(instance, &mut len) })).ok()?;
        (known == 1).then_some(len)
    }

    /// How many samples each output gives, for inputs of so many; nothing of a pipe that cannot be asked: it is elsewhere, or older than the
    /// question.
    pub fn length(&self, cx: &Context, inputs: &[Option<Length>]) -> Option<Result<Option<Length>>> {
        let pipe = self.pipe.as_ref()?;
        let length = pipe.table.length()?;
        let inputs: Vec<u64> = inputs.iter().map(|&input| Length::word(input)).collect();
        let mut place = Length::word(None);
        // SAFETY: as above; `&self` keeps changing calls away.
        let ask = || unsafe { length(pipe.instance, cx, RSlice::from(&inputs[..]), &mut place) };
        let asked = check(call(&self.callee, ask));
        Some(asked.map(|_| Length::of_word(place)))
    }

    /// Whether it is in this process.
    pub fn is_here(&self) -> bool {
        self.pipe.is_some()
    }

    /// How sure the pipe is, from 0 to 255, that a file with this head is its own.
    pub(crate) fn probe(&self, head: &[u8], extension: &str) -> Result<u8> {
        // Of one that is elsewhere no more is known than of one that cannot tell.
        let Some((instance, table)) = self.pipe.as_ref().map(|pipe| (pipe.instance, pipe.table)) else {
            return Ok(128);
        };
        // SAFETY: as for `map`.
        let probe = || unsafe { table.probe()(instance, RSlice::from(head), RStr::from(extension)) };
        let detail = check(call(&self.callee, probe))?;
        Ok(u8::try_from(detail).unwrap_or(u8::MAX))
    }

    /// Frees the pipe.
    ///
    /// # Errors
    /// Those of the plugin.
    pub fn free(mut self) -> Result<()> {
        self.release()
    }

    fn release(&mut self) -> Result<()> {
        let Some(pipe) = self.pipe.take() else { return Ok(()) };
        // SAFETY: taken, so this happens once.
        check(call(&self.callee, || unsafe { pipe.table.free()(pipe.instance) })).map(drop)
    }
}

impl Drop for PipeHandle {
    fn drop(&mut self) {
        let _ = self.release(); // `free` is the way to hear of it.
    }
}
