//! The order in which unordered maps gave their samples, recorded and given again; random graphs show that nothing is missed.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use forebay_loader::{Error, Executor, Graph, Registry, Rng, Snapshot, audit, graph::Node};
use forebay_tests::{
    Setting, build, builder, kill_any, line, placed, read, registry, uids, unordered, with_random_graphs,
    within_deadline,
};

const PROCESSES: Executor = Executor::Processes(2);

/// How records are made.
const SETTINGS: [Setting; 4] = [
    Setting { chunk: Some(1), marks: true, ..Setting::threads(4) },
    Setting { chunk: Some(3), ..Setting::threads(3) },
    Setting { executor: PROCESSES, chunk: Some(2), marks: true, ..Setting::INLINE },
    Setting::INLINE,
];

/// A map that takes its time, so that samples come in another order.
const SLOW: &str = "spin=200000 at=-1 unordered=true";

/// What was delivered, as one text a sample, and the error that ended it.
type Outcome = (Vec<String>, Option<Error>);

fn replayed(graph: &Graph, registry: &Registry, file: &Path, setting: Setting) -> Outcome {
    let mut loader = builder(graph, setting).replay(file).build(registry).unwrap();
    read(loader.epoch(0))
}

/// Chunks of other sizes, and more or fewer of them at once, than any run that is replayed so.
const REPLAYS: [Setting; 5] = [
    Setting::INLINE,
    Setting { chunk: Some(64), ..Setting::threads(1) },
    Setting { chunk: Some(1), ..Setting::threads(8) },
    Setting { executor: PROCESSES, ..Setting::INLINE },
    Setting { chunk: Some(5), marks: true, ..Setting::INLINE },
];

#[test]
fn a_record_gives_the_same_again_on_any_executor() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        for (at, text) in [
            format!("range 500 | rogue_map {SLOW} | batch 8"),
            format!("range 300 | rogue_map {SLOW} refuse=9 on_error=skip | shuffle 10 | rogue_map @b {SLOW} on=process | batch 3"),
            format!("range 300 | rogue_map {SLOW} | rogue_map @b fault=error at=200 unordered=true | batch 3"),
            format!("range 300 | rogue_map {SLOW} | repeat 3 | batch 4"),
        ]
        .into_iter()
        .enumerate()
        {
            let graph = line(&text);
            let mut orders = Vec::new();
            for (setting, name) in SETTINGS.into_iter().zip(["one", "two", "three", "four"]) {
                let file = folder.path().join(format!("{at}-{name}"));
                let mut loader = builder(&graph, setting).record(&file).build(&registry).unwrap();
                let truth = read(loader.epoch(0));
                let _ = loader.finish();
                for setting in REPLAYS {
                    assert_eq!(replayed(&graph, &registry, &file, setting), truth, "{text} on {setting:?}");
                }
                orders.push(truth);
            }
            orders.dedup();
            assert!(orders.len() > 1, "{text}: there was one order only");
        }
    });
}

