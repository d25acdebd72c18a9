//! Where the work is done is the user's choice, and the pipe's, and changes no sample.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;

use forebay_loader::{ErrorKind, Executor, Plan, Sample, Value, graph::On};
use forebay_tests::{
    Gate, Setting, await_workers, build, error_of, line, outcome, registry, run, within_deadline,
};
use rustix::process::{Pid, Signal, kill_process};

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
        let made = made_in("range 100 | rogue_hermit", Executor::Threads(2));
        assert!(made.len() == 1 && made.is_disjoint(&here), "{made:?}, {here:?}");
        assert!(made_in("rogue_source count=9 | rogue_hermit", Executor::Threads(2)).is_disjoint(&here));
        assert_eq!(made_in("range 100 | rogue_hermit on=threads", Executor::Threads(2)), here);
        assert_eq!(made_in("range 100 | rogue_hermit", Executor::Inline), here);
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
        ("range 5 | increment on=own_thread", "increment works on several at once"),
        (
            "range 5 | increment on=gpu",
            "option `on` is `gpu`, expected threads, own_thread, process or sandboxed",
        ),
        ("range 5 | increment on=3", "option `on` is 3, expected text"),
    ] {
        let (error, samples) = error_of(&line(text), &registry, Setting::INLINE);
        assert!(error.to_string().contains(says) && samples == 0, "{text}: {error}");
    }
}

/// Graphs with a serial pipe of every kind in processes of their own, and how many those are.
const SERIAL: [(&str, usize); 13] = [
    ("range 500 on=process | batch 7", 1),
    ("range 500 | shuffle 50 on=process | increment | batch 7 on=process", 2),
    ("range 500 on=process | shuffle 50 on=process | batch 7 on=process", 1),
    ("range 100 | increment | rogue_expand most=3 on=process | shuffle 9", 1),
    ("range 40 | rogue_expand most=3 refuse=10 on_error=quarantine on=process", 1),
    ("range 300 | rogue_lag hold=5 refuse=9 on_error=skip on=process | increment", 1),
    ("range 200 | fork @f on=process ; increment @i <f.1> ; zip <f, i> prefix=['', 'b'] on=process", 2),
    ("range 20 | increment | repeat 3 on=process | increment | shuffle 9", 1),
    ("range 20 on=process | shuffle 9 on=process | repeat 3 on=threads | take 33 on=process | repeat 2", 2),
    ("range 20 | shuffle 9 on=process | repeat 3 on=process | shuffle 9", 1),
    ("range @a 30 ; range @b 10 ; mix <a, b> stop=cycle_until_all_exhausted on=process | batch 3", 1),
    (
        "range 40 | rogue_stream fault=pending on=process | increment | rogue_stream fault=pending on=process",
        2,
    ),
    ("range 200 | rogue_keep on=process | rogue_stream fault=error at=90 on=process | batch 8", 1),
];

#[test]
fn serial_pipes_run_in_a_process_of_their_own() {
    within_deadline(|| {
        let registry = registry();
        for (text, processes) in SERIAL {
            let graph = line(text);
            let truth = outcome(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 1, |_, _| {});
            assert!(truth.0.samples > 5, "{text}: {truth:?}");
            for chunk in [Some(1), Some(3), None] {
                let setting = Setting { chunk, ..Setting::threads(2) };
                let mut loader = build(&graph, &registry, setting).unwrap();
                for _ in 0..2 {
                    assert_eq!(outcome(&mut loader, 1, |_, _| {}), truth, "{text}: {setting:?}");
                    assert_eq!(loader.worker_processes().len(), processes, "{text}");
                }
                loader.finish().unwrap();
            }
        }
    });
}

#[test]
fn shards_are_read_in_a_process_of_their_own() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        for shard in 0..3 {
            let mut tar =
                tar::Builder::new(std::fs::File::create(folder.path().join(format!("{shard}.tar"))).unwrap());
            for member in 0..40 {
                let bytes = format!("{shard} {member} ").repeat(1 + 200 * member);
                let mut header = tar::Header::new_gnu();
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, format!("{member:03}.txt"), bytes.as_bytes()).unwrap();
            }
            tar.finish().unwrap();
        }
        let shards = format!("files '{}/*.tar'", folder.path().display());
        let truth = format!("{shards} | untar | shuffle 20 | decode | batch 4");
        let truth = outcome(&mut build(&line(&truth), &registry, Setting::INLINE).unwrap(), 0, |_, _| {});
        assert!(truth.1.is_none() && truth.0.samples == 30, "{truth:?}");
        for text in [
            "FILES on=process | untar on=process | shuffle 20 | decode | batch 4",
            "FILES | untar on=process | shuffle 20 | decode on=process | batch 4 on=process",
            "FILES on=process | untar on=threads | shuffle 20 on=process | decode | batch 4",
        ] {
            let graph = line(&text.replace("FILES", &shards));
            for executor in [Executor::Threads(2), Executor::Processes(2)] {
                let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
                assert_eq!(outcome(&mut loader, 0, |_, _| {}), truth, "{text} on {executor}");
            }
        }
    });
}

