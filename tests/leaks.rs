//! Loaders with worker processes come and go, and leave nothing: alone in its program, since it counts descriptors.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    sync::{Mutex, PoisonError},
    thread,
};

use forebay_loader::Executor;
use forebay_tests::{Gate, Setting, build, line, registry, within_deadline};

/// Held by the one test that counts.
static COUNTING: Mutex<()> = Mutex::new(());

fn count(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn nothing_is_left_behind() {
    within_deadline(|| {
        let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = registry();
        // One with maps on workers, one with pipes that have a worker each, one of which waits for ever.
        let gate = Gate::new();
        let wait = format!("rogue_stream fault=pending at=1 gate='{}' on=process", gate.path());
        let graphs = [
            line("range 1000000000 | increment | batch 4"),
            line("range 1000000000 on=process | rogue_stream | batch 4 on=process"),
            line(&format!("range 1000000000 | {wait} | increment on=threads")),
        ];
        let shared = || fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:forebay").count();
        // Descriptors, threads, and pieces of shared memory.
        let held = || [count("/proc/self/fd"), count("/proc/self/task"), shared()];
        let mut before = [0; 3];
        let cycles = std::env::var("FOREBAY_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
        for cycle in 0..cycles {
            let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
            let mut loader = build(&graphs[cycle % 3], &registry, setting).unwrap();
            let taken = cycle / 3 % 2;
            assert_eq!(loader.epoch(0).take(taken).count(), taken);
            let workers = loader.worker_processes();
            drop(loader);
            for pid in workers {
                let alive = fs::read_to_string(format!("/proc/{pid}/stat"));
                assert!(alive.is_err(), "worker {pid} is still there: {alive:?}");
            }
            if cycle == 0 {
                before = held();
            }
            // A thread that was joined may be counted for a moment more.
            while held() != before {
                thread::yield_now();
            }
        }
    });
}

#[test]
fn files_whose_samples_are_held_are_not_held_open() {
    within_deadline(|| {
        let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for number in 0..1000 {
            fs::write(folder.path().join(format!("{number:04}.txt")), number.to_string()).unwrap();
        }
        for open in ["mmap", "read"] {
            for order in ["shuffle 700", "random_sampler"] {
                let graph = line(&format!("files '{}/*.txt' open={open} | {order}", folder.path().display()));
                let mut loader = build(&graph, &registry, Setting::threads(2)).unwrap();
                let mut samples = loader.epoch(0);
                let mut held = vec![samples.next().unwrap().unwrap()];
                let before = count("/proc/self/fd");
                for sample in samples {
                    held.push(sample.unwrap());
                    // Each thread may be opening one, and another lists a folder.
                    assert!(count("/proc/self/fd") <= before + 4, "{graph}: after {} files", held.len());
                }
                assert_eq!(held.len(), 1000, "{graph}");
            }
        }
    });
}
