//! The store: what git says of a tree and of the files in it.

use std::process::{Command, Stdio};

use forebay_core::{Buffer, Error, NoOptions, Result, Store, StoreInfo};

use crate::url::GitUrl;

/// A file is read whole.
const LIMIT: u64 = 1 << 30;

/// Reads files of git repositories at a revision, by the command `git`. Shared by many threads; each call runs a git of its own.
pub struct Git;

impl Store for Git {
    const INFO: StoreInfo =
        StoreInfo { name: "git", summary: "Files of git repositories at a revision", schemes: &["git"] };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn list(&self, url: &str) -> Result<Vec<(String, bool)>> {
        let folder = GitUrl::parse(url)?;
        let listed = git(url, &folder, &["ls-tree", "-z", "--end-of-options", &folder.object()])?;
        let mut entries = Vec::new();
        // Each is `MODE KIND HASH\tNAME`, and ends in a zero.
        for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let entry = str::from_utf8(entry).map_err(|_| {
                Error::unsupported("the folder has a name that is not UTF-8").context("file", url)
            })?;
            let odd = || Error::bug(format!("git listed {entry:?}")).context("file", url);
            let (said, name) = entry.split_once('\t').ok_or_else(odd)?;
            match said.split(' ').nth(1).ok_or_else(odd)? {
                "tree" => entries.push((folder.join(name), true)),
                "blob" => entries.push((folder.join(name), false)),
                // A submodule is a commit of another repository.
                _ => {}
            }
        }
        entries.sort();
        Ok(entries)
    }

    fn size(&self, url: &str) -> Result<u64> {
        let file = GitUrl::parse(url)?;
        let said = git(url, &file, &["cat-file", "-s", "--end-of-options", &file.object()])?;
        let said = String::from_utf8_lossy(&said);
        said.trim()
            .parse()
            .map_err(|_| Error::bug(format!("git gave {said:?} for a size")).context("file", url))
    }

    fn read_range(&self, url: &str, offset: u64, len: u64) -> Result<Buffer> {
        let whole = self.whole(url)?;
        let end = offset.saturating_add(len).min(whole.len() as u64);
        // Both ends lie within the buffer.
        Ok(whole.slice(offset.min(end) as usize..end as usize))
    }

    /// All bytes at once: git unpacks a file from its beginning on, so to read it piece by piece would cost more with each.
    fn map(&self, url: &str) -> Result<Option<Buffer>> {
        self.whole(url).map(Some)
    }
}

impl Git {
    fn whole(&self, url: &str) -> Result<Buffer> {
        let file = GitUrl::parse(url)?;
        let size = self.size(url)?;
        if size > LIMIT {
            return Err(
                Error::limit(format!("{size} bytes, at most {LIMIT} are read of git")).context("file", url)
            );
        }
        let bytes = git(url, &file, &["cat-file", "blob", &file.object()])?;
        Ok(bytes.into())
    }
}

/// What git prints for this, in the URL's repository.
fn git(url: &str, GitUrl { repository, .. }: &GitUrl, args: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(args).stdin(Stdio::null());
    // Within a hook of git these name another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"] {
        command.env_remove(name);
    }
    // Nothing is asked of a person, fetched, or translated.
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1").env("LC_ALL", "C");
    let output = command.output().map_err(|error| {
        Error::from(error).context("command", "git, which must be installed").context("file", url)
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().strip_prefix("fatal: ").unwrap_or(said.trim());
    Err(Error::new(forebay_core::ErrorKind::Io, format!("git: {said}")).context("file", url))
}