#[test]
fn what_a_record_does_not_say_comes_in_order() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("order");
        let graph = line(&format!("range 200 | rogue_map {SLOW}"));
        drop(builder(&graph, Setting::INLINE).record(&file).build(&registry).unwrap());
        let mut text = fs::read_to_string(&file).unwrap();
        // Of each twenty the second ten came first.
        for at in (0..200).step_by(40) {
            let spans = [[at + 10, 10], [at, 10], [at + 30, 10], [at + 20, 10]];
            text +=
                &format!("{{\"map\":\"rogue_map\",\"epoch\":0,\"pass\":0,\"at\":{at},\"gave\":{spans:?}}}\n");
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let truth: Vec<u64> = (0..200).map(|at| if at % 20 < 10 { at + 10 } else { at - 10 }).collect();
        // Killed between two lines, within one, and before any.
        for kept in
            [lines[..2].concat(), lines[..2].concat() + &lines[2][..lines[2].len() / 2], lines[0].into()]
        {
            let cut = folder.path().join("cut");
            fs::write(&cut, &kept).unwrap();
            for setting in REPLAYS {
                let mut loader = builder(&graph, setting).replay(&cut).build(&registry).unwrap();
                let found = uids(&mut loader, 0).unwrap();
                let known = if kept == lines[0] { 0 } else { 40 };
                assert_eq!(found[..known], truth[..known], "{setting:?}");
                assert!(found[known..].iter().copied().eq(known as u64..200), "{setting:?}: {found:?}");
            }
        }
    });
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let registry = registry();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("order");
    let text = format!("range 200 | rogue_map {SLOW}");
    let refused = |text: &str, seed, contents: &str| {
        fs::write(&file, contents).unwrap();
        let setting = Setting::INLINE.seed(seed);
        let errors = [true, false].map(|replay| {
            let builder = builder(&line(text), setting);
            let builder = if replay { builder.replay(&file) } else { builder.record(&file) };
            builder.build(&registry).err().map(|error| error.to_string()).unwrap_or_default()
        });
        assert!(errors.iter().all(|error| error.is_empty() || error.contains("order")), "{errors:?}");
        errors
    };
    drop(builder(&line(&text), Setting::INLINE).record(&file).build(&registry).unwrap());
    let whole = fs::read_to_string(&file).unwrap();
    assert_eq!(refused(&text, 7, &whole), ["", ""]);
    let both = |errors: [String; 2], says: &str| {
        assert!(errors.iter().all(|error| error.contains(says)), "{says}: {errors:?}");
    };
    both(refused(&text, 8, &whole), "the record is of a run with seed 7, this run has seed 8");
    both(refused(&format!("{text} | shuffle 3"), 7, &whole), "the record is of a run with graph");
    both(refused(&text, 7, &whole.replace("\"order\":1", "\"order\":2")), "a run with version 2");
    both(refused(&text, 7, "range\n"), "not a record");
    both(refused("range 200 | increment", 7, &whole), "no map of the graph is unordered");
    let gave = |at: u64, spans: &str| {
        let line = format!("{{\"map\":\"rogue_map\",\"epoch\":0,\"pass\":0,\"at\":{at},\"gave\":{spans}}}\n");
        refused(&text, 7, &format!("{whole}{line}"))[0].clone()
    };
    assert_eq!(gave(0, "[[4,2],[0,4]]"), "");
    for (error, says) in [
        (gave(3, "[[0,3]]"), "goes on after 3 samples"),
        (gave(0, "[[0,0]]"), "a span without samples"),
        (gave(0, "[[9,18446744073709551615]]"), "a span without samples or without an end"),
        (gave(0, "[[-1,2]]"), "not a line of a record"),
    ] {
        assert!(error.contains(says) && error.contains("line 2"), "{says}: {error}");
    }
    // The input ends before the sample that is to come.
    fs::write(
        &file,
        format!(
            "{whole}{{\"map\":\"rogue_map\",\"epoch\":0,\"pass\":0,\"at\":0,\"gave\":[[0,3],[500,1]]}}\n"
        ),
    )
    .unwrap();
    for setting in REPLAYS {
        let (given, error) = replayed(&line(&text), &registry, &file, setting);
        assert!(
            error.unwrap().to_string().contains("has sample 500 of the input next") && given.len() == 3,
            "{setting:?}"
        );
    }
}

#[test]
fn a_snapshot_of_another_run_than_the_record_is_refused() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("order");
        let graph = line("range 200 | rogue_map at=-1 unordered=true");
        // What was recorded on one thread is in order.
        let mut loader = builder(&graph, Setting::INLINE).record(&file).build(&registry).unwrap();
        let mut epoch = loader.epoch(0);
        assert_eq!(epoch.by_ref().take(50).filter(Result::is_ok).count(), 50);
        let snapshot = epoch.snapshot().unwrap();
        drop(epoch);
        loader.finish().unwrap();
        let mut replay = builder(&graph, Setting::threads(2)).replay(&file).build(&registry).unwrap();
        let rest = replay.resume(&snapshot).unwrap().map(|sample| sample.unwrap().uid());
        assert!(rest.eq(50..200));
        let text = snapshot.to_json().replace("\"order\":{", "\"order\":{\"ahead\":[[60,9]],");
        // As of a version without a checksum.
        let (text, _) = text.split_once(",\"checksum\"").unwrap();
        let text = text.replacen("\"version\":2", "\"version\":1", 1) + "}";
        let other = Snapshot::from_json(&text).unwrap();
        let error = replay.resume(&other).err().unwrap().to_string();
        assert!(error.contains("differs between the snapshot and the record"), "{error}");
    });
}

