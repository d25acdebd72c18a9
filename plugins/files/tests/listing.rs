//! Patterns over a real folder: which files, in which order, under which uids, and with which errors.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use forebay_core::{Error, ErrorKind, Store};
use forebay_files::{FileStore, list, map_file};
use tempfile::TempDir;

fn folder(files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    folder
}

/// What `patterns` below `folder` give, without the folder's own path.
fn found(folder: &TempDir, patterns: &[&str]) -> Vec<Result<String, Error>> {
    let patterns: Vec<_> =
        patterns.iter().map(|text| format!("{}/{text}", folder.path().display())).collect();
    let below = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_string_lossy().into_owned();
    list(&patterns).unwrap().map(|found| Ok(below(found?.path))).collect()
}

fn names(folder: &TempDir, pattern: &str) -> Vec<String> {
    found(folder, &[pattern]).into_iter().map(Result::unwrap).collect()
}

#[test]
fn wildcards_match_within_a_part_and_two_stars_over_many() {
    let folder =
        folder(&["a/1.tar", "a/b/2.tar", "a/b/c/3.tar", "a/x.txt", "4.tar", ".git/5.tar", "a/.6.tar"]);
    assert_eq!(names(&folder, "a/*.tar"), ["a/1.tar"]);
    assert_eq!(names(&folder, "**/*.tar"), ["4.tar", "a/1.tar", "a/b/2.tar", "a/b/c/3.tar"]);
    assert_eq!(names(&folder, "a/**"), ["a/1.tar", "a/b/2.tar", "a/b/c/3.tar", "a/x.txt"]);
    assert_eq!(names(&folder, "a"), ["a/1.tar", "a/b/2.tar", "a/b/c/3.tar", "a/x.txt"]);
    assert_eq!(names(&folder, "a/"), names(&folder, "a"));
    assert_eq!(names(&folder, "?/[a-c]/*"), ["a/b/2.tar"]);
    assert_eq!(names(&folder, "**/c/**/*.tar"), ["a/b/c/3.tar"]);
    assert_eq!(names(&folder, "a/.*.tar"), ["a/.6.tar"]);
    assert_eq!(names(&folder, ".git/*"), [".git/5.tar"]);
}

#[test]
fn the_order_is_that_of_the_whole_sorted_list() {
    let folder = folder(&["a/z", "a-b/y", "a.txt", "a0", "B", "ä", "a/b/c", "a/b-c"]);
    let listed = names(&folder, "**");
    let mut sorted = listed.clone();
    sorted.sort();
    assert_eq!(listed, sorted);
    assert_eq!(listed.len(), 8);
}

#[test]
fn braces_come_in_the_order_written() {
    let folder = folder(&["t-08.tar", "t-09.tar", "t-10.tar", "u.tar"]);
    assert_eq!(names(&folder, "t-{08..10}.tar"), ["t-08.tar", "t-09.tar", "t-10.tar"]);
    assert_eq!(names(&folder, "{u,t-{10..09}}.tar"), ["u.tar", "t-10.tar", "t-09.tar"]);
    assert_eq!(names(&folder, "{u,none,t}*.tar"), ["u.tar", "t-08.tar", "t-09.tar", "t-10.tar"]);
}

#[test]
fn what_is_missing_is_named_and_the_next_name_follows() {
    let folder = folder(&["t-0.tar", "t-2.tar", "sub/x.txt"]);
    let listed = found(&folder, &["t-{0..2}.tar"]);
    let error = listed[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.get("file").unwrap().ends_with("t-1.tar"), "{error}");
    assert!(error.get("pattern").unwrap().ends_with("t-{0..2}.tar"), "{error}");
    assert_eq!(listed[2].as_deref().unwrap(), "t-2.tar");

    let listed = found(&folder, &["*.zip", "t-0.tar"]);
    let error = listed[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.get("pattern").unwrap().ends_with("*.zip"), "{error}");
    assert_eq!(error.get("folder"), folder.path().to_str());
    assert_eq!(listed.len(), 2);

    assert!(found(&folder, &["s*"])[0].as_ref().unwrap_err().message().contains("/**"));
    assert_eq!(found(&folder, &["nowhere/*.tar"])[0].as_ref().unwrap_err().kind(), ErrorKind::Io);
    assert!(list(&[""]).is_err());
    assert!(list(&["{0..99999999}"]).is_err());
    assert!(found(&folder, &["[a"])[0].is_err());
}

