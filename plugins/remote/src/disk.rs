//! The cache on disk: blocks of objects, each a file of its own.
//!
//! A block's file is named by a hash of its object's URL and identity and of its place, so one of an object that changed is never
//! found again. It is written under another name and renamed, so that nobody finds half of one; its sum is checked when it is
//! read. Any number of processes use one folder.
//!
//! When it is full, those that were not used in this pass or the last make way, the ones used longest ago first. If there are none,
//! a new block is not kept: it is needed no sooner than the ones that are ([`Passes`]).

use std::{
    fs::{self, File},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use forebay_core::{Buffer, Error, Result};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::{fetch::Identity, passes::Passes};

/// What a block's file begins with; then the length of the block and its XXH3, each in 8 bytes.
const MAGIC: &[u8; 8] = b"FBBLOCK1";
const HEAD: usize = 24;
/// The folder within the one that was named: nothing beside it is ever touched.
const FOLDER: &str = "forebay-blocks";
const ENDING: &str = ".block";
/// A block that was not finished after so many seconds belongs to a program that died.
const UNFINISHED: u64 = 3600;
/// While nobody knows which of the old blocks are still to come, one in so many new ones takes the place of one.
const TRIED: u128 = 8;

/// A folder of blocks.
pub(crate) struct Disk {
    folder: PathBuf,
    limit: u64,
    passes: Mutex<Passes>,
    room: Mutex<Room>,
    /// Names the files that are being written: no other has it, on any machine.
    name: u64,
    number: AtomicU64,
}

struct Room {
    /// How much may be written, as others write too, until all is counted.
    left: u64,
    /// How much was to be written since all was counted.
    wanted: u64,
    /// Whether there were ever too many when they were counted.
    full: bool,
}

impl Disk {
    pub(crate) fn open(folder: &Path, limit: u64) -> Result<Self> {
        let folder = folder.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|error| {
            Error::from(error).context("folder", folder.display()).context("variable", "FOREBAY_CACHE")
        })?;
        let name = RandomState::new().build_hasher().finish();
        let room = Mutex::new(Room { left: 0, wanted: 0, full: false });
        let passes = Mutex::new(Passes::new());
        let disk = Self { folder, limit, passes, room, name, number: AtomicU64::new(0) };
        disk.count(&mut lock(&disk.room));
        Ok(disk)
    }

    /// The block with this key, if it is here and whole.
    pub(crate) fn get(&self, key: u128, len: usize) -> Option<Buffer> {
        lock(&self.passes).used(key);
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let mut bytes = vec![0; HEAD + len];
        let whole = file.read_exact(&mut bytes).is_ok() && matches!(file.read(&mut [0]), Ok(0));
        let bytes = Buffer::from(bytes);
        let (head, block) = (bytes.get(..HEAD)?, bytes.get(HEAD..)?);
        if !whole || *head != head_of(&block) {
            self.remove(&path);
            return None;
        }
        // When it was used last; a folder that cannot be written to is read all the same.
        let _ = file.set_modified(SystemTime::now());
        Some(block)
    }

    /// Keeps a block if there is room; one that cannot be written is not kept.
    pub(crate) fn put(&self, key: u128, block: &[u8]) {
        if !self.may_keep(key, (HEAD + block.len()) as u64) {
            return;
        }
        let path = self.path(key);
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let unfinished = path.with_extension(format!("{}-{number}", self.name));
        // A disk that is full, or may not be written to: the block is fetched again.
        let _ = write(&path, &unfinished, block);
    }

    fn may_keep(&self, key: u128, len: u64) -> bool {
        let mut room = lock(&self.room);
        room.wanted += len;
        if room.wanted > self.limit / 16 {
            self.count(&mut room);
        }
        let keeps =
            room.left >= len && !(room.full && !key.is_multiple_of(TRIED) && lock(&self.passes).is_first());
        if keeps {
            room.left -= len;
        }
        keeps
    }

    fn path(&self, key: u128) -> PathBuf {
        let name = format!("{key:032x}{ENDING}");
        self.folder.join(name.get(..2).unwrap_or_default()).join(name)
    }

    /// Counts what is there, and removes what may go until fifteen sixteenths of the limit are left.
    fn count(&self, room: &mut Room) {
        let mut blocks = Vec::new();
        for folder in entries(&self.folder).filter(|(path, kind)| kind.is_dir() && is_hex(path, 2)) {
            for (path, _) in entries(&folder.0).filter(|(_, kind)| kind.is_file()) {
                let Ok(meta) = fs::metadata(&path) else { continue };
                let Ok(used) = meta.modified() else { continue };
                match path.extension().and_then(|ending| ending.to_str()) {
                    Some("block") if is_hex(&path, 32) => blocks.push((used, meta.len(), path)),
                    Some(ending)
                        if is_hex(&path, 32)
                            && is_unfinished(ending)
                            && used.elapsed().is_ok_and(|age| age.as_secs() > UNFINISHED) =>
                    {
                        self.remove(&path);
                    }
                    // Somebody else's.
                    _ => {}
                }
            }
        }
        blocks.sort();
        let (mut held, since): (u64, _) =
            (blocks.iter().map(|(_, len, _)| len).sum(), lock(&self.passes).since());
        room.full |= held > self.limit / 16 * 15;
        for (used, len, path) in blocks {
            if held <= self.limit / 16 * 15 || (used >= since && held <= self.limit) {
                break;
            }
            held -= len;
            self.remove(&path);
        }
        (room.left, room.wanted) = (self.limit.saturating_sub(held), 0);
    }

    /// Removes a file, if a cache like this one wrote it.
    fn remove(&self, path: &Path) {
        let mut magic = Vec::new();
        let read =
            File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut magic)).is_ok();
        // A program may die before it has written anything, and nobody loses an empty file.
        if read && (magic.is_empty() || magic == MAGIC) {
            let _ = fs::remove_file(path);
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key of a block; none where nothing tells an object from what it may become.
pub(crate) fn key(url: &str, identity: &Identity, index: u64) -> Option<u128> {
    let tag = identity.tag.as_deref()?;
    let place = [identity.size, index].map(u64::to_le_bytes).concat();
    Some(xxh3_128(&[url.as_bytes(), &[0], tag.as_bytes(), &[0], &place].concat()))
}

fn write(path: &Path, unfinished: &Path, block: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create_new(unfinished)?;
    let written = file.write_all(&head_of(block)).and_then(|()| file.write_all(block));
    // By the clock that passes go by: the system's own times are coarser.
    let written = written.and_then(|()| file.set_modified(SystemTime::now()));
    drop(file);
    let finished = written.and_then(|()| fs::rename(unfinished, path));
    finished.inspect_err(|_| drop(fs::remove_file(unfinished)))
}

fn head_of(block: &[u8]) -> Vec<u8> {
    [*MAGIC, (block.len() as u64).to_le_bytes(), xxh3_64(block).to_le_bytes()].concat()
}

fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, fs::FileType)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
}

