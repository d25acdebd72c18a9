//! Loaders with worker processes come and go, and leave nothing: alone in its program, since it counts descriptors.

use forebay_loader::Executor;
use forebay_tests::{Setting, build, line, registry, within_deadline};

#[test]
fn nothing_is_left_behind() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 1000000000 | increment | batch 4");
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let mut before = 0;
        let cycles = std::env::var("FOREBAY_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
        for cycle in 0..cycles {
            let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            assert_eq!(loader.epoch(0).take(cycle % 3).count(), cycle % 3);
            let workers = loader.worker_processes();
            drop(loader);
            for pid in workers {
                let alive = std::fs::read_to_string(format!("/proc/{pid}/stat"));
                assert!(alive.is_err(), "worker {pid} is still there: {alive:?}");
            }
            if cycle == 0 {
                before = descriptors();
            }
            assert!(descriptors() <= before, "{} descriptors, {before} before", descriptors());
        }
    });
}
