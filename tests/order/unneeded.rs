//! Nothing is made that is known to be unneeded: what lies behind a `take`, or behind what the consumer said it will read.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::{Executor, Graph, Loader, Registry, Sample};
use forebay_tests::{
    ALL, Setting, build, builder, command::forebay, line, placed, read, registry, with_random_graphs,
    within_deadline,
};

fn settings() -> impl Iterator<Item = Setting> {
    let executors = [&ALL[..], &[Executor::Processes(2)]].concat();
    executors.into_iter().flat_map(|executor| {
        let chunks =
            if executor == Executor::Processes(2) { vec![None] } else { vec![None, Some(3), Some(64)] };
        chunks.into_iter().map(move |chunk| Setting { executor, chunk, ..Setting::INLINE })
    })
}

/// How many samples each node gave.
fn counts(loader: &Loader) -> Vec<u64> {
    loader.stats().nodes.iter().map(|node| node.samples).collect()
}

fn numbers(samples: impl Iterator<Item = forebay_loader::Result<Sample>>) -> Vec<String> {
    samples.map(|sample| format!("{:?}", sample.unwrap().get("value").unwrap())).collect()
}

#[test]
fn a_map_before_a_take_maps_no_more_than_are_taken() {
    within_deadline(|| {
        let registry = registry();
        for (text, expected) in [
            ("range 1000 | increment | take 10", &[10, 10, 10][..]),
            ("range 1000 | increment | take 0", &[0, 0, 0]),
            ("range 1000 | take 10 | increment", &[10, 10, 10]),
            ("range 1000 | increment | rogue_map at=-1 | batch 4 | take 2", &[8, 8, 8, 2, 2]),
            ("range 1000 | increment | take 10 | shuffle 100 | batch 3", &[10, 10, 10, 10, 4]),
            ("range 1000 | increment | batch 3 | unbatch | increment | take 10", &[]),
            ("range 1000 | increment | take 5 | repeat 3", &[15, 15, 15, 15]),
            ("range 7 | increment | take 10", &[7, 7, 7]),
            // Those that fail are followed by as many others.
            ("range 1000 | rogue_map refuse=3 on_error=skip | increment | take 10", &[]),
            ("range 1000 | map 'x=1/(value % 2)' on_error=skip | take 10", &[20, 10, 10]),
        ] {
            let truth = numbers(build(&line(text), &registry, Setting::INLINE).unwrap().epoch(0));
            for setting in settings() {
                let mut loader = build(&line(text), &registry, setting).unwrap();
                assert_eq!(numbers(loader.epoch(0)), truth, "{text}: {setting:?}");
                let found = counts(&loader);
                assert!(expected.is_empty() || found == expected, "{text}: {setting:?}: {found:?}");
                loader.finish().unwrap();
            }
        }
    });
}

#[test]
fn no_more_is_made_than_the_consumer_said_and_it_may_read_on() {
    within_deadline(|| {
        let registry = registry();
        for (text, limit, expected) in [
            ("range 1000 | increment", 7, &[7, 7][..]),
            ("range 1000 | increment | batch 4", 3, &[12, 12, 3]),
            ("range 1000 | shuffle 5 | increment | rogue_map at=-1", 9, &[9, 9]),
            ("range 1000 | increment | take 2", 9, &[2, 2, 2]),
            ("range 5 | increment | repeat 10 | increment", 12, &[12]),
        ] {
            let whole = numbers(build(&line(text), &registry, Setting::INLINE).unwrap().epoch(0));
            for setting in settings() {
                let builder = builder(&line(text), setting).limit(limit as u64);
                let mut loader = builder.build(&registry).unwrap();
                let mut epoch = loader.epoch(0);
                let begin = numbers(epoch.by_ref().take(limit));
                let found = counts(&epoch);
                assert!(found.ends_with(expected), "{text}: {setting:?}: {found:?}");
                assert_eq!(begin, whole[..limit.min(whole.len())], "{text}: {setting:?}");
                let snapshot = epoch.snapshot().unwrap();
                let rest = numbers(epoch);
                assert_eq!([begin.clone(), rest].concat(), whole, "{text}: {setting:?}");

                // After a resume as many more are read.
                let builder = forebay_tests::builder(&line(text), setting).limit(2);
                let mut loader = builder.build(&registry).unwrap();
                let mut epoch = loader.remainder(&snapshot).unwrap();
                let more = numbers(epoch.by_ref().take(2));
                let left = &whole[limit.min(whole.len())..];
                assert_eq!(more, left[..left.len().min(2)], "{text}: {setting:?}");
                let last = *counts(&epoch).last().unwrap();
                assert_eq!(last, more.len() as u64, "{text}: {setting:?}");
                assert_eq!([more, numbers(epoch)].concat(), left, "{text}: {setting:?}");
            }
        }
    });
}

