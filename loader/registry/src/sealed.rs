//! A copy of a library that nobody can change any more: what was hashed is what is loaded.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Read as _},
    os::fd::IntoRawFd as _,
    path::{Path, PathBuf},
};

use forebay_core::{Error, Result};
use rustix::fs::{MemfdFlags, SealFlags};

/// The most bytes a library may have.
const LIMIT: u64 = 1 << 30;
/// The most bytes of a memory file's name, by memfd_create(2).
const NAME: usize = 200;

/// A library's bytes, in a memory file that is sealed against all writing.
pub(super) struct Sealed(File);

impl Sealed {
    /// Copies a file as it is at this moment.
    ///
    /// # Errors
    /// `Io`; `Limit`.
    pub(super) fn copy(path: &Path) -> Result<Self> {
        // Shown by debuggers and in /proc/PID/maps.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name: Vec<u8> = name.bytes().filter(|byte| *byte != 0).take(NAME).collect();
        let name = CString::new(name).unwrap_or_default();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut copy = File::from(rustix::fs::memfd_create(&*name, flags).map_err(io::Error::from)?);
        let size = io::copy(&mut File::open(path)?.take(LIMIT + 1), &mut copy)?;
        if size > LIMIT {
            return Err(Error::limit(format!("a library of more than {LIMIT} bytes")));
        }
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&copy, seals).map_err(io::Error::from)?;
        Ok(Self(copy))
    }

    pub(super) fn file(&self) -> &File {
        &self.0
    }

    /// A path for the system's loader, which stays this library's for as long as the process lives.
    ///
    /// glibc takes a name that it knows for the library it loaded under it: so the descriptor is never closed, lest another library come
    /// to have its number.
    ///
    /// # Errors
    /// `Io`, when the process has no descriptor left.
    pub(super) fn loadable(&self) -> Result<PathBuf> {
        Ok(PathBuf::from(format!("/proc/self/fd/{}", self.0.try_clone()?.into_raw_fd())))
    }
}
