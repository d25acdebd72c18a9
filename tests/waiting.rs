//! Waiting costs nothing. Alone in its program, since it measures the CPU time of all threads in it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use forebay_loader::Executor;
use forebay_tests::{Gate, Setting, build, builder, line, registry, run, within_deadline};
use rustix::time::{ClockId, clock_gettime};

/// One test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The CPU time of this whole process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap())
}

/// Fails when the process works while this test does nothing.
#[track_caller]
fn assert_idle(what: &str) {
    let before = cpu();
    // Nothing is asserted on this time: a pipeline that spins just shows in it.
    thread::park_timeout(Duration::from_millis(400));
    let spent = cpu() - before;
    assert!(spent < Duration::from_millis(100), "{spent:?} of CPU in 400 ms of waiting: {what}");
}

#[test]
fn waiting_for_a_pipe_costs_no_cpu() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let (caller, threads) = (Executor::Inline, Executor::Threads(4));
        for (executor, on) in [(caller, "threads"), (threads, "threads"), (threads, "process")] {
            let gate = Gate::new();
            let wait = format!("rogue_stream fault=pending at=3 gate='{}' on={on}", gate.path());
            let graph = line(&format!("range 9 | {wait}"));
            let mut loader = build(&graph, &registry(), Setting { executor, ..Setting::INLINE }).unwrap();
            thread::scope(|scope| {
                let consumer = scope.spawn(|| run(&mut loader, 0).unwrap().samples);
                let waiting = gate.arrival();
                assert_idle(&format!("{executor}, on {on}"));
                drop(waiting);
                assert_eq!(consumer.join().unwrap(), 9);
            });
        }
    });
}

#[test]
fn a_full_pipeline_costs_no_cpu() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let graph = line("rogue_source | increment | shuffle 10 | increment | batch 2");
        let setting = Setting { budget: Some(10_000), ..Setting::threads(4) };
        let mut loader = build(&graph, &registry(), setting).unwrap();
        let mut epoch = loader.epoch(0);
        assert!(epoch.next().unwrap().is_ok());
        thread::park_timeout(Duration::from_millis(200)); // For it to fill up.
        assert_idle("the consumer takes nothing");
        assert!(epoch.next().unwrap().is_ok());
    });
}

#[test]
fn a_source_that_nobody_reads_any_more_stops_b049() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let graph = line("rogue_source | increment | take 5 | increment | batch 2");
        let mut loader = build(&graph, &registry(), Setting::threads(4)).unwrap();
        for epoch in 0..3 {
            assert_eq!(run(&mut loader, epoch).unwrap().samples, 3);
            assert_idle("the epoch is over");
        }
    });
}

#[test]
fn no_more_samples_are_made_ahead_than_allowed() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let graph = line("range 100000 | increment | shuffle 1 | increment");
        for executor in [Executor::Inline, Executor::Threads(4), Executor::Processes(2)] {
            let truth = run(&mut build(&graph, &registry(), Setting::INLINE).unwrap(), 0).unwrap();
            let setting = Setting { executor, ..Setting::INLINE };
            let mut loader = builder(&graph, setting).ahead(8).build(&registry()).unwrap();
            let mut epoch = loader.epoch(0);
            // Sizes of calls have grown by then.
            assert_eq!(epoch.by_ref().take(5000).filter(Result::is_ok).count(), 5000);
            thread::park_timeout(Duration::from_millis(200)); // For it to fill up; if that takes longer, less is made.
            let made: Vec<_> = epoch.stats().nodes.iter().map(|node| node.samples).collect();
            // Behind each of the three edges 8 may wait, and a call gives at most 8 more; the consumer has up to 8 at hand.
            assert!(made[3] <= 5000 + 16, "{executor}: {made:?}");
            assert!(made[0] <= 5000 + 16 + 3 * 16, "{executor}: {made:?}");
            drop(epoch);
            assert_eq!(run(&mut loader, 0).unwrap(), truth, "{executor}");
        }
    });
}

#[test]
fn a_full_pipeline_holds_no_more_than_its_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let payload = "x".repeat(100_000);
        let graph =
            line(&format!("rogue_source payload={payload} | increment | take 9999 | increment | take 9999"));
        let setting = Setting { budget: Some(2_000_000), chunk: Some(1), ..Setting::threads(2) };
        let mut loader = build(&graph, &registry(), setting).unwrap();
        let mut epoch = loader.epoch(0);
        assert!(epoch.next().unwrap().is_ok());
        let held = || epoch.stats().nodes[0].samples - 1;
        while held() < 10 {
            thread::yield_now();
        }
        thread::park_timeout(Duration::from_millis(200)); // For it to fill up; if that takes longer, less is held.
        let held = held();
        // 20 are in the budget. Each of five edges may take one beyond it, and two threads may be about to.
        assert!(held <= 27, "{held} samples are held");
    });
}
