//! Output memory that another process lent for the samples of one chunk.

use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_core::BufferMut;

/// Shorter outputs are cheaper to copy than to place.
const WORTHWHILE: usize = 4096;

/// The places for the samples of one chunk, each to be taken once.
#[derive(Default)]
pub(crate) struct Lent(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    first: u64,
    slots: Vec<Option<BufferMut>>,
    /// How long the first output was that might have been placed.
    asked: usize,
}

impl Lent {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a chunk whose first sample has this number.
    pub(crate) fn set(&self, first: u64, slots: Vec<Option<BufferMut>>) {
        *self.inner() = Inner { first, slots, asked: 0 };
    }

    /// The place of sample `at`, if its output has just that length.
    pub(super) fn slot(&self, at: u64, len: usize) -> Option<BufferMut> {
        if len < WORTHWHILE {
            return None;
        }
        let mut inner = self.inner();
        if inner.asked == 0 {
            inner.asked = len;
        }
        let slot = usize::try_from(at.checked_sub(inner.first)?).ok()?;
        inner.slots.get_mut(slot)?.take_if(|slot| slot.len() == len)
    }

    /// Gives back what was not used, and how long outputs are.
    pub(crate) fn finish(&self) -> usize {
        let mut inner = self.inner();
        inner.slots.clear();
        inner.asked
    }
}
