//! A run goes on only in the files that its snapshot was taken in: what was cut, grown, written anew or lost since is named.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use forebay_loader::{Error, ErrorKind, Executor, Registry, Snapshot};
use forebay_tests::{ALL, Setting, build, command::forebay, line, read, registry};
use serde_json::{Value, json};

/// Twenty rows, for JSON and CSV and whatever takes bytes.
fn rows(name: &str) -> String {
    match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("csv") => {
            (0..20).fold("id,word\n".to_owned(), |text, at| text + &format!("{at:02},word {at:04}\n"))
        }
        _ => {
            (0..20).fold(String::new(), |text, at| text + &format!("{{\"id\":{at:02}}}\n").replace(":0", ":"))
        }
    }
}

/// A folder with these files of twenty rows.
fn folder_of(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    names.iter().for_each(|name| fs::write(folder.path().join(name), rows(name)).unwrap());
    folder
}

/// Cuts a file to so many lines.
fn cut(file: &Path, lines: usize) {
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, text.split_inclusive('\n').take(lines).collect::<String>()).unwrap();
}

fn at(executor: Executor) -> Setting {
    Setting { executor, ..Setting::INLINE }
}

/// A snapshot after so many samples, as it comes back from a file.
fn stopped(text: &str, registry: &Registry, setting: Setting, after: usize) -> Snapshot {
    let mut loader = build(&line(text), registry, setting).unwrap();
    let mut epoch = loader.epoch(0);
    let begin = read(epoch.by_ref().take(after));
    assert_eq!((begin.0.len(), begin.1.map(|error| error.to_string())), (after, None), "{text}");
    Snapshot::from_json(&epoch.snapshot().unwrap().to_json()).unwrap()
}

/// How many samples come after a snapshot, and what ends them.
fn resumed(
    text: &str,
    registry: &Registry,
    setting: Setting,
    (snapshot, allowed): (&Snapshot, &[&str]),
) -> Result<(usize, Option<Error>), Error> {
    let mut loader = build(&line(text), registry, setting).unwrap();
    let allowed: Vec<_> = allowed.iter().map(|&name| name.to_owned()).collect();
    let (samples, failed) = read(loader.resume_allowing(snapshot, &allowed)?);
    Ok((samples.len(), failed))
}

fn graphs(folder: &Path) -> Vec<(String, PathBuf)> {
    let of = |name: &str, pipes: &str| {
        let file = folder.join(name);
        (pipes.replace("FILE", &file.display().to_string()), file)
    };
    vec![
        of("a.jsonl", "files FILE | lines | json_lines"),
        of("a.jsonl", "files FILE | lines block=1 | json_lines"),
        of("a.jsonl", "files FILE open=none | lines rows=3 | json_lines"),
        of("a.jsonl", "files FILE | json_lines"),
        of("a.jsonl", "files FILE | lines block=20 on=process | json_lines"),
        of("a.jsonl", "files FILE | shuffle 5 | lines block=20 interleave=2 | json_lines | batch 1"),
        of("a.csv", "files FILE | csv_blocks block=30 | csv"),
        of("a.bin", "files FILE | fixed_length_records 10"),
    ]
}

#[test]
fn a_file_that_was_cut_is_refused_by_its_name() {
    let registry = registry();
    for (number, executor) in ALL.into_iter().enumerate() {
        let folder = folder_of(&["a.jsonl", "a.csv", "a.bin"]);
        for (graph, file) in graphs(folder.path()) {
            let whole = fs::read(&file).unwrap();
            let snapshot = stopped(&graph, &registry, at(executor), 15);
            let other = at(ALL[(number + 2) % ALL.len()]);
            let rest = resumed(&graph, &registry, other, (&snapshot, &[])).unwrap();
            let all = build(&line(&graph), &registry, Setting::INLINE).unwrap().epoch(0).count();
            assert_eq!((rest.0, rest.1.is_none()), (all - 15, true), "{graph}");
            cut(&file, 10);
            let error = resumed(&graph, &registry, other, (&snapshot, &[])).unwrap_err();
            let now = fs::metadata(&file).unwrap().len();
            let says = format!("file {}: was {} bytes, is {now} bytes", file.display(), whole.len());
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(&says), "{graph} on {executor}: {error}");
            assert!(
                error.message().lines().all(|line| line.len() <= 100 || line.contains("file ")),
                "{error}"
            );
            fs::write(&file, whole).unwrap();
        }
    }
}

