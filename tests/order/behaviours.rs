//! What the tests of other loaders check, where it is a matter of a whole graph; what concerns one pipe is tested beside it. The numbers are those
//! by which the cases are listed.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    collections::HashSet,
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use forebay_core::Context;
use forebay_loader::{Executor, Graph, Loader, Result, Sample, Snapshot, Value};
use forebay_tests::{Setting, build, builder, digest, line, registry, root, within_deadline};

/// The numbers in one sample or batch.
fn numbers(sample: &Sample) -> Vec<i64> {
    let value = sample.get("value").unwrap();
    match value.as_tensor() {
        Some(tensor) => {
            let words = tensor.data().chunks_exact(8);
            words.map(|word| i64::from_ne_bytes(word.try_into().unwrap())).collect()
        }
        None => vec![value.as_i64().unwrap()],
    }
}

/// What a graph gives, a list for each sample.
fn given(text: &str) -> Vec<Vec<i64>> {
    let mut loader = build(&line(text), &registry(), Setting::threads(2)).unwrap();
    loader.epoch(0).map(|sample| numbers(&sample.unwrap())).collect()
}

#[test]
fn the_last_batch_is_short_once_however_many_read_b022() {
    let batches = given("range 47 | increment on=process | batch 3");
    assert_eq!((batches.len(), batches[15].len()), (16, 2));
}

#[test]
fn what_fails_is_passed_over_b040() {
    assert_eq!(given("range 5 | map 'odd=1 / (value % 2)' on_error=skip"), [[1], [3]]);
}

#[test]
fn a_loader_of_its_own_has_all_shards_and_a_rank_every_so_many_b112_b113() {
    assert_eq!(given("range 10 | shard"), (0..10).map(|at| vec![at]).collect::<Vec<_>>());
    let graph = line("range 11 start=1 | batch 2 drop_last=true");
    let mut host = Loader::builder(graph).ranks(2, 4).build(&registry()).unwrap();
    let batches: Vec<_> = host.epoch(0).map(|batch| numbers(&batch.unwrap())).collect();
    assert_eq!(batches, [[3, 7]]);
}

fn rest(samples: impl Iterator<Item = Result<Sample>>) -> Vec<String> {
    samples.map(|sample| digest(&sample.unwrap())).collect()
}

#[test]
fn a_snapshot_goes_on_after_what_was_read_whenever_marks_were_left_b121_b122() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 200 | shuffle 30 | increment | batch 6");
        let whole = rest(build(&graph, &registry, Setting::INLINE).unwrap().epoch(0));
        for marks in [false, true] {
            for read in [0, 7, 32] {
                let setting = Setting { marks, ..Setting::threads(2) };
                let mut loader = build(&graph, &registry, setting).unwrap();
                let mut epoch = loader.epoch(0);
                assert_eq!(rest(epoch.by_ref().take(read)), whole[..read]);
                // Through its text, as it is kept in a file.
                let snapshot = Snapshot::from_json(&epoch.snapshot().unwrap().to_json()).unwrap();
                let mut other = build(&graph, &registry, Setting::INLINE).unwrap();
                assert_eq!(rest(other.resume(&snapshot).unwrap()), whole[read..], "{read}, {marks}");
            }
        }
    });
}

#[test]
fn at_the_end_nothing_is_left_and_the_next_epoch_comes_b118() {
    let registry = registry();
    let graph = line("range 10 | shuffle 5");
    let mut loader = build(&graph, &registry, Setting { epochs: 2, ..Setting::INLINE }).unwrap();
    let mut epoch = loader.epoch(0);
    assert_eq!(rest(epoch.by_ref()).len(), 10);
    let snapshot = epoch.snapshot().unwrap();
    drop(epoch);
    let next = rest(loader.epoch(1));
    let mut other = build(&graph, &registry, Setting { epochs: 2, ..Setting::INLINE }).unwrap();
    assert_eq!(rest(other.resume(&snapshot).unwrap()), next, "it goes on with the next one");
    assert!(rest(other.remainder(&snapshot).unwrap()).is_empty(), "or stays within its own");
}

#[test]
fn a_snapshot_of_the_start_gives_everything_again_b124() {
    let registry = registry();
    let graph = line("range 10 | random_sampler");
    let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
    let mut epoch = loader.epoch(0);
    let start = epoch.snapshot().unwrap();
    let mut whole = rest(epoch.by_ref().take(4));
    let middle = epoch.snapshot().unwrap();
    drop(epoch);
    whole.extend(rest(loader.resume(&middle).unwrap()));
    assert_eq!(whole.len(), 10);
    assert_eq!(rest(loader.resume(&start).unwrap()), whole);
}

