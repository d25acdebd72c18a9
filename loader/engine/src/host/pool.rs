//! Memory for output, recycled: a fresh page costs more than filling it.
//!
//! Large blocks are mapped and asked for in huge pages, which costs one fault for 2 MiB instead of 512.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use forebay_core::{BufferMut, Error, Result};
use forebay_queue::{process::Heap, tide::Tide};

/// Blocks from this size on are mapped, in huge pages where the system has them.
const LARGE: usize = 2 << 20;
/// Buffers shorter than this come from the allocator, which is quick for them.
const SMALL: usize = 2048;
/// How many bytes may be kept beyond the most that was in use lately.
const SPARE: usize = 32 << 20;

/// 64 bytes that begin at a multiple of 64, as tensors are best read.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

/// A piece of memory.
enum PoolBlock {
    Heap(Vec<CacheLine>),
    Map(memmap2::MmapMut),
}

impl PoolBlock {
    /// Fresh memory of so many lines; none when the system has no more.
    fn new(lines: usize) -> Option<Self> {
        let len = lines.checked_mul(64)?;
        if len >= LARGE {
            let map = memmap2::MmapMut::map_anon(len).ok()?;
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage); // Without them it is only slower.
            return Some(Self::Map(map));
        }
        let mut memory = Vec::new();
        memory.try_reserve_exact(lines).ok()?;
        memory.resize(lines, CacheLine([0; 64]));
        Some(Self::Heap(memory))
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

/// Gives memory for so many bytes, or none to leave that to the pool.
pub type OwnMemory = Arc<dyn Fn(usize) -> Option<BufferMut> + Send + Sync>;

/// Blocks of memory that were given back, by size.
pub struct Pool {
    books: Mutex<Books>,
    /// Memory shared with other processes, which is used first.
    heap: Option<Heap>,
    /// Memory of the program's own, which is used before that of the system.
    own: Option<OwnMemory>,
    fresh: AtomicU64,
    reused: AtomicU64,
}

/// What is in use, and what waits to be used again.
struct Books {
    /// By their number of lines.
    shelves: BTreeMap<usize, Shelf>,
    kept: usize,
    tide: Tide,
    clock: u64,
}

/// Blocks of one size.
#[derive(Default)]
struct Shelf {
    blocks: Vec<PoolBlock>,
    /// When one was last taken or put here.
    used: u64,
}

impl Books {
    fn shelf(&mut self, lines: usize) -> &mut Shelf {
        self.clock += 1;
        let shelf = self.shelves.entry(lines).or_default();
        shelf.used = self.clock;
        shelf
    }

    /// Takes a block that waits, and counts it as used, or one that is about to be made.
    fn take(&mut self, lines: usize) -> Option<PoolBlock> {
        let block = self.shelf(lines).blocks.pop();
        self.kept -= block.as_ref().map_or(0, |_| lines * 64);
        self.tide.take(lines * 64);
        block
    }

    /// Takes out what is more than may be kept, beginning with the sizes that were not used for longest.
    #[must_use]
    fn excess(&mut self) -> Vec<PoolBlock> {
        let mut excess = Vec::new();
        while self.kept > self.tide.room() {
            let waiting = self.shelves.iter().filter(|(_, shelf)| !shelf.blocks.is_empty());
            let Some((&lines, _)) = waiting.min_by_key(|(_, shelf)| shelf.used) else { break };
            excess.extend(self.shelves.get_mut(&lines).and_then(|shelf| shelf.blocks.pop()));
            self.kept -= lines * 64;
        }
        excess
    }
}

impl Pool {
    /// A pool that may hold `least` bytes in any case, and else what was in use lately; it gives memory of `heap` while there is some.
    pub fn new(least: usize, heap: Option<Heap>) -> Arc<Self> {
        Self::with_own(least, heap, None)
    }

