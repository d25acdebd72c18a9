//! Which files each parser is given: seeds of all plugins, and files of the corpora.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use forebay_formats::Parser;

/// The files of a parser that have from 1 to `largest` bytes: seeds, and up to `most` of the corpora, from all over,
/// always the same.
pub(crate) fn seeds(parser: &Parser, largest: u64, most: usize) -> Vec<PathBuf> {
    let repo = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let is_one = |path: &PathBuf| {
        is_of(path, parser) && fs::metadata(path).is_ok_and(|file| (1..=largest).contains(&file.len()))
    };
    let all = files(&repo.join("plugins")).into_iter();
    let all = all.filter(|path| path.parent().is_some_and(|folder| folder.ends_with("seeds")));
    let mut found: Vec<_> = all.filter(is_one).collect();
    let corpora =
        env::var_os("FOREBAY_CORPORA").map_or_else(|| repo.join("../shared/corpora"), PathBuf::from);
    let more: Vec<_> = files(&corpora.join("files")).into_iter().filter(is_one).collect();
    found.extend(more.iter().step_by(more.len().div_ceil(most.max(1)).max(1)).cloned());
    found
}

/// By its extension; files that other projects' fuzzers found have none, and a folder's name says what they are.
fn is_of(path: &Path, Parser { name, extensions, .. }: &Parser) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| extensions.contains(&extension)) {
        return true;
    }
    let folders = path.components().filter_map(|part| part.as_os_str().to_str());
    folders.filter(|folder| folder.contains("fuzz")).any(|folder| folder.contains(name))
}

/// All files below a folder, sorted; none if it is not there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
