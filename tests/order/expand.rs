//! Parallel flat maps: several samples at once, in order, on threads and in processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::{Executor, Sample};
use forebay_tests::{Gate, Setting, build, error_of, line, registry, within_deadline};

#[test]
fn several_samples_are_worked_on_at_once() {
    within_deadline(|| {
        let registry = registry();
        for executor in [Executor::Threads(2), Executor::Processes(2)] {
            let gate = Gate::new();
            let graph = line(&format!("range 4 | rogue_burst most=9 gate={}", gate.path()));
            let setting = Setting { executor, chunk: Some(1), ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            let run = std::thread::spawn(move || loader.epoch(0).map(Result::unwrap).collect::<Vec<_>>());
            // Two are there before either may go on.
            let two = [gate.arrival(), gate.arrival()];
            drop(two);
            drop([gate.arrival(), gate.arrival()]);
            let keys: Vec<_> = run.join().unwrap().iter().map(|sample| sample.key().index).collect();
            assert!(keys.is_sorted() && !keys.is_empty(), "{executor:?}: {keys:?}");
        }
    });
}

/// All samples of an epoch, by origin and uid.
fn samples(text: &str, executor: Executor) -> Vec<(u64, u64)> {
    let setting = Setting { executor, chunk: Some(3), ..Setting::INLINE };
    let mut loader = build(&line(text), &registry(), setting).unwrap();
    let name = |sample: Sample| (sample.key().index, sample.uid());
    loader.epoch(0).map(|sample| name(sample.unwrap())).collect()
}

#[test]
fn a_sample_that_kills_workers_is_left_out_whole_or_named() {
    within_deadline(|| {
        let mut wanted = samples("range 60 | rogue_burst most=5", Executor::Inline);
        wanted.retain(|(origin, _)| *origin != 17);
        let found = samples(
            "range 60 | rogue_burst most=5 signal=11 at=17 on_error=quarantine",
            Executor::Processes(2),
        );
        assert!(found == wanted && wanted.len() > 60, "{found:?}");
        let fatal = line("range 60 | rogue_burst most=5 signal=11 at=17 | batch 4");
        let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
        let error = error_of(&fatal, &registry(), setting).0.to_string();
        assert!(error.contains("range#17") && error.contains("rogue_burst"), "{error}");
    });
}

#[test]
fn only_its_own_failures_are_lost_where_a_stream_goes_on() {
    within_deadline(|| {
        let whole = samples("range 60 | rogue_burst most=9", Executor::Inline);
        let text = "range 60 | rogue_burst most=9 refuse=4 on_error=skip";
        let some = samples(text, Executor::Inline);
        let opened = |(_, uid): &&(u64, u64)| !uid.is_multiple_of(4);
        let origins: std::collections::BTreeSet<_> = some.iter().map(|(origin, _)| *origin).collect();
        let wanted: Vec<_> =
            whole.iter().filter(|one| origins.contains(&one.0)).filter(opened).copied().collect();
        assert!(some == wanted && some.len() > 100, "{some:?}");
        assert_eq!(samples(text, Executor::Threads(3)), some);
        assert_eq!(samples(text, Executor::Processes(2)), some);
    });
}

#[test]
fn a_stream_that_goes_on_is_not_opened_again() {
    within_deadline(|| {
        let registry = registry();
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let gate = Gate::new();
            let text = "range 4 | rogue_burst most=1000 refuse=4 on_error=skip gate=";
            let graph = line(&format!("{text}{}", gate.path()));
            let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            let run = std::thread::spawn(move || {
                let given = loader.epoch(0).filter(Result::is_ok).count();
                (given, loader.stats().nodes[1].lost)
            });
            // Each is opened once, however often it fails.
            (0..4).for_each(|_| drop(gate.arrival()));
            let (given, lost) = run.join().unwrap();
            assert!(given > 100 && lost > 100, "{executor:?}: {given} and {lost}");
        }
    });
}

#[test]
fn a_place_is_kept_also_where_as_many_came_out_as_went_in() {
    let graph = line("range 60 | rogue_burst most=2");
    let mut even = 0;
    for delivered in 1..40 {
        let mut loader = build(&graph, &registry(), Setting::INLINE).unwrap();
        let mut epoch = loader.epoch(0);
        assert_eq!(epoch.by_ref().take(delivered).filter(Result::is_ok).count(), delivered);
        let first = epoch.snapshot().unwrap();
        let mut other = build(&graph, &registry(), Setting::INLINE).unwrap();
        let second = other.resume(&first).unwrap().snapshot().unwrap();
        assert_eq!(first.nodes, second.nodes, "after {delivered}");
        even += usize::from(first.nodes[1].taken == first.nodes[1].given);
    }
    assert!(even > 0, "at no place came out as many as went in");
}
