//! Who may depend on whom: section "Arrows" of ARCHITECTURE.md, read from the manifests.

use toml::{Table, Value};

use crate::repo::{Manifest, Repo};
use crate::{Report, looked_at};

/// The one feature that may link plugins into the loader, and the crate that has it.
const FEATURE: &str = "bundled";
const REGISTRY: &str = "loader/registry";
/// The crate that has all plugins.
const BUNDLED: &str = "loader/bundled";
/// What their formats are, for tests and fuzz targets.
const FORMATS: &str = "tests/formats";

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
        BUNDLED => to == "core" || is_plugin(to),
        REGISTRY => matches!(to, "core" | "loader/graph" | "loader/guard") || (to == BUNDLED && optional),
        "loader/snapshot" => matches!(to, "core" | "loader/graph" | REGISTRY),
        "loader/audit" => matches!(to, "core" | "loader/graph" | REGISTRY | "loader/snapshot"),
        "loader/engine" | "loader" => {
            to == "core" || (to.starts_with("loader/") && ![from, BUNDLED].contains(&to))
        }
        "cli" => matches!(to, "loader" | "testkit"),
        // Batches become Arrow's columns by what the plugin has for files.
        "python" => matches!(to, "cli" | "core" | "loader" | "plugins/arrow"),
        FORMATS => matches!(to, "core" | "core/unpack" | "testkit" | BUNDLED),
        "tests" => to.starts_with("tests/") || !is_leaf(to),
        // The misbehaving plugin has the cheapest map there is, which benches run.
        "benches" => matches!(to, "tests/rogue" | "benches/plugin") || !is_leaf(to),
        "fuzz" => to == FORMATS || !is_leaf(to),
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
    let manifest = |folder| repo.manifests.iter().find(|manifest| manifest.folder == folder);
    let (Some(registry), Some(bundled)) = (manifest(REGISTRY), manifest(BUNDLED)) else {
        return looked_at(0, Vec::new());
    };
    let empty = Table::new();
    let features = registry.table.get("features").and_then(Value::as_table).unwrap_or(&empty);
    let enables = |feature: &str, what: &str| {
        let list = features.get(feature).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|entry| entry.as_str() == Some(what)))
    };
    let dependency = format!("dep:{}", bundled.name);
    let mut problems = Vec::new();
    if features.keys().any(|feature| enables(feature, FEATURE)) {
        problems.push(format!("{REGISTRY}: no feature may turn on `{FEATURE}`"));
    }
    for feature in features.keys().filter(|feature| enables(feature, &dependency) != (*feature == FEATURE)) {
        problems.push(format!("{REGISTRY}: `{FEATURE}` has {dependency}, and no other feature: {feature}"));
    }
    for plugin in repo.plugins() {
        if !dependencies(bundled).any(|dependency| dependency.name == plugin.name && !dependency.optional) {
            problems.push(format!("{BUNDLED} lacks {}", plugin.name));
        }
    }
    looked_at(repo.plugins().count(), problems)
}

pub(crate) fn the_loader_names_no_plugin_crate(repo: &Repo) -> Report {
    let crates: Vec<_> = repo.plugins().map(|plugin| plugin.name.replace('-', "_")).collect();
    let sources = || repo.sources.iter().filter(|source| source.path.starts_with("loader/"));
    let mut problems = Vec::new();
    for source in sources() {
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