#[test]
fn uids_survive_a_move_of_the_folder_and_differ_between_files_and_patterns() {
    let files = ["train/a/0.tar", "train/a/1.tar", "train/b/0.tar"];
    let (here, there) = (folder(&files), folder(&files));
    let uids = |folder: &TempDir, patterns: &[&str]| -> Vec<u64> {
        let patterns: Vec<_> =
            patterns.iter().map(|text| format!("{}/{text}", folder.path().display())).collect();
        list(&patterns).unwrap().map(|found| found.unwrap().uid).collect()
    };
    for patterns in
        [&["train/**/*.tar"][..], &["train"], &["train/a/{0..1}.tar"], &["train/a/0.tar", "train/a/0.tar"]]
    {
        let one = uids(&here, patterns);
        assert_eq!(one, uids(&there, patterns));
        let distinct: std::collections::BTreeSet<_> = one.iter().collect();
        assert_eq!(distinct.len(), one.len(), "{patterns:?}");
    }
}

#[cfg(unix)]
#[test]
fn links_to_files_match_links_to_folders_are_not_walked_and_odd_names_survive() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let folder = folder(&["a/1.txt"]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("a/loop")).unwrap();
    std::os::unix::fs::symlink("1.txt", folder.path().join("a/2.txt")).unwrap();
    assert_eq!(names(&folder, "**"), ["a/1.txt", "a/2.txt"]);
    let odd = folder.path().join(OsStr::from_bytes(b"odd-\xff.txt"));
    fs::write(&odd, "x").unwrap();
    let pattern = format!("{}/odd*", folder.path().display());
    let listed: Vec<_> = list(&[pattern]).unwrap().map(|found| found.unwrap().path).collect();
    assert_eq!(listed, [odd]);
}

#[test]
fn maps_show_the_bytes_and_an_empty_file_has_none() {
    let folder = folder(&["a"]);
    fs::write(folder.path().join("empty"), "").unwrap();
    assert_eq!(&*map_file(&folder.path().join("a")).unwrap(), b"a");
    assert!(map_file(&folder.path().join("empty")).unwrap().is_empty());
    assert_eq!(map_file(folder.path()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(map_file(Path::new("/dev/null")).unwrap_err().kind(), ErrorKind::Invalid);
    let error = map_file(&folder.path().join("none")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.get("file").unwrap().ends_with("none"));
}

#[test]
fn the_store_lists_measures_and_reads_ranges() {
    let folder = folder(&["b.txt", "a/x"]);
    let path = |name: &str| format!("file://{}/{name}", folder.path().display());
    let listed = FileStore::default().list(&path("")).unwrap();
    let listed: Vec<_> =
        listed.iter().map(|(path, folder)| (path.rsplit('/').next().unwrap(), *folder)).collect();
    assert_eq!(listed, [("a", true), ("b.txt", false)]);
    assert_eq!(FileStore::default().size(&path("b.txt")).unwrap(), 5);
    assert_eq!(&*FileStore::default().map(&path("b.txt")).unwrap().unwrap(), b"b.txt");
    assert_eq!(&*FileStore::default().read_range(&path("b.txt"), 2, 2).unwrap(), b"tx");
    assert_eq!(&*FileStore::default().read_range(&path("b.txt"), 3, u64::MAX).unwrap(), b"xt");
    assert!(FileStore::default().read_range(&path("b.txt"), 99, 1).unwrap().is_empty());
    assert!(FileStore::default().size(&path("none")).unwrap_err().get("file").is_some());
}