#[test]
fn patterns_stand_for_files_b127() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    for name in ["1.txt", "2.txt", "3.txt", "1.json", "2.json", "1.csv", "2.csv", "sub/4.txt"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    let at = folder.path().display().to_string();
    let found = |patterns: &str| {
        let text = format!("files {patterns} open=none on_error=skip").replace("@", &at);
        let mut loader = build(&line(&text), &registry(), Setting::INLINE).unwrap();
        let name = |sample: Sample| {
            let path = sample.get("path").and_then(Value::as_str).unwrap().to_owned();
            path.strip_prefix(&format!("{at}/")).unwrap().to_owned()
        };
        loader.epoch(0).map(|sample| name(sample.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(found("'@/*.txt'"), ["1.txt", "2.txt", "3.txt"]);
    assert_eq!(found("['@/*.json', '@/*.csv']"), ["1.json", "2.json", "1.csv", "2.csv"]);
    assert_eq!(found("'@/**/*.txt'"), ["1.txt", "2.txt", "3.txt", "sub/4.txt"]);
    assert!(found("'@/*.none'").is_empty());
}

#[test]
fn a_packed_field_is_unpacked_and_decoded_b140() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out-{}.tar").display().to_string();
    let line_of = |text: &str| line(&text.replace('@', &out));
    // "hello\n" as gzip writes it.
    let packed = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xe7, 2, 0, 0x20, 0x30, 0x3a, 0x36,
        6, 0, 0, 0,
    ];
    fs::write(folder.path().join("0001.txt.gz"), packed).unwrap();
    let source = folder.path().join("0001.txt.gz").display().to_string();
    let registry = registry();
    let setting = Setting { executor: Executor::Inline, ..Setting::INLINE };
    let write = line_of(&format!("files '{source}' | group | write_tar '@'"));
    for sample in builder(&write, setting).build(&registry).unwrap().epoch(0) {
        sample.unwrap();
    }
    let read = line(&format!("files '{}/*.tar' | untar | decode", folder.path().display()));
    let mut loader = build(&read, &registry, setting).unwrap();
    let sample = loader.epoch(0).next().unwrap().unwrap();
    assert_eq!(sample.get("txt.gz").and_then(Value::as_str), Some("hello\n"), "{sample:?}");
}

/// The error that ends an epoch, after so many samples.
fn failed(epoch: impl Iterator<Item = Result<Sample>>) -> (usize, String) {
    let (mut count, mut error) = (0, String::new());
    for sample in epoch {
        match sample {
            Ok(_) => count += 1,
            Err(found) => error = found.to_string(),
        }
    }
    (count, error)
}

#[test]
fn a_worker_that_ends_unexpectedly_is_told_with_its_code_b047() {
    within_deadline(|| {
        let graph = line("range 40 | rogue_map fault=exit signal=123 at=17 | batch 5");
        let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
        let (count, error) = failed(build(&graph, &registry(), setting).unwrap().epoch(0));
        assert_eq!(count, 3);
        assert!(error.contains("123") && error.contains("rogue_map"), "{error}");
    });
}

#[test]
fn a_source_that_cannot_start_fails_the_first_read_b048() {
    within_deadline(|| {
        let graph = line("files /nowhere/at/all.txt | increment | batch 5");
        let mut loader = build(&graph, &registry(), Setting::threads(2)).unwrap();
        let (count, error) = failed(loader.epoch(0));
        assert!(count == 0 && error.contains("/nowhere/at/all.txt"), "{error}");
    });
}

#[test]
fn however_little_is_read_ahead_all_comes_in_order_b052_b057() {
    within_deadline(|| {
        for budget in [Some(1), Some(1000), None] {
            let setting = Setting { budget, chunk: Some(1), ..Setting::threads(2) };
            let mut loader = build(&line("range 20 | increment"), &registry(), setting).unwrap();
            let given: Vec<_> = loader.epoch(0).map(|sample| numbers(&sample.unwrap())[0]).collect();
            assert_eq!(given, (1..=20).collect::<Vec<_>>());
        }
        let refused =
            Graph::from_toml("run.budget = -1\nnode = [{ pipe = 'range', stop = 20 }]").unwrap_err();
        assert!(refused.to_string().contains("budget"), "{refused}");
    });
}

#[test]
fn a_snapshot_before_the_first_read_starts_nothing_b056() {
    within_deadline(|| {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let count = |_: &mut Sample, _: &Context<'_>| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let registry = registry().with_map("count", count).unwrap();
        let mut loader = build(&line("range 20 | count"), &registry, Setting::threads(2)).unwrap();
        let start = loader.snapshot().unwrap();
        assert_eq!(CALLS.load(Ordering::Relaxed), 0);
        assert_eq!(rest(loader.resume(&start).unwrap()).len(), 20);
        assert_eq!(CALLS.load(Ordering::Relaxed), 20);
    });
}

/// Takes one file of four, and then has so many left to go on in.
fn listing(left: usize) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let name = |number: usize| folder.path().join(format!("{number}.txt"));
    (0..4).for_each(|number| fs::write(name(number), "x").unwrap());
    let graph = line(&format!("files '{}/*.txt' open=none", folder.path().display()));
    let mut loader = build(&graph, &registry(), Setting::INLINE).unwrap();
    let mut epoch = loader.epoch(0);
    epoch.next().unwrap().unwrap();
    let snapshot = epoch.snapshot().unwrap();
    drop(epoch);
    (left..4).for_each(|number| fs::remove_file(name(number)).unwrap());
    let mut other = build(&graph, &registry(), Setting::INLINE).unwrap();
    let (mut names, mut error) = (Vec::new(), String::new());
    for sample in other.resume(&snapshot).unwrap() {
        match sample {
            Ok(sample) => names.push(sample.key().origin.rsplit('/').next().unwrap().to_owned()),
            Err(found) => error = found.to_string(),
        }
    }
    (names, error)
}

