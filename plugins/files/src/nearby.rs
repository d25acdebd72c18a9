//! Errors about paths that are not there, with what may have been meant.

use std::path::Path;

use forebay_core::{Error, nearest};

/// The error about a path, with what is beside it if it is not there.
pub(crate) fn told(path: &Path, error: Error) -> Error {
    let Some(hint) = nearest::beside(path) else { return error };
    let told = Error::new(error.kind(), format!("{}: {hint}", error.message()));
    error.contexts().iter().fold(told, |told, (name, value)| told.context(name, value))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_not_there_is_told_with_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        let hint = |path: &str| nearest::beside(&folder.path().join(path));
        assert_eq!(hint("trian").unwrap(), format!("no `trian` in `{root}`, which has nothing in it"));
        for name in ["train/cats", "test", "val", "a", "b", ".hidden"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
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
