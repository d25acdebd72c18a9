//! Samples that pipes fail on: left out, counted, listed and limited as the graph says, alike on every executor.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::{Digest, ErrorKind, Executor, Loader, Registry, Rng, Sample, Value};
use forebay_tests::{ALL, Setting, build, command, error_of, line, placed, registry, within_deadline};

/// Each has samples to lose, in a map, a source, a stream and a flat map, and all that is lost is listed.
const LOSSES: [(&str, usize); 8] = [
    ("range 100 | increment | rogue_map refuse=7 at=-1 on_error=quarantine | shuffle 9", 15),
    ("rogue_source count=50 fault=error at=20 on_error=quarantine | increment | batch 4", 1),
    ("range 100 | rogue_lag hold=5 refuse=9 on_error=quarantine | increment", 12),
    ("range 100 | rogue_expand most=3 refuse=10 on_error=quarantine | increment", 10),
    ("range 100 | rogue_burst most=9 refuse=10 on_error=quarantine | increment", 46),
    ("range 100 | rogue_burst most=9 refuse=10 goes_on=false on_error=quarantine | shuffle 7", 41),
    (
        "range 100 | rogue_map @a refuse=7 at=-1 on_error=quarantine | increment | rogue_map @b refuse=5 at=-1 on_error=quarantine",
        32,
    ),
    ("range @a 3 ; range @b 6 field=other ; concat <a, b> | batch 9 on_error=quarantine", 6),
];

/// What a lost sample is told by.
type Told = (String, Option<String>, Option<u64>, String);

/// The digest of an epoch, the list of what was lost, and the count of each node.
fn outcome(loader: &mut Loader) -> (String, Vec<Told>, Vec<u64>) {
    let mut digest = Digest::default();
    loader.epoch(0).for_each(|sample| digest.update(&sample.unwrap()));
    let told = |lost: forebay_loader::LostSample| (lost.node, lost.key, lost.uid, lost.error.to_string());
    let lost = loader.quarantine().into_iter().map(told).collect();
    (digest.finish(), lost, loader.stats().nodes.iter().map(|node| node.lost).collect())
}

#[test]
fn what_is_lost_is_counted_and_listed_in_order() {
    within_deadline(|| {
        let registry = registry();
        for (text, count) in LOSSES {
            let mut truth = outcome(&mut build(&line(text), &registry, Setting::INLINE).unwrap());
            assert_eq!(truth.1.len(), count, "{text}: {:#?}", truth.1);
            assert_eq!(truth.2.iter().sum::<u64>(), count as u64, "{text}");
            assert!(truth.1.iter().all(|(_, key, ..)| key.is_some()), "{text}: {:?}", truth.1);
            truth.1.sort();
            // Each node where it likes, and some in processes.
            let mut rng = Rng::new(3, 4);
            let elsewhere = (0..3).map(|_| (placed(&line(text), &mut rng), Executor::Threads(2)));
            let here = ALL.map(|executor| (line(text), executor));
            for (graph, executor) in here.into_iter().chain(elsewhere) {
                for chunk in [Some(1), Some(3), None] {
                    let setting = Setting { executor, chunk, ..Setting::INLINE };
                    let mut found = outcome(&mut build(&graph, &registry, setting).unwrap());
                    // Two nodes may take turns as they like; one alone keeps the order of the data.
                    for node in ["a", "b", "rogue_map"] {
                        let uids = found.1.iter().filter(|lost| lost.0 == node).map(|lost| lost.2);
                        assert!(uids.is_sorted(), "{text}: {setting:?}");
                    }
                    found.1.sort();
                    assert_eq!(found, truth, "{text}: {setting:?}");
                }
            }
        }
    });
}

#[test]
fn bytes_that_are_not_what_their_name_says_are_lost_not_left() {
    let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
    let read = |name: &str| std::fs::read(forebay_tests::seed(name)).unwrap();
    // A page about an error, a picture of another kind, half of that, and bytes that nobody knows.
    let files = [
        ("a.jpg", b"<html>404</html>".to_vec()),
        ("b.jpg", read("rgb.png")),
        ("c.jpg", read("rgb.png")[..40].to_vec()),
        ("d.xyz", vec![1, 2, 3]),
    ];
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let graph = line(&format!("files {} | group | decode on_error=quarantine", folder.path().display()));
    let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
    let found: Vec<Sample> = loader.epoch(0).map(Result::unwrap).collect();
    let kinds: Vec<_> = found.iter().map(|sample| sample.values()[0].as_tensor().is_some()).collect();
    assert_eq!(kinds, [true, false], "{found:?}");
    let lost: Vec<_> = loader.quarantine().into_iter().map(|lost| lost.error).collect();
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost.iter().all(|error| error.kind() == ErrorKind::Corrupt && error.get("field") == Some("jpg")));
    assert!(lost[0].message().contains("named `jpg`, but its bytes are not of that format"), "{}", lost[0]);
}

