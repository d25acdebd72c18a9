//! Blocks of bytes in shared memory.
#![expect(unsafe_code, reason = "shared memory is reached by address")]

use std::{ops::Range, ptr, slice, sync::Arc};

use forebay_core::{Buffer, BufferMut, LentBytes};

use super::{lane::Lane, words::Slot};

/// One process's hold on a block: its place, and the counter to give back.
pub(super) struct Block {
    lane: Arc<Lane>,
    slot: u32,
    range: Range<usize>,
    /// Whether the lane has this noted as a view.
    is_noted: bool,
}

impl Block {
    /// A hold that was counted already; `range` lies within the arena.
    pub(super) fn counted(lane: Arc<Lane>, slot: u32, range: Range<usize>) -> Self {
        Self { lane, slot, range, is_noted: false }
    }

    /// The bytes, to be written: for a block that was just taken and is nobody else's.
    pub(super) fn into_memory(self) -> BufferMut {
        BufferMut::from_owner(self)
    }

    /// The bytes, which nobody writes any more.
    pub(super) fn into_buffer(self) -> Buffer {
        Buffer::from_owner(self)
    }

    /// As [`into_buffer`](Block::into_buffer), for a block that was received: it can be sent back, and written once its sender has let go of it.
    pub(super) fn into_view(mut self) -> Buffer {
        self.lane.note_view(self.slot, &self.range);
        self.is_noted = true;
        Buffer::from_lent(self)
    }

    /// The bytes, to be filled before the block is sent.
    pub(super) fn fill(&mut self, bytes: &[u8]) {
        self.as_mut().copy_from_slice(bytes);
    }

    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Where it begins and ends, as messages say it.
    pub(super) fn ends(&self) -> [u64; 2] {
        [self.range.start as u64, self.range.end as u64]
    }

    /// Leaves the hold to another process, which was told of it.
    pub(super) fn hand_over(self) {
        // The lane's own count is given up; the counter in shared memory stays.
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so the lane is taken out once.
        drop(unsafe { ptr::read(&raw const this.lane) });
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        let place = self.lane.map().at(&self.range);
        // SAFETY: in the map, which the lane keeps; initialised as all mapped memory is; while the hold is counted
        // nobody but a `BufferMut` of this very block writes there, and that goes through `as_mut`.
        unsafe { slice::from_raw_parts(place.as_ptr(), self.range.len()) }
    }
}

// SAFETY: the place is in the map, which the lane keeps. A block that was sent is written by nobody; with one hold left, which is this one, no
// process has another, and only who has a hold can make one.
unsafe impl LentBytes for Block {
    fn place(&self) -> *mut [u8] {
        ptr::slice_from_raw_parts_mut(self.lane.map().at(&self.range).as_ptr(), self.range.len())
    }

    fn is_alone(&self) -> bool {
        self.lane.slots().get(self.slot as usize).is_some_and(Slot::is_held_once)
    }
}

impl AsMut<[u8]> for Block {
    fn as_mut(&mut self) -> &mut [u8] {
        let place = self.lane.map().at(&self.range);
        // SAFETY: as above, and the block was not sent yet: it is reached through this hold alone.
        unsafe { slice::from_raw_parts_mut(place.as_ptr(), self.range.len()) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.is_noted {
            self.lane.forget_view(self.range.start);
        }
        self.lane.empty(self.slot, &self.range);
        self.lane.release(self.slot);
    }
}