/// Where a limit lies changes nothing of what comes, also for those who read on.
fn check(graph: &Graph, registry: &Registry, rng: &mut forebay_loader::Rng) {
    let truth = read(build(graph, registry, Setting::INLINE).unwrap().epoch(1));
    let executors = [&ALL[..], &[Executor::Processes(2)]].concat();
    let executor = executors[rng.below(executors.len() as u64) as usize];
    let chunk = [None, Some(1), Some(7)][rng.below(3) as usize];
    let setting = Setting { executor, chunk, marks: rng.bool(0.5), ..Setting::INLINE };
    let count = truth.0.len() as u64;
    let mut loader = builder(graph, setting).limit(rng.below(count + 2)).build(registry).unwrap();
    let mut epoch = loader.epoch(1);
    let stop = rng.below(count + 2) as usize;
    let begin = read(epoch.by_ref().take(stop));
    let same = |found: &(Vec<String>, Option<forebay_loader::Error>), from: usize| {
        let expected = &truth.0[from..truth.0.len().min(from + found.0.len())];
        assert_eq!(found.0, expected, "{graph}: {setting:?}");
        assert!(
            found.1.is_none()
                || found.1.as_ref().map(ToString::to_string) == truth.1.as_ref().map(ToString::to_string)
        );
    };
    same(&begin, 0);
    if begin.1.is_some() || begin.0.len() < stop {
        assert_eq!(begin.0.len(), truth.0.len(), "{graph}: {setting:?}");
        return;
    }
    let snapshot = epoch.snapshot().unwrap();
    drop(epoch);
    let mut other = builder(graph, setting).limit(rng.below(count + 2)).build(registry).unwrap();
    for rest in [read(loader.resume(&snapshot).unwrap()), read(other.resume(&snapshot).unwrap())] {
        same(&rest, stop);
        assert_eq!(rest.0.len(), truth.0.len() - stop, "{graph}: {setting:?}");
    }
}

#[test]
fn random_graphs_give_the_same_whatever_is_said_to_be_read() {
    with_random_graphs(300, |graph, registry, rng| {
        let graph = if rng.bool(0.2) { placed(graph, rng) } else { graph.clone() };
        check(&graph, registry, rng);
    });
}

/// The map ends the process at the sample behind the last that is wanted, if it is given that.
#[test]
fn the_command_makes_no_more_than_it_is_asked_for() {
    let graph = "range 1000 | rogue_map fault=exit signal=9 at=10";
    for executor in ["inline", "threads:1", "threads:4"] {
        let run = forebay(&[], &["run", graph, "--limit", "10", "--executor", executor]);
        assert!(run.status.success(), "{executor}: {run:?}");
        let batched = format!("{graph} | batch 5");
        let run = forebay(&[], &["run", &batched, "--limit", "2", "--executor", executor, "--epochs", "3"]);
        assert!(run.status.success(), "{executor}: {run:?}");
        let dump = forebay(&[], &["dump", graph, "--limit", "10", "--executor", executor, "-q"]);
        assert!(dump.status.success(), "{executor}: {dump:?}");
    }
    let head = forebay(&[], &["head", graph, "-n", "10"]);
    assert!(head.status.success(), "{head:?}");
    let taken = forebay(&[], &["run", &format!("{graph} | take 10")]);
    assert!(taken.status.success(), "{taken:?}");
    let beyond = forebay(&[], &["head", graph, "-n", "11"]);
    assert!(!beyond.status.success(), "the map does end it: {beyond:?}");
}