/// Whether a file's name, without its ending, is a number of so many digits.
fn is_hex(path: &Path, digits: usize) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == digits && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether this is the ending of a block that is being written: two numbers.
fn is_unfinished(ending: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    ending.split_once('-').is_some_and(|(name, number)| is_number(name) && is_number(number))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn disk(limit: u64) -> (tempfile::TempDir, Disk) {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path(), limit).unwrap();
        (folder, disk)
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for (path, kind) in entries(folder) {
            if kind.is_dir() { all.extend(files(&path)) } else { all.push(path) }
        }
        all.sort();
        all
    }

    #[test]
    fn a_block_comes_back_as_it_was_and_only_whole() {
        let (folder, disk) = disk(1 << 20);
        disk.put(7, b"seven");
        assert_eq!(&*disk.get(7, 5).unwrap(), b"seven");
        assert!(disk.get(8, 5).is_none());
        let again = Disk::open(folder.path(), 1 << 20).unwrap();
        assert_eq!(&*again.get(7, 5).unwrap(), b"seven");
        let path = files(folder.path()).remove(0);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert!(disk.get(7, 5).is_none(), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(disk.get(7, 5).is_none(), "cut at {at}");
        }
        fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
        assert!(disk.get(7, 5).is_none());
    }

    #[test]
    fn the_ones_used_longest_ago_go_and_nothing_else() {
        let (folder, disk) = disk(16 * 1024);
        let mine = folder.path().join("forebay-blocks/00/letter.txt");
        let alike = folder.path().join("forebay-blocks/00").join(format!("{:032x}.block", 99));
        let beside = folder.path().join("precious.block");
        disk.put(0, &[0; 1000]);
        for (path, len) in [(&mine, 100_000), (&alike, 100), (&beside, 100_000)] {
            fs::write(path, vec![1; len]).unwrap();
        }
        let aged = |disk: &Disk, key: u128| {
            let file = File::options().write(true).open(disk.path(key)).ok()?;
            file.set_modified(SystemTime::now() - Duration::from_secs(1000 - key as u64)).ok()
        };
        for key in 1..15 {
            disk.put(key, &[key as u8; 1000]);
            aged(&disk, key).unwrap();
        }
        // A later program: what is old may be anybody's, so one in eight of what is new takes its place.
        let later = Disk::open(folder.path(), 16 * 1024).unwrap();
        for key in (15..200).filter(|&key| key != 99) {
            later.put(key, &[key as u8; 1000]);
            assert!(later.path(key).exists() == (key.is_multiple_of(TRIED) && key < 130), "{key}");
            assert!(key != 15 || later.get(0, 1000).is_some());
        }
        assert!(later.path(0).exists());
        for path in [&mine, &alike, &beside] {
            assert!(path.exists(), "{path:?}");
            fs::remove_file(path).unwrap();
        }
        let held: u64 = files(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(held > 8 * 1024 && held <= 16 * 1024, "{held}");
        assert!(disk.get(16, 1000).is_some() && disk.get(1, 1000).is_none());
    }

    /// One pass over blocks of 1,000 bytes: how many were here.
    fn pass(disk: &Disk, order: impl IntoIterator<Item = u128>) -> usize {
        let has = |key: u128| disk.get(key, 1000).is_some() || (disk.put(key, &[7; 1000]), false).1;
        order.into_iter().filter(|&key| has(key)).count()
    }

    #[test]
    fn of_more_data_than_fits_every_pass_finds_as_much_as_can_be_found() {
        // 1,000 blocks of which 300 fit, in the same order and in another each time.
        for stride in [1, 387] {
            let (_folder, disk) = disk(300 * (1000 + HEAD as u64));
            let order = |pass: u128| (0..1000).map(move |at| (at * stride + pass * pass * stride) % 1000);
            assert_eq!(pass(&disk, order(0)), 0);
            for epoch in 1..4 {
                let found = pass(&disk, order(epoch));
                assert!((280..=300).contains(&found), "{found} in epoch {epoch}, stride {stride}");
            }
        }
    }

    #[test]
    fn other_data_take_the_place_of_what_no_pass_uses() {
        let (_folder, disk) = disk(300 * (1000 + HEAD as u64));
        pass(&disk, 0..1000);
        pass(&disk, 0..1000);
        // In time its blocks go, a sixteenth of all at a time.
        let found: Vec<_> = (0..24).map(|_| pass(&disk, 5000..5250)).collect();
        assert!(found[0] == 0 && found[23] > 230, "{found:?}");
    }

    #[test]
    fn a_few_blocks_that_are_read_again_and_again_drive_out_nothing() {
        let (_folder, disk) = disk(300 * (1000 + HEAD as u64));
        let epoch = |disk: &Disk| {
            let hits = |part: u128| {
                pass(disk, 100_000..100_020);
                pass(disk, part * 100..part * 100 + 100)
            };
            (0..10).map(hits).sum::<usize>()
        };
        assert_eq!(epoch(&disk), 0);
        for _ in 0..3 {
            let found = epoch(&disk);
            assert!(found > 250, "{found}");
        }
    }

    #[test]
    fn what_a_dead_program_left_is_cleared_away() {
        let (folder, disk) = disk(1 << 20);
        disk.put(1, b"one");
        let half = disk.path(1).with_extension("12-3");
        let empty = disk.path(1).with_extension("12-4");
        fs::write(&half, MAGIC).unwrap();
        fs::write(&empty, "").unwrap();
        disk.count(&mut lock(&disk.room));
        assert!(half.exists() && empty.exists());
        let old = SystemTime::now() - Duration::from_secs(UNFINISHED + 60);
        for left in [&half, &empty] {
            File::options().write(true).open(left).unwrap().set_modified(old).unwrap();
        }
        disk.count(&mut lock(&disk.room));
        assert_eq!(files(folder.path()), [disk.path(1)]);
    }

    #[test]
    fn nobody_takes_away_what_another_is_writing() {
        let (_folder, disk) = disk(1 << 20);
        disk.put(1, b"one");
        let theirs = disk.path(2).with_extension("12-3");
        fs::create_dir_all(theirs.parent().unwrap()).unwrap();
        fs::write(&theirs, MAGIC).unwrap();
        assert!(write(&disk.path(2), &theirs, b"two").is_err() && theirs.exists());
    }

    #[test]
    fn names_that_lead_elsewhere_stay_in_the_folder() {
        let (folder, disk) = disk(1 << 20);
        let odd = ["http://h/../../../../tmp/x", "/etc/passwd", "..", "a\0b", "s3://b/\n"];
        for (number, url) in odd.iter().enumerate() {
            let identity = Identity { size: 1, tag: Some("../../x\0/".into()) };
            disk.put(key(url, &identity, number as u64).unwrap(), b"x");
        }
        let all = files(folder.path());
        assert_eq!(all.len(), odd.len());
        let below = folder.path().join(FOLDER);
        assert!(all.iter().all(|path| path.starts_with(&below) && is_hex(path, 32)), "{all:?}");
    }

    #[test]
    fn keys_differ_by_url_identity_and_place() {
        let identity = |size, tag: &str| Identity { size, tag: Some(tag.into()) };
        let keys = [
            key("a", &identity(1, "x"), 0),
            key("b", &identity(1, "x"), 0),
            key("a", &identity(2, "x"), 0),
            key("a", &identity(1, "y"), 0),
            key("a", &identity(1, "x"), 1),
        ];
        let unique: std::collections::BTreeSet<_> = keys.iter().map(|key| key.unwrap()).collect();
        assert_eq!(unique.len(), 5);
        assert_eq!(key("a", &Identity { size: 1, tag: None }, 0), None);
    }
}
