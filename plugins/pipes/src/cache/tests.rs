//! Tests of `cache`: what it keeps, where, and for whom.

use std::{
    fs,
    path::{Path, PathBuf},
};

use forebay_core::{Options, Sample};

use super::*;
use crate::testing::{Drive, check, check_resume, ints, numbers};

fn memory(limit: u64) -> Cache {
    Cache::new(CacheOptions { folder: String::new(), limit: Some(limit), identity: String::new() }).unwrap()
}

fn disk(folder: &Path, identity: &str, limit: u64) -> Cache {
    let folder = folder.to_str().unwrap().to_owned();
    Cache::new(CacheOptions { folder, limit: Some(limit), identity: identity.to_owned() }).unwrap()
}

/// One pass: the pipe, what it gave, and how many samples it took.
fn pass(pipe: Cache, input: &[Sample]) -> (Cache, Vec<Sample>, usize) {
    let mut drive = Drive::new(pipe, input, 7);
    drive.run(5, usize::MAX).unwrap();
    let (out, fed) = (drive.out().to_vec(), drive.fed());
    (drive.into_pipe(), out, fed)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() { all.extend(files(&entry.path())) } else { all.push(entry.path()) }
    }
    all.sort();
    all
}

fn ending<'a>(files: &'a [PathBuf], ending: &'a str) -> Vec<&'a PathBuf> {
    files.iter().filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// How many runs have left something.
fn locks(folder: &Path) -> usize {
    let all = files(folder);
    let of_run = |path: &&&PathBuf| path.file_stem().is_some_and(|name| name.len() == 16);
    ending(&all, "lock").iter().filter(of_run).count()
}

#[test]
fn gives_what_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    for limit in [0, 200, u64::MAX] {
        for count in [0, 1, 14] {
            assert_eq!(check(|| memory(limit), &numbers(count)), numbers(count));
            check_resume(|| memory(limit), &numbers(count));
            let identity = format!("{limit} {count}");
            assert_eq!(check(|| disk(folder.path(), &identity, limit), &numbers(count)), numbers(count));
            check_resume(|| disk(folder.path(), &identity, limit), &numbers(count));
        }
    }
    assert!(CacheOptions::parse(r#"{"limit": -1}"#).is_err());
    let nameless = CacheOptions { folder: "x".into(), limit: None, identity: String::new() };
    assert_eq!(Cache::new(nameless).unwrap_err().get("option"), Some("identity"));
}

#[test]
fn a_second_pass_asks_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for first in [memory(1 << 20), disk(folder.path(), "a", 1 << 20)] {
        let (pipe, ..) = pass(first, &numbers(9));
        let mut second = Drive::new(pipe, &[], 2);
        second.run(3, usize::MAX).unwrap();
        assert_eq!(ints(second.out(), "value"), (0..9).collect::<Vec<_>>());
        assert!(!second.told_the_end(), "the input was never looked at");
    }
    // Nor does a later run.
    let (_, out, fed) = pass(disk(folder.path(), "a", 1 << 20), &[]);
    assert_eq!((out, fed), (numbers(9), 0));
    let (_, out, fed) = pass(disk(folder.path(), "b", 1 << 20), &numbers(3));
    assert_eq!((out, fed), (numbers(3), 3), "it is another's");
}

#[test]
fn a_pass_broken_off_is_gone_on_with() {
    let (folder, input) = (tempfile::tempdir().unwrap(), numbers(9));
    for pipe in [memory(1 << 20), disk(folder.path(), "a", 1 << 20)] {
        let mut first = Drive::new(pipe, &input, 2);
        first.run(1, 4).unwrap();
        let (_, out, _) = pass(first.into_pipe(), &input);
        assert_eq!(out, input);
    }
}

#[test]
fn of_too_much_the_last_are_kept() {
    let (folder, input) = (tempfile::tempdir().unwrap(), numbers(20_000));
    let whole = {
        let pass = pass(disk(folder.path(), "whole", u64::MAX), &input);
        drop(pass);
        files(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum::<u64>()
    };
    let one = memory::size(input[0].values());
    for pipe in [memory(6_000 * one), disk(folder.path(), "part", whole * 3 / 10)] {
        let (pipe, out, fed) = pass(pipe, &input);
        assert!((out == input, fed) == (true, 20_000));
        let (pipe, out, fed) = pass(pipe, &input);
        assert!(out == input && (14_000..16_000).contains(&fed), "{fed}");
        drop(pipe);
    }
    // A later run, in a folder where the first cache was in the way.
    let (_, out, fed) = pass(disk(folder.path(), "part", whole * 3 / 10), &input);
    assert!(out == input && fed < 16_000, "{fed}");
    let held: u64 = files(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(held <= whole * 3 / 10 + 4096, "{held} of {whole}");
}

#[test]
fn a_damaged_file_is_read_anew_and_made_again() {
    let input = numbers(40);
    for (name, len) in [("piece", 1300), ("index", 50)] {
        for at in (0..len).step_by(9) {
            let folder = tempfile::tempdir().unwrap();
            let again = || pass(disk(folder.path(), "a", 1 << 20), &input);
            drop(again());
            let found = files(folder.path());
            let path = found.iter().find(|path| path.to_str().unwrap().ends_with(name)).unwrap();
            let mut bytes = fs::read(path).unwrap();
            assert!(bytes.len() > len, "{} bytes", bytes.len());
            bytes[at] ^= 1;
            fs::write(path, &bytes).unwrap();
            let (_, out, fed) = again();
            assert_eq!((out, fed), (input.clone(), 40), "byte {at} of {name}");
            let fed: Vec<_> = (0..2).map(|_| again().2).collect();
            // An index that does not begin as one is left alone, so nothing else takes its place.
            let ours = name == "piece" || at >= 8;
            assert_eq!(fed[1] == 0, ours, "byte {at} of {name}");
        }
    }
}

#[test]
fn what_has_no_room_at_first_is_kept_when_there_is() {
    let (folder, input) = (tempfile::tempdir().unwrap(), numbers(9_000));
    drop(pass(disk(folder.path(), "a", 200_000), &input));
    let (_, _, fed) = pass(disk(folder.path(), "a", 200_000), &input);
    assert!(fed > 1_000 && fed < 9_000, "{fed}");
    // A later run with more room writes all, and the next reads them.
    for expected in [9_000, 0] {
        let (_, out, fed) = pass(disk(folder.path(), "a", 1 << 30), &input);
        assert!((out == input, fed) == (true, expected), "{fed}");
    }
    assert_eq!(locks(folder.path()), 1);
}

#[test]
fn what_cannot_be_kept_goes_on_all_the_same() {
    let (folder, mut input) = (tempfile::tempdir().unwrap(), numbers(5_000));
    // What lies so deep cannot leave its process.
    let deep = (0..100).fold(forebay_core::Value::NULL, |inside, _| forebay_core::Value::list(vec![inside]));
    input[2_000].set("deep", deep);
    let (pipe, out, fed) = pass(disk(folder.path(), "a", 1 << 24), &input);
    assert!(out == input && fed == 5_000);
    let (_, out, fed) = pass(pipe, &input);
    assert!(out == input && fed == 5_000);
    assert_eq!(ending(&files(folder.path()), "piece").len(), 0);
}

#[test]
fn what_is_not_of_a_cache_stays() {
    let (folder, input) = (tempfile::tempdir().unwrap(), numbers(9_000));
    drop(pass(disk(folder.path(), "a", 1 << 20), &input));
    let cache = ending(&files(folder.path()), "piece")[0].parent().unwrap().to_owned();
    let run = cache
        .read_dir()
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().unwrap_or_default() == "lock");
    let run = run.unwrap().file_stem().unwrap().to_str().unwrap().to_owned();
    let mine = [
        folder.path().join("photo.jpg"),
        folder.path().join(folder::FOLDER).join("notes.txt"),
        cache.join("letter.txt"),
        cache.join(format!("{run}-77.piece")),
        cache.join("0123456789abcdef.lock"),
    ];
    for path in &mine {
        fs::write(path, "precious").unwrap();
    }
    // It makes way for another, and for nothing.
    drop(pass(disk(folder.path(), "b", 100_000), &input));
    drop(pass(disk(folder.path(), "c", 0), &input));
    assert!(mine.iter().all(|path| fs::read(path).unwrap() == b"precious"));
    let left = files(folder.path());
    assert!(left.iter().all(|path| mine.contains(path) || !path.starts_with(&cache)), "{left:?}");
}

#[test]
fn runs_that_died_leave_nothing_and_two_at_a_time_write_one() {
    let (folder, input) = (tempfile::tempdir().unwrap(), numbers(9_000));
    let mut dead = Drive::new(disk(folder.path(), "a", 1 << 22), &input, 64);
    dead.run(64, 5_000).unwrap();
    let begun = ending(&files(folder.path()), "piece").len();
    assert!(begun > 0);
    let mut other = Drive::new(disk(folder.path(), "a", 1 << 22), &input, 64);
    other.run(64, 5_000).unwrap();
    assert_eq!(
        ending(&files(folder.path()), "piece").len(),
        begun,
        "one writes, and the other reads its input"
    );
    dead.run(64, usize::MAX).unwrap();
    other.run(64, usize::MAX).unwrap();
    assert!(dead.out() == input && other.out() == input);
    let (_, out, fed) = pass(other.into_pipe(), &input);
    assert!(out == input && fed == 0, "{fed}");
    drop(dead);
    assert_eq!(locks(folder.path()), 1);

    let mut dying = Drive::new(disk(folder.path(), "b", 1 << 22), &input, 64);
    dying.run(64, 5_000).unwrap();
    drop(dying);
    let before = files(folder.path());
    drop(pass(disk(folder.path(), "b", 1 << 22), &input));
    let after = files(folder.path());
    assert_eq!(locks(folder.path()), 2);
    assert!(before.iter().any(|path| !after.contains(path)), "its pieces are gone");
}

#[test]
fn identities_that_lead_elsewhere_stay_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    for identity in ["../../../../tmp/x", "/etc/passwd", "..", "a/b", "a\0b"] {
        check(|| disk(folder.path(), identity, u64::MAX), &numbers(3));
    }
    let below = folder.path().join("forebay-samples");
    let all = files(folder.path());
    assert!(!all.is_empty() && all.iter().all(|path| path.starts_with(&below)), "{all:?}");
    // An index that somebody else wrote names runs by numbers alone.
    let caches = fs::read_dir(&below).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(caches.count(), 5);
}