#[test]
fn a_listing_goes_on_with_the_next_file_and_not_behind_the_last_b115_b128() {
    let (names, error) = listing(4);
    assert_eq!((names.len(), error.as_str()), (3, ""));
    assert!(names[0].starts_with("1.txt"));
    let (names, error) = listing(0);
    assert!(names.is_empty() && !error.is_empty(), "{names:?} {error}");
}

#[test]
fn members_are_chosen_and_called_otherwise_by_their_endings_b134() {
    let fields = |more: &str| {
        let shard = root().join("examples/photos/photos-000000.tar").display().to_string();
        let graph = line(&format!("files '{shard}' | untar | take 3 | {more}"));
        let mut loader = build(&graph, &registry(), Setting::threads(2)).unwrap();
        let names = |sample: Result<Sample>| {
            let sample = sample.unwrap();
            sample.schema().names().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let found: HashSet<_> = loader.epoch(0).map(names).collect();
        assert_eq!(found.len(), 1, "all alike");
        found.into_iter().next().unwrap()
    };
    assert_eq!(fields("rename 'cls=txt'"), ["jpg", "json", "txt"]);
    assert_eq!(fields("select jpg"), ["jpg"]);
    let members = "files 'SHARD' | untar group=none | filter \"name.endsWith('.jpg')\"";
    let members =
        members.replace("SHARD", &root().join("examples/photos/photos-000000.tar").display().to_string());
    let mut loader = build(&line(&members), &registry(), Setting::INLINE).unwrap();
    let names: Vec<_> = loader
        .epoch(0)
        .map(|sample| sample.unwrap().get("name").and_then(Value::as_str).unwrap().to_owned())
        .collect();
    assert!(!names.is_empty() && names.iter().all(|name| name.ends_with(".jpg")), "{names:?}");
}

#[test]
fn what_runs_a_command_is_no_place_to_read_from_b146() {
    for open in ["mmap", "read"] {
        let graph = line(&format!("files 'pipe:cat /etc/hostname' open={open} | lines | text_lines"));
        let mut loader = build(&graph, &registry(), Setting::INLINE).unwrap();
        let error = loader.epoch(0).next().unwrap().unwrap_err();
        assert!(error.to_string().contains("pipe:cat /etc/hostname"), "{error}");
    }
}

#[test]
fn a_file_that_is_named_again_comes_again_b135() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt").display().to_string();
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    for times in [1, 2, 10] {
        let paths = vec![format!("'{path}'"); times].join(", ");
        let graph = line(&format!("files [{paths}] open=none | lines | text_lines"));
        let mut loader = build(&graph, &registry(), Setting::threads(2)).unwrap();
        let texts: Vec<_> = loader
            .epoch(0)
            .map(|sample| sample.unwrap().get("text").and_then(Value::as_str).unwrap().to_owned())
            .collect();
        assert_eq!(texts, ["one", "two", "three"].repeat(times));
    }
}

#[test]
fn a_batch_within_an_epoch_never_crosses_its_end_b016() {
    let whole = [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8], vec![9]];
    let epochs = vec![whole; 4].concat();
    assert_eq!(given("range 10 | batch 3 | repeat 4"), epochs);
    assert_eq!(given("range 10 | repeat 2 | batch 3")[3], [9, 0, 1], "behind it, it does");
}

#[test]
fn what_a_filter_passes_and_drops_is_counted_b029_b031() {
    for (predicate, passed) in [("value > 100", 0), ("value % 2 == 0", 5)] {
        let graph = line(&format!("range 10 | filter '{predicate}'"));
        let mut loader = build(&graph, &registry(), Setting::INLINE).unwrap();
        assert_eq!(loader.epoch(0).count(), passed);
        let given = |name: &str| {
            let stats = loader.stats();
            stats.nodes.iter().find(|node| node.node == name).unwrap().samples
        };
        assert_eq!((given("range"), given("filter")), (10, passed as u64), "{predicate}");
    }
}

#[test]
fn fork_and_select_unzip() {
    let graph = "range 5 | map 'more=10 * value' | fork @f 2 ; select @a <f> value ; select @b <f.1> more ; \
                 rename @c <b> 'more=value' ; concat <a, c>";
    assert_eq!(given(graph).concat(), [0, 1, 2, 3, 4, 0, 10, 20, 30, 40]);
}
