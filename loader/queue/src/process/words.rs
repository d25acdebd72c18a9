//! What the two processes of a lane count with, and who wakes whom. `tests/models.rs` runs this file under loom.

use super::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The words at the start of a lane.
#[repr(C)]
#[derive(Default)]
pub(super) struct Control {
    /// Whether the far end was taken.
    pub(super) attached: AtomicU32,
    /// How the sender left; see `ending`.
    pub(super) ending: AtomicU32,
    /// Set once the receiver was dropped.
    pub(super) receiver_gone: AtomicU32,
    /// Set while the sender waits for anything that the receiver does.
    waiting: AtomicU32,
    /// The first of the blocks that nobody holds any more, plus one; each names the next.
    freed: AtomicU32,
    /// What the sender is at, for people.
    pub(super) note: AtomicU32,
    /// Samples and bytes that were received so far.
    taken_items: AtomicU64,
    taken_bytes: AtomicU64,
}

/// One block's counter.
#[repr(C)]
#[derive(Default)]
pub(super) struct Slot {
    /// The holds on it: one of the sender's process, one for each message, one for each receiver's view.
    count: AtomicU32,
    /// The next freed block, plus one.
    next: AtomicU32,
}

impl Control {
    /// What was received so far: items and bytes.
    pub(super) fn taken(&self) -> (u64, u64) {
        (self.taken_items.load(Ordering::Acquire), self.taken_bytes.load(Ordering::Acquire))
    }

    /// Counts a message as received.
    pub(super) fn take(&self, items: u64, bytes: u64) {
        self.taken_items.fetch_add(items, Ordering::AcqRel);
        self.taken_bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// The sender says that it is going to wait; it looks once more afterwards, and only then waits.
    pub(super) fn announce_wait(&self) {
        // Not a store: in the model, two threads' stores to one word have no order.
        self.waiting.swap(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    pub(super) fn end_wait(&self) {
        self.waiting.store(0, Ordering::Relaxed);
    }

    /// After a change: whether the sender must be woken. It is told once.
    pub(super) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) != 0 && self.waiting.swap(0, Ordering::AcqRel) != 0
    }

    /// Clears all words, for a lane that begins.
    pub(super) fn reset(&self) {
        let words =
            [&self.attached, &self.ending, &self.receiver_gone, &self.waiting, &self.freed, &self.note];
        for word in words {
            word.store(0, Ordering::Release);
        }
        self.taken_items.store(0, Ordering::Release);
        self.taken_bytes.store(0, Ordering::Release);
    }

    /// Whether any block was freed since they were last taken.
    pub(super) fn has_freed(&self) -> bool {
        self.freed.load(Ordering::Acquire) != 0
    }

    /// Takes all freed blocks, the latest first, and calls `each` with them.
    ///
    /// Numbers that are none end it, and so does a ring: no more are taken than there are.
    pub(super) fn take_freed(&self, slots: &[Slot], mut each: impl FnMut(u32)) {
        if !self.has_freed() {
            return;
        }
        let mut next = self.freed.swap(0, Ordering::AcqRel);
        for _ in slots {
            let Some(index) = next.checked_sub(1) else { return };
            let Some(slot) = slots.get(index as usize) else { return };
            // Read before `each`, which may give the block out again.
            next = slot.next.load(Ordering::Acquire);
            if slot.count.load(Ordering::Acquire) == 0 {
                each(index);
            }
        }
    }

    /// Gives up one hold on a block; with the last one it is freed.
    pub(super) fn release(&self, slots: &[Slot], index: u32) -> bool {
        let Some(slot) = slots.get(index as usize) else { return false };
        if slot.count.fetch_sub(1, Ordering::AcqRel) != 1 {
            return false;
        }
        let mut first = self.freed.load(Ordering::Relaxed);
        loop {
            slot.next.store(first, Ordering::Release);
            match self.freed.compare_exchange_weak(first, index + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => first = found,
            }
        }
    }
}

impl Slot {
    /// The first hold on a block that was just taken.
    pub(super) fn start(&self) {
        self.count.store(1, Ordering::Release);
    }

    /// Whether there is one hold. Who has it is the only one that can make another.
    pub(super) fn is_held_once(&self) -> bool {
        self.count.load(Ordering::Acquire) == 1
    }

    /// One more hold, made from one that exists: refused where none does.
    pub(super) fn hold(&self) -> bool {
        let more = |count: u32| if count == 0 { None } else { count.checked_add(1) };
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }
}
