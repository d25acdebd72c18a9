//! A folder of caches: what is in it, who uses it, and what may go.
//!
//! ```text
//! FOLDER/forebay-samples/KEY/RUN-NUMBER.piece   samples, in pieces
//!                            RUN.lock           locked by whoever writes or reads them
//!                            index              which run's pieces are all, and how many
//! ```
//!
//! The index is there once a run has written everything, and from then on those who come read its pieces. A run that died has no lock that is held, and no index that
//! names it: what it left is removed by the next. Nothing is removed that does not begin as a file of a cache does.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use forebay_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::piece;

/// The folder within the one that was named: nothing beside it is ever touched.
pub(super) const FOLDER: &str = "forebay-samples";
const INDEX: &str = "index";
const MAGIC: &[u8; 8] = b"FBINDEX1";
const LOCK: &[u8; 8] = b"FBLOCK01";

/// A piece: the number of its first sample, how many it has, and how many bytes its file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// What the index says: whose the pieces are, and how many samples there are in all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Index {
    pub(super) run: String,
    pub(super) total: u64,
    pub(super) pieces: Vec<Piece>,
}

impl Index {
    /// The index of a cache, if there is a whole one.
    pub(super) fn read(cache: &Path) -> Option<Self> {
        let bytes = fs::read(cache.join(INDEX)).ok()?;
        let (head, rest) = bytes.split_at_checked(MAGIC.len() + 8)?;
        let (numbers, []) = rest.as_chunks::<8>() else { return None };
        if *head != [*MAGIC, xxh3_64(rest).to_le_bytes()].concat() {
            return None;
        }
        let numbers: Vec<_> = numbers.iter().map(|&number| u64::from_le_bytes(number)).collect();
        let (&[run, total], rest) = numbers.split_first_chunk::<2>()?;
        let (pieces, []) = rest.as_chunks::<3>() else { return None };
        let pieces = pieces.iter().map(|&[first, count, bytes]| Piece { first, count, bytes }).collect();
        Some(Self { run: name(run), total, pieces })
    }

    /// Writes the index, unless there is one already.
    pub(super) fn publish(&self, cache: &Path) -> io::Result<()> {
        let run = u64::from_str_radix(&self.run, 16).map_err(io::Error::other)?;
        let pieces = self.pieces.iter().flat_map(|piece| [piece.first, piece.count, piece.bytes]);
        let rest: Vec<u8> = [run, self.total].into_iter().chain(pieces).flat_map(u64::to_le_bytes).collect();
        let whole = [&MAGIC[..], &xxh3_64(&rest).to_le_bytes(), &rest].concat();
        let unfinished = cache.join(format!("{}.{INDEX}", self.run));
        fs::write(&unfinished, whole)?;
        // Unlike a rename it takes nobody's place.
        let linked = fs::hard_link(&unfinished, cache.join(INDEX));
        match &linked {
            // Where there are no links: of two at the same moment the later counts, and the other's pieces are removed in time.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                fs::rename(unfinished, cache.join(INDEX))
            }
            _ => fs::remove_file(&unfinished).and(linked),
        }
    }
}

/// A new run's name.
pub(super) fn name(number: u64) -> String {
    format!("{number:016x}")
}

pub(super) fn piece(cache: &Path, run: &str, first: u64) -> PathBuf {
    cache.join(format!("{run}-{first}.piece"))
}

/// The lock of a new run, held as long as the file is open.
pub(super) fn lock_new(cache: &Path, run: &str) -> Result<File> {
    let path = cache.join(format!("{run}.lock"));
    let locked = || {
        fs::create_dir_all(cache)?;
        loop {
            fs::write(&path, LOCK)?;
            let file = File::open(&path)?;
            file.lock_shared()?;
            // Before it was locked somebody may have taken it for that of a dead run.
            if path.exists() {
                return Ok(file);
            }
        }
    };
    locked().map_err(|error: io::Error| {
        Error::from(error).context("folder", cache.display()).context("option", "folder")
    })
}

/// The lock of a run that is read, unless somebody is removing it.
pub(super) fn lock_old(cache: &Path, run: &str) -> Option<File> {
    let path = cache.join(format!("{run}.lock"));
    // It is there, unless it was removed by hand.
    let _ = File::create_new(&path).and_then(|mut file| file.write_all(LOCK));
    let file = File::open(&path).ok()?;
    file.try_lock_shared().ok()?;
    // What is read first says when it was used last; a folder that cannot be written to is read all the same.
    let _ = File::open(cache.join(INDEX)).and_then(|index| index.set_modified(SystemTime::now()));
    Some(file)
}

/// Removes what dead runs left in a cache, and tells how many bytes the others' pieces have.
pub(super) fn tidy(cache: &Path) -> u64 {
    let index = Index::read(cache);
    if index.is_none() {
        remove(&cache.join(INDEX), MAGIC);
    }
    for run in runs(cache) {
        if index.as_ref().is_none_or(|index| index.run != run) {
            remove_run(cache, &run);
        }
    }
    let pieces = entries(cache).filter(|path| path.extension().is_some_and(|ending| ending == "piece"));
    pieces.filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum()
}

/// Removes whole caches that nobody uses, the one used longest ago first, until those beside `own` have no more than `limit` bytes; tells
/// how many they have.
pub(super) fn make_room(own: &Path, limit: u64) -> u64 {
    let folder = own.parent().unwrap_or(own);
    let mut others: Vec<_> = entries(folder)
        .filter(|cache| cache != own && is_hex(cache, 32) && cache.is_dir())
        .map(|cache| {
            (fs::metadata(cache.join(INDEX)).and_then(|meta| meta.modified()).ok(), tidy(&cache), cache)
        })
        .collect();
    others.sort();
    let mut held = others.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, cache) in others {
        if held <= limit {
            break;
        }
        if let Some(index) = Index::read(&cache)
            && remove_run(&cache, &index.run)
        {
            held -= bytes;
        }
        // It stays as long as anything is in it.
        let _ = fs::remove_dir(&cache);
    }
    held
}

/// Removes all of a run that nobody has locked.
pub(super) fn remove_run(cache: &Path, run: &str) -> bool {
    let path = cache.join(format!("{run}.lock"));
    let Ok(lock) = File::open(&path) else { return false };
    if let Err(TryLockError::WouldBlock | TryLockError::Error(_)) = lock.try_lock() {
        return false;
    }
    if Index::read(cache).is_some_and(|index| index.run == run) {
        remove(&cache.join(INDEX), MAGIC);
    }
    let begins = format!("{run}-");
    let is_piece = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_suffix(".piece").is_some_and(|name| name.starts_with(&begins))
    };
    entries(cache).filter(is_piece).for_each(|path| remove(&path, piece::MAGIC));
    remove(&cache.join(format!("{run}.{INDEX}")), MAGIC);
    remove(&path, LOCK);
    true
}

/// Removes a file that a cache like this one wrote, or that a program died over before it wrote anything.
pub(super) fn remove(path: &Path, magic: &[u8; 8]) {
    let mut begins = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(magic.len() as u64).read_to_end(&mut begins)).is_ok();
    if read && (begins.is_empty() || begins == magic) {
        let _ = fs::remove_file(path);
    }
}

/// The runs that have a lock in a cache.
fn runs(cache: &Path) -> impl Iterator<Item = String> {
    let locks = entries(cache)
        .filter(|path| path.extension().is_some_and(|ending| ending == "lock") && is_hex(path, 16));
    locks.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether a file's name, without its ending, is a number of so many digits.
fn is_hex(path: &Path, digits: usize) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == digits && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
