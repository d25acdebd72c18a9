//! The rooms of the house: that the map shows them all, and that each is furnished.

use std::collections::BTreeSet;

use toml::Value;

use crate::repo::{Manifest, Repo};
use crate::{Report, looked_at};

/// How the map shows the plugins, all in one line: a table of the README lists them.
const PLUGINS: &str = "plugins/*";

pub(crate) fn the_map_shows_exactly_the_rooms(repo: &Repo) -> Report {
    let shown = repo.files.get("ARCHITECTURE.md").map(|text| map(text)).unwrap_or_default();
    let mut named = BTreeSet::new();
    let twice: Vec<_> = shown.iter().filter(|room| !named.insert(**room)).collect();
    let crates: BTreeSet<_> = repo.manifests.iter().map(|manifest| manifest.folder.as_str()).collect();
    let top: BTreeSet<_> = repo.files.keys().filter_map(|path| Some(path.split_once('/')?.0)).collect();
    let covers = |folder: &str| named.iter().any(|room| room.split('/').next() == Some(folder));
    let uncovered = top.iter().filter(|folder| !folder.starts_with('.') && !covers(folder));
    let is_shown =
        |folder: &str| named.contains(folder) || (folder.starts_with("plugins/") && named.contains(PLUGINS));
    let missing: BTreeSet<_> = crates.iter().filter(|folder| !is_shown(folder)).chain(uncovered).collect();
    let is_there = |room: &str| {
        crates.contains(room) || top.contains(room) || (room == PLUGINS && top.contains("plugins"))
    };
    let absent = named.iter().filter(|room| !is_there(room));
    let problems = missing
        .into_iter()
        .map(|room| format!("ARCHITECTURE.md: the map lacks {room}/"))
        .chain(absent.map(|room| format!("ARCHITECTURE.md: the map shows {room}/, which is no room")))
        .chain(twice.into_iter().map(|room| format!("ARCHITECTURE.md: the map shows {room}/ twice")))
        .collect();
    looked_at(named.len(), problems)
}

/// The folders in the fenced block under `## Map`: each line's first word, when it ends in `/`.
fn map(architecture: &str) -> Vec<&str> {
    let section = architecture.lines().skip_while(|line| *line != "## Map").skip(1);
    let block = section
        .take_while(|line| !line.starts_with("## "))
        .skip_while(|line| !line.starts_with("```"))
        .skip(1)
        .take_while(|line| !line.starts_with("```"));
    block.filter_map(|line| line.split(' ').next()?.strip_suffix('/')).collect()
}

pub(crate) fn every_plugin_is_furnished(repo: &Repo) -> Report {
    let folders: BTreeSet<_> = repo
        .files
        .keys()
        .filter_map(|path| path.strip_prefix("plugins/")?.split_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    let mut problems = Vec::new();
    for folder in &folders {
        for file in ["Cargo.toml", "README.md", "src/lib.rs"] {
            let path = format!("plugins/{folder}/{file}");
            if !repo.files.contains_key(&path) {
                problems.push(format!("{path} is missing"));
            }
        }
    }
    for plugin in repo.plugins() {
        let kinds = plugin.table.get("lib").and_then(|lib| lib.get("crate-type")?.as_array());
        let is_kind =
            |kind: &str| kinds.is_some_and(|kinds| kinds.iter().any(|one| one.as_str() == Some(kind)));
        if !is_kind("cdylib") || !is_kind("rlib") {
            problems.push(format!("{}/Cargo.toml: crate-type must be cdylib and rlib", plugin.folder));
        }
        let readme = repo.files.get(&format!("{}/README.md", plugin.folder));
        if readme.is_some_and(|readme| !shows_its_use(readme)) {
            problems.push(format!("{}/README.md: no example in Rust of the crate by itself", plugin.folder));
        }
    }
    looked_at(folders.len(), problems)
}

/// Whether some fenced block is Rust that is built with the docs.
fn shows_its_use(readme: &str) -> bool {
    // Of two fences the first says what the block is; rustdoc takes silence for Rust.
    let fences = readme.lines().filter_map(|line| line.strip_prefix("```"));
    fences.step_by(2).any(|language| matches!(language, "" | "rust" | "no_run"))
}

/// The crate that may hold lints of its own: unsafe is its business.
const OWN_LINTS: &str = "core/abi";

/// The lints and the licence come from the workspace, apart from crates that stand outside of it.
pub(crate) fn every_crate_takes_lints_and_licence_from_the_workspace(repo: &Repo) -> Report {
    let is_inside = |manifest: &&Manifest| {
        !manifest.folder.starts_with("examples/") && !["fuzz", "python"].contains(&manifest.folder.as_str())
    };
    let inside = || repo.manifests.iter().filter(is_inside);
    let inherits = |table: &Value| table.get("workspace").and_then(Value::as_bool) == Some(true);
    let mut problems = Vec::new();
    for manifest in inside() {
        let lints = manifest.table.get("lints");
        let licence = manifest.table.get("package").and_then(|package| package.get("license"));
        if !lints.is_some_and(|lints| inherits(lints) || manifest.folder == OWN_LINTS) {
            problems.push(format!("{}/Cargo.toml: lints.workspace must be true", manifest.folder));
        }
        if !licence.is_some_and(inherits) {
            problems.push(format!("{}/Cargo.toml: license.workspace must be true", manifest.folder));
        }
    }
    looked_at(inside().count(), problems)
}
