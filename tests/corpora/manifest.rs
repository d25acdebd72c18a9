//! What the corpora hold, and what each file must give.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// What is asked of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// It is read, and gives what the reference found.
    Valid,
    /// It is refused.
    Reject,
    /// Any answer will do.
    Free,
}

/// A file of the corpora.
pub(crate) struct Entry {
    /// Its path in the folder of files.
    pub(crate) path: String,
    pub(crate) expect: Expect,
    /// What the reference found in it, if it read it; with the `tolerance` by which readers differ.
    pub(crate) digest: Option<Value>,
}

/// The folder that holds `manifest.jsonl` and `files`, if there is one.
pub(crate) fn folder() -> Option<PathBuf> {
    let beside = || forebay_tests::root().join("../shared/corpora");
    let folder = env::var_os("FOREBAY_CORPORA").map_or_else(beside, PathBuf::from);
    folder.join("manifest.jsonl").exists().then_some(folder)
}

/// The files of a format that are in the folder; the manifest may list more.
pub(crate) fn entries(folder: &Path, format: &str) -> Vec<Entry> {
    let manifest = fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    let lines = manifest.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ours = lines.filter(|line| line["format"] == format).map(entry);
    ours.filter(|entry| folder.join("files").join(&entry.path).exists()).collect()
}

fn entry(mut line: Value) -> Entry {
    let expect = match line["expect"].as_str() {
        Some("valid" | "partial") => Expect::Valid,
        Some("reject") => Expect::Reject,
        _ => Expect::Free,
    };
    let tolerance = line["tolerance"].take();
    let read = matches!(line["reference"].as_str(), Some("ok" | "partial"));
    let mut digest = read.then(|| line["digest"].take());
    if let Some(Value::Object(digest)) = &mut digest
        && !tolerance.is_null()
    {
        digest.insert("tolerance".into(), tolerance);
    }
    Entry { path: line["path"].as_str().unwrap().to_owned(), expect, digest }
}
