//! What goes wrong in a plugin: the error says where, nothing hangs, and the host goes on.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::thread;

use forebay_loader::{Error, ErrorKind, Executor, Registry, Rng};
use forebay_tests::{ALL, Gate, Setting, build, error_of, line, placed, registry, run, within_deadline};

/// A faulty graph, and what its error must say.
struct Fault {
    graph: &'static str,
    kind: ErrorKind,
    says: &'static str,
    pipe: &'static str,
    sample: Option<&'static str>,
    /// How many samples come before it.
    after: usize,
}

const fn fault(graph: &'static str, kind: ErrorKind, says: &'static str, pipe: &'static str) -> Fault {
    Fault { graph, kind, says, pipe, sample: None, after: 0 }
}

impl Fault {
    const fn at(self, sample: &'static str, after: usize) -> Self {
        Self { sample: Some(sample), after, ..self }
    }

    const fn after(self, after: usize) -> Self {
        Self { after, ..self }
    }
}

const FAULTS: [Fault; 23] = [
    fault("rogue_source fault=panic_in_new", ErrorKind::Panic, "rogue in new", "rogue_source"),
    fault("range 9 | rogue_map fault=panic_in_new", ErrorKind::Panic, "rogue in new", "rogue_map"),
    fault(
        "rogue_source fault=panic_in_reset | increment",
        ErrorKind::Panic,
        "rogue in reset",
        "rogue_source",
    ),
    fault("range 9 | rogue_stream fault=panic_in_reset", ErrorKind::Panic, "rogue in reset", "rogue_stream"),
    fault("rogue_source fault=panic at=4 | increment", ErrorKind::Panic, "rogue in next", "rogue_source")
        .after(4),
    fault("rogue_source fault=error at=4 | increment", ErrorKind::Corrupt, "no such sample", "rogue_source")
        .at("4", 4),
    fault("range 9 | rogue_map fault=panic at=5", ErrorKind::Panic, "rogue in map", "rogue_map")
        .at("range#5", 5),
    fault("range 9 | rogue_map fault=error at=5", ErrorKind::Corrupt, "refuses", "rogue_map")
        .at("range#5", 5),
    fault("range 900 | increment | rogue_map fault=error at=700", ErrorKind::Corrupt, "refuses", "rogue_map")
        .at("range#699", 699),
    fault(
        "range 9 | rogue_map @first fault=error at=7 | rogue_map @second fault=error at=5",
        ErrorKind::Corrupt,
        "refuses",
        "second",
    )
    .at("range#5", 5),
    fault("range 9 | rogue_stream fault=panic at=2", ErrorKind::Panic, "rogue in poll", "rogue_stream")
        .after(2),
    fault(
        "range 9 | rogue_stream fault=error at=2 | increment",
        ErrorKind::Corrupt,
        "gives up",
        "rogue_stream",
    )
    .after(2),
    fault(
        "range 9 | increment | rogue_stream fault=idle",
        ErrorKind::Bug,
        "takes nothing, gives nothing",
        "rogue_stream",
    ),
    fault(
        "range 9 | increment | rogue_stream fault=stuck",
        ErrorKind::Bug,
        "takes nothing, gives nothing",
        "rogue_stream",
    ),
    fault(
        "range 9 | rogue_stream fault=stuck | increment",
        ErrorKind::Bug,
        "takes nothing, gives nothing",
        "rogue_stream",
    ),
    fault("range 9 | rogue_stream fault=rewind", ErrorKind::Bug, "input 9", "rogue_stream"),
    fault("range 9 | increment | rogue_stream fault=rewind", ErrorKind::Bug, "input 9", "rogue_stream"),
    fault("range 9 | rogue_stream fault=input", ErrorKind::Bug, "input 9", "rogue_stream"),
    fault("range 9 | increment | rogue_stream fault=input", ErrorKind::Bug, "input 9", "rogue_stream"),
    fault(
        "rogue_source | increment | rogue_stream fault=early at=3",
        ErrorKind::Bug,
        "has not ended",
        "rogue_stream",
    )
    .after(3),
    fault("rogue_source count=5 fault=panic_in_drop", ErrorKind::Panic, "rogue in drop", "rogue_source")
        .after(5),
    fault("range 5 | rogue_map fault=panic_in_drop at=9", ErrorKind::Panic, "rogue in drop", "rogue_map")
        .after(5),
    fault(
        "range 5 | increment | rogue_stream fault=panic_in_drop",
        ErrorKind::Panic,
        "rogue in drop",
        "rogue_stream",
    )
    .after(5),
];

