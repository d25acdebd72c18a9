//! Worker processes give what inline gives, whoever kills them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use forebay_loader::{Error, ErrorKind, Executor, Graph, Loader, Registry, Rng};
use forebay_tests::{
    Gate, Run, Setting, build, kill_any, line, placed, registry, with_random_graphs, within_deadline,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

fn processes(graph: &Graph, registry: &Registry, count: usize) -> Loader {
    let setting = Setting { executor: Executor::Processes(count), ..Setting::INLINE };
    build(graph, registry, setting).unwrap_or_else(|error| panic!("{graph}: {error}"))
}

/// What an epoch gave, and the error that ended it.
fn outcome(loader: &mut Loader, epoch: u64) -> (Run, Option<Error>) {
    forebay_tests::outcome(loader, epoch, |_, _| {})
}

#[test]
fn processes_give_what_inline_gives() {
    within_deadline(|| {
        let registry = registry();
        for text in [
            "range 1000 | increment | batch 64",
            "range 1000 | rogue_map spin=5000 | shuffle 100 | increment | batch 7",
            "range 50 | increment | repeat 3 | increment | shuffle 9",
            "range 200 | rogue_map fault=error at=90 | batch 8",
        ] {
            let graph = line(text);
            let truth = outcome(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 1);
            for count in [1, 2, 4] {
                let mut loader = processes(&graph, &registry, count);
                assert_eq!(outcome(&mut loader, 1), truth, "{text} on {count}");
                assert_eq!(outcome(&mut loader, 1), truth, "{text} on {count}, again");
                loader.finish().unwrap();
            }
        }
    });
}

#[test]
fn killed_workers_change_nothing() {
    within_deadline(|| {
        let registry = registry();
        let graph =
            line("range 12000 | increment | rogue_map spin=60000 at=-1 | shuffle 500 | increment | batch 16");
        let truth = outcome(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 0);
        let mut rng = Rng::new(5, 9);
        let mut kills = 0;
        let mut loader = processes(&graph, &registry, 3);
        let found = forebay_tests::outcome(&mut loader, 0, |loader, samples| {
            if samples % 20 == 0 {
                kills += u32::from(kill_any(loader, &mut rng));
            }
        });
        assert_eq!(found, truth);
        assert!(kills >= 20, "only {kills} were killed");
    });
}

#[test]
fn killed_workers_with_state_change_nothing() {
    within_deadline(|| {
        let registry = registry();
        for text in [
            "range 12000 | shuffle 500 on=process | batch 16",
            "range 3000 on=process | increment | rogue_lag hold=9 on=process | repeat 4 | batch 16 on=process",
            "rogue_source count=6000 on=process | rogue_stream on=process | increment | batch 8",
        ] {
            let graph = line(text);
            let truth = outcome(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 0);
            let mut rng = Rng::new(5, 9);
            let mut kills = 0;
            let mut loader = build(&graph, &registry, Setting::threads(2)).unwrap();
            let found = forebay_tests::outcome(&mut loader, 0, |loader, samples| {
                if samples % 20 == 0 {
                    kills += u32::from(kill_any(loader, &mut rng));
                }
            });
            assert_eq!(found, truth, "{text}");
            assert!(kills >= 20, "{text}: only {kills} were killed");
            // Also between two epochs.
            kill_any(&loader, &mut rng);
            assert_eq!(outcome(&mut loader, 0), truth, "{text}, again");
        }
    });
}

#[test]
fn what_is_lost_is_listed_once_also_when_its_process_dies() {
    within_deadline(|| {
        let registry = registry();
        let graph = line(
            "range 3000 | rogue_map refuse=7 at=-1 on_error=quarantine | rogue_lag hold=40 refuse=50 on_error=quarantine on=process | batch 9",
        );
        let lost = |loader: &Loader| {
            let told =
                |lost: forebay_loader::LostSample| format!("{} {:?} {}", lost.node, lost.key, lost.error);
            let mut all: Vec<_> = loader.quarantine().into_iter().map(told).collect();
            all.sort();
            all
        };
        let mut inline = build(&graph, &registry, Setting::INLINE).unwrap();
        let truth: Vec<_> = (0..2).map(|epoch| outcome(&mut inline, epoch)).collect();
        let mut rng = Rng::new(5, 9);
        let mut loader = build(&graph, &registry, Setting::threads(2)).unwrap();
        for epoch in 0..2 {
            let found = forebay_tests::outcome(&mut loader, epoch, |loader, samples| {
                if samples % 40 == 0 {
                    kill_any(loader, &mut rng);
                }
            });
            assert_eq!(found, truth[epoch as usize]);
        }
        assert_eq!(lost(&loader), lost(&inline));
        assert!(lost(&loader).len() > 400);
    });
}

#[test]
fn a_pipe_with_state_that_crashes_again_and_again_is_named() {
    within_deadline(|| {
        let graph = line("range 200 | rogue_stream @fatal fault=signal at=77 on=process | batch 10");
        let mut loader =
            build(&graph, &registry(), Setting { chunk: Some(1), ..Setting::threads(2) }).unwrap();
        let (found, error) = outcome(&mut loader, 0);
        let error = error.unwrap();
        assert_eq!((found.samples, error.kind()), (7, ErrorKind::Worker));
        assert!(error.message().contains("SIGSEGV"), "{error}");
        assert_eq!(
            (error.get("pipe"), error.get("last sample")),
            (Some("fatal"), Some("range#76")),
            "{error}"
        );
        assert!(error.get("plugin").is_some_and(|plugin| plugin.contains("forebay-rogue")), "{error}");
        // Before it gave a sign of life, there is nothing to go on from.
        let graph = line("range 200 | rogue_stream @fatal fault=signal on=process | batch 10");
        let (found, error) = outcome(&mut build(&graph, &registry(), Setting::threads(2)).unwrap(), 0);
        let error = error.unwrap();
        assert_eq!((found.samples, error.get("pipe")), (0, Some("fatal")), "{error}");
        assert!(error.message().contains("SIGSEGV"), "{error}");
    });
}

/// Two workers that a loader in another process has, while it runs this graph; and that process.
fn loader_elsewhere(graph: &str) -> (Child, Vec<u32>) {
    let mut program = Command::new(forebay_tests::worker());
    program.arg("load").arg(forebay_tests::plugins()).arg(graph);
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let workers: Vec<u32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(workers.len(), 2, "{line}");
    (child, workers)
}

/// Waits until this process, which is no child of ours, is gone.
fn wait_for_the_end_of(process: u32) {
    let pid = Pid::from_raw(process.cast_signed()).unwrap();
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], None).unwrap();
}

