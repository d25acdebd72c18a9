//! The sending process's allocator over its lane: memory that can be sent without a copy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_core::{BufferMut, codec::LARGE};

use super::{
    block::Block,
    lane::{KEPT, Lane},
    space::Space,
};
use crate::tide::Tide;

/// Shared memory for the buffers that a process is going to send. Clones are the same heap.
#[derive(Clone)]
pub struct Heap {
    inner: Arc<Inner>,
}

struct Inner {
    lane: Arc<Lane>,
    space: Mutex<Space>,
}

impl Heap {
    /// A heap over all of a lane; free memory keeps its pages as `tide` says.
    pub(super) fn new(lane: Arc<Lane>, tide: Tide) -> Self {
        let slots = u32::try_from(lane.slots().len()).unwrap_or(u32::MAX);
        let space = Space::new(lane.blocks(), slots, tide);
        Self { inner: Arc::new(Inner { lane, space: Mutex::new(space) }) }
    }

    /// How much of what was sent on a lane keeps its pages: little, since there are two lanes for each worker.
    pub(super) fn lane_tide() -> Tide {
        Tide::shallow(KEPT)
    }

    /// `len` bytes with anything in them, or `None` when they are too few to be worth it or there is no room.
    ///
    /// Memory that was used before is used again first. What is dropped here or by the receiver comes back.
    #[must_use]
    pub fn alloc(&self, len: usize) -> Option<BufferMut> {
        if len < LARGE {
            return None;
        }
        self.block(len).map(Block::into_memory)
    }

    /// How many bytes are in use, here or by the receiver.
    #[must_use]
    pub fn used(&self) -> usize {
        self.space().used()
    }

    /// A block that nobody has yet.
    pub(super) fn block(&self, len: usize) -> Option<Block> {
        let (slot, range) = self.space().take(len)?;
        self.inner.lane.slots().get(slot as usize)?.start();
        Some(Block::counted(Arc::clone(&self.inner.lane), slot, range))
    }

    /// One more hold on the block that `bytes` lie in, if they lie in this heap.
    pub(super) fn hold(&self, bytes: &[u8]) -> Option<Block> {
        let lane = &self.inner.lane;
        let place = lane.map().place_of(bytes)?;
        let (slot, block) = self.space().find(&(place..place + bytes.len()))?;
        let held = lane.slots().get(slot as usize)?.hold();
        held.then(|| Block::counted(Arc::clone(lane), slot, block))
    }

    /// Whether a block of `len` bytes fits when nothing else is there.
    pub(super) fn could_hold(&self, len: usize) -> bool {
        len <= self.space().longest()
    }

    /// Whether anything came back since memory was last asked for.
    pub(super) fn has_freed(&self) -> bool {
        self.inner.lane.control().has_freed()
    }

    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.inner.lane
    }

    /// The books, with what came back entered. The lock is held for no longer than that.
    fn space(&self) -> MutexGuard<'_, Space> {
        let mut space = self.inner.space.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = &self.inner.lane;
        lane.control().take_freed(lane.slots(), |slot| space.give_back(slot));
        while let Some(excess) = space.excess() {
            lane.map().give_up(&excess);
        }
        space
    }
}

#[cfg(test)]
mod tests {
    use super::super::arena::Arena;

    #[test]
    fn what_another_hold_keeps_is_not_to_be_written() {
        let arena = Arena::create(16 << 20).unwrap();
        let heap = arena.heap(8 << 20, 0).unwrap();
        let bytes = heap.alloc(100_000).unwrap().freeze();
        let view = heap.hold(&bytes).unwrap().into_view();
        assert!(!view.is_unshared());
        drop(bytes);
        assert!(view.is_unshared());
    }
}
