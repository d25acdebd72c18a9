//! Keeps numbers about a file, such as an index, on disk until that file changes.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use xxhash_rust::xxh3::xxh3_64;

const MAGIC: u64 = u64::from_le_bytes(*b"FBIDX\0\0\x01");
/// The numbers before those that are kept: magic, kind, size and time of the file, count.
const HEAD: usize = 5;

/// Where numbers about files are kept, such as where their samples start.
///
/// On disk they are numbers of 64 bits, little-endian: a magic, a hash of their kind, and the file's size and
/// time of change in ns. Then come their count, the numbers themselves, and XXH3 over all of it.
///
/// ```
/// use forebay_core::{Keep, Stamp};
///
/// let folder = std::env::temp_dir().join(format!("kept-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let (path, keep) = (folder.join("birds.txt"), Keep::Beside);
/// std::fs::write(&path, "heron\nstork\n")?;
/// let stamp = Stamp::of(&path).unwrap();
/// assert_eq!(keep.load(&path, "lines", stamp, 2), None);
/// keep.save(&path, "lines", stamp, &[0, 6])?;
/// assert_eq!(keep.load(&path, "lines", stamp, 2), Some(vec![0, 6]));
/// assert_eq!(keep.load(&path, "words", stamp, 2), None);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// Beside each file, under its name and `.index`.
    Beside,
    /// In a folder, under a hash of the file's path.
    Folder(PathBuf),
}

/// The state of a local file when numbers were found in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its size in bytes.
    pub size: u64,
    /// The time of its last change in nanoseconds.
    pub time: u64,
}

impl Stamp {
    /// The stamp of the local file at `path`, if there is one.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let time = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self { size: metadata.len(), time: u64::try_from(time.as_nanos()).ok()? })
    }
}

impl Keep {
    /// Reads the value of an option: `beside`, or else a folder.
    #[must_use]
    pub fn of(place: &str) -> Self {
        if place == "beside" { Self::Beside } else { Self::Folder(place.into()) }
    }

    /// The numbers of this kind that were kept for the file at `path` as it is now, at most `most`. `None` if
    /// there are none, or if they are damaged.
    #[must_use]
    pub fn load(&self, path: &Path, kind: &str, stamp: Stamp, most: u64) -> Option<Vec<u64>> {
        let file = self.file(path);
        if fs::metadata(&file).ok()?.len() > most.saturating_add(HEAD as u64 + 1).saturating_mul(8) {
            return None;
        }
        let bytes = fs::read(file).ok()?;
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        let numbers: Vec<_> =
            body.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let (head, numbers) = numbers.split_first_chunk::<HEAD>()?;
        let is_this = *head == Self::head(kind, stamp, numbers);
        let is_whole = xxh3_64(body) == u64::from_le_bytes(*sum) && body.len().is_multiple_of(8);
        (is_this && is_whole).then(|| numbers.to_vec())
    }

    /// Keeps numbers of this kind for the file at `path`. They are written whole or not at all, because several
    /// programs can write them at once.
    ///
    /// # Errors
    /// Those of writing. A failure costs only time, so most callers ignore it.
    pub fn save(&self, path: &Path, kind: &str, stamp: Stamp, numbers: &[u64]) -> io::Result<()> {
        let file = self.file(path);
        let head = Self::head(kind, stamp, numbers);
        let mut bytes: Vec<u8> = head.iter().chain(numbers).flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let part = PathBuf::from(name);
        fs::write(&part, bytes)?;
        fs::rename(&part, file).inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
    }

    fn head(kind: &str, stamp: Stamp, numbers: &[u64]) -> [u64; HEAD] {
        [MAGIC, xxh3_64(kind.as_bytes()), stamp.size, stamp.time, numbers.len() as u64]
    }

    /// Where the numbers about this file are.
    fn file(&self, path: &Path) -> PathBuf {
        match self {
            Self::Beside => {
                let mut name = path.as_os_str().to_owned();
                name.push(".index");
                name.into()
            }
            Self::Folder(folder) => {
                let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                folder.join(format!("{:016x}.index", xxh3_64(whole.as_os_str().as_encoded_bytes())))
            }
        }
    }
}

/// The path in a URL of a local file. For any other URL, a path that is no file.
#[must_use]
pub fn local_path(path: &str) -> &Path {
    Path::new(path.strip_prefix("file://").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_until_their_file_changes() {
        let folder = std::env::temp_dir().join(format!("forebay-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("s.tar");
        fs::write(&path, "a shard").unwrap();
        let stamp = Stamp::of(&path).unwrap();
        for (keep, file) in [
            (Keep::of("beside"), folder.join("s.tar.index")),
            (Keep::of(folder.to_str().unwrap()), Keep::Folder(folder.clone()).file(&path)),
        ] {
            keep.save(&path, "tar", stamp, &[3, 5]).unwrap();
            assert_eq!(keep.load(&path, "tar", stamp, 2), Some(vec![3, 5]));
            assert_eq!(keep.load(&path, "tar", stamp, 1), None);
            assert_eq!(keep.load(&path, "lines", stamp, 2), None);
            assert_eq!(keep.load(&path, "tar", Stamp { time: stamp.time + 1, ..stamp }, 2), None);
            let kept = fs::read(&file).unwrap();
            for at in 0..kept.len() {
                let mut damaged = kept.clone();
                damaged[at] ^= 1;
                fs::write(&file, damaged).unwrap();
                assert_eq!(keep.load(&path, "tar", stamp, 2), None, "{at}");
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
