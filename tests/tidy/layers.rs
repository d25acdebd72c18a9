//! The layers of the loader: small crates, and in each of them no module imports what imports it.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;

use crate::{
    Report, lexer, looked_at,
    repo::{Repo, Source},
};

/// The most lines that a crate of the loader has.
const LINES: usize = 12_000;
/// How often an item may be exported on, from module to module.
const HOPS: usize = 4;

/// A path of modules, from the root of its crate.
type Path = Vec<String>;

pub(crate) fn crates_of_the_loader_are_small_and_one_thing(repo: &Repo) -> Report {
    let mut problems = Vec::new();
    let crates: Vec<_> = repo.manifests.iter().filter(|manifest| is_loader(&manifest.folder)).collect();
    for manifest in &crates {
        let lines: usize = sources(repo, &manifest.folder).map(|source| source.text.lines().count()).sum();
        if lines > LINES {
            problems.push(format!("{}: {lines} lines, at most {LINES}", manifest.folder));
        }
        let package = manifest.table.get("package");
        let says = package.and_then(|package| package.get("description")).and_then(Value::as_str);
        if says.is_some_and(|says| says.contains(" and ")) {
            problems.push(format!("{}: its description has an \"and\": two crates?", manifest.folder));
        }
    }
    looked_at(crates.len(), problems)
}

pub(crate) fn no_import_of_the_loader_runs_back_up(repo: &Repo) -> Report {
    let mut problems = Vec::new();
    let mut files = 0;
    for manifest in repo.manifests.iter().filter(|manifest| is_loader(&manifest.folder)) {
        let house = Modules::of(repo, &manifest.folder);
        let found = house.siblings();
        files += house.files.len();
        problems.extend(
            circles(&found)
                .into_iter()
                .map(|(from, to)| format!("{}: {from} imports {to}, which imports it", manifest.folder)),
        );
    }
    looked_at(files, problems)
}

fn is_loader(folder: &str) -> bool {
    folder == "loader" || folder.starts_with("loader/")
}

/// The files of a crate, but for those that only its tests have.
fn sources<'a>(repo: &'a Repo, folder: &str) -> impl Iterator<Item = &'a Source> {
    let start = format!("{folder}/src/");
    repo.sources.iter().filter(move |source| source.path.starts_with(&start))
}

/// The modules of a crate.
struct Modules<'a> {
    files: BTreeMap<Path, &'a Source>,
    /// What a module exports that is elsewhere: name, and the path to it.
    exports: BTreeMap<Path, BTreeMap<String, Path>>,
}

impl<'a> Modules<'a> {
    fn of(repo: &'a Repo, folder: &str) -> Self {
        let start = format!("{folder}/src/");
        let path = |source: &Source| -> Path {
            let name = source.path[start.len()..].trim_end_matches(".rs");
            if name == "lib" { Vec::new() } else { name.split('/').map(str::to_owned).collect() }
        };
        let files: BTreeMap<Path, &Source> =
            sources(repo, folder).map(|source| (path(source), source)).collect();
        let exports =
            files.iter().map(|(module, source)| (module.clone(), exports(module, source))).collect();
        Self { files, exports }
    }

    /// The module that has what is at a path.
    fn home(&self, path: &[String], hops: usize) -> Path {
        let known = (0..=path.len()).rev().find(|&len| self.files.contains_key(&path[..len]));
        let module = &path[..known.unwrap_or(0)];
        let item = path.get(module.len());
        let elsewhere = item.and_then(|item| self.exports.get(module)?.get(item));
        match elsewhere {
            Some(there) if hops > 0 && there != path => self.home(there, hops - 1),
            _ => module.to_vec(),
        }
    }

    /// Which modules import which of those beside them, for themselves or for what is below them.
    fn siblings(&self) -> BTreeSet<(Path, Path)> {
        let mut found = BTreeSet::new();
        for (module, source) in &self.files {
            let is_of_tests = module.iter().any(|name| name == "tests");
            for import in imports(module, source).into_iter().filter(|_| !is_of_tests) {
                let home = self.home(&import, HOPS);
                let common = module.iter().zip(&home).take_while(|(one, other)| one == other).count();
                if common < module.len() && common < home.len() {
                    found.insert((module[..=common].to_vec(), home[..=common].to_vec()));
                }
            }
        }
        found
    }
}

/// The imports by which what is imported leads back to who imports it.
fn circles(imports: &BTreeSet<(Path, Path)>) -> Vec<(String, String)> {
    let leads = |from: &Path, to: &Path| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(at) = todo.pop() {
            if seen.insert(at) {
                todo.extend(imports.iter().filter(|(one, _)| one == at).map(|(_, other)| other));
            }
        }
        seen.contains(to)
    };
    let back = imports.iter().filter(|(from, to)| leads(to, from));
    back.map(|(from, to)| (from.join("::"), to.join("::"))).collect()
}

/// What a module names by a path that begins at the crate or above it, outside of its tests.
fn imports(module: &Path, source: &Source) -> Vec<Path> {
    let mut found = Vec::new();
    for word in ["crate", "super"] {
        for at in lexer::words(&source.code, word).filter(|&at| !source.is_test(at)) {
            let before = source.code[..at].trim_end();
            let is_export = before.ends_with("pub use") || before.ends_with(") use");
            // `pub(crate)` is no path, and of `super::super` the first is looked at.
            let is_path = source.code[at + word.len()..].starts_with("::") && !before.ends_with("::");
            if is_path && !is_export {
                found.extend(tree(&source.code[at..]).into_iter().map(|path| absolute(module, path)));
            }
        }
    }
    found
}

/// What a module exports of others.
fn exports(module: &Path, source: &Source) -> BTreeMap<String, Path> {
    let mut found = BTreeMap::new();
    for at in lexer::words(&source.code, "use") {
        let before = source.code[..at].trim_end();
        if before.ends_with("pub") || before.ends_with("pub(crate)") || before.ends_with("pub(super)") {
            for path in tree(source.code[at + "use".len()..].trim_start()) {
                let path = absolute(module, path);
                if let Some(name) = path.last() {
                    found.insert(name.clone(), path.clone());
                }
            }
        }
    }
    found
}

/// A path from the root of the crate.
fn absolute(module: &Path, path: Path) -> Path {
    let mut base = module.clone();
    let mut rest = path.as_slice();
    while let Some((first, others)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest = others;
    }
    base.extend_from_slice(rest);
    base
}

/// The paths of a tree such as `a::{b, c::d}`, at the start of some code.
fn tree(code: &str) -> Vec<Path> {
    let (mut paths, mut open): (Vec<Path>, Vec<Path>) = (Vec::new(), Vec::new());
    let mut path: Path = Vec::new();
    let mut rest = code;
    loop {
        rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end > 0 {
            path.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        let before = open.last().cloned().unwrap_or_default();
        if let Some(behind) = rest.strip_prefix("::{") {
            open.push(path.clone());
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("::") {
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix(',').filter(|_| !open.is_empty()) {
            paths.push(std::mem::replace(&mut path, before));
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix('}').filter(|_| !open.is_empty()) {
            if path != before {
                paths.push(path);
            }
            open.pop();
            path = open.last().cloned().unwrap_or_default();
            rest = behind;
            if open.is_empty() {
                return paths;
            }
        } else if let Some(behind) = rest.strip_prefix("as ").filter(|_| !open.is_empty()) {
            let end = behind.find([',', '}']).unwrap_or(behind.len());
            rest = &behind[end..];
        } else {
            paths.push(path);
            return paths;
        }
    }
}
