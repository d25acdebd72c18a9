//! What tells a plugin's file from any other, without reading it.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use forebay_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// A plugin's file, and what tells it from any other: on one machine that is as sure as a hash, which would take longer
/// than all else that a worker does to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    file: PathBuf,
    /// Device, inode, size, and when it was last written and changed, in seconds and nanoseconds.
    identity: [u64; 7],
}

impl Stamp {
    pub(super) fn of(file: &Path) -> Result<Self> {
        let data = file.metadata().map_err(|error| Error::from(error).context("file", file.display()))?;
        let identity = [
            data.dev(),
            data.ino(),
            data.size(),
            data.mtime().cast_unsigned(),
            data.mtime_nsec().cast_unsigned(),
            data.ctime().cast_unsigned(),
            data.ctime_nsec().cast_unsigned(),
        ];
        Ok(Self { file: file.to_owned(), identity })
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether its file is still the one that was found.
    pub fn holds(&self) -> bool {
        Self::of(&self.file).is_ok_and(|now| now == *self)
    }
}
