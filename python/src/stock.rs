//! Memory of torch's, such as pinned memory, that a loader makes its batches in.
#![expect(unsafe_code, reason = "the memory of a tensor that Python keeps")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_core::BufferMut;
use pyo3::prelude::*;

/// So many lengths have blocks that wait. With one more, the length that got none for longest loses its own.
const LENGTHS: usize = 8;

/// Blocks that wait until a pipe asks for memory of their length.
///
/// Threads of the loader take them, and the consumer puts them here: so no thread waits for the interpreter, which whoever has it may not give
/// before that thread is done.
#[pyclass(frozen, module = "forebay._native")]
#[derive(Default)]
pub(crate) struct Stock(Arc<Shelves>);

/// The blocks by their length; the length that got one last is the last.
#[derive(Default)]
pub(crate) struct Shelves(Mutex<Vec<(usize, Vec<Block>)>>);

impl Stock {
    pub(crate) fn shelves(&self) -> Arc<Shelves> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Stock {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds the memory of `owner`, which is `len` bytes at `place` that nobody else uses as long as the owner lives.
    fn add(&self, owner: Py<PyAny>, place: usize, len: usize) {
        let block = Block { place: std::ptr::with_exposed_provenance_mut(place), len, _owner: owner };
        // Blocks are dropped without the lock: that calls torch.
        drop(self.0.add(block));
    }

    /// How many blocks of this length wait.
    fn waiting(&self, len: usize) -> usize {
        self.0.lock().iter().find(|(known, _)| *known == len).map_or(0, |(_, blocks)| blocks.len())
    }
}

impl Shelves {
    fn lock(&self) -> MutexGuard<'_, Vec<(usize, Vec<Block>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a block; gives those that have to go.
    fn add(&self, block: Block) -> Vec<Block> {
        let mut shelves = self.lock();
        let len = block.len;
        let at = shelves.iter().position(|(known, _)| *known == len);
        let mut shelf = at.map_or_else(|| (len, Vec::new()), |at| shelves.remove(at));
        shelf.1.push(block);
        shelves.push(shelf);
        if shelves.len() > LENGTHS { shelves.remove(0).1 } else { Vec::new() }
    }

    /// Memory of just this length, if some waits.
    pub(crate) fn take(&self, len: usize) -> Option<BufferMut> {
        let mut shelves = self.lock();
        let (_, blocks) = shelves.iter_mut().find(|(known, _)| *known == len)?;
        blocks.pop().map(BufferMut::from_owner)
    }
}

/// The memory of an object of Python's.
struct Block {
    place: *mut u8,
    len: usize,
    /// Dropped on a thread without the interpreter, it is let go of by the next that has it.
    _owner: Py<PyAny>,
}

// SAFETY: the memory is the block's alone and stays where it is; the object may be dropped on any thread.
unsafe impl Send for Block {}
// SAFETY: as above; a shared block gives no access.
unsafe impl Sync for Block {}

impl AsMut<[u8]> for Block {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: whoever added it promised so many bytes, which the owner keeps and nobody else uses. That anything may be in them is of no
        // matter: they are bytes, and torch's allocator has mapped them.
        unsafe { std::slice::from_raw_parts_mut(self.place, self.len) }
    }
}
