//! Where the work is done is the user's choice, and the pipe's, and changes no sample.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;

use forebay_loader::{Executor, Plan, graph::On};
use forebay_tests::{
    Gate, Setting, await_workers, build, error_of, line, outcome, registry, run, within_deadline,
};

#[test]
fn maps_run_where_the_graph_says() {
    within_deadline(|| {
        let registry = registry();
        let text = "range 500 | increment on=process | rogue_map spin=900 on=threads | increment | batch 7";
        let graph = line(text);
        let truth = outcome(
            &mut build(
                &line("range 500 | increment | rogue_map spin=900 | increment | batch 7"),
                &registry,
                Setting::INLINE,
            )
            .unwrap(),
            0,
            |_, _| {},
        );
        for (executor, workers) in
            [(Executor::Inline, 0), (Executor::Threads(3), 3), (Executor::Processes(2), 2)]
        {
            let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            await_workers(&loader, workers);
            assert_eq!(loader.worker_processes().len(), workers, "{executor}");
            assert_eq!(outcome(&mut loader, 0, |_, _| {}), truth, "{executor}");
        }
        let on = |executor| -> Vec<On> {
            let plan = Plan::new(&graph.check(&registry).unwrap(), &registry, executor).unwrap();
            plan.segments.iter().map(|segment| segment.on).collect()
        };
        assert_eq!(on(Executor::Threads(3)), [On::Threads, On::Process, On::Threads, On::Threads]);
        assert_eq!(
            on(Executor::Processes(2)),
            [On::Threads, On::Process, On::Threads, On::Process, On::Threads]
        );
        assert_eq!(on(Executor::Inline), [On::Caller; 3]);
    });
}

/// The processes that samples of `rogue_alone` say they were made in.
fn made_in(text: &str, executor: Executor) -> BTreeSet<i64> {
    let mut loader = build(&line(text), &registry(), Setting { executor, ..Setting::INLINE }).unwrap();
    let samples = loader.epoch(0).map(|sample| sample.unwrap().get("process").unwrap().as_i64().unwrap());
    samples.collect()
}

#[test]
fn a_pipe_runs_where_it_is_best_unless_told_otherwise() {
    within_deadline(|| {
        let here = BTreeSet::from([i64::from(std::process::id())]);
        let made = made_in("range 100 | rogue_alone", Executor::Threads(2));
        assert!(!made.is_empty() && made.is_disjoint(&here), "{made:?}, {here:?}");
        assert_eq!(made_in("range 100 | rogue_alone on=threads", Executor::Threads(2)), here);
        assert_eq!(made_in("range 100 | rogue_alone on=threads", Executor::Processes(2)), here);
        assert_eq!(made_in("range 100 | rogue_alone", Executor::Inline), here);
        let registry = registry();
        let on = |text: &str| {
            let graph = line(text).check(&registry).unwrap();
            Plan::new(&graph, &registry, Executor::Threads(1)).unwrap().segments[0].on
        };
        assert_eq!(on("rogue_source count=5 | shuffle 3"), On::OwnThread);
        assert_eq!(on("rogue_source count=5 on=threads | shuffle 3"), On::Threads);
    });
}

#[test]
fn where_a_node_runs_is_no_part_of_what_the_graph_is() {
    let plain = line("range 5 | increment | shuffle 3").fingerprint();
    assert_eq!(
        line("range 5 on=own_thread | increment on=process | shuffle 3 on=threads").fingerprint(),
        plain
    );
}

#[test]
fn what_cannot_run_there_is_refused_by_name() {
    let registry = registry();
    for (text, says) in [
        (
            "range 5 | shuffle 3 on=process",
            "option `on` is process, which is for maps; shuffle sees samples in order",
        ),
        ("range 5 | increment on=own_thread", "increment is a map"),
        ("range 5 | increment on=gpu", "option `on` is `gpu`, expected threads, own_thread or process"),
        ("range 5 | increment on=3", "option `on` is 3, expected text"),
    ] {
        let (error, samples) = error_of(&line(text), &registry, Setting::INLINE);
        assert!(error.to_string().contains(says) && samples == 0, "{text}: {error}");
    }
}

/// Two sources that each wait for something are both waited for at once, whatever the number of threads.
#[test]
fn slow_sources_overlap_on_one_thread() {
    within_deadline(|| {
        let registry = registry();
        let (one, two) = (Gate::new(), Gate::new());
        let source =
            |name: &str, gate: &Gate| format!("rogue_source @{name} count=20 at=9 gate='{}'", gate.path());
        let graph = line(&format!("{} ; {} ; mux <a, b> | increment", source("a", &one), source("b", &two)));
        let mut loader = build(&graph, &registry, Setting::threads(1)).unwrap();
        let consumer = std::thread::spawn(move || run(&mut loader, 0).unwrap().samples);
        let (first, second) = (one.arrival(), two.arrival());
        drop((second, first));
        assert_eq!(consumer.join().unwrap(), 40);
    });
}

#[test]
fn no_workers_at_all_are_one() {
    within_deadline(|| {
        for executor in [Executor::Processes(0), Executor::Threads(0)] {
            let setting = Setting { executor, ..Setting::INLINE };
            let mut loader = build(&line("range 40 | increment on=process"), &registry(), setting).unwrap();
            assert_eq!(run(&mut loader, 0).unwrap().samples, 40);
        }
    });
}