#[test]
fn any_other_change_is_refused_too_and_may_be_allowed() {
    let registry = registry();
    let folder = folder_of(&["a.jsonl"]);
    let file = folder.path().join("a.jsonl");
    let path = file.display().to_string();
    let graph = format!("files '{path}' | lines block=40 | json_lines");
    let snapshot = stopped(&graph, &registry, Setting::INLINE, 15);
    let changed = File::options().append(true).open(&file).unwrap();
    let before = changed.metadata().unwrap().modified().unwrap();
    let refused = |says: &str| {
        let error = resumed(&graph, &registry, Setting::INLINE, (&snapshot, &[])).unwrap_err();
        assert!(error.message().contains(says), "{error}");
    };
    // One that was added to, too: nobody knows what was before.
    changed.set_modified(before + Duration::from_millis(5)).unwrap();
    refused(&format!("file {path}: was last changed "));
    fs::write(&file, rows("a.jsonl") + "{\"id\":20}\n").unwrap();
    refused(&format!("file {path}: was 190 bytes, is 200 bytes"));
    for allowed in [path.as_str(), "lines", "files"] {
        let (rest, failed) = resumed(&graph, &registry, Setting::INLINE, (&snapshot, &[allowed])).unwrap();
        assert_eq!((rest, failed.is_none()), (6, true), "{allowed}");
    }
    assert!(resumed(&graph, &registry, Setting::INLINE, (&snapshot, &["forebay-json"])).is_err());
    fs::remove_file(&file).unwrap();
    refused(&format!("file {path}: was 190 bytes, is gone"));
    fs::create_dir(&file).unwrap();
    refused(&format!("file {path}: was 190 bytes, is not a regular file"));
}

#[test]
fn files_that_the_place_does_not_lie_in_may_change() {
    let registry = registry();
    for executor in ALL {
        let folder = folder_of(&["a.jsonl", "b.jsonl", "c.jsonl"]);
        let graph = format!("files '{}/*.jsonl' | lines | json_lines", folder.path().display());
        let exact = Setting { chunk: Some(1), marks: true, ..at(executor) };
        let snapshot = stopped(&graph, &registry, exact, 25);
        let named: Vec<_> =
            snapshot.nodes.iter().flat_map(|node| &node.files).map(|file| &file.path).collect();
        assert!(named.iter().any(|path| path.ends_with("b.jsonl")), "{executor}: {named:?}");
        assert!(!named.iter().any(|path| path.ends_with("a.jsonl")), "{executor}: {named:?}");
        cut(&folder.path().join("a.jsonl"), 3);
        let rest = resumed(&graph, &registry, at(executor), (&snapshot, &[])).unwrap();
        assert_eq!((rest.0, rest.1.is_none()), (35, true), "{executor}");
    }
}

/// As a snapshot is that knows nothing of files, or of a source that names none.
fn without_files(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    snapshot.nodes.iter_mut().for_each(|node| node.files.clear());
    snapshot
}

#[test]
fn a_place_past_the_end_is_an_error_and_no_end() {
    let registry = registry();
    for executor in ALL {
        let folder = folder_of(&["a.jsonl", "a.csv", "a.bin"]);
        for (graph, file) in graphs(folder.path()) {
            let whole = fs::read(&file).unwrap();
            let snapshot = stopped(&graph, &registry, at(executor), 15);
            cut(&file, 10);
            let (rest, failed) =
                resumed(&graph, &registry, at(executor), (&without_files(&snapshot), &[])).unwrap();
            let failed = failed.unwrap_or_else(|| panic!("{graph} on {executor} ends after {rest}"));
            assert_eq!(failed.kind(), ErrorKind::Invalid, "{graph} on {executor}: {failed}");
            fs::write(&file, whole).unwrap();
        }
    }
}

#[test]
fn where_it_is_allowed_a_place_past_the_end_is_the_end() {
    let registry = registry();
    for executor in ALL {
        let folder = folder_of(&["a.jsonl"]);
        let file = folder.path().join("a.jsonl");
        let graph = format!("files '{}' | lines | json_lines", file.display());
        let snapshot = stopped(&graph, &registry, at(executor), 15);
        cut(&file, 10);
        let mut loader = build(&line(&graph), &registry, at(executor)).unwrap();
        let (rest, failed) = read(loader.resume_allowing(&snapshot, &["files".to_owned()]).unwrap());
        assert_eq!((rest.len(), failed.is_none()), (0, true), "{executor}");
        let told = loader.take_log().into_iter().any(|(level, line)| {
            level == 2 && line.contains("is after 15 samples, but the data ends after 10")
        });
        assert!(told, "{executor}");
    }
}

#[test]
fn where_it_is_allowed_a_buffer_that_cannot_be_filled_again_is_left_out() {
    let registry = registry();
    let elsewhere = [(Executor::Threads(2), " on=process")];
    for (executor, on) in ALL.into_iter().map(|executor| (executor, "")).chain(elsewhere) {
        let folder = folder_of(&["a.jsonl"]);
        let file = folder.path().join("a.jsonl");
        for pipe in
            ["shuffle 8", "sort id size=8", "unique id", "bucket_by_length id boundaries=[100] sizes=[3,3]"]
        {
            let graph = format!("files '{}' | lines | json_lines | {pipe}{on}", file.display());
            let after = if pipe.starts_with("bucket") { 3 } else { 10 };
            let snapshot = stopped(&graph, &registry, at(executor), after);
            let whole = fs::read(&file).unwrap();
            cut(&file, 4);
            let mut loader = build(&line(&graph), &registry, at(executor)).unwrap();
            let (_, failed) = read(loader.resume_allowing(&snapshot, &["files".to_owned()]).unwrap());
            assert!(failed.is_none(), "{graph} on {executor}: {failed:?}");
            assert!(loader.take_log().into_iter().any(|(level, _)| level == 2), "{graph} on {executor}");
            fs::write(&file, whole).unwrap();
        }
    }
}

