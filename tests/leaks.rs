//! Loaders with worker processes come and go, and leave nothing: alone in its program, since it counts descriptors.

use std::thread;

use forebay_loader::Executor;
use forebay_tests::{Gate, Setting, build, line, registry, within_deadline};

#[test]
fn nothing_is_left_behind() {
    within_deadline(|| {
        let registry = registry();
        // One with maps on workers, one with pipes that have a worker each, one of which waits for ever.
        let gate = Gate::new();
        let wait = format!("rogue_stream fault=pending at=1 gate='{}' on=process", gate.path());
        let graphs = [
            line("range 1000000000 | increment | batch 4"),
            line("range 1000000000 on=process | rogue_stream | batch 4 on=process"),
            line(&format!("range 1000000000 | {wait} | increment on=threads")),
        ];
        let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
        let shared = || std::fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:forebay").count();
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
                let alive = std::fs::read_to_string(format!("/proc/{pid}/stat"));
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
