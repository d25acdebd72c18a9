//! A folder of caches: what is in it, who uses it, and what may go.
//!
//! ```text
//! FOLDER/forebay-samples/KEY.lock               locked by the one who writes, or removes, what KEY has
//!                        KEY/RUN-NUMBER.piece   samples, in pieces
//!                            RUN.lock           locked, and shared, by those who use the run's pieces
//!                            index              which run's pieces are all, and how many
//! ```
//!
//! The index is there once a run has written everything, and from then on those who come read its pieces. A run that died has no lock that is held, and no index that
//! names it: what it left is removed by the next that writes. Only whoever holds the lock of a KEY puts an index there or removes anything, and nothing is removed that
//! does not begin as a file of a cache does.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use xxhash_rust::xxh3::xxh3_64;

use super::piece;

/// The folder within the one that was named: nothing beside it is ever touched.
pub(super) const FOLDER: &str = "forebay-samples";
const INDEX: &str = "index";
const MAGIC: &[u8; 8] = b"FBINDEX1";
const LOCK: &[u8; 8] = b"FBLOCK01";
/// The largest index that is read: of ten terabytes.
const MOST: u64 = 64 << 20;

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

/// What is where an index should be.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    Nothing,
    Whole(Index),
    /// An index of ours that is damaged.
    Broken,
    /// Somebody else's file.
    Foreign,
}

