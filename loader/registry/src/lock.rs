//! `plugins.lock`: the plugins that may be loaded, byte for byte.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use forebay_core::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{FoundPlugin, Manifest, Registry, writable};

/// The form of a lock file.
const FORM: u32 = 1;
/// The most bytes that a lock file may have.
const LIMIT: u64 = 1 << 20;
/// How many digits of a hash people are shown.
const SHOWN: usize = 16;

/// A lock: the plugins that can load, as `plugins.lock` lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Where it was read from.
    file: PathBuf,
    /// By name, each once.
    plugins: Vec<Locked>,
}

/// One plugin of a [`Lock`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Locked {
    /// The crate's name.
    pub name: String,
    /// The crate's version.
    pub version: String,
    /// Major and minor number of its ABI.
    pub abi: String,
    /// The SHA-256 of its file, in lower-case hex digits.
    pub sha256: String,
}

/// A lock as its file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFile {
    version: u32,
    #[serde(default)]
    plugin: Vec<Locked>,
}

/// The result of comparing one plugin with a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The plugin's name.
    pub plugin: String,
    /// The version of the file, or the locked version if there is no file.
    pub version: String,
    /// Its file, if there is one.
    pub file: Option<PathBuf>,
    /// The result.
    pub state: LockState,
    /// What differs, and what to do; empty if nothing differs.
    pub reason: String,
}

/// Whether a plugin is as it was locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LockState {
    /// Every byte is the same.
    AsLocked,
    /// Its bytes, version or ABI differ.
    Changed,
    /// It is found, but the lock does not list it.
    NotLocked,
    /// The lock lists it, but no such plugin is found.
    Missing,
}

impl Lock {
    /// Reads a lock file.
    ///
    /// # Errors
    /// `Io`; `Invalid` if the file is no lock, or if anyone can write to it; `Limit`.
    pub fn read(file: &Path) -> Result<Self> {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        Self::read_from(&file).map_err(|error| error.context("lock", file.display()))
    }

