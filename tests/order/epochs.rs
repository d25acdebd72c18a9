//! A loader that is told how many epochs will be read begins each while the consumer still has the one before, and gives
//! the same for it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::thread;

use forebay_loader::{Executor, Graph, Loader, Registry, Rng, Sample, graph::On};
use forebay_tests::{
    ALL, Setting, await_workers, build, kill_any, line, placed, registry, with_random_graphs, within_deadline,
};

const EPOCHS: u64 = 3;

/// What the first samples of an epoch are, and the error that ended it.
fn read(samples: impl Iterator<Item = forebay_loader::Result<Sample>>) -> (Vec<String>, Option<String>) {
    let (mut given, mut failed) = (Vec::new(), None);
    for sample in samples {
        match sample {
            Ok(sample) => given.push(format!("{sample:?}")),
            Err(error) => failed = Some(error.to_string()),
        }
    }
    (given, failed)
}

fn setting(rng: &mut Rng) -> Setting {
    let executors = [&ALL[1..], &[Executor::Processes(2)]].concat();
    let chunks = [None, Some(1), Some(3), Some(64)];
    let budgets = [None, None, Some(1), Some(2000)];
    Setting {
        executor: executors[rng.below(executors.len() as u64) as usize],
        chunk: chunks[rng.below(4) as usize],
        budget: budgets[rng.below(4) as usize],
        marks: rng.bool(0.5),
        epochs: EPOCHS,
        ..Setting::INLINE
    }
}

/// Reads all epochs; now and then stops one early, goes to another, or goes on elsewhere after a snapshot.
fn check(graph: &Graph, registry: &Registry, rng: &mut Rng) {
    let mut inline = build(graph, registry, Setting::INLINE).unwrap();
    let truth: Vec<_> = (0..EPOCHS).map(|epoch| read(inline.epoch(epoch))).collect();
    let setting = setting(rng);
    let mut loader = build(graph, registry, setting).unwrap();
    let mut number = 0;
    while number < EPOCHS {
        let (given, failed) = &truth[number as usize];
        let mut epoch = loader.epoch(number);
        let stop = if rng.bool(0.5) { rng.below(given.len() as u64 + 1) as usize } else { usize::MAX };
        let found = read(epoch.by_ref().take(stop));
        if rng.bool(0.3) {
            kill_any(&epoch, rng);
        }
        if stop == usize::MAX {
            assert_eq!(found, (given.clone(), failed.clone()), "{graph}: {setting:?}, epoch {number}");
        } else {
            assert_eq!(found, (given[..stop].to_vec(), None), "{graph}: {setting:?}, epoch {number}");
            if rng.bool(0.5) {
                let snapshot = epoch.snapshot().unwrap();
                let elsewhere = rng.bool(0.5).then(|| build(graph, registry, Setting::INLINE).unwrap());
                let mut elsewhere = elsewhere;
                let loader: &mut Loader = match &mut elsewhere {
                    Some(elsewhere) => elsewhere,
                    None => {
                        drop(epoch);
                        &mut loader
                    }
                };
                let rest = read(loader.resume(&snapshot).unwrap());
                assert_eq!(
                    rest,
                    (given[stop..].to_vec(), failed.clone()),
                    "{graph}: {setting:?}, epoch {number}"
                );
            }
        }
        number = if rng.bool(0.1) { rng.below(EPOCHS) } else { number + 1 };
    }
}

#[test]
fn epochs_that_begin_ahead_are_the_same() {
    with_random_graphs(300, |graph, registry, rng| check(&placed(graph, rng), registry, rng));
}

#[test]
fn the_next_epoch_begins_while_the_consumer_has_this_one() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 50 | increment | shuffle 20 | batch 10");
        let mut inline = build(&graph, &registry, Setting::INLINE).unwrap();
        let truth = [0, 1].map(|epoch| read(inline.epoch(epoch)));
        for executor in [&ALL[1..], &[Executor::Processes(1)]].concat() {
            let setting = Setting { executor, epochs: 2, ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            let mut epoch = loader.epoch(0);
            let begin = read(epoch.by_ref().take(4)).0;
            while epoch.stats().nodes[0].samples < 100 {
                thread::yield_now();
            }
            // The snapshot is of the epoch that the consumer is in.
            let snapshot = epoch.snapshot().unwrap();
            assert_eq!((snapshot.epoch, snapshot.delivered, snapshot.ended), (0, 4, false));
            let mut elsewhere = build(&graph, &registry, Setting::INLINE).unwrap();
            let rest = read(elsewhere.resume(&snapshot).unwrap());
            assert_eq!([begin, rest.0].concat(), truth[0].0, "{executor}");
            assert_eq!(read(epoch), (truth[0].0[4..].to_vec(), None), "{executor}");
            assert_eq!(read(loader.epoch(1)), truth[1], "{executor}");
            // No third one was promised.
            assert_eq!(loader.stats().nodes[0].samples, 100, "{executor}");
            assert_eq!(read(loader.epoch(0)), truth[0], "{executor}, out of turn");
        }
    });
}

#[test]
fn random_numbers_of_a_worker_process_are_those_of_each_epoch() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 40 | map 'x=random()'");
        let mut inline = build(&graph, &registry, Setting::INLINE).unwrap();
        let truth = [0, 1].map(|epoch| drawn(inline.epoch(epoch)));
        assert!(truth[0].iter().zip(&truth[1]).all(|(one, other)| one != other), "{truth:?}");
        // With epochs that begin when they are asked for, and ahead.
        for epochs in [1, 2] {
            let setting = Setting { executor: Executor::Processes(1), epochs, ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            let map = loader.graph().nodes().iter().position(|node| node.pipe == "map").unwrap();
            let mut segments = loader.plan().segments.iter();
            assert!(segments.any(|segment| segment.on == On::Process && segment.nodes.contains(&map)));
            await_workers(&loader, 1);
            let workers = loader.worker_processes();
            for number in [0, 1, 0] {
                assert_eq!(
                    drawn(loader.epoch(number)),
                    truth[number as usize],
                    "epoch {number}, told of {epochs}"
                );
                assert_eq!(loader.worker_processes(), workers, "another process had epoch {number}");
            }
        }
    });
}

/// The random numbers of an epoch, as text.
fn drawn(samples: impl Iterator<Item = forebay_loader::Result<Sample>>) -> Vec<String> {
    let drawn: Vec<_> = samples.map(|sample| format!("{:?}", sample.unwrap().get("x").unwrap())).collect();
    assert_eq!(drawn.len(), 40);
    drawn
}