impl Index {
    /// What a cache has for an index.
    ///
    /// # Errors
    /// What the system says: then nobody knows.
    pub(super) fn look(cache: &Path) -> io::Result<Found> {
        let file = match File::open(cache.join(INDEX)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(MOST + 1).read_to_end(&mut bytes)?;
        Ok(match bytes.strip_prefix(MAGIC) {
            None => Found::Foreign,
            Some(rest) => Self::parse(rest).map_or(Found::Broken, Found::Whole),
        })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk::<8>()?;
        let (numbers, []) = rest.as_chunks::<8>() else { return None };
        if u64::from_le_bytes(*sum) != xxh3_64(rest) {
            return None;
        }
        let numbers: Vec<_> = numbers.iter().map(|&number| u64::from_le_bytes(number)).collect();
        let (&[run, total], rest) = numbers.split_first_chunk::<2>()?;
        let (pieces, []) = rest.as_chunks::<3>() else { return None };
        let pieces: Vec<_> =
            pieces.iter().map(|&[first, count, bytes]| Piece { first, count, bytes }).collect();
        // One after the other, to the end.
        let mut end = pieces.first().map_or(total, |piece| piece.first);
        let mut held = 0_u64;
        for piece in &pieces {
            (piece.first == end && piece.count > 0).then_some(())?;
            end = end.checked_add(piece.count)?;
            held = held.checked_add(piece.bytes)?;
        }
        (end == total).then(|| Self { run: name(run), total, pieces })
    }

    /// Puts the index in its place, at once; for who has the [`claim`].
    pub(super) fn publish(&self, cache: &Path) -> io::Result<()> {
        let run = u64::from_str_radix(&self.run, 16).map_err(io::Error::other)?;
        let pieces = self.pieces.iter().flat_map(|piece| [piece.first, piece.count, piece.bytes]);
        let rest: Vec<u8> = [run, self.total].into_iter().chain(pieces).flat_map(u64::to_le_bytes).collect();
        if Self::look(cache)? == Found::Foreign {
            return Err(io::Error::other("a file called `index` is there that is none"));
        }
        let unfinished = cache.join(format!("{}.{INDEX}", self.run));
        let mut file = File::create(&unfinished)?;
        file.write_all(&[&MAGIC[..], &xxh3_64(&rest).to_le_bytes(), &rest].concat())?;
        // One that is there after a loss of power and has nothing in it would be nobody's.
        file.sync_all()?;
        fs::rename(unfinished, cache.join(INDEX))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }
}

/// A new run's name.
pub(super) fn name(number: u64) -> String {
    format!("{number:016x}")
}

pub(super) fn piece(cache: &Path, run: &str, first: u64) -> PathBuf {
    cache.join(format!("{run}-{first}.piece"))
}

/// The right to write and remove what a cache has, held as long as the file is open; nothing where another program has it.
pub(super) fn claim(cache: &Path) -> io::Result<Option<File>> {
    fs::create_dir_all(cache)?;
    let file = lock_file(&cache.with_extension("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// The lock of a new run, shared by those who read it, held as long as the file is open; for who has the [`claim`].
pub(super) fn lock_new(cache: &Path, run: &str) -> io::Result<File> {
    fs::create_dir_all(cache)?;
    let file = lock_file(&cache.join(format!("{run}.lock")))?;
    file.lock_shared()?;
    Ok(file)
}

/// The lock of a run that is read, unless somebody is removing it.
pub(super) fn lock_old(cache: &Path, run: &str) -> Option<File> {
    // It is there, unless it was removed by hand.
    let file = lock_file(&cache.join(format!("{run}.lock"))).ok()?;
    file.try_lock_shared().ok()?;
    // What is read first says when it was used last; a folder that cannot be written to is read all the same.
    let _ = File::open(cache.join(INDEX)).and_then(|index| index.set_modified(SystemTime::now()));
    Some(file)
}

/// A file to lock, made where there is none. Some file systems want it open for writing.
fn lock_file(path: &Path) -> io::Result<File> {
    if let Ok(mut file) = File::create_new(path) {
        file.write_all(LOCK)?;
    }
    OpenOptions::new().read(true).write(true).open(path).or_else(|_| File::open(path))
}

/// Removes what dead runs left in a cache, for who has the [`claim`].
pub(super) fn tidy(cache: &Path) {
    let named = match Index::look(cache) {
        Err(_) => return,
        Ok(Found::Whole(index)) => index.run,
        Ok(Found::Broken) => {
            remove(&cache.join(INDEX), MAGIC);
            String::new()
        }
        Ok(Found::Nothing | Found::Foreign) => String::new(),
    };
    for run in runs(cache).filter(|run| *run != named) {
        remove_run(cache, &run);
    }
}

/// How many bytes the pieces of the other caches have, after whole ones that nobody uses made way, the one used longest ago first, until it is no more
/// than `limit`.
pub(super) fn make_room(own: &Path, limit: u64) -> u64 {
    let mut others = Vec::new();
    for cache in entries(own.parent().unwrap_or(own)) {
        if cache != own && is_hex(&cache, 32) && cache.is_dir() {
            // Without it somebody is writing there.
            let claim = claim(&cache).ok().flatten();
            if claim.is_some() {
                tidy(&cache);
            }
            let used = fs::metadata(cache.join(INDEX)).and_then(|meta| meta.modified()).ok();
            others.push((used, bytes(&cache), cache, claim));
        }
    }
    others.sort_by(|one, other| (one.0, &one.2).cmp(&(other.0, &other.2)));
    let mut held: u64 = others.iter().map(|(_, bytes, ..)| bytes).sum();
    for (_, bytes, cache, claim) in others {
        if held > limit
            && claim.is_some()
            && let Ok(Found::Whole(index)) = Index::look(&cache)
            && remove_run(&cache, &index.run)
        {
            held -= bytes;
        }
        // It stays as long as anything is in it.
        let _ = fs::remove_dir(&cache);
    }
    held
}

/// How many bytes the pieces of a cache have.
fn bytes(cache: &Path) -> u64 {
    let is_piece = |path: &PathBuf| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let ours =
            name.split_once('-').is_some_and(|(run, first)| run.len() == 16 && first.parse::<u64>().is_ok());
        ours && path.extension().is_some_and(|ending| ending == "piece")
    };
    entries(cache).filter(is_piece).filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum()
}

/// Removes all of a run that nobody has locked, for who has the [`claim`]; says whether it did.
pub(super) fn remove_run(cache: &Path, run: &str) -> bool {
    let path = cache.join(format!("{run}.lock"));
    let Ok(lock) = lock_file(&path) else { return false };
    if lock.try_lock().is_err() {
        return false;
    }
    if matches!(Index::look(cache), Ok(Found::Whole(index)) if index.run == run) {
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