    fn read_from(file: &Path) -> Result<Self> {
        let data = fs::metadata(file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::new(forebay_core::ErrorKind::Io, format!("{error}; `forebay plugins lock` writes one"))
            }
            _ => error.into(),
        })?;
        if !data.is_file() {
            return Err(Error::invalid("not a regular file, expected a lock of plugins"));
        }
        if data.len() > LIMIT {
            return Err(Error::limit(format!("a lock of {} bytes, at most {LIMIT}", data.len())));
        }
        writable::guard(file, true)?;
        let form: LockFile = toml::from_str(&fs::read_to_string(file)?)
            .map_err(|error| Error::invalid(format!("not a lock of plugins: {}", error.message())))?;
        if form.version != FORM {
            return Err(Error::invalid(format!(
                "found a lock of version {}, this host reads version {FORM}",
                form.version
            )));
        }
        for (at, Locked { name, sha256, .. }) in form.plugin.iter().enumerate() {
            if form.plugin[..at].iter().any(|other| other.name == *name) {
                return Err(Error::invalid(format!("it lists {name} twice, expected one entry")));
            }
            if sha256.len() != 64 || !sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
                return Err(Error::invalid(format!(
                    "the sha256 of {name} is `{sha256}`, expected 64 lower-case hex digits"
                )));
            }
        }
        Ok(Self { file: file.to_owned(), plugins: form.plugin })
    }

    /// A lock of these plugins as they are now, to be [written](Lock::to_toml) to `file`. Linked plugins are left
    /// out.
    ///
    /// # Errors
    /// `Io`, when a file cannot be read.
    pub fn of<'a>(file: &Path, plugins: impl IntoIterator<Item = &'a FoundPlugin>) -> Result<Self> {
        let locked = |record: &FoundPlugin| {
            let Manifest { name, version, .. } = record.manifest();
            let (name, version, abi) = (name.clone(), version.clone(), record.manifest().abi_name());
            Ok(record.sha256()?.map(|sha256| Locked { name, version, abi, sha256 }))
        };
        let plugins = plugins.into_iter().filter_map(|record| locked(record).transpose());
        let mut plugins = plugins.collect::<Result<Vec<_>>>()?;
        plugins.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { file: file.to_owned(), plugins })
    }

    /// The text of a lock file.
    ///
    /// # Errors
    /// `Bug`, when it cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String> {
        let form = LockFile { version: FORM, plugin: self.plugins.clone() };
        let text = toml::to_string(&form).map_err(|error| Error::bug(error.to_string()))?;
        Ok(format!(
            "# Plugins that may be loaded: written by `forebay plugins lock`, compared by `forebay plugins verify`,\n\
             # enforced with `--trust locked:FILE` or FOREBAY_PLUGIN_TRUST=locked:FILE.\n{text}"
        ))
    }

    /// The file that it was read from.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The plugins that it lists, by name.
    #[must_use]
    pub fn plugins(&self) -> &[Locked] {
        &self.plugins
    }

    /// Compares the plugins of a registry with this lock: first those that are found, then those that are missing.
    /// Make the registry without this lock, because a locked registry refuses plugins that differ. Linked plugins
    /// are left out.
    ///
    /// # Errors
    /// `Io`, when a file cannot be read.
    pub fn verify(&self, registry: &Registry) -> Result<Vec<Verdict>> {
        let mut verdicts = Vec::new();
        for record in registry.plugins() {
            let (Some(path), Some(sha256)) = (record.path(), record.sha256()?) else { continue };
            let manifest = record.manifest();
            let (state, reason) = match self.entry(&manifest.name) {
                None => (LockState::NotLocked, self.not_locked(&manifest.name)),
                Some(locked) => match self.compare(locked, manifest, &sha256) {
                    Ok(()) => (LockState::AsLocked, String::new()),
                    Err(error) => (LockState::Changed, error.message().to_owned()),
                },
            };
            let (plugin, version, file) =
                (manifest.name.clone(), manifest.version.clone(), Some(path.to_owned()));
            verdicts.push(Verdict { plugin, version, file, state, reason });
        }
        for locked in &self.plugins {
            if !verdicts.iter().any(|verdict| verdict.plugin == locked.name) {
                verdicts.push(Verdict {
                    plugin: locked.name.clone(),
                    version: locked.version.clone(),
                    file: None,
                    state: LockState::Missing,
                    reason: "found no such plugin; `forebay plugins list` shows the folders searched and the files refused".into(),
                });
            }
        }
        Ok(verdicts)
    }

    /// The entry that a plugin has to have, whatever its bytes are.
    ///
    /// # Errors
    /// `Invalid`, when there is none, or for another version or ABI.
    pub(super) fn expects(&self, manifest: &Manifest) -> Result<&Locked> {
        let locked = self.entry(&manifest.name);
        let locked = locked.ok_or_else(|| Error::invalid(self.not_locked(&manifest.name)))?;
        let abi = manifest.abi_name();
        for (what, found, expected) in
            [("version", &manifest.version, &locked.version), ("ABI", &abi, &locked.abi)]
        {
            if found != expected {
                return Err(self.differs(&format!("its {what} is {found}"), expected));
            }
        }
        Ok(locked)
    }

    /// Refuses what is not as locked.
    ///
    /// # Errors
    /// `Invalid`, with both sides.
    pub(super) fn compare(&self, locked: &Locked, manifest: &Manifest, sha256: &str) -> Result<()> {
        self.expects(manifest)?;
        if sha256 == locked.sha256 {
            return Ok(());
        }
        // Found in a lock as in a message: hashes are told apart by their first digits.
        let short = |hash: &str| hash.get(..SHOWN).unwrap_or(hash).to_owned();
        let expected = format!("{}…", short(&locked.sha256));
        Err(self.differs(&format!("its SHA-256 is {}…", short(sha256)), &expected))
    }

    fn entry(&self, name: &str) -> Option<&Locked> {
        self.plugins.iter().find(|locked| locked.name == name)
    }

    fn not_locked(&self, name: &str) -> String {
        let file = self.file.display();
        format!(
            "{name} is not in {file}; to allow it, write the lock again with `forebay plugins lock {file}`"
        )
    }

    fn differs(&self, found: &str, expected: &str) -> Error {
        let file = self.file.display();
        Error::invalid(format!(
            "{found}, but {file} locks {expected}; restore the locked plugin or, to accept the change, write the lock \
             again with `forebay plugins lock {file}`"
        ))
    }
}

/// The SHA-256 of a whole file, in hex digits.
pub(super) fn sha256(file: &File) -> std::io::Result<String> {
    let (mut hash, mut part, mut at) = (Sha256::new(), vec![0; 1 << 17], 0);
    loop {
        match file.read_at(&mut part, at) {
            Ok(0) => break,
            Ok(read) => {
                hash.update(&part[..read]);
                at += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
