//! The program that worker processes run.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use forebay_core::{Error, Result};

/// The variable that names the program of workers.
const PROGRAM: &str = "FOREBAY_WORKER_PROGRAM";

/// The program of worker processes: a file, with arguments and environment variables.
///
/// The program must call [`serve_if_worker`](crate::worker::serve_if_worker) or
/// [`serve_if_worker_with`](crate::worker::serve_if_worker_with) before it does anything else.
///
/// ```
/// use forebay_engine::WorkerProgram;
///
/// let python = WorkerProgram::new("/usr/bin/python3").args(["-m", "my_package.worker"]).env("MY_FOLDER", "/data");
/// # let _ = python;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProgram {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) envs: Vec<(OsString, OsString)>,
}

impl WorkerProgram {
    /// The program in this file, without arguments.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), args: Vec::new(), envs: Vec::new() }
    }

    /// Adds arguments, after those that were given before.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable. It is also set in a sandbox, where most other variables are missing.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The program given, or the first that is found.
    pub(crate) fn found(given: Option<Self>) -> Result<Self> {
        given.map_or_else(|| worker_program().map(Self::new), Ok)
    }
}

impl From<PathBuf> for WorkerProgram {
    fn from(path: PathBuf) -> Self {
        Self::new(path)
    }
}

impl From<&Path> for WorkerProgram {
    fn from(path: &Path) -> Self {
        Self::new(path)
    }
}

impl From<&PathBuf> for WorkerProgram {
    fn from(path: &PathBuf) -> Self {
        Self::new(path)
    }
}

impl From<&str> for WorkerProgram {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

impl From<String> for WorkerProgram {
    fn from(path: String) -> Self {
        Self::new(path)
    }
}

/// The program that worker processes run unless the loader names another: the one that `FOREBAY_WORKER_PROGRAM`
/// names, or `forebay` beside this program or in the `PATH`.
///
/// # Errors
/// `Invalid` if there is none.
pub fn worker_program() -> Result<PathBuf> {
    if let Some(program) = env::var_os(PROGRAM) {
        return Ok(PathBuf::from(program));
    }
    let name = format!("forebay{}", env::consts::EXE_SUFFIX);
    let here = env::current_exe().ok().and_then(|program| Some(program.parent()?.join(&name)));
    let path = env::var_os("PATH").unwrap_or_default();
    let places = here.into_iter().chain(env::split_paths(&path).map(|folder| folder.join(&name)));
    let found = places.into_iter().find(|program| program.is_file());
    found.ok_or_else(|| {
        Error::invalid(format!(
            "worker processes need the command forebay: looked at {PROGRAM}, beside this program, and in PATH; \
             a program that calls serve_if_worker first can be its own worker, by LoaderBuilder::worker_self"
        ))
    })
}
