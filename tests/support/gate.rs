//! The test's side of a gate: a socket where a pipe of the plugin `rogue` waits.

use std::{
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
};

use tempfile::TempDir;

/// A place where a pipe waits until the test lets it pass; dropped, it is open for ever.
pub struct Gate {
    folder: TempDir,
    listener: UnixListener,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("gate")).unwrap();
        Self { folder, listener }
    }

    /// What a graph calls it.
    #[must_use]
    pub fn path(&self) -> String {
        let path: &Path = &self.folder.path().join("gate");
        path.to_str().unwrap().to_owned()
    }

    /// Waits until somebody is at the gate; dropping what this gives lets it pass.
    #[must_use]
    pub fn arrival(&self) -> UnixStream {
        self.listener.accept().unwrap().0
    }
}
