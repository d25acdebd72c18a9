//! The places where plugins are searched for.
//!
//! The order is: paths that the caller gives, `FOREBAY_PLUGIN_PATH`, the folder of the running program,
//! `$XDG_DATA_HOME/forebay/plugins/<abi>-<target>`, `/usr/lib/forebay/plugins/<abi>-<target>`.
//!
//! - `FOREBAY_PLUGIN_SYSTEM_PATH` replaces the last two; empty means none.
//! - `FOREBAY_NO_PLUGINS=1` turns plugins off.
//! - `FOREBAY_PLUGIN_SKIP=a,b` leaves plugins out by name.
//! - `FOREBAY_PLUGIN_RANK=png:300,gif:NONE` sets or removes priorities of decoders.
//! - `FOREBAY_PLUGIN_TRUST` says which plugins may load: see [`Trust`].
//! - `FOREBAY_PLUGIN_ISOLATION` says how plugins are isolated: see [`Isolation`].

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use forebay_core::{Error, Result, abi::ABI_MAJOR, manifest::TARGET};

use super::{Isolation, Trust};

/// How a place is called that is the folder of the running program.
const PROGRAM_FOLDER: &str = "the program's folder";

/// Where plugins are searched for, which are left out, and which may load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// Files and folders, in order.
    pub places: Vec<SearchPlace>,
    /// Plugins that are left out, by name.
    pub skip: Vec<String>,
    /// Priorities of decoders that the environment sets; `None` leaves the decoder out.
    pub ranks: Vec<(String, Option<u32>)>,
    /// Leaves out linked plugins too.
    pub none: bool,
    /// Which of the plugins that are found may load.
    pub trust: Trust,
    /// How plugins are isolated.
    pub isolation: Isolation,
    /// The library that this program is in. It is no plugin, so the search skips it.
    pub program: Option<PathBuf>,
}

/// One file or folder that is searched for plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPlace {
    /// The file or folder.
    pub path: PathBuf,
    /// Who named it.
    pub source: &'static str,
}

impl Search {
    /// Nowhere.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::default()
    }

    /// All places of the environment, with its trust.
    ///
    /// # Errors
    /// `Invalid` if a variable cannot be read; the errors of [`Lock::read`](super::Lock::read).
    pub fn from_env() -> Result<Self> {
        Self::from_env_trusting(Trust::from_env()?)
    }

    /// All places of the environment, with this trust; `FOREBAY_PLUGIN_TRUST` is ignored.
    ///
    /// # Errors
    /// `Invalid` if another variable cannot be read.
    pub fn from_env_trusting(trust: Trust) -> Result<Self> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        if set("FOREBAY_NO_PLUGINS").is_some_and(|value| value != "0") {
            return Ok(Self { none: true, trust, ..Self::default() });
        }
        let (skip, ranks) = (list("FOREBAY_PLUGIN_SKIP"), ranks()?);
        let mut search = Self { skip, ranks, trust, isolation: Isolation::from_env()?, ..Self::default() };
        if let Some(paths) = set("FOREBAY_PLUGIN_PATH") {
            search.push_all(&paths, "FOREBAY_PLUGIN_PATH");
        }
        if let Some(folder) = env::current_exe().ok().as_deref().and_then(Path::parent) {
            search.push(folder, PROGRAM_FOLDER);
        }
        match env::var_os("FOREBAY_PLUGIN_SYSTEM_PATH") {
            Some(paths) => search.push_all(&paths, "FOREBAY_PLUGIN_SYSTEM_PATH"),
            None => {
                let folder = format!("forebay/plugins/{ABI_MAJOR}-{TARGET}");
                let home = || env::home_dir().map(|home| home.join(".local/share"));
                if let Some(data) = set("XDG_DATA_HOME").map(PathBuf::from).or_else(home) {
                    search.push(&data.join(&folder), "the user's folder");
                }
                search.push(&Path::new("/usr/lib").join(&folder), "the system's folder");
            }
        }
        Ok(search)
    }

    /// Searches `path`, a file or a folder, before all other places.
    #[must_use]
    pub fn first(mut self, path: impl Into<PathBuf>) -> Self {
        self.places.insert(0, SearchPlace { path: absolute(&path.into()), source: "the caller" });
        self
    }

    /// Searches this folder instead of the folder of the running program. It is for a library in another program,
    /// such as a Python package.
    #[must_use]
    pub fn program_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        let path = absolute(&folder.into());
        match self.places.iter_mut().find(|place| place.source == PROGRAM_FOLDER) {
            Some(place) => place.path = path,
            None if self.none => {}
            None => self.places.push(SearchPlace { path, source: PROGRAM_FOLDER }),
        }
        self
    }

    /// As [`program_folder`](Self::program_folder), with the folder of this library. The library is the program
    /// itself, so it is skipped as a plugin.
    #[must_use]
    pub fn program_library(mut self, file: impl Into<PathBuf>) -> Self {
        let file = absolute(&file.into());
        self.program = Some(file.clone());
        match file.parent() {
            Some(folder) => self.program_folder(folder),
            None => self,
        }
    }

    /// Sets the trust.
    #[must_use]
    pub fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Sets the isolation.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> Self {
        Self { isolation, ..self }
    }

    fn push(&mut self, path: &Path, source: &'static str) {
        let path = absolute(path);
        if self.places.iter().all(|place| place.path != path) {
            self.places.push(SearchPlace { path, source });
        }
    }

    fn push_all(&mut self, paths: &OsString, source: &'static str) {
        for path in env::split_paths(paths).filter(|path| !path.as_os_str().is_empty()) {
            self.push(&path, source);
        }
    }
}

impl SearchPlace {
    /// The files here that could be plugins, by name: a file itself, or the libraries in a folder.
    ///
    /// # Errors
    /// `Io`, when the place is there but cannot be read.
    pub fn candidates(&self) -> Result<Option<Vec<PathBuf>>> {
        let locate = |error: std::io::Error| Error::from(error).context("path", self.path.display());
        match fs::metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(locate(error)),
            Ok(metadata) if !metadata.is_dir() => return Ok(Some(vec![self.path.clone()])),
            Ok(_) => {}
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(locate)? {
            let path = entry.map_err(locate)?.path();
            if path.extension().is_some_and(|extension| extension == env::consts::DLL_EXTENSION) {
                files.push(path);
            }
        }
        files.sort();
        Ok(Some(files))
    }
}

/// A path that the system's loader takes as it is, and does not look for elsewhere.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn list(variable: &str) -> Vec<String> {
    let value = env::var(variable).unwrap_or_default();
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn ranks() -> Result<Vec<(String, Option<u32>)>> {
    let bad = |item: &str| {
        Error::invalid(format!("`{item}` in FOREBAY_PLUGIN_RANK, expected NAME:NUMBER or NAME:NONE"))
    };
    list("FOREBAY_PLUGIN_RANK")
        .iter()
        .map(|item| match item.split_once(':') {
            Some((name, "NONE")) => Ok((name.to_owned(), None)),
            Some((name, rank)) => Ok((name.to_owned(), Some(rank.parse().map_err(|_| bad(item))?))),
            None => Err(bad(item)),
        })
        .collect()
}
