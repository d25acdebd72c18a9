//! A folder for what a measurement writes.

use std::{env, fs, io, path::PathBuf, process};

/// A folder that is removed at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        let path = env::temp_dir().join(format!("forebay-bench-{}", process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // It lies in the folder for temporary files.
    }
}