/// Any executor, with any chunks.
fn any_setting(rng: &mut Rng) -> Setting {
    let workers = 1 + rng.below(4) as usize;
    let executor =
        [Executor::Inline, Executor::Threads(workers), Executor::Processes(workers)][rng.below(3) as usize];
    let chunk = [Some(1), Some(2), Some(7), Some(64), None][rng.below(5) as usize];
    Setting { executor, chunk, marks: rng.bool(0.5), ..Setting::INLINE }
}

/// Stops, goes on elsewhere, and again, while workers are killed, all into one record: its replay is what came.
fn check_random(graph: &Graph, registry: &Registry, rng: &mut Rng) {
    let Some(graph) = unordered(&placed(graph, rng), rng) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [file, proof] = ["order", "audit"].map(|name| folder.path().join(name));
    let often = if rng.bool(0.5) { 1 + rng.below(20) as usize } else { usize::MAX };
    let mut whole: Outcome = (Vec::new(), None);
    let mut at: Option<Snapshot> = None;
    let settings = [any_setting(rng), any_setting(rng), any_setting(rng)];
    for (part, &setting) in settings.iter().enumerate() {
        let built = builder(&graph, setting).record(&file).audit(&proof);
        let mut loader = built.build(registry).unwrap_or_else(|error| panic!("{graph}: {error}"));
        let most = if part < 2 { rng.below(40) as usize } else { usize::MAX };
        let mut epoch = match &at {
            Some(snapshot) => loader.resume(snapshot).unwrap(),
            None => loader.epoch(0),
        };
        let mut samples = Vec::new();
        while samples.len() < most
            && let Some(sample) = epoch.next()
        {
            samples.push(sample);
            if samples.len() % often == often - 1 {
                kill_any(&epoch, rng);
            }
        }
        let (given, failed) = read(samples.into_iter());
        whole.0.extend(given);
        whole.1 = failed;
        let snapshot = epoch.snapshot().unwrap();
        if whole.1.is_some() || snapshot.ended {
            break;
        }
        at = Some(snapshot);
    }
    let setting = any_setting(rng);
    let found = replayed(&graph, registry, &file, setting);
    let differs = found.0.iter().zip(&whole.0).position(|(one, two)| one != two);
    assert!(
        found == whole,
        "{graph}\n{settings:?}, then {setting:?}: {} samples and {}, the first that differs {differs:?}; {:?}, {:?}",
        whole.0.len(),
        found.0.len(),
        whole.1,
        found.1
    );
    if whole.1.is_none() {
        let verdict = audit(&[&proof]).unwrap().remove(0);
        assert!(verdict.exactly_once, "{graph}\n{settings:?}: {verdict}");
    }
}

#[test]
fn random_graphs_give_each_sample_once_and_the_same_again() {
    with_random_graphs(300, check_random);
}

/// Pipes that give the same samples whatever the order of their input.
const BLIND: [&str; 16] = [
    "range",
    "rogue_source",
    "increment",
    "rogue_map",
    "rogue_lag",
    "rogue_stream",
    "shuffle",
    "concat",
    "fork",
    "repeat",
    "rogue_burst",
    "rogue_expand",
    "random_sampler",
    "weighted_sampler",
    "subset_sampler",
    "sequential_sampler",
];

