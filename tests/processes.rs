//! Worker processes give what inline gives, whoever kills them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use forebay_loader::{Digest, Error, Executor, Graph, Loader, Registry, Rng};
use forebay_tests::{Setting, build, line, random_graph, registry, within_deadline};

fn processes(graph: &Graph, registry: &Registry, count: usize) -> Loader {
    let worker = env!("CARGO_BIN_EXE_forebay-test-worker");
    let builder = Loader::builder(graph.clone()).executor(Executor::Processes(count)).seed(7).worker(worker);
    builder.build(registry).unwrap_or_else(|error| panic!("{graph}: {error}"))
}

/// How many samples came, their digest, and the error that ended them.
fn outcome(loader: &mut Loader, epoch: u64) -> (usize, String, Option<Error>) {
    let (mut digest, mut samples, mut failed) = (Digest::default(), 0, None);
    for sample in loader.epoch(epoch) {
        match sample {
            Ok(sample) => {
                digest.update(&sample);
                samples += 1;
            }
            Err(error) => failed = Some(error),
        }
    }
    (samples, digest.finish(), failed)
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

/// Kills workers now and then, until it is dropped.
struct Killer {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<u32>>,
}

impl Killer {
    /// Kills any of the workers of this process, at most so many times, with random pauses.
    fn start(signal: &'static str, seed: u64, most: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut rng = Rng::new(seed, 9);
            let mut kills = 0;
            while kills < most && !stop.load(Ordering::Relaxed) {
                let until = Instant::now() + Duration::from_micros(rng.below(25_000));
                while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                let all = children();
                if let Some(pid) = all.get(rng.below(all.len().max(1) as u64) as usize) {
                    let _ =
                        Command::new("kill").args([signal, &pid.to_string()]).stderr(Stdio::null()).status();
                    kills += 1;
                }
            }
            kills
        });
        Self { over, thread: Some(thread) }
    }

    /// Stops, and says how many it killed.
    fn stop(mut self) -> u32 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// The children of this process that are called as the worker is.
fn children() -> Vec<u32> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((name, rest)) = stat.split_once(')') else { continue };
        let mut fields = rest.split_whitespace();
        let (state, parent) = (fields.next(), fields.next());
        if name.contains("(forebay-test-wo") && state != Some("Z") && parent == Some(me.as_str()) {
            found.push(pid);
        }
    }
    found
}

#[test]
fn killed_workers_change_nothing() {
    within_deadline(|| {
        let registry = registry();
        let graph =
            line("range 12000 | increment | rogue_map spin=60000 at=-1 | shuffle 500 | increment | batch 16");
        let truth = outcome(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 0);
        for signal in ["-KILL", "-SEGV", "-ABRT"] {
            let mut loader = processes(&graph, &registry, 3);
            let killer = Killer::start(signal, 5, 12);
            assert_eq!(outcome(&mut loader, 0), truth, "{signal}");
            let kills = killer.stop();
            assert!(kills >= 3, "only {kills} were killed by {signal}");
        }
    });
}

#[test]
fn a_sample_that_kills_is_named_or_set_aside() {
    within_deadline(|| {
        let registry = registry();
        let fatal = line("range 200 | rogue_map fault=signal signal=11 at=77 | batch 10");
        let (samples, _, error) = outcome(&mut processes(&fatal, &registry, 2), 0);
        let text = error.unwrap().to_string();
        assert_eq!(samples, 7);
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
    within_deadline(|| {
        let registry = registry();
        for seed in 0..60 {
            let mut rng = Rng::new(seed, 3);
            let graph = line(&random_graph(&mut rng));
            let truth = outcome(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 0);
            let mut loader = processes(&graph, &registry, 1 + rng.below(4) as usize);
            assert_eq!(outcome(&mut loader, 0), truth, "{graph}, seed {seed}");
        }
    });
}