#[test]
fn an_epoch_is_left_and_gone_on_with_while_a_pipe_elsewhere_never_gives() {
    within_deadline(|| {
        let registry = registry();
        let gate = Gate::new();
        let wait = format!("rogue_stream fault=pending at=3 gate='{}' on=process", gate.path());
        let mut loader = build(&line(&format!("range 9 | {wait}")), &registry, Setting::threads(2)).unwrap();
        assert_eq!(loader.epoch(0).take(3).filter(Result::is_ok).count(), 3);
        let closed = gate.arrival();
        let mut epoch = loader.epoch(1);
        assert_eq!(epoch.by_ref().take(3).filter(Result::is_ok).count(), 3);
        drop(gate.arrival());
        assert_eq!(epoch.filter(Result::is_ok).count(), 6);
        drop(closed);

        // What is behind it starts it over while it waits.
        let again = line(&format!("range 9 | {wait} | take 3 | repeat 2"));
        let mut loader = build(&again, &registry, Setting { chunk: Some(1), ..Setting::threads(2) }).unwrap();
        assert_eq!(run(&mut loader, 0).unwrap().samples, 6);

        let endless = line("rogue_source | rogue_stream fault=swallow on=process");
        let mut loader = build(&endless, &registry, Setting::threads(2)).unwrap();
        for number in 0..3 {
            let _ = loader.epoch(number);
        }
        let stopper = loader.stopper();
        std::thread::scope(|scope| {
            let consumer = scope.spawn(|| loader.epoch(0).next().unwrap().unwrap_err());
            stopper.stop();
            assert_eq!(consumer.join().unwrap().kind(), ErrorKind::Cancelled);
        });
        drop(loader);
    });
}

#[test]
fn a_process_that_dies_is_replaced_while_another_waits() {
    within_deadline(|| {
        let registry = registry();
        let (one, two) = (Gate::new(), Gate::new());
        let graph = line(&format!(
            "rogue_source @a count=40 at=9 gate='{}' on=process ; range @c 40 ; \
             rogue_stream @b <c> fault=pending at=9 gate='{}' on=process ; mux <a, b>",
            one.path(),
            two.path()
        ));
        let mut loader = build(&graph, &registry, Setting { chunk: Some(1), ..Setting::threads(2) }).unwrap();
        let mut epoch = loader.epoch(0);
        assert_eq!(epoch.by_ref().take(18).filter(Result::is_ok).count(), 18);
        let (first, waiting) = (one.arrival(), two.arrival());
        let reader = Pid::from_raw(epoch.worker_processes()[0].cast_signed()).unwrap();
        std::thread::scope(|scope| {
            let consumer = scope.spawn(|| epoch.filter(Result::is_ok).count());
            kill_process(reader, Signal::KILL).unwrap();
            let again = one.arrival();
            drop((first, waiting, again));
            drop(two.arrival());
            assert_eq!(consumer.join().unwrap(), 62);
        });
    });
}

#[test]
fn what_cannot_leave_its_process_is_named_with_what_to_do() {
    let registry = registry();
    for (text, pipe) in [
        ("range 9 | rogue_stream @made fault=opaque on=process", "made"),
        ("range 9 | rogue_stream fault=opaque | shuffle @sent 3 on=process", "sent"),
    ] {
        let (error, _) = error_of(&line(text), &registry, Setting::threads(2));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.message().contains("with on=threads"), "{error}");
        assert_eq!((error.get("pipe"), error.get("field")), (Some(pipe), Some("handle")), "{error}");
        assert!(error.get("sample").is_some_and(|sample| sample.starts_with("range#")), "{error}");
        let inline = outcome(&mut build(&line(text), &registry, Setting::INLINE).unwrap(), 0, |_, _| {});
        assert!(inline.1.is_none());
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

#[test]
fn a_pipe_can_tell_its_worker_process_and_gives_none_in_the_loaders_own() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 400 | rogue_map identity=true at=-1 spin=100000");
        let who = |executor| {
            let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            await_workers(&loader, if matches!(executor, Executor::Processes(_)) { 2 } else { 0 });
            let number = |sample: &Sample, field| sample.get(field).and_then(Value::as_i64);
            let told = |sample: &Sample| Some((number(sample, "worker")?, number(sample, "workers")?));
            loader.epoch(0).map(|sample| told(&sample.unwrap())).collect::<BTreeSet<_>>()
        };
        assert_eq!(who(Executor::Inline), BTreeSet::from([None]));
        assert_eq!(who(Executor::Threads(2)), BTreeSet::from([None]));
        let workers = who(Executor::Processes(2));
        assert!(workers.iter().all(|who| matches!(who, Some((0 | 1, 2)))), "{workers:?}");
    });
}