#[test]
fn a_snapshot_right_after_a_resume_still_names_the_files() {
    let registry = registry();
    let folder = folder_of(&["a.jsonl"]);
    let file = folder.path().join("a.jsonl");
    let graph = format!("files '{}' | lines block=40 | json_lines | batch 1", file.display());
    for executor in ALL {
        let first = stopped(&graph, &registry, at(executor), 15);
        let mut loader = build(&line(&graph), &registry, at(executor)).unwrap();
        let epoch = loader.resume(&first).unwrap();
        let again = epoch.snapshot().unwrap();
        let named = |snapshot: &Snapshot| -> Vec<_> {
            snapshot.nodes.iter().flat_map(|node| node.files.clone()).collect()
        };
        assert!(!named(&first).is_empty(), "{executor}: {}", first.to_json());
        assert!(
            named(&first).iter().all(|file| named(&again).contains(file)),
            "{executor}: {}",
            again.to_json()
        );
    }
}

#[test]
fn what_is_said_of_files_stays_small() {
    let registry = registry();
    let folder = folder_of(&["a.jsonl"]);
    let graph = format!("files '{}/*.jsonl' | lines | json_lines | batch 2", folder.path().display());
    let snapshot = stopped(&graph, &registry, Setting::INLINE, 7);
    let size = snapshot.to_json().len();
    assert!(size < 2000, "{size} bytes: {}", snapshot.to_json());
}

#[test]
fn the_command_refuses_a_cut_file_and_goes_on_where_it_is_allowed() {
    let folder = folder_of(&["a.jsonl"]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, snapshot) = (path("a.jsonl"), path("s"));
    let output = forebay(&[], &["run", &file, "--snapshot", &snapshot, "--limit", "15", "--quiet"]);
    assert!(output.status.success(), "{output:?}");
    cut(Path::new(&file), 10);
    let output = forebay(&[], &["run", &file, "--resume", &snapshot]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains(&format!("file {file}: was 190 bytes, is 90 bytes")) || said.contains("was "),
        "{said}"
    );
    assert!(said.contains("--allow"), "{said}");
    let output = forebay(&[], &["run", &file, "--resume", &snapshot, "--allow", &file]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the data ends after 10"), "{output:?}");
}

#[test]
fn a_folder_whose_files_moved_up_is_refused() {
    let registry = registry();
    let elsewhere = [(Executor::Threads(2), " on=process")];
    for (executor, on) in ALL.into_iter().map(|executor| (executor, "")).chain(elsewhere) {
        let names: Vec<_> = (0..20).map(|at| format!("{at:02}.json")).collect();
        let folder = folder_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let graph = format!("files '{}/*.json'{on}", folder.path().display());
        let snapshot = stopped(&graph, &registry, at(executor), 12);
        fs::remove_file(folder.path().join("03.json")).unwrap();
        let outcome = resumed(&graph, &registry, at(executor), (&snapshot, &[]));
        let error = outcome.map_or_else(Some, |(_, failed)| failed);
        assert!(error.is_some(), "{executor}{on}: {}", snapshot.to_json());
    }
}

#[test]
fn a_sampler_goes_on_only_among_the_same_files() {
    let registry = registry();
    let names: Vec<_> = (0..20).map(|at| format!("{at:02}.json")).collect();
    let folder = folder_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let elsewhere = [(Executor::Threads(2), " on=process")];
    for (executor, on) in ALL.into_iter().map(|executor| (executor, "")).chain(elsewhere) {
        let graph = format!("files '{}/*.json'{on} | random_sampler{on}", folder.path().display());
        for setting in [at(executor), Setting { chunk: Some(1), marks: true, ..at(executor) }] {
            let snapshot = stopped(&graph, &registry, setting, 12);
            assert_eq!(resumed(&graph, &registry, setting, (&snapshot, &[])).unwrap().0, 8);
            // As many as before, and in another order.
            let (from, to) = (folder.path().join("03.json"), folder.path().join("99.json"));
            fs::rename(&from, &to).unwrap();
            let outcome = resumed(&graph, &registry, setting, (&snapshot, &[]));
            fs::rename(&to, &from).unwrap();
            let error = outcome.map_or_else(Some, |(_, failed)| failed);
            assert!(error.is_some(), "{executor}: {}", snapshot.to_json());
        }
    }
}

#[test]
fn times_of_change_are_exact() {
    let folder = folder_of(&["a.jsonl"]);
    let file = folder.path().join("a.jsonl");
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
    File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
    let graph = format!("files '{}' | lines | json_lines", file.display());
    let snapshot = stopped(&graph, &registry(), Setting::INLINE, 5);
    let known: Value = serde_json::from_str(&snapshot.to_json()).unwrap();
    let wanted = json!([{ "path": file, "size": 190, "changed": 1_700_000_000_123_456_789_i64 }]);
    assert_eq!(known["nodes"][2]["files"], wanted);
}
