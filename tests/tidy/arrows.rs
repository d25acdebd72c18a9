//! Who may depend on whom: section "Arrows" of ARCHITECTURE.md, read from the manifests.

use toml::{Table, Value};

use crate::repo::{Manifest, Repo};
use crate::{Report, looked_at};

/// The one feature that may link plugins into the loader, and the one file that may name them.
const BUNDLED: &str = "bundled";
pub(crate) const BUNDLED_FILE: &str = "loader/registry/src/bundled.rs";
/// The crate that has both.
const BUNDLING: &str = "loader/registry";

struct Dependency<'a> {
    name: &'a str,
    optional: bool,
}

pub(crate) fn crates_depend_only_downwards(repo: &Repo) -> Report {
    let mut problems = Vec::new();
    for manifest in &repo.manifests {
        for dependency in dependencies(manifest) {
            let Some(target) = repo.manifests.iter().find(|other| other.name == dependency.name) else {
                continue;
            };
            if !may_depend(&manifest.folder, &target.folder, dependency.optional) {
                problems.push(format!("{} must not depend on {}", manifest.folder, target.folder));
            }
        }
    }
    looked_at(repo.manifests.len(), problems)
}

fn may_depend(from: &str, to: &str, optional: bool) -> bool {
    let is_plugin = |folder: &str| folder.starts_with("plugins/");
    match from {
        "core/abi" => false,
        "core" => to == "core/abi",
        "core/unpack" => to == "core",
        // What checks plugins from outside runs them as a user would.
        "testkit" => to == "core" || (to == "loader" && optional),
        "loader/graph" | "loader/guard" => to == "core",
        "loader/queue" => matches!(to, "core" | "loader/guard"),
        BUNDLING => matches!(to, "core" | "loader/graph" | "loader/guard") || (is_plugin(to) && optional),
        "loader/snapshot" => matches!(to, "core" | "loader/graph" | BUNDLING),
        "loader/audit" => matches!(to, "core" | "loader/graph" | BUNDLING | "loader/snapshot"),
        "loader/engine" => to == "core" || (to.starts_with("loader/") && to != from),
        "loader" => to == "core" || to.starts_with("loader/"),
        "cli" => matches!(to, "loader" | "testkit"),
        // Batches become Arrow's columns by what the plugin has for files.
        "python" => matches!(to, "cli" | "core" | "loader" | "plugins/arrow"),
        "tests" => to.starts_with("tests/") || !is_leaf(to),
        // The misbehaving plugin has the cheapest map there is, which benches run.
        "benches" => matches!(to, "tests/rogue" | "benches/plugin") || !is_leaf(to),
        "fuzz" => !is_leaf(to),
        // A plugin, in the tree or outside of it as its author's would be; of the examples, a program too.
        _ => {
            matches!(to, "core" | "core/unpack" | "testkit")
                || (from.starts_with("examples/") && !is_leaf(to))
        }
    }
}

/// Whether nothing may depend on the room.
fn is_leaf(folder: &str) -> bool {
    matches!(folder.split('/').next(), Some("tests" | "benches" | "examples" | "fuzz"))
}

pub(crate) fn abi_stable_is_only_in_the_abi(repo: &Repo) -> Report {
    let named =
        |manifest: &&Manifest| dependencies(manifest).any(|dependency| dependency.name == "abi_stable");
    let folders: Vec<_> =
        repo.manifests.iter().filter(named).map(|manifest| manifest.folder.as_str()).collect();
    let elsewhere = folders.iter().filter(|folder| **folder != "core/abi");
    let problems = elsewhere.map(|folder| format!("{folder} must not depend on abi_stable")).collect();
    looked_at(folders.len(), problems)
}

pub(crate) fn only_bundled_links_plugins_into_the_loader(repo: &Repo) -> Report {
    let Some(loader) = repo.manifests.iter().find(|manifest| manifest.folder == BUNDLING) else {
        return looked_at(0, Vec::new());
    };
    let empty = Table::new();
    let features = loader.table.get("features").and_then(Value::as_table).unwrap_or(&empty);
    let enables = |feature: &str, what: &str| {
        let list = features.get(feature).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|entry| entry.as_str() == Some(what)))
    };
    let mut problems = Vec::new();
    if features.keys().any(|feature| enables(feature, BUNDLED)) {
        problems.push(format!("{BUNDLING}: no feature may turn on `{BUNDLED}`"));
    }
    for plugin in repo.plugins() {
        let dependency = format!("dep:{}", plugin.name);
        let others = || features.keys().filter(|feature| *feature != BUNDLED);
        if !enables(BUNDLED, &dependency) {
            problems.push(format!("{BUNDLING}: the feature `{BUNDLED}` lacks \"{dependency}\""));
        }
        for feature in
            others().filter(|feature| enables(feature, &dependency) || enables(feature, &plugin.name))
        {
            problems.push(format!("{BUNDLING}: the feature `{feature}` must not name {}", plugin.name));
        }
    }
    looked_at(repo.plugins().count(), problems)
}

pub(crate) fn only_the_bundled_file_names_plugin_crates(repo: &Repo) -> Report {
    let crates: Vec<_> = repo.plugins().map(|plugin| plugin.name.replace('-', "_")).collect();
    let sources = || repo.sources.iter().filter(|source| source.path.starts_with("loader/"));
    let mut problems = Vec::new();
    for source in sources().filter(|source| source.path != BUNDLED_FILE) {
        for name in &crates {
            problems.extend(
                crate::lexer::words(&source.code, name)
                    .map(|at| format!("{} names {name}", source.place(at))),
            );
        }
    }
    looked_at(sources().count().min(crates.len()), problems)
}

/// All dependencies of a crate: usual, for tests, for builds, and for one platform.
fn dependencies(manifest: &Manifest) -> impl Iterator<Item = Dependency<'_>> {
    let platforms = manifest.table.get("target").and_then(Value::as_table);
    let tables = std::iter::once(&manifest.table)
        .chain(platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table));
    tables
        .flat_map(|table| {
            ["dependencies", "dev-dependencies", "build-dependencies"].map(|kind| table.get(kind)?.as_table())
        })
        .flatten()
        .flatten()
        .map(|(key, value)| Dependency {
            name: value.get("package").and_then(Value::as_str).unwrap_or(key),
            optional: value.get("optional").and_then(Value::as_bool).unwrap_or(false),
        })
}
