//! One plugin that was found: its file, its hashes, and how it is loaded.

use std::{fs::File, path::Path, sync::OnceLock};

use forebay_core::{Error, Result};
use forebay_guard::{
    call::{Callee, call},
    maps,
    signals::watch_plugins,
};

use super::{CPlugin, FoundPlugin, IsolationLevel, Manifest, Origin, Stamp, hash, library, lock};
use crate::handles::Loaded;

impl FoundPlugin {
    pub(super) fn new(manifest: Manifest, origin: Origin) -> Self {
        Self {
            manifest,
            origin,
            level: IsolationLevel::default(),
            loaded: OnceLock::new(),
            hash: OnceLock::new(),
        }
    }

    /// The manifest of the plugin.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The file of the plugin; `None` if it is linked in.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File(stamp) | Origin::Sealed(stamp, _) => Some(stamp.file()),
            Origin::Linked { .. } => None,
        }
    }

    /// What tells its file from any other, as it was when it was found; `None` when it is linked in.
    pub fn stamp(&self) -> Option<&Stamp> {
        match &self.origin {
            Origin::File(stamp) | Origin::Sealed(stamp, _) => Some(stamp),
            Origin::Linked { .. } => None,
        }
    }

    /// Reads the bytes that are loaded: those of the file, or of the copy that was compared with a lock.
    fn read<T>(&self, read: impl FnOnce(&File) -> std::io::Result<T>) -> Result<Option<T>> {
        let found = match &self.origin {
            Origin::File(stamp) => File::open(stamp.file()).and_then(|file| read(&file)),
            Origin::Sealed(_, sealed) => read(sealed.file()),
            Origin::Linked { .. } => return Ok(None),
        };
        found.map(Some).map_err(|error| Error::from(error).context("file", self.file()))
    }

    /// The file of the plugin, for people; `this program` if it is linked in.
    #[must_use]
    pub fn file(&self) -> String {
        self.path().map_or_else(|| "this program".to_owned(), |path| path.display().to_string())
    }

    /// Name and version.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.manifest.name, self.manifest.version)
    }

    /// The 128-bit XXH3, in hex digits, of the parts of the file that are loaded into memory, without debug
    /// information. Empty if the plugin is linked in.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn hash(&self) -> Result<String> {
        let hash = || Ok(self.read(hash::of)?.map_or_else(String::new, |hash| format!("{hash:032x}")));
        self.hash.get_or_init(hash).clone()
    }

    /// The SHA-256 of the whole file in hex digits, as in a [`Lock`](super::Lock); `None` if the plugin is linked
    /// in.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn sha256(&self) -> Result<Option<String>> {
        self.read(lock::sha256)
    }

    /// Whether the code of the plugin is loaded.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        matches!(self.loaded.get(), Some(Ok(_)))
    }

    /// Loads the plugin unless it is loaded, and checks its layout.
    ///
    /// # Errors
    /// `Abi` if it does not fit.
    pub fn check(&self) -> Result<()> {
        self.load().map(drop).map_err(|error| self.blame(error))
    }

    pub(super) fn load(&self) -> Result<Loaded> {
        let load = || match &self.origin {
            _ if self.is_withheld() => Err(self.withheld()),
            // What was judged, by its manifest and by what is trusted, is what is loaded; one that is gone says so itself.
            Origin::File(stamp) if stamp.file().exists() && !stamp.holds() => {
                Err(Error::invalid("its file changed after the registry was made; make a new registry"))
            }
            Origin::File(stamp) => self.load_from(stamp.file()),
            Origin::Sealed(_, sealed) => {
                let copy = sealed.loadable()?;
                self.load_from(&copy).map_err(|error| {
                    // Nobody knows the copy.
                    let message = error.message().replace(&*copy.to_string_lossy(), &self.file());
                    Error::new(error.kind(), message)
                })
            }
            Origin::Linked { header, .. } => library::check(header).map(Loaded::Rust),
        };
        let load = || {
            watch_plugins();
            call(&self.callee(""), || load().inspect(attach_maps))
        };
        self.loaded.get_or_init(load).clone()
    }

    fn load_from(&self, path: &Path) -> Result<Loaded> {
        if self.manifest.c {
            CPlugin::load(path, &self.manifest).map(Loaded::C)
        } else {
            library::load(path, &self.manifest.entry).map(Loaded::Rust)
        }
    }

    /// Says in an error which plugin it comes from.
    pub(crate) fn blame(&self, error: Error) -> Error {
        error.context("plugin", self.place())
    }

    /// Name, version and file.
    pub(crate) fn place(&self) -> String {
        format!("{} in {}", self.label(), self.file())
    }

    /// Who is called where a pipe of this name is, or the library itself.
    pub(super) fn callee(&self, pipe: &str) -> Callee {
        Callee::new(pipe, self.place())
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.manifest.name == name || self.manifest.name.strip_prefix("forebay-") == Some(name)
    }

    pub(super) fn is_in(&self, place: &Path) -> bool {
        self.path().is_some_and(|path| path == place || path.parent() == Some(place))
    }
}

/// Tells a plugin, before it makes anything, whom to tell of its maps of files.
fn attach_maps(plugin: &Loaded) {
    if let Loaded::Rust(plugin) = plugin
        && let Some(attach) = plugin.maps()
    {
        maps::install();
        attach(maps::MAPS);
    }
}
