//! What the tests of the workspace share: the plugins that were built beside them, runs, gates and deadlines.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a fixture that cannot be made fails its test"
)]

mod build;
pub mod child;
pub mod command;
mod gate;
mod graphs;
pub mod linked;
mod runs;

use std::{
    io::Write as _,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use forebay_loader::{Registry, Search};

pub use crate::{
    build::{Cargo, Patch, beside, crate_on, exported, lock_file, write},
    gate::Gate,
    graphs::{placed, random_graph, unordered, with_random_graphs},
    runs::{
        ALL, Run, Setting, await_workers, build, builder, digest, error_of, kill_any, line, outcome, read,
        run, uids, worker,
    },
};

/// The plugins of the workspace, by crate and in order: those in `plugins/`, and the one that misbehaves.
pub static PLUGINS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let ours = folders("plugins").into_iter().map(|folder| {
        let name = format!("forebay-{}", folder.file_name().unwrap().to_str().unwrap());
        &*name.leak()
    });
    let mut all: Vec<_> = ours.chain(["forebay-rogue"]).collect();
    all.sort();
    assert!(all.len() > 2, "{all:?}");
    all
});

/// Far more than anything takes: for waiting on what would otherwise hang.
const DEADLINE: Duration = Duration::from_secs(120);

/// The variable that names the file to which tests write what they leave out.
const SKIPPED: &str = "FOREBAY_TEST_SKIPPED";

/// Says that a test leaves something out, and why. `.ci/run` lists all of it at its end, and refuses what `.ci/may-skip` does not name.
pub fn skip(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {why}");
    if let Some(file) = std::env::var_os(SKIPPED) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
        file.unwrap().write_all(format!("{what}: {why}\n").as_bytes()).unwrap();
    }
}

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The folders right below one of the repository.
fn folders(of: &str) -> Vec<PathBuf> {
    let entries = root().join(of).read_dir().unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

/// The small file of this name that a plugin has in its folder `seeds`.
#[must_use]
pub fn seed(name: &str) -> PathBuf {
    let files = folders("plugins").into_iter().map(|folder| folder.join("seeds").join(name));
    let mut found: Vec<_> = files.filter(|file| file.exists()).collect();
    assert_eq!(found.len(), 1, "seeds called {name}: {found:?}");
    found.remove(0)
}

/// The folder of the running test, where cargo puts the libraries of the crates that it depends on.
#[must_use]
pub fn plugins() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// The file of one plugin of the workspace.
#[must_use]
pub fn plugin_file(name: &str) -> PathBuf {
    file_in(&plugins(), name)
}

fn file_in(folder: &Path, plugin: &str) -> PathBuf {
    folder.join(format!("lib{}.so", plugin.replace('-', "_")))
}

/// The plugins of the workspace, as files, and no others.
#[must_use]
pub fn registry() -> Registry {
    registry_in(&plugins())
}

/// As [`registry`], from a folder that has them all.
#[must_use]
pub fn registry_in(folder: &Path) -> Registry {
    let search =
        PLUGINS.iter().rev().fold(Search::nowhere(), |search, name| search.first(file_in(folder, name)));
    let registry = Registry::new(search).unwrap();
    let found: Vec<_> = registry.plugins().iter().map(|record| record.manifest().name.as_str()).collect();
    assert_eq!(found, *PLUGINS, "{}", registry.looked_at());
    registry
}

/// A folder with links to the files of these plugins.
#[must_use]
pub fn folder_of(plugins: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in plugins {
        copy(&plugin_file(name), folder.path());
    }
    folder
}

/// Copies a file into a folder, and gives its new path.
pub fn copy(file: &Path, folder: &Path) -> PathBuf {
    let new = folder.join(file.file_name().unwrap());
    std::fs::copy(file, &new).unwrap();
    new
}

/// Runs `work` on a thread of its own, and fails when it hangs.
#[track_caller]
pub fn within_deadline<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    let worker = thread::spawn(move || send.send(work()));
    match receive.recv_timeout(DEADLINE) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("hangs"),
        Err(RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => resume_unwind(panic),
            Ok(_) => panic!("gave nothing"),
        },
    }
}