    /// As [`new`](Self::new), with memory of the program's own.
    pub fn with_own(least: usize, heap: Option<Heap>, own: Option<OwnMemory>) -> Arc<Self> {
        let (fresh, reused) = (AtomicU64::new(0), AtomicU64::new(0));
        let tide = Tide::new(least, SPARE);
        let books = Mutex::new(Books { shelves: BTreeMap::new(), kept: 0, tide, clock: 0 });
        Arc::new(Self { books, heap, own, fresh, reused })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `len` bytes with anything in them; dropped, they come back here.
    ///
    /// # Errors
    /// `Limit` when the system gives no more.
    pub(crate) fn alloc(self: &Arc<Self>, len: usize) -> Result<BufferMut> {
        match len {
            0..=64 => return Ok(BufferMut::from_owner(Few { bytes: [0; 64], len })),
            65..=256 => return Ok(BufferMut::from_owner(Few { bytes: [0; 256], len })),
            257..SMALL => return Ok(BufferMut::from_owner(vec![0_u8; len])),
            _ => {}
        }
        if let Some(shared) = self.heap.as_ref().and_then(|heap| heap.alloc(len)) {
            return Ok(shared);
        }
        if let Some(own) = self.own.as_ref().and_then(|own| own(len)).filter(|own| own.len() >= len) {
            let mut own = own;
            own.truncate(len);
            return Ok(own);
        }
        let lines = class(len.div_ceil(64));
        let (recycled, excess) = {
            let mut books = self.books();
            (books.take(lines), books.excess())
        };
        drop(excess); // Before more is taken.
        let counter = if recycled.is_some() { &self.reused } else { &self.fresh };
        counter.fetch_add(1, Ordering::Relaxed);
        let block = recycled.or_else(|| PoolBlock::new(lines));
        let block = block.or_else(|| {
            self.give_up();
            PoolBlock::new(lines)
        });
        let Some(block) = block else {
            let mut books = self.books();
            books.tide.give_back(lines * 64);
            books.tide.ebb();
            return Err(no_memory(len, books.tide.live()));
        };
        Ok(BufferMut::from_owner(UsedBlock { block: Some(block), len, pool: Arc::clone(self) }))
    }

    /// How many large blocks were taken fresh from the system, and how many were used again.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.fresh.load(Ordering::Relaxed), self.reused.load(Ordering::Relaxed))
    }

    /// Gives everything that waits back to the system.
    fn give_up(&self) {
        let mut books = self.books();
        let shelves = std::mem::take(&mut books.shelves);
        books.kept = 0;
        drop(books);
        drop(shelves);
    }

    fn give_back(&self, block: PoolBlock) {
        let mut books = self.books();
        let lines = block.lines();
        books.tide.give_back(lines * 64);
        books.kept += lines * 64;
        books.shelf(lines).blocks.push(block);
        let excess = books.excess();
        drop(books);
        drop(excess);
    }
}

/// The error of memory that the system did not give, while so many bytes are in use.
fn no_memory(len: usize, live: usize) -> Error {
    Error::limit(format!(
        "the system has no {len} bytes left for a sample, while samples use {live}: add memory, or use fewer threads"
    ))
}

/// Rounds up to one of four sizes per power of two, so that sizes that differ a little share blocks.
fn class(lines: usize) -> usize {
    let step = (lines.next_power_of_two() / 8).max(1);
    lines.next_multiple_of(step)
}

/// A block in use.
struct UsedBlock {
    /// Taken by its drop alone.
    block: Option<PoolBlock>,
    len: usize,
    pool: Arc<Pool>,
}

impl AsMut<[u8]> for UsedBlock {
    fn as_mut(&mut self) -> &mut [u8] {
        self.block.as_mut().map_or(&mut [], |block| &mut block.bytes()[..self.len])
    }
}

impl Drop for UsedBlock {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.give_back(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::ErrorKind;

    use super::*;

    #[test]
    fn a_block_given_back_is_used_again() {
        let pool = Pool::new(1 << 20, None);
        let first = pool.alloc(100_000).unwrap();
        let place = first.as_ptr();
        assert_eq!(place as usize % 64, 0);
        drop(first.freeze());
        assert_eq!(pool.alloc(99_900).unwrap().as_ptr(), place);
        assert_eq!(pool.counts(), (1, 1));
    }

    /// Bytes that wait to be used again.
    fn kept(pool: &Pool) -> usize {
        pool.books().kept
    }

    #[test]
    fn as_much_is_kept_as_was_in_use_and_a_little() {
        let pool = Pool::new(0, None);
        let blocks: Vec<_> = (0..4).map(|_| pool.alloc(32 << 20).unwrap()).collect();
        drop(blocks);
        assert_eq!(kept(&pool), 128 << 20);
        // Blocks of another size push those out that wait, one by one.
        let other = [20 << 20, 24 << 20, 28 << 20].map(|len| pool.alloc(len).unwrap());
        assert_eq!(kept(&pool), 64 << 20);
        drop(other);
        assert_eq!(kept(&pool), 136 << 20);
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let pool = Pool::new(0, None);
        let error = pool.alloc(1 << 60).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.to_string().contains("the system has no 1152921504606846976 bytes"), "{error}");
        assert_eq!(pool.books().tide.live(), 0);
    }
}