#[test]
fn every_fault_is_told_with_its_place_and_the_host_lives() {
    within_deadline(|| {
        let registry = registry();
        for fault in &FAULTS {
            // Each node where it likes, and some in processes.
            let mut rng = Rng::new(1, 2);
            let elsewhere = (0..3).map(|_| (placed(&line(fault.graph), &mut rng), Executor::Threads(2)));
            let here = ALL.map(|executor| (line(fault.graph), executor));
            for (graph, executor) in here.into_iter().chain(elsewhere) {
                let (error, after) = error_of(&graph, &registry, Setting { executor, ..Setting::INLINE });
                let told = format!("{graph} on {executor}: {error}");
                assert_eq!(error.kind(), fault.kind, "{told}");
                assert!(error.message().contains(fault.says), "{told}");
                assert_eq!(error.get("pipe"), Some(fault.pipe), "{told}");
                assert!(
                    error.get("plugin").is_some_and(|plugin| plugin.ends_with("libforebay_rogue.so")),
                    "{told}"
                );
                assert_eq!(error.get("sample"), fault.sample, "{told}");
                assert_eq!(after, fault.after, "{told}");
                assert_works(&registry, executor);
            }
        }
    });
}

/// The same registry, and so the same libraries, still do their work.
fn assert_works(registry: &Registry, executor: Executor) {
    let graph =
        line("rogue_source count=20 payload=abc | rogue_map | decode | rogue_stream | increment | batch 6");
    let mut loader = build(&graph, registry, Setting { executor, ..Setting::INLINE }).unwrap();
    assert_eq!(run(&mut loader, 0).unwrap().samples, 4);
    loader.finish().unwrap();
}

#[test]
fn a_decoder_that_panics_is_named_with_the_sample_and_field() {
    within_deadline(|| {
        for (payload, kind, says) in [
            ("panic", ErrorKind::Panic, "rogue in decode"),
            ("error", ErrorKind::Corrupt, "cannot read this"),
        ] {
            for executor in ALL {
                let registry = registry();
                let graph = line(&format!("rogue_source count=9 payload={payload} | decode"));
                let (error, after) = error_of(&graph, &registry, Setting { executor, ..Setting::INLINE });
                assert_eq!((error.kind(), after), (kind, 0), "{error}");
                assert!(error.message().contains(says), "{error}");
                for (name, value) in [("sample", "rogue#0"), ("field", "rogue"), ("pipe", "decode")] {
                    assert_eq!(error.get(name), Some(value), "{error}");
                }
            }
        }
    });
}

#[test]
fn an_error_in_new_comes_before_anything_runs() {
    let registry = registry();
    let (error, _) = error_of(&line("range 9 step=0"), &registry, Setting::INLINE);
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!((error.get("pipe"), error.get("option")), (Some("range"), Some("step")), "{error}");
}

/// The error of a run that is stopped while a pipe waits at its gate.
fn stop_at_gate(graph: &str, executor: Executor) -> Error {
    let gate = Gate::new();
    let graph = line(&format!("{graph} gate='{}'", gate.path()));
    let mut loader = build(&graph, &registry(), Setting { executor, ..Setting::INLINE }).unwrap();
    let stopper = loader.stopper();
    thread::scope(|scope| {
        scope.spawn(|| {
            let waiting = gate.arrival();
            stopper.stop();
            drop(waiting);
        });
        let error = loader.epoch(0).find_map(Result::err).unwrap();
        assert!(loader.epoch(1).next().is_some_and(|next| next.is_err()), "it stays stopped");
        error
    })
}

#[test]
fn a_stop_ends_a_run_that_waits() {
    within_deadline(|| {
        for executor in ALL {
            for graph in [
                "rogue_source | rogue_stream fault=pending at=3",
                "rogue_source at=3",
                "rogue_source | rogue_map at=3",
            ] {
                let error = stop_at_gate(graph, executor);
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{graph} on {executor}: {error}");
            }
        }
    });
}

#[test]
fn a_stop_reaches_the_consumer_while_a_pipe_is_blocked() {
    within_deadline(|| {
        let gate = Gate::new();
        let graph = line(&format!("rogue_source at=3 gate='{}'", gate.path()));
        let mut loader =
            build(&graph, &registry(), Setting { chunk: Some(1), ..Setting::threads(2) }).unwrap();
        let stopper = loader.stopper();
        let mut epoch = loader.epoch(0);
        assert_eq!(epoch.by_ref().take(3).filter(Result::is_ok).count(), 3);
        let blocked = gate.arrival();
        thread::scope(|scope| {
            scope.spawn(|| stopper.stop());
            // The gate is still closed: the answer does not wait for the pipe.
            assert_eq!(epoch.next().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        });
        drop(epoch);
        drop(blocked);
        assert!(loader.finish().is_ok());
    });
}

#[test]
fn a_stop_ends_a_run_that_never_gives() {
    within_deadline(|| {
        for executor in ALL {
            let graph = line("rogue_source | rogue_stream fault=swallow");
            let mut loader = build(&graph, &registry(), Setting { executor, ..Setting::INLINE }).unwrap();
            let stopper = loader.stopper();
            thread::scope(|scope| {
                let consumer = scope.spawn(|| loader.epoch(0).next().unwrap().unwrap_err());
                stopper.stop();
                assert_eq!(consumer.join().unwrap().kind(), ErrorKind::Cancelled, "{executor}");
            });
        }
    });
}
