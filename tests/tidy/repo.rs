//! The files that tidy reads: all of the repository's, apart from what a build leaves.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::lexer::{self, Literal};

/// The repository's files, by their paths from its root.
pub(crate) struct Repo {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) sources: Vec<Source>,
}

/// A crate's `Cargo.toml`.
pub(crate) struct Manifest {
    pub(crate) folder: String,
    pub(crate) name: String,
    pub(crate) table: toml::Table,
}

/// A Rust file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text without comments and literals.
    pub(crate) code: String,
    pub(crate) literals: Vec<Literal>,
}

impl Repo {
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        walk(root, "", &mut files)?;
        Ok(Self::new(files))
    }

    pub(crate) fn new(files: BTreeMap<String, String>) -> Self {
        let manifests = files
            .iter()
            .filter_map(|(path, text)| Some((path.strip_suffix("/Cargo.toml")?, text)))
            .map(|(folder, text)| Manifest::parse(folder, text))
            .collect();
        let sources = files
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| Source::new(path, text))
            .collect();
        Self { files, manifests, sources }
    }

    /// What is written for people: each Markdown file and its text.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (&str, &str)> {
        let pages = self.files.iter().filter(|(path, _)| path.ends_with(".md"));
        pages.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The manifests of the crates in `plugins/`.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.iter().filter(|manifest| manifest.folder.starts_with("plugins/"))
    }
}

impl Manifest {
    fn parse(folder: &str, text: &str) -> Self {
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{folder}/Cargo.toml: {error}"));
        let name = table.get("package").and_then(|package| package.get("name")?.as_str());
        Self { folder: folder.to_owned(), name: name.unwrap_or_default().to_owned(), table }
    }
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let (code, literals) = lexer::read(text);
        Self { path: path.to_owned(), text: text.to_owned(), code, literals }
    }

    /// `path:line`, as an editor opens it.
    pub(crate) fn place(&self, at: usize) -> String {
        let line = 1 + self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        format!("{}:{line}", self.path)
    }

    /// Whether the place is in an item that only tests are built with.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        let in_test =
            |from: usize| from <= at && at < lexer::end_of_item(&self.code, from + "#[cfg(test)]".len());
        ["/tests.rs", "/tests/"].iter().any(|tests| self.path.contains(tests))
            || self.code.match_indices("#[cfg(test)]").any(|(from, _)| in_test(from))
    }
}

fn walk(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == ".git" || name == "target" {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else {
            let is_text = [".rs", ".toml", ".md"].iter().any(|end| name.ends_with(end));
            files.insert(path, if is_text { fs::read_to_string(entry.path())? } else { String::new() });
        }
    }
    Ok(())
}
