//! What may have been meant by a path that is not there: its neighbours, told with the error.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use forebay_core::{Error, nearest};

/// The most names of a folder that are looked at.
const LOOKED_AT: usize = 10_000;
/// The most names of a folder that are told.
const TOLD: usize = 4;

/// The error about a path, with what is beside it if it is not there.
pub(crate) fn told(path: &Path, error: Error) -> Error {
    let Some(hint) = hint(path) else { return error };
    let told = Error::new(error.kind(), format!("{}: {hint}", error.message()));
    error.contexts().iter().fold(told, |told, (name, value)| told.context(name, value))
}

/// What there is in the last folder of the path that is there; none for a path that is.
fn hint(path: &Path) -> Option<String> {
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
    let here = base.as_os_str().is_empty();
    let (folder, shown) = if here {
        (Path::new("."), "this folder".to_owned())
    } else {
        (&*base, format!("`{}`", base.display()))
    };
    let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let visible = |name: &String| missing.starts_with('.') || !name.starts_with('.');
    let mut names: Vec<String> =
        fs::read_dir(folder).ok()?.take(LOOKED_AT).filter_map(name).filter(visible).collect();
    names.sort();
    let texts = || names.iter().map(String::as_str);
    let near = nearest::nearest(missing, texts());
    let has = match (near.as_slice(), names.len()) {
        ([], 0) => ", which is empty".to_owned(),
        ([], count) => {
            let first: Vec<_> = texts().take(TOLD).collect();
            let more = count.saturating_sub(TOLD);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(", which has {}{more}", nearest::quoted(&first, ", "))
        }
        (near, _) => {
            let paths: Vec<_> = near.iter().map(|name| base.join(name).display().to_string()).collect();
            let paths: Vec<_> = paths.iter().map(String::as_str).collect();
            format!("; did you mean {}?", nearest::quoted(&paths, " or "))
        }
    };
    Some(format!("no `{missing}` in {shown}{has}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_told_with_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        assert_eq!(
            hint(&folder.path().join("trian")).unwrap(),
            format!("no `trian` in `{root}`, which is empty")
        );
        for name in ["train/cats", "test", "val", "a", "b", ".hidden"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let hint = |path: &str| hint(&folder.path().join(path));
        let near = format!("no `trian` in `{root}`; did you mean `{root}/train`?");
        assert_eq!(hint("trian"), Some(near.clone()));
        assert_eq!(hint("trian/cats/1.jpg"), Some(near), "the first part that is not there");
        let far = hint("photographs").unwrap();
        assert!(far.ends_with("which has `a`, `b`, `test`, `train` and 1 more"), "{far}");
        assert_eq!(hint("train"), None);
        let error = told(&folder.path().join("vall"), Error::invalid("gone").context("file", "x"));
        assert!(error.message().starts_with("gone: no `vall` in"), "{error}");
        assert_eq!(error.get("file"), Some("x"));
    }
}
