//! Who waits while a pipe has nothing, and how it is woken.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::{Duration, Instant},
};

use forebay_core::Result;

use crate::host::Host;
use forebay_queue::stopped;

/// Wakes who waits while a pipe has nothing.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<Ring>,
    changed: Condvar,
}

#[derive(Default)]
struct Ring {
    rung: bool,
    /// Who is told of the next ring, if nobody waits.
    waker: Option<Waker>,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        let mut state = self.lock();
        state.rung = true;
        let waker = state.waker.take();
        drop(state);
        self.changed.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Has `waker` called at the next ring; at once if that came already.
    pub(super) fn tell(&self, waker: Option<Waker>) {
        let mut state = self.lock();
        let (late, waker) = if state.rung { (waker, None) } else { (None, waker) };
        state.waker = waker;
        drop(state);
        late.into_iter().for_each(Waker::wake);
    }

    /// Waits for a ring, until this moment if there is one, and says whether it came; a stop of the host rings too.
    pub(crate) fn wait(&self, host: &Host, until: Option<Instant>) -> Result<bool> {
        let mut state = self.lock();
        while !state.rung {
            if host.is_cancelled() {
                return Err(stopped());
            }
            let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match rest {
                Some(Duration::ZERO) => return Ok(false),
                Some(rest) => {
                    self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.rung = false;
        Ok(true)
    }
}
