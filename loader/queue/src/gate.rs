//! The bound of a queue between threads: who may enter, and who waits for room.

use super::{
    Bounds, Load,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// Counts what is in a queue. Its lock is held for a few instructions, never while other code runs.
pub(super) struct Gate {
    state: Mutex<State>,
    room: Condvar,
}

struct State {
    held: Load,
    bounds: Bounds,
    receiver_gone: bool,
}

/// The answer to who wants to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Open,
    Full,
    ReceiverGone,
}

impl State {
    fn entry(&self, more: Load) -> Admission {
        match self.receiver_gone {
            true => Admission::ReceiverGone,
            false if self.bounds.admit(self.held, more) => Admission::Open,
            false => Admission::Full,
        }
    }
}

impl Gate {
    pub(super) fn new(bounds: Bounds) -> Self {
        let state = State { held: Load::default(), bounds, receiver_gone: false };
        Self { state: Mutex::new(state), room: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `more` in, if there is room.
    pub(super) fn try_enter(&self, more: Load) -> Admission {
        let mut state = self.state();
        let entry = state.entry(more);
        if entry == Admission::Open {
            state.held = state.held.plus(more);
        }
        entry
    }

    /// Counts `more` in as soon as there is room; never [`Admission::Full`].
    pub(super) fn enter(&self, more: Load) -> Admission {
        let mut state = self.state();
        loop {
            match state.entry(more) {
                Admission::Full => state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner),
                Admission::ReceiverGone => return Admission::ReceiverGone,
                Admission::Open => break,
            }
        }
        state.held = state.held.plus(more);
        Admission::Open
    }

    /// Counts `load` out.
    pub(super) fn leave(&self, load: Load) {
        let mut state = self.state();
        state.held = state.held.minus(load);
        drop(state);
        self.room.notify_one();
    }

    /// Nobody will take anything any more.
    pub(super) fn receiver_leaves(&self) {
        self.state().receiver_gone = true;
        self.room.notify_all();
    }

    pub(super) fn receiver_gone(&self) -> bool {
        self.state().receiver_gone
    }

    pub(super) fn resize(&self, bounds: Bounds) {
        self.state().bounds = bounds;
        self.room.notify_all();
    }
}
