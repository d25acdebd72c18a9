//! A worker that does not come back is told of, with its stage, and may be ended.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{sync::mpsc, thread, time::Duration};

use forebay_loader::{Executor, Loader};
use forebay_tests::{Gate, Setting, build, line, outcome, registry, run, within_deadline, worker};

/// Runs a graph that waits at a gate, until what is told of the wait has all of these words.
fn told(graph: &str, executor: Executor, words: &[&str]) {
    let gate = Gate::new();
    let graph = graph.replace("payload=GATE", &format!("payload='gate:{}'", gate.path()));
    let graph = line(&graph.replace("GATE", &format!("gate='{}'", gate.path())));
    let (tell, heard) = mpsc::channel();
    let mut loader = Loader::builder(graph)
        .executor(executor)
        .worker(worker())
        .on_stall(Duration::from_millis(1), move |stall| drop(tell.send(stall.to_string())))
        .build(&registry())
        .unwrap();
    let consumer = thread::spawn(move || run(&mut loader, 0).unwrap().samples);
    let arrived = gate.arrival();
    let found = heard.iter().find(|line| words.iter().all(|word| line.contains(word)));
    assert!(found.is_some_and(|line| line.starts_with("no sample for ")));
    drop(arrived);
    assert_eq!(consumer.join().unwrap(), 5);
}

#[test]
fn a_long_wait_is_told_with_its_stage() {
    within_deadline(|| {
        let map = "range 20 | increment | rogue_map at=9 GATE | batch 4";
        told(map, Executor::Threads(2), &["increment | rogue_map for", "on thread forebay-", ", at "]);
        told(map, Executor::Inline, &["increment | rogue_map for", "on the caller's thread", ", at "]);
        told(map, Executor::Processes(2), &["increment | rogue_map for", "in worker ", "(process ", ", at "]);
        let source = "rogue_source count=20 at=9 GATE | batch 4";
        told(source, Executor::Threads(2), &["rogue_source | batch for", "on thread forebay-own0"]);
        let alone = "rogue_source count=20 at=9 GATE on=process | batch 4 on=process";
        told(alone, Executor::Threads(2), &["rogue_source | batch for", "in worker 0 (process "]);
        let decoder = "rogue_source count=1 payload=GATE | decode | repeat_each 5";
        let words = ["decode for", "in the decoder rogue of forebay-rogue", "libforebay_rogue.so"];
        for executor in [Executor::Inline, Executor::Threads(2), Executor::Processes(2)] {
            told(decoder, executor, &words);
        }
        let pending = "range 20 | rogue_stream fault=pending at=9 GATE | batch 4";
        told(pending, Executor::Threads(2), &["wait for what they read from"]);
    });
}

#[test]
fn a_sample_that_takes_too_long_is_one_that_fails() {
    within_deadline(|| {
        let registry = registry();
        let gate = Gate::new(); // Nobody opens it.
        let hung = format!("range 40 | rogue_map at=9 gate='{}'", gate.path());
        let build_hung = |text: &str| {
            let builder =
                Loader::builder(line(text)).executor(Executor::Processes(2)).seed(7).worker(worker());
            builder.timeout(Duration::from_millis(300)).build(&registry).unwrap()
        };
        let (found, error) = outcome(&mut build_hung(&format!("{hung} | batch 4")), 0, |_, _| {});
        let error = error.unwrap().to_string();
        assert_eq!(found.samples, 2);
        for word in ["took longer than 300ms", "rogue_map", "forebay-rogue", "9"] {
            assert!(error.contains(word), "{word} is not in: {error}");
        }
        let plain = line("range 40 | rogue_map at=9 fault=error on_error=quarantine | batch 4");
        let truth = outcome(&mut build(&plain, &registry, Setting::INLINE).unwrap(), 0, |_, _| {});
        let mut loader = build_hung(&format!("{hung} on_error=quarantine | batch 4"));
        assert_eq!(outcome(&mut loader, 0, |_, _| {}), truth);
        assert_eq!(loader.quarantine().len(), 1);
    });
}