#[test]
fn random_graphs_give_what_they_give_in_order() {
    let counted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&counted);
    with_random_graphs(1500, move |graph, registry, rng| {
        let is_blind = |node: &Node| {
            let budget = node.options.get("on_error").and_then(|policy| policy.as_str());
            // Which sample stands in for another, and which failure is one too many, depends on the order.
            let forgives_all = budget.is_none_or(|policy| !policy.contains(':') && policy != "replace");
            BLIND.contains(&node.pipe.as_str()) && forgives_all
        };
        if !graph.nodes().iter().all(is_blind) {
            return;
        }
        let Some(graph) = unordered(graph, rng) else { return };
        let ordered = line(&graph.to_string().replace(" unordered=true", ""));
        let outcome = |graph: &Graph, setting| {
            let (mut samples, failed) = read(build(graph, registry, setting).unwrap().epoch(0));
            samples.sort_unstable();
            (samples, failed)
        };
        let truth = outcome(&ordered, Setting::INLINE);
        if truth.1.is_none() {
            count.fetch_add(1, Ordering::Relaxed);
            for _ in 0..4 {
                let setting = any_setting(rng);
                assert_eq!(outcome(&graph, setting), truth, "{graph} on {setting:?}");
            }
        }
    });
    let compared = counted.load(Ordering::Relaxed);
    assert!(compared > 20 || std::env::var_os("FOREBAY_GRAPHS").is_some(), "{compared}");
}

/// Reads so many samples of an epoch, as [`read`].
fn first(loader: &mut forebay_loader::Loader, epoch: u64, count: usize) -> Outcome {
    read(loader.epoch(epoch).take(count))
}

#[test]
fn a_record_keeps_what_was_delivered() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let graph = line(&format!("range 300 | rogue_map {SLOW}"));
        // Of an epoch that others are begun after, and that is read again.
        let (file, setting) =
            (folder.path().join("again"), Setting { epochs: 2, chunk: Some(1), ..Setting::threads(4) });
        let mut loader = builder(&graph, setting).record(&file).build(&registry).unwrap();
        let _ = first(&mut loader, 0, 300);
        let truth = first(&mut loader, 1, 300);
        let _ = first(&mut loader, 0, 300);
        loader.finish().unwrap();
        let mut again = builder(&graph, Setting::INLINE).replay(&file).build(&registry).unwrap();
        assert!(first(&mut again, 1, 300) == truth && truth.0.len() == 300);
        // The same file followed and written, by a run that is broken off.
        let mut loader = builder(&graph, setting).record(&file).replay(&file).build(&registry).unwrap();
        assert!(first(&mut loader, 1, 10).0 == truth.0[..10]);
        drop(loader);
        let mut again = builder(&graph, Setting::INLINE).replay(&file).build(&registry).unwrap();
        assert!(first(&mut again, 1, 300) == truth);
    });
}

#[test]
fn a_run_that_follows_a_long_record_resumes() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("order");
        let graph = line("range 200000 | rogue_map at=-1 unordered=true | shuffle 5000 | batch 100");
        drop(builder(&graph, Setting::INLINE).record(&file).build(&registry).unwrap());
        let mut text = fs::read_to_string(&file).unwrap();
        // Of each two the second came first; so there are as many spans as samples.
        for at in (0..200_000_u64).step_by(64) {
            let spans: Vec<_> = (at..(at + 64).min(200_000)).map(|place| [place ^ 1, 1]).collect();
            text +=
                &format!("{{\"map\":\"rogue_map\",\"epoch\":0,\"pass\":0,\"at\":{at},\"gave\":{spans:?}}}\n");
        }
        fs::write(&file, &text).unwrap();
        let truth = replayed(&graph, &registry, &file, Setting::INLINE);
        for delivered in [10, 700, 1400] {
            let mut loader = builder(&graph, Setting::threads(2)).replay(&file).build(&registry).unwrap();
            let mut epoch = loader.epoch(0);
            assert_eq!(read(epoch.by_ref().take(delivered)).0, truth.0[..delivered]);
            let snapshot = epoch.snapshot().unwrap();
            drop(epoch);
            assert_eq!(read(loader.resume(&snapshot).unwrap()).0, truth.0[delivered..]);
        }
    });
}
