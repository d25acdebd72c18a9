//! After the first epochs nothing more is taken from the system: batches, decode output and scratch are used again.
//!
//! Alone in its program: it counts what the host's own allocator gives, and the page faults of the whole process,
//! which hold what the plugins' allocators take.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use forebay_loader::{Executor, Graph, Loader};
use forebay_tests::{Setting, build, line, registry, root, within_deadline};

struct Counting;

static BLOCKS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is the system allocator's own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise, here and below.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// One test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Page faults of this process that needed no disk: fresh memory, for the most part.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The tenth field; the second is a name in brackets, which may hold spaces.
    let rest = stat.rsplit_once(") ").unwrap().1;
    rest.split(' ').nth(7).unwrap().parse().unwrap()
}

/// What one batch took: blocks and bytes of the host, page faults of the process.
#[derive(Debug)]
struct Cost {
    blocks: f64,
    bytes: f64,
    faults: f64,
}

/// Runs epochs until the memory is warm, then more of them, and gives what a batch of those took.
fn cost(loader: &mut Loader, warm: u64, measured: u64) -> Cost {
    let batches = |loader: &mut Loader, epoch| loader.epoch(epoch).map(Result::unwrap).count() as f64;
    for epoch in 0..warm {
        batches(loader, epoch);
    }
    let (fresh, reused) = (loader.stats().blocks_fresh, loader.stats().blocks_reused);
    let before = [BLOCKS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed), page_faults()];
    let count: f64 = (warm..warm + measured).map(|epoch| batches(loader, epoch)).sum();
    let after = [BLOCKS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed), page_faults()];
    let (fresh, reused) = (loader.stats().blocks_fresh - fresh, loader.stats().blocks_reused - reused);
    // Epochs have other orders, so now and then more pictures of one size are held at once than ever before.
    assert!(fresh * 50 <= reused, "of large blocks {fresh} were fresh and {reused} used again");
    let [blocks, bytes, faults] = [0, 1, 2].map(|at| (after[at] - before[at]) as f64 / count);
    Cost { blocks, bytes, faults }
}

fn photos() -> Graph {
    let text = std::fs::read_to_string(root().join("examples/photos.toml")).unwrap();
    Graph::from_toml(&text.replace("examples/photos", root().join("examples/photos").to_str().unwrap()))
        .unwrap()
}

#[test]
fn a_batch_of_photos_takes_no_fresh_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let mut loader = build(&photos(), &registry(), Setting { executor, ..Setting::INLINE }).unwrap();
            let cost = cost(&mut loader, 6, 4);
            // A batch has 9,408 pages of f32, and is made of 64 photographs of 100 pages and more.
            assert!(cost.blocks < 600.0, "{executor}: {cost:?}");
            assert!(cost.bytes < 200_000.0, "{executor}: {cost:?}");
            assert!(cost.faults < 200.0, "{executor}: {cost:?}");
        }
    });
}

#[test]
fn a_batch_of_numbers_takes_next_to_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let graph = line("range 64000 | increment | batch 64");
            let mut loader = build(&graph, &registry(), Setting { executor, ..Setting::INLINE }).unwrap();
            let cost = cost(&mut loader, 3, 5);
            assert!(cost.blocks < 40.0, "{executor}: {cost:?}");
            assert!(cost.faults < 4.0, "{executor}: {cost:?}");
        }
    });
}
