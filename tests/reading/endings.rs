//! How runs end: whatever failed and was not allowed to is an error, after everything else was delivered, on every face alike.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, io::Write as _, path::Path, process::Output};

use forebay_loader::{Error, ErrorKind, Executor, Loader, Sample, open};
use forebay_tests::{
    Setting, builder,
    command::{forebay, json},
    line, registry, within_deadline,
};
use serde_json::Value;

const EXECUTORS: [Executor; 4] =
    [Executor::Inline, Executor::Threads(1), Executor::Threads(3), Executor::Processes(2)];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What `run`, `head` and `dump` say of a path, each of which must end with exit code 1, and how many samples each gave.
#[track_caller]
fn all_fail(path: &Path, says: &[&str], samples: u64) {
    let path = path.to_str().unwrap();
    for args in [&["run", path, "--json"][..], &["head", "-n", "99", path, "--json"], &["dump", path]] {
        let output = forebay(&[], args);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        for part in says {
            assert!(told.contains(part), "{args:?}: {part:?} is not in: {told}");
        }
        assert_eq!(given(&output, args[0]), samples, "{args:?}");
        if args[0] != "dump" {
            let error = &json(&output)["error"];
            assert!(error["context"]["failed"].is_string(), "{args:?}: {error}");
        }
        // And where it is allowed they end well, with the same samples.
        let allowed = forebay(&[], &[args, &["--allow-failures"]].concat());
        assert_eq!(allowed.status.code(), Some(0), "{args:?}: {allowed:?}");
        assert_eq!(given(&allowed, args[0]), samples, "{args:?}");
    }
}

fn given(output: &Output, command: &str) -> u64 {
    match command {
        "dump" => text(&output.stdout).lines().count() as u64,
        "head" => json(output)["samples"].as_array().unwrap().len() as u64,
        _ => json(output)["samples"].as_u64().unwrap(),
    }
}

#[test]
fn a_path_with_one_file_that_fails_ends_every_command_alike() {
    let deep = [vec![b'['; 2000], vec![b']'; 2000]].concat();
    let only = folder(&[("deep.json", &deep)]);
    all_fail(&only.path().join("deep.json"), &["deep.json", "failed: once"], 0);
    let one = folder(&[("deep.json", &deep), ("fine.json", b"{\"n\": 1}")]);
    all_fail(one.path(), &["deep.json", "failed: once"], 1);
    let two = folder(&[("a.json", b"[1, 2"), ("b.json", b"[1"), ("fine.json", b"{\"n\": 1}")]);
    all_fail(two.path(), &["a.json", "failed: 2 times, first here"], 1);
}

#[test]
fn a_file_that_gives_some_and_then_fails_is_no_success() {
    let rows: String =
        (0..5000).map(|n| format!("{{\"n\": {n}, \"s\": \"{}\"}}\n", n * 7919 % 4001)).collect();
    let whole = gzip(rows.as_bytes());
    let cut = folder(&[("rows.jsonl.gz", &whole[..whole.len() / 2])]);
    let path = cut.path().join("rows.jsonl.gz");
    let dumped = text(&forebay(&[], &["dump", "-q", path.to_str().unwrap()]).stdout).lines().count();
    assert!(dumped > 100, "{dumped}");
    let path = path.to_str().unwrap();
    for args in [&["run", path][..], &["head", "-n", "9999", path], &["dump", path]] {
        let output = forebay(&[], args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).contains("rows.jsonl.gz"), "{args:?}: {}", text(&output.stderr));
    }
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/hdf5/tests/data");
    all_fail(&Path::new(data).join("mixed.h5"), &["mixed.h5", "failed: "], 6);
}

