//! An allocator that finds out who frees memory of another, or whose memory another frees.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    process::abort,
};

#[global_allocator]
static ALLOCATOR: Marked = Marked;

/// What stands before everything that it gives.
const MARK: usize = 0x0bad_f00d_dead_beef;

/// The system's, of which it gives what stands behind a mark: an address that the system never gave.
struct Marked;

/// What is asked of the system, and how far behind that the caller's memory begins.
fn wider(layout: Layout) -> (Layout, usize) {
    let head = layout.align().max(size_of::<usize>());
    match Layout::from_size_align(layout.size().saturating_add(head), head) {
        Ok(wider) => (wider, head),
        Err(_) => abort(),
    }
}

// SAFETY: a block of the system's is a head longer, and as aligned at its start as at the end of its head.
unsafe impl GlobalAlloc for Marked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (wider, head) = wider(layout);
        // SAFETY: it is not empty, and has room for the head, whose end is aligned.
        unsafe {
            let block = System.alloc(wider);
            if block.is_null() {
                return block;
            }
            let given = block.add(head);
            given.cast::<usize>().sub(1).write(MARK);
            given
        }
    }

    unsafe fn dealloc(&self, given: *mut u8, layout: Layout) {
        let (wider, head) = wider(layout);
        // SAFETY: what `alloc` gave has the mark before it; of anything else the word is not this one, and nothing more is done.
        unsafe {
            let mark = given.cast::<usize>().sub(1);
            if mark.replace(0) != MARK {
                abort();
            }
            System.dealloc(given.sub(head), wider);
        }
    }
}