#[test]
fn skipped_samples_are_counted_and_told_in_the_log() {
    let registry = registry();
    for executor in ALL {
        let graph = line("range 30 | rogue_map refuse=7 at=-1 on_error=skip");
        let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
        let (_, listed, counts) = outcome(&mut loader);
        assert_eq!((listed, counts), (Vec::new(), vec![0, 5]), "{executor}");
        let log = loader.take_log();
        assert_eq!(log.iter().filter(|(level, text)| *level == 2 && text.contains("refuses")).count(), 5);
    }
}

/// The samples before the budget of losses is used up, and what ends the run.
fn check_budget(registry: &Registry, text: &str, after: usize, says: &str) {
    for executor in ALL {
        for chunk in [Some(1), Some(3), Some(64), None] {
            let setting = Setting { executor, chunk, ..Setting::INLINE };
            let (error, samples) = error_of(&line(text), registry, setting);
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}: {setting:?}: {error}");
            assert_eq!(error.get("on_error"), Some(says), "{text}: {setting:?}: {error}");
            assert_eq!(samples, after, "{text}: {setting:?}");
        }
    }
}

#[test]
fn budgets_end_runs_at_the_same_sample_everywhere() {
    within_deadline(|| {
        let registry = registry();
        // Refused are 0, 10, 20, 30 and so on.
        for (pipe, policy, after, says) in [
            ("rogue_map at=-1", "skip:0", 0, "1 samples failed, at most 0 may"),
            ("rogue_map at=-1", "skip:3", 27, "4 samples failed, at most 3 may"),
            ("rogue_map at=-1", "quarantine:3", 27, "4 samples failed, at most 3 may"),
            ("rogue_map at=-1", "'skip:15% min_samples=5'", 9, "2 of 11 samples failed, at most 15 % may"),
            ("rogue_lag", "skip:3", 27, "4 samples failed, at most 3 may"),
            ("rogue_lag", "quarantine:0", 0, "1 samples failed, at most 0 may"),
        ] {
            check_budget(&registry, &format!("range 100 | {pipe} refuse=10 on_error={policy}"), after, says);
        }
        // Too few to judge before the end.
        for pipe in ["rogue_map at=-1", "rogue_lag", "increment | rogue_map at=-1"] {
            let text = format!("range 100 | {pipe} refuse=10 on_error=skip:5%");
            for executor in ALL {
                for chunk in [Some(1), None] {
                    let setting = Setting { executor, chunk, ..Setting::INLINE };
                    let (error, samples) = error_of(&line(&text), &registry, setting);
                    let told = format!("{text} on {executor}: {error}");
                    assert_eq!(
                        (error.kind(), error.get("option")),
                        (ErrorKind::Invalid, Some("on_error")),
                        "{told}"
                    );
                    assert!(error.message().starts_with("10 of 1"), "{told}");
                    assert_eq!(samples, 90, "{told}");
                    let may = line(&text.replace("5%", "10%"));
                    let mut loader = build(&may, &registry, setting).unwrap();
                    assert_eq!(loader.epoch(0).filter(Result::is_ok).count(), 90, "{told}");
                }
            }
        }
        let within = line("range 100 | rogue_map at=-1 refuse=10 on_error=skip:10");
        for executor in ALL {
            let mut loader = build(&within, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            assert_eq!(loader.epoch(0).filter(Result::is_ok).count(), 90);
            // Each epoch has the budget anew.
            assert_eq!(loader.epoch(1).filter(Result::is_ok).count(), 90);
        }
    });
}

#[test]
fn a_resume_knows_what_was_lost_before() {
    within_deadline(|| {
        let registry = registry();
        for text in [
            "range 100 | increment | rogue_map at=-1 refuse=10 on_error=skip:3",
            "range 100 | rogue_lag refuse=10 state=true on_error=skip:3",
            "range 100 | rogue_lag refuse=10 on_error=skip:3",
            "range 100 | rogue_lag hold=7 refuse=10 state=true on_error=skip:5%",
            "range 40 | skip 1 | rogue_expand most=9 refuse=24 state=true on_error=skip:0",
            "range @a 5 ; range @b 20 field=other ; concat <a, b> | batch 4 on_error=skip:4",
        ] {
            let (truth, samples) = error_of(&line(text), &registry, Setting::INLINE);
            for (at, executor) in ALL.into_iter().enumerate() {
                let setting = Setting { executor, marks: true, ..Setting::INLINE };
                let mut loader = build(&line(text), &registry, setting).unwrap();
                let mut epoch = loader.epoch(0);
                let before = samples * at / 4;
                assert_eq!(epoch.by_ref().take(before).filter(Result::is_ok).count(), before);
                let snapshot = epoch.snapshot().unwrap();
                drop(epoch);
                let rest: Vec<_> = loader.resume(&snapshot).unwrap().take(samples - before + 1).collect();
                assert_eq!(rest.len(), samples - before + 1, "{text} on {executor} after {before}");
                assert_eq!(rest.last().unwrap().as_ref().unwrap_err(), &truth, "{text} on {executor}");
                // And where it failed, all that had failed counts, each once.
                let snapshot = loader.snapshot().unwrap();
                let rest: Vec<_> = loader.resume(&snapshot).unwrap().take(1).collect();
                assert_eq!(rest[0].as_ref().unwrap_err(), &truth, "{text} on {executor}, at the failure");
            }
        }
    });
}

#[test]
fn a_pipe_that_never_stops_failing_ends_the_run() {
    within_deadline(|| {
        let registry = registry();
        for executor in ALL {
            let graph = line("range 9 | rogue_stream fault=error at=2 on_error=skip");
            let (error, after) = error_of(&graph, &registry, Setting { executor, ..Setting::INLINE });
            assert_eq!((error.kind(), after), (ErrorKind::Bug, 2), "{executor}: {error}");
        }
    });
}

#[test]
fn the_sample_before_stands_in_for_one_that_fails() {
    within_deadline(|| {
        let registry = registry();
        let given = |text: &str, setting| -> Vec<(u64, i64)> {
            let mut loader = build(&line(text), &registry, setting).unwrap();
            let value = |sample: &Sample| sample.get("value").and_then(Value::as_i64).unwrap();
            loader
                .epoch(0)
                .map(|sample| sample.map(|sample| (sample.uid(), value(&sample))).unwrap())
                .collect()
        };
        let plain = given("range 7", Setting::INLINE);
        let with = |values: &[i64]| -> Vec<(u64, i64)> {
            let lost = plain.len() - values.len();
            plain[lost..].iter().zip(values).map(|((uid, _), value)| (*uid, *value)).collect()
        };
        for chunk in [Some(1), Some(3), None] {
            for executor in [Executor::Inline, Executor::Threads(3), Executor::Processes(2)] {
                let setting = Setting { executor, chunk, ..Setting::INLINE };
                let map = |at: u64| format!("rogue_map at={at} fault=error on_error=replace");
                // What comes after sees the one that stands in, under the name of the one it stands in for.
                let text = format!("range 7 | {} | increment", map(3));
                assert_eq!(given(&text, setting), with(&[1, 2, 3, 3, 5, 6, 7]), "{setting:?}");
                // Two in a row, by two maps.
                let text = format!("range 7 | {} | {}", map(3), map(4));
                assert_eq!(given(&text, setting), with(&[0, 1, 2, 2, 2, 5, 6]), "{setting:?}");
                // There is none before the first.
                assert_eq!(given(&format!("range 7 | {}", map(0)), setting), with(&[1, 2, 3, 4, 5, 6]));
            }
        }
        let (error, _) = error_of(&line("range 7 on_error=replace"), &registry, Setting::INLINE);
        assert!(error.to_string().contains("option `on_error` is replace, which is for maps"), "{error}");
    });
}

#[test]
fn summaries_count_the_samples_in_whatever_is_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("{:02}.jsonl");
    for (pipe, unit, delivered) in [
        ("bucket_by_length value boundaries=[36] sizes=[4, 9]", "batch", 13),
        ("batch 10", "batch", 8),
        ("padded_batch 10 | rename 'value=row'", "batch", 8),
        ("batch 10 | rebatch 30", "batch", 3),
        ("map 'half=value / 36' | group_by half", "group", 2),
        (&*format!("write_jsonl '{}' shard_size=30", written.display()), "file", 3),
        ("map 'tokens=[value, value]' | select tokens | pack 36", "pack", 4),
        ("increment", "sample", 72),
        ("cache", "sample", 72),
    ] {
        let graph = format!("range 72 | {pipe}");
        let run = command::forebay(&[], &["run", &graph, "--json"]);
        let report = command::json(&run);
        let found = (report["samples"].as_u64(), report["delivered"].as_u64(), report["unit"].as_str());
        assert_eq!(found, (Some(72), Some(delivered), Some(unit)), "{graph}");
        assert_eq!(report["batches"].as_u64(), Some(if unit == "batch" { delivered } else { 0 }), "{graph}");
        let _ = std::fs::remove_dir_all(folder.path());
        let run = command::forebay(&[], &["run", &graph]);
        let text = String::from_utf8_lossy(&run.stdout);
        let plural = if unit == "batch" { "batches".to_owned() } else { format!("{unit}s") };
        let wanted = if unit == "sample" {
            "72 samples, in".to_owned()
        } else {
            format!("72 samples in {delivered} {plural}, in")
        };
        assert!(text.contains(&wanted) && text.contains("busy s (wall)"), "{graph}: {text}");
        let node = unit == "sample" || text.contains(&format!("{delivered} {plural}  "));
        assert!(node, "the node says so too: {text}");
        let _ = std::fs::remove_dir_all(folder.path());
    }
}
