//! Memory for output, recycled: a fresh page costs more than filling it.
//!
//! Large blocks are mapped and asked for in huge pages, which costs one fault for 2 MiB instead of 512.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use forebay_core::BufferMut;

use crate::queue::process::Heap;

/// Blocks from this size on are mapped, in huge pages where the system has them.
const LARGE: usize = 2 << 20;
/// Buffers shorter than this come from the allocator, which is quick for them.
const SMALL: usize = 2048;

/// 64 bytes that begin at a multiple of 64, as tensors are best read.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A piece of memory.
enum Block {
    Heap(Vec<Line>),
    Map(memmap2::MmapMut),
}

impl Block {
    /// Fresh memory of so many lines.
    fn new(lines: usize) -> Self {
        if lines * 64 >= LARGE
            && let Ok(map) = memmap2::MmapMut::map_anon(lines * 64)
        {
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage); // Without them it is only slower.
            return Self::Map(map);
        }
        Self::Heap(vec![Line([0; 64]); lines])
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(lines) => bytemuck::cast_slice_mut(lines),
            Self::Map(map) => map,
        }
    }

    fn lines(&self) -> usize {
        match self {
            Self::Heap(lines) => lines.len(),
            Self::Map(map) => map.len() / 64,
        }
    }
}

/// So few bytes that they lie in the allocation that counts who holds them.
#[repr(align(16))]
struct Few<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> AsMut<[u8]> for Few<N> {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len.min(N)]
    }
}

/// Blocks of memory that were given back, by size.
pub(crate) struct Pool {
    free: Mutex<Free>,
    /// The most bytes that wait here to be used again.
    keep: usize,
    /// Memory shared with other processes, which is used first.
    heap: Option<Heap>,
    fresh: AtomicU64,
    reused: AtomicU64,
}

#[derive(Default)]
struct Free {
    /// By their number of lines.
    blocks: BTreeMap<usize, Vec<Block>>,
    bytes: usize,
}

impl Pool {
    pub(crate) fn new(keep: usize) -> Arc<Self> {
        Self::with(keep, None)
    }

    /// A pool that gives memory of `heap` while there is some.
    pub(crate) fn shared(keep: usize, heap: Heap) -> Arc<Self> {
        Self::with(keep, Some(heap))
    }

    fn with(keep: usize, heap: Option<Heap>) -> Arc<Self> {
        let (fresh, reused) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { free: Mutex::default(), keep, heap, fresh, reused })
    }

    /// `len` bytes with anything in them; dropped, they come back here.
    pub(crate) fn alloc(self: &Arc<Self>, len: usize) -> BufferMut {
        match len {
            0..=64 => return BufferMut::from_owner(Few { bytes: [0; 64], len }),
            65..=256 => return BufferMut::from_owner(Few { bytes: [0; 256], len }),
            257..SMALL => return BufferMut::from_owner(vec![0_u8; len]),
            _ => {}
        }
        if let Some(shared) = self.heap.as_ref().and_then(|heap| heap.alloc(len)) {
            return shared;
        }
        let lines = class(len.div_ceil(64));
        let recycled = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let block = free.blocks.get_mut(&lines).and_then(Vec::pop);
            free.bytes -= block.as_ref().map_or(0, |block| block.lines() * 64);
            block
        };
        let counter = if recycled.is_some() { &self.reused } else { &self.fresh };
        counter.fetch_add(1, Ordering::Relaxed);
        let block = recycled.unwrap_or_else(|| Block::new(lines));
        BufferMut::from_owner(Slot { block: Some(block), len, pool: Arc::clone(self) })
    }

    /// How many large blocks were taken fresh from the system, and how many were used again.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.fresh.load(Ordering::Relaxed), self.reused.load(Ordering::Relaxed))
    }

    fn give_back(&self, block: Block) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = block.lines();
        // A size that is in use now matters more than one that waited since the graph changed its mind.
        while free.bytes + lines * 64 > self.keep {
            let other = free.blocks.iter().find(|(other, blocks)| **other != lines && !blocks.is_empty());
            let Some((&other, _)) = other else { break };
            let _ = free.blocks.get_mut(&other).and_then(Vec::pop);
            free.bytes -= other * 64;
        }
        if free.bytes + lines * 64 <= self.keep {
            free.bytes += lines * 64;
            free.blocks.entry(lines).or_default().push(block);
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
    /// Taken by its drop alone.
    block: Option<Block>,
    len: usize,
    pool: Arc<Pool>,
}

impl AsMut<[u8]> for Slot {
    fn as_mut(&mut self) -> &mut [u8] {
        self.block.as_mut().map_or(&mut [], |block| &mut block.bytes()[..self.len])
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.give_back(block);
        }
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
