//! Trust: which plugins may load, by their origin and their bytes.
//!
//! This check happens before any code of a plugin runs. It does not limit what a loaded plugin can do.

use std::{env, fmt, fs, path::Path, str::FromStr};

use forebay_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Lock, Manifest, lock, sealed::Sealed, writable::guard};

/// The variable that says it.
pub(super) const VARIABLE: &str = "FOREBAY_PLUGIN_TRUST";

/// Which of the plugins that are found may load. As text: `open`, `allow:NAME,PATH,…` or `locked:FILE`.
///
/// A plugin is native code with all rights of the program. Trust checks where the code comes from; it is no
/// sandbox. In every mode, files that anyone can write to are refused, and so are files in folders that anyone can
/// write to. Linked plugins are part of the program and need no trust.
///
/// # Examples
/// ```
/// use forebay_registry::{Registry, Search, Trust};
///
/// let trust: Trust = "allow:forebay-tar,/opt/forebay/plugins".parse()?;
/// let registry = Registry::new(Search::nowhere().first("/opt/forebay/plugins").trust(trust))?;
/// # let _ = registry;
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// All plugins.
    #[default]
    Open,
    /// Plugins with one of these names, and plugins that are one of these files or lie below one of these folders.
    /// An entry with a `/` is a path.
    ///
    /// Names are self-reported: this prevents accidents, not attacks.
    Allow(Vec<String>),
    /// Plugins that a lock lists, byte for byte. Their bytes are copied and compared, and the copy is loaded, so a
    /// later change of the file has no effect.
    ///
    /// The copies are in memory as soon as the registry is made. Each registry loads its own copies, and loaded
    /// code is never unloaded. So make one registry and clone it.
    Locked(Lock),
}

impl FromStr for Trust {
    type Err = Error;

    /// # Errors
    /// `Invalid` for any other text and for a file that is no lock; `Io` if the lock cannot be read.
    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "open" => Ok(Self::Open),
            Some(("allow", list)) => {
                let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
                let items: Vec<_> = items.map(str::to_owned).collect();
                if items.is_empty() {
                    return Err(Error::invalid(
                        "`allow:` names no plugin and no path; FOREBAY_NO_PLUGINS=1 loads none",
                    ));
                }
                Ok(Self::Allow(items))
            }
            Some(("locked", file)) if !file.is_empty() => Lock::read(Path::new(file)).map(Self::Locked),
            _ => Err(Error::invalid(format!(
                "plugins are trusted as `{text}`, expected open, allow:NAME,PATH or locked:FILE"
            ))),
        }
    }
}

/// As [`from_str`](FromStr::from_str) reads it.
impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Allow(items) => write!(f, "allow:{}", items.join(",")),
            Self::Locked(lock) => write!(f, "locked:{}", lock.file().display()),
        }
    }
}

impl Trust {
    /// What the environment says.
    ///
    /// # Errors
    /// As [`from_str`](FromStr::from_str).
    pub(super) fn from_env() -> Result<Self> {
        let Some(value) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
            return Ok(Self::Open);
        };
        let text = value.to_str().ok_or_else(|| Error::invalid("its value is not UTF-8"));
        text.and_then(str::parse).map_err(|error| error.context("variable", VARIABLE))
    }

    /// With whole paths, which mean the same in a worker.
    pub(super) fn settled(self) -> Self {
        let whole = |item: String| match std::path::absolute(&item) {
            Ok(path) if item.contains('/') => path.display().to_string(),
            _ => item,
        };
        match self {
            Self::Allow(items) => Self::Allow(items.into_iter().map(whole).collect()),
            other => other,
        }
    }

    /// Whether the plugin in a file, which the caller `named` or which was found in its folder, may be loaded. Gives its manifest, and the bytes to
    /// load where the file may have others by then.
    ///
    /// # Errors
    /// With the reason and what to do.
    pub(super) fn admit(
        &self,
        manifest: Manifest,
        path: &Path,
        named: bool,
    ) -> Result<(Manifest, Option<Sealed>)> {
        guard(path, named)?;
        match self {
            Self::Open => Ok((manifest, None)),
            Self::Allow(items) if items.iter().any(|item| allows(item, &manifest, path)) => {
                Ok((manifest, None))
            }
            Self::Allow(_) => Err(Error::invalid(format!(
                "neither its name, {}, nor its path is allowed; to allow it, add one of them to allow:NAME,PATH",
                manifest.name
            ))),
            Self::Locked(lock) => {
                // Before all of a file is read that is not locked anyway.
                lock.expects(&manifest)?;
                let sealed = Sealed::copy(path)?;
                // From the bytes that will be loaded; they may be others than a moment ago.
                let manifest = Manifest::read_open(sealed.file())?;
                let locked = lock.expects(&manifest)?;
                lock.compare(locked, &manifest, &lock::sha256(sealed.file())?)?;
                Ok((manifest, Some(sealed)))
            }
        }
    }
}

fn allows(item: &str, manifest: &Manifest, path: &Path) -> bool {
    if !item.contains('/') {
        return item == manifest.name;
    }
    // Without links and `..`, which could lead out of the folder.
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(Path::new(item)).zip(real(path)).is_some_and(|(item, path)| path.starts_with(item))
}

/// Says of an error that it is about trust.
pub(super) fn distrusted(error: &Error) -> Error {
    Error::new(error.kind(), format!("not trusted: {}", error.message()))
}
