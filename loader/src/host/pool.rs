//! Memory for output, recycled: a fresh page costs more than filling it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use forebay_core::BufferMut;

/// Buffers shorter than this come from the allocator, which is quick for them.
const SMALL: usize = 2048;

/// 64 bytes that begin at a multiple of 64, as tensors are best read.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Blocks of memory that were given back, by size.
pub(crate) struct Pool {
    free: Mutex<Free>,
    /// The most bytes that wait here to be used again.
    keep: usize,
    fresh: AtomicU64,
    reused: AtomicU64,
}

#[derive(Default)]
struct Free {
    blocks: BTreeMap<usize, Vec<Vec<Line>>>,
    bytes: usize,
}

impl Pool {
    pub(crate) fn new(keep: usize) -> Arc<Self> {
        let pool = Self { free: Mutex::default(), keep, fresh: AtomicU64::new(0), reused: AtomicU64::new(0) };
        Arc::new(pool)
    }

    /// `len` bytes with anything in them; dropped, they come back here.
    pub(crate) fn alloc(self: &Arc<Self>, len: usize) -> BufferMut {
        if len < SMALL {
            return BufferMut::from_owner(vec![0_u8; len]);
        }
        let lines = class(len.div_ceil(64));
        let recycled = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let block = free.blocks.get_mut(&lines).and_then(Vec::pop);
            free.bytes -= block.as_ref().map_or(0, |block| block.len() * 64);
            block
        };
        let counter = if recycled.is_some() { &self.reused } else { &self.fresh };
        counter.fetch_add(1, Ordering::Relaxed);
        let block = recycled.unwrap_or_else(|| vec![Line([0; 64]); lines]);
        BufferMut::from_owner(Slot { block, len, pool: Arc::clone(self) })
    }

    /// How many large blocks were taken fresh from the system, and how many were used again.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.fresh.load(Ordering::Relaxed), self.reused.load(Ordering::Relaxed))
    }

    fn give_back(&self, block: Vec<Line>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = block.len() * 64;
        // A size that is in use now matters more than one that waited since the graph changed its mind.
        while free.bytes + bytes > self.keep {
            let Some((&lines, _)) =
                free.blocks.iter().find(|(lines, blocks)| **lines != block.len() && !blocks.is_empty())
            else {
                break;
            };
            let _ = free.blocks.get_mut(&lines).and_then(Vec::pop);
            free.bytes -= lines * 64;
        }
        if free.bytes + bytes <= self.keep {
            free.bytes += bytes;
            free.blocks.entry(block.len()).or_default().push(block);
        }
    }
}

/// Rounds up to one of four sizes per power of two, so that sizes that differ a little share blocks.
fn class(lines: usize) -> usize {
    let step = (lines.next_power_of_two() / 8).max(1);
    lines.next_multiple_of(step)
}

/// A block in use.
struct Slot {
    block: Vec<Line>,
    len: usize,
    pool: Arc<Pool>,
}

impl AsMut<[u8]> for Slot {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.block)[..self.len]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_given_back_is_used_again() {
        let pool = Pool::new(1 << 20);
        let first = pool.alloc(100_000);
        let place = first.as_ptr();
        assert_eq!(place as usize % 64, 0);
        drop(first.freeze());
        assert_eq!(pool.alloc(99_900).as_ptr(), place);
        assert_eq!(pool.counts(), (1, 1));
    }

    #[test]
    fn no_more_is_kept_than_allowed() {
        let pool = Pool::new(150_000);
        let blocks: Vec<_> = (0..4).map(|_| pool.alloc(65_536)).collect();
        drop(blocks);
        assert_eq!(pool.free.lock().unwrap().bytes, 131_072);
        // Another size pushes the waiting one out.
        drop(pool.alloc(120_000));
        assert!(pool.free.lock().unwrap().bytes <= 150_000);
    }
}
