//! `git://REPOSITORY@REVISION/PATH`, and its parts as git wants them.

use forebay_core::{Error, Result};

/// The scheme, with what follows it.
pub(crate) const SCHEME: &str = "git://";

/// The parts of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GitUrl<'a> {
    pub(crate) repository: &'a str,
    pub(crate) revision: &'a str,
    /// Without slashes at either end; empty for the whole tree.
    pub(crate) path: &'a str,
}

impl<'a> GitUrl<'a> {
    pub(crate) fn parse(url: &'a str) -> Result<Self> {
        let wrong = |message: &str| {
            Error::invalid(format!("{message}, expected git://REPOSITORY@REVISION/PATH")).context("file", url)
        };
        let rest = url.strip_prefix(SCHEME).ok_or_else(|| wrong("found another scheme"))?;
        let (repository, rest) = rest.split_once('@').ok_or_else(|| wrong("found no `@`"))?;
        let (revision, path) = rest.split_once('/').unwrap_or((rest, ""));
        if repository.is_empty() {
            return Err(wrong("found no repository"));
        }
        // Git would take the one for an option, and the other for the end of the revision.
        if revision.is_empty() || revision.starts_with('-') || revision.contains(':') {
            return Err(wrong(&format!("found `{revision}` for a revision")));
        }
        let path = path.trim_matches('/');
        // Git gives these a meaning of their own, and the tree has no such names.
        if !path.is_empty() && path.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return Err(wrong(&format!("found `{path}` for a path")));
        }
        Ok(Self { repository, revision, path })
    }

    /// What git calls the file or folder.
    pub(crate) fn object(&self) -> String {
        format!("{}:{}", self.revision, self.path)
    }

    /// The URL of what lies in this folder under a name.
    pub(crate) fn join(&self, name: &str) -> String {
        let Self { repository, revision, path } = self;
        let slash = if path.is_empty() { "" } else { "/" };
        format!("{SCHEME}{repository}@{revision}/{path}{slash}{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_three_parts() {
        for (url, parts) in [
            ("git:///data/labels@v1.2/a/b.csv", ("/data/labels", "v1.2", "a/b.csv")),
            ("git://.@HEAD~3/a@b.csv", (".", "HEAD~3", "a@b.csv")),
            ("git://labels.git@main", ("labels.git", "main", "")),
            ("git://labels@main/a/", ("labels", "main", "a")),
        ] {
            let found = GitUrl::parse(url).unwrap();
            assert_eq!((found.repository, found.revision, found.path), parts, "{url}");
        }
        let folder = GitUrl::parse("git://labels@main/a/").unwrap();
        assert_eq!(
            (folder.object().as_str(), folder.join("b").as_str()),
            ("main:a", "git://labels@main/a/b")
        );
    }

    #[test]
    fn what_git_would_take_for_something_else_is_refused() {
        for url in [
            "git://labels/a.csv",
            "git://@main/a.csv",
            "git://labels@/a.csv",
            "git://labels@--output=x/a.csv",
            "git://labels@:0/a.csv",
            "git://labels@main/a//b",
            "git://labels@main/../b",
            "http://host/a@b/c",
        ] {
            let error = GitUrl::parse(url).unwrap_err();
            assert!(error.message().ends_with("expected git://REPOSITORY@REVISION/PATH"), "{error}");
            assert_eq!(error.get("file"), Some(url));
        }
    }
}