#[test]
fn a_killed_loader_leaves_no_worker() {
    within_deadline(|| {
        let gate = Gate::new();
        // Workers that work, that wait for work, and that are stuck in a plugin.
        let stuck = format!("range 1000000 | rogue_map at=100000 gate='{}'", gate.path());
        for graph in ["range 1000000000 | rogue_map spin=100000 at=-1", "range 5 | increment", &stuck] {
            let (mut loader, workers) = loader_elsewhere(graph);
            let arrived = (graph == stuck).then(|| gate.arrival());
            loader.kill().unwrap();
            loader.wait().unwrap();
            workers.into_iter().for_each(wait_for_the_end_of);
            drop(arrived);
        }
    });
}

#[test]
fn a_sample_that_kills_is_named_or_set_aside() {
    within_deadline(|| {
        let registry = registry();
        let fatal = line("range 200 | rogue_map fault=signal signal=11 at=77 | batch 10");
        let (run, error) = outcome(&mut processes(&fatal, &registry, 2), 0);
        let text = error.unwrap().to_string();
        assert_eq!(run.samples, 7);
        for part in ["SIGSEGV", "rogue_map", "forebay-rogue", "77"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        for signal in [11, 6, 9] {
            let text = |at: &str, fault: &str| {
                line(&format!("range 200 | rogue_map {fault} {at} on_error=quarantine | batch 10"))
            };
            let graph = text("at=77", &format!("fault=signal signal={signal}"));
            let plain = text("at=77", "fault=error");
            let truth = outcome(&mut build(&plain, &registry, Setting::INLINE).unwrap(), 0);
            let mut loader = processes(&graph, &registry, 2);
            assert_eq!(outcome(&mut loader, 0), truth, "signal {signal}");
            let lost = loader.quarantine();
            assert_eq!(lost.len(), 1);
            assert!(lost[0].key.as_ref().unwrap().contains("77"), "{lost:?}");
            assert!(lost[0].error.to_string().contains(&format!("signal {signal}")), "{lost:?}");
        }
    });
}

#[test]
fn processes_give_what_inline_gives_for_random_graphs() {
    let counts = Arc::new([const { AtomicUsize::new(0) }; 3]);
    let counted = Arc::clone(&counts);
    let count = move |at: usize| {
        counted[at].fetch_add(1, Ordering::Relaxed);
    };
    with_random_graphs(1000, move |graph, registry, rng| {
        let truth = outcome(&mut build(graph, registry, Setting::INLINE).unwrap(), 0);
        let workers = 1 + rng.below(4) as usize;
        let executor = if rng.bool(0.5) { Executor::Processes(workers) } else { Executor::Threads(workers) };
        let chunk = [Some(1), Some(5), Some(64), None][rng.below(4) as usize];
        let setting = Setting { executor, chunk, ..Setting::INLINE };
        let graph = placed(graph, rng);
        let mut loader = build(&graph, registry, setting).unwrap();
        // Half of the runs lose workers, at moments that differ.
        let often = if rng.bool(0.5) { 1 + rng.below(20) } else { u64::MAX };
        let found = forebay_tests::outcome(&mut loader, 0, |loader, samples| {
            if samples as u64 % often == often - 1 && kill_any(loader, rng) {
                count(2);
            }
        });
        assert_eq!(found, truth, "{graph} on {executor}, chunk {chunk:?}");
        count(usize::from(loader.worker_processes().is_empty()));
        loader.finish().unwrap();
    });
    let [with_workers, without, kills] = [0, 1, 2].map(|at| counts[at].load(Ordering::Relaxed));
    assert!(
        with_workers + without < 100 || (2 * with_workers > without && 2 * kills > with_workers),
        "{with_workers} had workers, {without} had none, {kills} workers were killed"
    );
}
