//! Turns a panic of the author's code into an error, with its message and place.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use forebay_abi::Outcome;

use crate::{Error, ErrorKind, Result};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `call`; a panic becomes a failed outcome of kind `Panic`.
#[inline]
pub(crate) fn guard(call: impl FnOnce() -> Outcome) -> Outcome {
    catch(|| Ok(call())).unwrap_or_else(|error| Outcome::failed(error.into()))
}

/// Runs `call`; a panic becomes an error of kind `Panic`.
///
/// Cost: every call of a plugin comes through here. In a library the address of what belongs to a thread is asked of a function,
/// so it is asked once.
#[inline]
pub(crate) fn catch<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(note_places);
    GUARDED.with(|guarded| {
        let outer = guarded.replace(true);
        let result = catch_unwind(AssertUnwindSafe(call));
        guarded.set(outer);
        result.unwrap_or_else(|payload| Err(describe(&*payload)))
    })
}

/// As [`catch`], within a call that is guarded already: costs nothing where nothing panics.
#[inline]
pub(crate) fn catch_within<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| Err(describe(&*payload)))
}

/// Makes the panic hook keep the place of a guarded panic instead of printing it: each library has a hook of its own.
fn note_places() {
    if cfg!(panic = "abort") {
        return; // Nobody would come to print it.
    }
    let print = take_hook();
    set_hook(Box::new(move |info| {
        if GUARDED.get() {
            PLACE.set(info.location().map(|place| format!("{}:{}", place.file(), place.line())));
        } else {
            print(info);
        }
    }));
}

#[cold]
fn describe(payload: &(dyn Any + Send)) -> Error {
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    let error = Error::new(ErrorKind::Panic, format!("panicked: {message}"));
    match PLACE.take() {
        Some(place) => error.context("source", place),
        None => error,
    }
}

/// An author's value, and whether it panicked in a call that changes it: then it takes no more calls.
pub(crate) struct Instance<T> {
    pub(crate) value: T,
    poisoned: AtomicBool,
}

impl<T> Instance<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value, poisoned: AtomicBool::new(false) }
    }

    /// Runs `call` with the shared value, guarded.
    ///
    /// A panic in here poisons nothing: what is shared is stateless, and other threads' samples must not
    /// depend on who panicked first.
    pub(crate) fn with(&self, call: impl FnOnce(&T) -> Outcome) -> Outcome {
        if self.poisoned.load(Ordering::Acquire) {
            return Outcome::failed(poisoned().into());
        }
        guard(|| call(&self.value))
    }

    /// As [`with`](Instance::with), for who has more to say of an error.
    #[inline]
    pub(crate) fn attempt(&self, call: impl FnOnce(&T) -> Result<()>) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(poisoned());
        }
        catch(|| call(&self.value))
    }

    /// Runs `call` with the value, guarded.
    pub(crate) fn with_mut(&mut self, call: impl FnOnce(&mut T) -> Outcome) -> Outcome {
        if *self.poisoned.get_mut() {
            return Outcome::failed(poisoned().into());
        }
        let mut done = false;
        let outcome = guard(|| {
            let outcome = call(&mut self.value);
            done = true;
            outcome
        });
        *self.poisoned.get_mut() = !done;
        outcome
    }
}

#[cold]
fn poisoned() -> Error {
    Error::new(ErrorKind::Panic, "it panicked before, so it takes no more calls")
}