#[test]
fn a_file_whose_name_no_graph_can_hold_is_not_missed_in_silence() {
    use std::os::unix::ffi::OsStrExt as _;
    let one = folder(&[("fine.json", b"{\"n\": 1}")]);
    fs::write(one.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.json")), "{}").unwrap();
    all_fail(one.path(), &["No such file", "failed: once"], 1);
}

/// The samples of an epoch, and the error at its end.
fn epoch(loader: &mut Loader, epoch: u64) -> (Vec<u64>, Option<Error>) {
    let (mut uids, mut failed) = (Vec::new(), None);
    for sample in loader.epoch(epoch) {
        match sample {
            Ok(sample) => uids.push(sample.uid()),
            Err(error) => failed = Some(error),
        }
    }
    (uids, failed)
}

#[test]
fn an_opened_path_delivers_all_it_can_and_then_fails_on_every_executor() {
    within_deadline(|| {
        let registry = registry();
        let one =
            folder(&[("a.json", b"[1, 2"), ("b.json", b"[1"), ("c.json", b"{\"n\": 1}"), ("d.json", b"3")]);
        let graph = open(one.path().to_str().unwrap(), &registry).unwrap();
        assert!(graph.to_string().contains("decode on_error=fail_at_end"), "{graph}");
        let mut truth = None;
        for executor in EXECUTORS {
            let setting = Setting { executor, epochs: 2, ..Setting::INLINE };
            let mut loader = builder(&graph, setting).build(&registry).unwrap();
            let (uids, failed) = epoch(&mut loader, 0);
            let failed = failed.unwrap();
            assert_eq!(uids.len(), 2, "{executor}");
            assert_eq!(failed.kind(), ErrorKind::Corrupt, "{executor}: {failed}");
            assert!(failed.get("failed").is_some_and(|told| told.contains("times, first here")), "{failed}");
            assert!(loader.snapshot().unwrap().ended, "all was delivered");
            let (again, failed) = epoch(&mut loader, 1);
            assert_eq!(again, uids, "{executor}");
            assert!(failed.is_some() || loader.failure().is_some(), "{executor}");
            assert!(loader.finish().is_ok(), "it was told");
            let truth = truth.get_or_insert_with(|| uids.clone());
            assert_eq!(uids, *truth, "{executor}");

            let lenient = builder(&graph, Setting { executor, ..Setting::INLINE }).allow_failures(true);
            let mut lenient = lenient.build(&registry).unwrap();
            assert_eq!(epoch(&mut lenient, 0), (uids, None), "{executor}");
            assert_eq!(lenient.quarantine().len(), 2, "{executor}");
            assert!(lenient.finish().is_ok(), "{executor}");
        }
    });
}

#[test]
fn the_policy_can_be_written_in_any_graph_and_has_a_limit() {
    within_deadline(|| {
        let registry = registry();
        for executor in EXECUTORS {
            let setting = Setting { executor, ..Setting::INLINE };
            let run = |policy: &str| {
                let graph =
                    line(&format!("range 100 | rogue_map refuse=10 at=-1 on_error={policy} | batch 5"));
                let mut loader = builder(&graph, setting).build(&registry).unwrap();
                let (batches, failed) = epoch(&mut loader, 0);
                (batches.len(), failed.unwrap())
            };
            let (batches, failed) = run("fail_at_end");
            assert_eq!(batches, 18, "{executor}");
            assert_eq!(failed.get("sample"), Some("range#0"), "{executor}: {failed}");
            assert!(
                failed.get("failed").unwrap().starts_with("10 times, first here"),
                "{executor}: {failed}"
            );
            let (batches, failed) = run("fail_at_end:3");
            assert_eq!((batches, failed.get("failed")), (5, None), "{executor}: {failed}");
        }
    });
}

#[test]
fn what_failed_before_a_limit_counts_and_what_comes_behind_it_does_not() {
    let three = folder(&[("a.json", b"{\"n\": 1}"), ("b.json", b"[1"), ("c.json", b"{\"n\": 2}")]);
    let path = three.path().to_str().unwrap();
    for (limit, code) in [("1", 0), ("2", 1), ("3", 1)] {
        let head = forebay(&[], &["head", "-n", limit, path]);
        assert_eq!(head.status.code(), Some(code), "{limit}: {head:?}");
    }
    let run = forebay(&[], &["run", path, "--limit", "2", "--json"]);
    assert_eq!((run.status.code(), given(&run, "run")), (Some(1), 2), "{run:?}");
    let dump = forebay(&[], &["dump", path, "-n", "2"]);
    assert_eq!((dump.status.code(), given(&dump, "dump")), (Some(1), 2), "{dump:?}");
    let registry = registry();
    let mut loader = Loader::builder(open(path, &registry).unwrap()).build(&registry).unwrap();
    assert_eq!(loader.epoch(0).take(2).filter(Result::is_ok).count(), 2);
    assert!(loader.finish().unwrap_err().get("failed").is_some());
}

#[test]
fn a_resume_in_another_process_fails_for_what_failed_before_it() {
    within_deadline(|| {
        let registry = registry();
        for text in [
            "range 40 | rogue_map refuse=30 at=-1 on_error=fail_at_end | increment",
            "range 40 | rogue_lag refuse=30 state=true on_error=fail_at_end | increment",
        ] {
            for (at, executor) in EXECUTORS.into_iter().enumerate() {
                let setting = Setting { executor, marks: true, ..Setting::INLINE };
                let mut loader = builder(&line(text), setting).build(&registry).unwrap();
                let mut first = loader.epoch(0);
                // Both that fail, 0 and 30, lie before this place.
                assert_eq!(first.by_ref().take(35).filter(Result::is_ok).count(), 35, "{text}");
                let snapshot = first.snapshot().unwrap();
                drop(first);
                let mut other = builder(&line(text), setting).build(&registry).unwrap();
                let rest: Vec<Result<Sample, Error>> = other.resume(&snapshot).unwrap().collect();
                let (failed, rest) = rest.split_last().unwrap();
                assert_eq!((rest.len(), rest.iter().all(Result::is_ok)), (3, true), "{at}: {text}");
                let failed = failed.as_ref().unwrap_err();
                assert!(failed.get("failed").is_some(), "{text} on {executor}: {failed}");
            }
        }
    });
}

#[test]
fn a_run_that_goes_on_after_an_epoch_with_failures_ends_with_an_error_too() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("run.snapshot");
    let (saved, graph) =
        (saved.to_str().unwrap(), "range 40 | rogue_map refuse=30 at=-1 on_error=fail_at_end | increment");
    let first = forebay(&[], &["run", graph, "--json", "--snapshot", saved]);
    assert_eq!((first.status.code(), json(&first)["samples"].as_u64()), (Some(1), Some(38)), "{first:?}");
    for (epochs, samples) in [("1", 0), ("2", 38)] {
        let other = forebay(&[], &["run", graph, "--json", "--epochs", epochs, "--resume", saved]);
        assert_eq!(
            (other.status.code(), json(&other)["samples"].as_u64()),
            (Some(1), Some(samples)),
            "{epochs}: {other:?}"
        );
    }
}

