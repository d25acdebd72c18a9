//! The memory map: the only unsafe code of this crate.
//!
//! A map shows the file, not a copy of it. If another program changes the file while samples of it are alive, they
//! change with it. If it cuts the file short, touching the bytes beyond is a SIGBUS: the host shows zeros there, and the run fails with
//! an error that names the file. Data that is written to while it is read needs `open = "read"`.

use std::{
    fs::{self, File, Metadata},
    io::Read as _,
    os::unix::fs::MetadataExt,
    path::Path,
};

use forebay_core::{Buffer, Error, FileView, Limits, Result, WatchedMap};
use memmap2::Mmap;

/// The bytes of the file at `path`, mapped, so that nothing is read before it is touched. A file that says it is empty is read to its
/// end, since those of `/proc` say so and are not.
///
/// If the file is cut short while the buffer, or any slice of it, is alive, bytes that are gone show as zeros and the run fails. Where no
/// host loaded this plugin, touching them ends the process.
///
/// # Errors
/// `Io`, naming the file; `Invalid`, when it is a folder or a device.
///
/// # Examples
/// ```
/// let bytes = forebay_files::map_file("Cargo.toml".as_ref())?;
/// assert!(bytes.starts_with(b"[package]"));
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub fn map_file(path: &Path) -> Result<Buffer> {
    let file = open(path)?;
    let metadata = file.metadata().map_err(|error| at(path, error))?;
    if metadata.len() == 0 {
        return read_to_end(path, &file, Limits::DEFAULT.bytes);
    }
    // SAFETY: the map is read-only and shared only as immutable bytes. That no other program changes or cuts the
    // file meanwhile cannot be enforced by any system call here; it is the documented duty of who runs the pipeline.
    let map = unsafe { Mmap::map(&file) };
    let bytes = map.map_err(|error| at(path, error))?;
    let watched = Some(WatchedMap::new(&bytes, &path.to_string_lossy()));
    Ok(Buffer::from_file_view(MappedFile { watched, bytes, path: path.into(), is: identity(&metadata) }))
}

/// All bytes of a file that does not say how many it has.
pub(crate) fn read_to_end(path: &Path, file: &File, limit: u64) -> Result<Buffer> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| at(path, error))?;
    if bytes.len() as u64 > limit {
        let error =
            Error::limit(format!("the file has more than the {limit} bytes that are read into memory"));
        return Err(error.context("file", path.display()));
    }
    Ok(bytes.into())
}

/// A map, and how to find its file again: an open file for each map would be too many when a shuffle holds their samples.
struct MappedFile {
    /// None once it is dropped.
    watched: Option<WatchedMap>,
    bytes: Mmap,
    path: Box<Path>,
    is: (u64, u64),
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl FileView for MappedFile {
    fn open(&self) -> Option<File> {
        let file = open(&self.path).ok()?;
        (identity(&file.metadata().ok()?) == self.is).then_some(file)
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        let now = fs::metadata(&self.path).ok().filter(|now| identity(now) == self.is);
        if let Some((watched, now)) = self.watched.take().zip(now) {
            watched.ends_with_file_of(now.len());
        }
    }
}

/// What tells a file from all others: its device and its number there.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Opens a regular file. Anything else is refused before it is opened, since opening a pipe waits for its writer.
pub(crate) fn open(path: &Path) -> Result<File> {
    let kind = fs::metadata(path).map_err(|error| at(path, error))?.file_type();
    if !kind.is_file() {
        let found = if kind.is_dir() { "a folder" } else { "a pipe, socket or device" };
        return Err(
            Error::invalid(format!("found {found}, expected a regular file")).context("file", path.display())
        );
    }
    File::open(path).map_err(|error| at(path, error))
}

/// The system's error, with the file it is about.
pub(crate) fn at(path: &Path, error: std::io::Error) -> Error {
    Error::from(error).context("file", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_says_it_is_empty_is_read_to_its_end() {
        let path = Path::new("/proc/self/limits");
        assert_eq!(fs::metadata(path).unwrap().len(), 0);
        let text = fs::read(path).unwrap();
        assert!(!text.is_empty());
        assert_eq!(&*map_file(path).unwrap(), text);
        let error = read_to_end(path, &File::open(path).unwrap(), 10).unwrap_err();
        assert_eq!(error.kind(), forebay_core::ErrorKind::Limit);
    }
}
