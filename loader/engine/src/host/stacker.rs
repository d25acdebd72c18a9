//! Output memory laid out as a batch: samples that will be stacked are written into their place in it.
//!
//! The pipe that stacks finds its inputs side by side in one allocation and copies nothing. Where a
//! sample is lost, or lengths differ, they do not lie so, and it copies as it would anyway.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use forebay_core::BufferMut;

use super::pool::Pool;

/// Shorter outputs are cheaper to copy than to place.
const WORTHWHILE: usize = 4096;
/// The most batches that are being filled at once; older ones lost a sample.
const OPEN: usize = 4;

/// The batches that a segment's output is being written into.
pub(crate) struct Stacker {
    size: u64,
    most: usize,
    /// How long the outputs of workers were, the last time one said so.
    expected: AtomicUsize,
    batches: Mutex<Batches>,
}

#[derive(Default)]
struct Batches {
    open: BTreeMap<u64, Vec<Option<BufferMut>>>,
    /// Lengths differ: placing is of no use.
    off: bool,
}

impl Stacker {
    /// For a pipe that stacks `size` samples; no batch is laid out that is longer than `most` bytes.
    pub(crate) fn new(size: u64, most: usize) -> Arc<Self> {
        Arc::new(Self { size, most, expected: AtomicUsize::new(0), batches: Mutex::default() })
    }

    /// How many samples are stacked into one.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Notes how long the outputs of a worker are.
    pub(crate) fn expect(&self, len: usize) {
        self.expected.store(len, Ordering::Relaxed);
    }

    /// The places of samples that a worker is going to make, if they are as long as the last ones.
    pub(crate) fn expected_slots(&self, first: u64, count: usize, pool: &Arc<Pool>) -> Vec<BufferMut> {
        let len = self.expected.load(Ordering::Relaxed);
        (first..first + count as u64).map_while(|at| self.slot(at, len, pool)).collect()
    }

    /// Begins an epoch or a pass: the next sample is number 0.
    pub(crate) fn clear(&self) {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).open.clear();
    }

    /// The place of sample `at` in its batch, if every sample's output has `len` bytes.
    pub(super) fn slot(&self, at: u64, len: usize, pool: &Arc<Pool>) -> Option<BufferMut> {
        let size = usize::try_from(self.size).ok()?;
        let bytes = len.checked_mul(size).filter(|&bytes| len >= WORTHWHILE && bytes <= self.most)?;
        let (batch, slot) = (at / self.size, usize::try_from(at % self.size).ok()?);
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        if batches.off {
            return None;
        }
        let slots = match batches.open.entry(batch) {
            Entry::Occupied(slots) => slots.into_mut(),
            // Without memory for a whole batch, each sample asks for its own.
            Entry::Vacant(place) => place.insert(lay_out(pool.alloc(bytes).ok()?, size, len)),
        };
        let found = slots.get_mut(slot)?.take()?;
        let full = slots.iter().all(Option::is_none);
        if found.len() != len {
            batches.off = true;
            batches.open.clear();
            return None;
        }
        if full {
            batches.open.remove(&batch);
        } else if batches.open.len() > OPEN {
            batches.open.pop_first();
        }
        Some(found)
    }
}

fn lay_out(mut memory: BufferMut, size: usize, len: usize) -> Vec<Option<BufferMut>> {
    (0..size).map(|_| Some(memory.split_off_front(len))).collect()
}

#[cfg(test)]
mod tests {
    use forebay_core::Buffer;

    use super::*;

    #[test]
    fn samples_of_a_batch_lie_side_by_side_in_whatever_order_they_come() {
        let pool = Pool::new(1 << 24, None);
        let stacker = Stacker::new(4, 1 << 20);
        let mut slots: Vec<(u64, Buffer)> = [5, 0, 3, 1, 2, 4, 7, 6]
            .map(|at| (at, stacker.slot(at, 8192, &pool).unwrap().freeze()))
            .into_iter()
            .collect();
        slots.sort_by_key(|(at, _)| *at);
        let joined = Buffer::join(slots[..4].iter().map(|(_, slot)| slot)).unwrap();
        assert_eq!(joined.len(), 4 * 8192);
        assert!(Buffer::join(slots.iter().map(|(_, slot)| slot)).is_none());
        assert!(stacker.batches.lock().unwrap().open.is_empty());
    }

    #[test]
    fn no_place_is_given_twice() {
        let pool = Pool::new(1 << 24, None);
        let stacker = Stacker::new(4, 1 << 20);
        assert!(stacker.slot(1, 8192, &pool).is_some());
        assert!(stacker.slot(1, 8192, &pool).is_none());
    }

    #[test]
    fn lengths_that_differ_switch_it_off() {
        let pool = Pool::new(1 << 24, None);
        let stacker = Stacker::new(4, 1 << 20);
        assert!(stacker.slot(0, 8192, &pool).is_some());
        assert!(stacker.slot(1, 9000, &pool).is_none());
        assert!(stacker.slot(2, 8192, &pool).is_none());
    }
}