#[test]
fn all_epochs_run_before_a_run_says_what_failed() {
    let two = folder(&[("a.json", b"[1"), ("b.json", b"{\"n\": 2}")]);
    let list = two.path().join("lost.jsonl");
    let args = ["run", "--json", "--epochs", "3", "--quarantine", list.to_str().unwrap()];
    let output = forebay(&[], &[&args[..], &[two.path().join("*.json").to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = json(&output);
    assert_eq!(report["samples"], 3, "{report}");
    assert!(report["error"]["context"]["failed"].as_str().unwrap().starts_with("3 times"), "{report}");
    let lines = fs::read_to_string(list).unwrap();
    let lost: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lost.is_empty() && lost.iter().all(|lost| lost["error"].is_string()), "{lost:?}");
}

#[test]
fn coverage_says_how_many_files_were_not_decoded() {
    let whole = fs::read(forebay_tests::root().join("plugins/image/seeds/rgb.png")).unwrap();
    let files: [(&str, &[u8]); 6] = [
        ("a.png", &whole),
        ("b.png", &whole[..60]),
        ("c.gif", b"GIF89a"),
        ("d", &whole[..60]),
        ("e", b"BMW and others, in a text"),
        ("f.xyz", &[7; 9]),
    ];
    let some = folder(&files);
    let output = forebay(&[], &["head", "-n", "9", some.path().to_str().unwrap()]);
    let told = text(&output.stderr);
    for line in [
        "2 files  .png  decoded by png (forebay-image 0.1.0), but 1 failed",
        "1 file  .gif  gif (forebay-image 0.1.0) failed on all",
        "1 file        png (forebay-image 0.1.0) failed on all",
        "1 file        bmp (forebay-image 0.1.0) decoded none, all stayed bytes",
        "1 file  .xyz  left as bytes: ",
        "failed: 3",
    ] {
        assert!(told.contains(line), "{line:?} is not in: {told}");
    }
    assert_eq!(output.status.code(), Some(1), "{told}");
}

#[test]
fn a_list_of_failures_that_is_full_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("lost.jsonl");
    let graph = "range 10020 | rogue_map refuse=1 at=-1 on_error=quarantine";
    let output = forebay(&[], &["run", graph, "--quarantine", list.to_str().unwrap()]);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(told.contains("10,020 samples: ") && told.contains("the first 10,000 in "), "{told}");
    assert_eq!(fs::read_to_string(list).unwrap().lines().count(), 10_000);
}
