//! Archives by other programs against what reference readers found in them.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value as Json;

#[path = "../../../tests/corpora/tar.rs"]
mod kind;

fn corpora() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = env::var_os("FOREBAY_CORPORA").map_or_else(beside, PathBuf::from);
    folder.join("manifest.jsonl").exists().then_some(folder)
}

#[test]
fn archives_of_other_programs_list_as_the_references_say() {
    let Some(folder) = corpora() else {
        return say("SKIPPED: no corpora at ../shared/corpora nor at FOREBAY_CORPORA");
    };
    let mut counts = BTreeMap::<String, u32>::new();
    let mut failures = Vec::new();
    for line in fs::read_to_string(folder.join("manifest.jsonl")).unwrap().lines() {
        let entry: Json = serde_json::from_str(line).unwrap();
        let path = folder.join("files").join(entry["path"].as_str().unwrap());
        // The folder holds a part of what the manifest lists.
        if entry["format"] != "tar" || !path.exists() {
            continue;
        }
        let expect = entry["expect"].as_str().unwrap();
        let found = kind::digest(&path);
        let outcome = match (expect, &found) {
            ("reject", Ok(_)) => Err("was read, must be refused".into()),
            ("valid", Err(error)) => Err(error.to_string()),
            ("valid", Ok(found)) => kind::compare(&entry["digest"], found),
            _ => Ok(()),
        };
        match outcome {
            Ok(()) => {
                *counts
                    .entry(format!("{expect}, {}", if found.is_ok() { "read" } else { "refused" }))
                    .or_default() += 1
            }
            Err(why) => failures.push(format!("{}: {why}", path.display())),
        }
    }
    say(&format!("corpora: {counts:?}"));
    assert!(failures.is_empty(), "{counts:?}\n{}", failures.join("\n"));
    assert!(counts.get("valid, read").is_some_and(|count| *count > 40), "{counts:?}");
}

#[expect(clippy::print_stderr, reason = "a skipped or counted corpus must be seen")]
fn say(line: &str) {
    eprintln!("{line}");
}
