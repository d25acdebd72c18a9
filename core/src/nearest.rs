//! The names or files that somebody probably meant, for errors about unknown names.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// The most names of a folder that are looked at.
const LOOKED_AT: usize = 10_000;
/// The most names of a folder that are told.
const TOLD: usize = 4;

/// Names longer than this are never a slip of the finger, and comparing them would cost.
const LONGEST: usize = 64;

/// Up to three of `names` that are similar to `word`, the nearest first.
///
/// ```
/// assert_eq!(forebay_core::nearest::nearest("shufle", ["batch", "shuffle"]), ["shuffle"]);
/// ```
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().take(LONGEST + 1).collect();
    if word.is_empty() || word.len() > LONGEST {
        return Vec::new();
    }
    let allowed = (word.len() / 3).max(1);
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter(|name| name.len() <= LONGEST)
        .filter_map(|name| {
            let other: Vec<char> = name.to_lowercase().chars().collect();
            let distance = distance(&word, &other);
            let begins =
                word.len() >= 3 && (other.starts_with(&word) || other.len() >= 3 && word.starts_with(&other));
            (distance <= allowed || begins).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The hint after "unknown …": a question if a name is near, otherwise nothing.
pub fn did_you_mean<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, names).as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", quoted(near, " or ")),
    }
}

/// The names in backticks.
#[must_use]
pub fn quoted(names: &[&str], between: &str) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
}

/// For an error about a missing path: the first missing part of it, and what may have been meant, or what is
/// there. `None` for a path that exists.
///
/// ```
/// let hint = forebay_core::nearest::beside("src/nearst.rs".as_ref());
/// assert_eq!(hint.as_deref(), Some("no `nearst.rs` in `src`; did you mean `src/nearest.rs`?"));
/// ```
#[must_use]
pub fn beside(path: &Path) -> Option<String> {
    let mut base = PathBuf::new();
    let mut missing = None;
    for part in path.components() {
        let next = base.join(part);
        match fs::symlink_metadata(&next) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing = Some(part);
                break;
            }
            _ => base = next,
        }
    }
    let Some(Component::Normal(missing)) = missing else { return None };
    let missing = missing.to_str()?;
    let names = names(&base, missing.starts_with('.'))?;
    let near = nearest(missing, names.iter().map(String::as_str));
    let has = if near.is_empty() {
        format!(", which has {}", few(&names))
    } else {
        let paths: Vec<_> = near.iter().map(|name| base.join(name).display().to_string()).collect();
        let paths: Vec<_> = paths.iter().map(String::as_str).collect();
        format!("; did you mean {}?", quoted(&paths, " or "))
    };
    let folder =
        if base.as_os_str().is_empty() { "this folder".into() } else { format!("`{}`", base.display()) };
    Some(format!("no `{missing}` in {folder}{has}"))
}

/// The contents of a folder in a few words; `None` if it cannot be listed.
#[must_use]
pub fn inside(folder: &Path) -> Option<String> {
    names(folder, false).map(|names| few(&names))
}

/// The names in a folder, sorted; those that begin with a dot only where one is looked for.
fn names(folder: &Path, hidden: bool) -> Option<Vec<String>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let names = fs::read_dir(folder).ok()?.take(LOOKED_AT).filter_map(name);
    let mut names: Vec<String> = names.filter(|name| hidden || !name.starts_with('.')).collect();
    names.sort();
    Some(names)
}

fn few(names: &[String]) -> String {
    let first: Vec<_> = names.iter().take(TOLD).map(String::as_str).collect();
    match names.len().saturating_sub(TOLD) {
        _ if first.is_empty() => "nothing in it".to_owned(),
        0 => quoted(&first, ", "),
        more => format!("{} and {more} more", quoted(&first, ", ")),
    }
}

/// How many letters to add, drop, change or swap with a neighbour to make one word of the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut two_back: Vec<usize> = Vec::new();
    let mut back: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = back[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(back[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(two_back[j - 2] + 1);
            }
            row.push(best);
        }
        two_back = std::mem::replace(&mut back, row);
    }
    back[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_found() {
        let names = ["shuffle", "batch", "take", "skip", "random_crop"];
        assert_eq!(nearest("shufle", names), ["shuffle"]);
        assert_eq!(nearest("bacth", names), ["batch"]);
        assert_eq!(nearest("Take", names), ["take"]);
        assert_eq!(nearest("random", names), ["random_crop"]);
        assert!(nearest("frobnicate", names).is_empty());
        assert!(nearest(&"x".repeat(100_000), names).is_empty());
        assert_eq!(did_you_mean("tak", names), "; did you mean `take`?");
    }
}
