//! Where the samples of a shard start, and the file that keeps it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use forebay_core::{Blob, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::{archive::Archive, group::split_name, header::Kind, untar::Group, walk::Place};

const MAGIC: u64 = u64::from_le_bytes(*b"FBTAR\0\0\x01");
/// The numbers before the starts: magic, group, size and time of the archive, end of its samples, count.
const HEAD: usize = 6;

/// Where the samples of one archive start: enough to read any of them by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// The byte where the first member of each sample starts, in order.
    pub starts: Vec<u64>,
    /// The byte where the last sample ends.
    pub end: u64,
    /// Whether the whole archive was read without an error.
    pub(crate) whole: bool,
}

impl Index {
    /// Reads the headers of the archive in `blob`, and nothing else of it. Damage ends it: the last sample then reaches to the end
    /// of the archive, so that whoever reads that one meets the damage. An archive with global headers, which hold for all
    /// that follows, is a single piece.
    ///
    /// # Errors
    /// `Unsupported` for a packed archive, which cannot be read from the middle; those of the blob.
    pub fn build(blob: &Blob, group: Group) -> Result<Self> {
        let (mut archive, shard) = Archive::open(blob)?;
        let (mut place, mut starts, mut last) = (Place::default(), Vec::new(), Vec::new());
        let whole = loop {
            let member = match archive.pass(&shard, &mut place)? {
                Ok(Some(member)) => member,
                Ok(None) => break true,
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(_) => break false,
            };
            if !matches!(member.kind, Kind::File | Kind::Sparse) {
                continue;
            }
            match (group, split_name(&member.name)) {
                (Group::None, _) => starts.push(member.offset),
                (Group::WebDataset, Some((key, _))) if starts.is_empty() || key != last => {
                    starts.push(member.offset);
                    last = key.to_vec();
                }
                _ => {}
            }
        };
        if !place.is_plain() {
            starts = vec![0];
        }
        let end = if whole { place.last() } else { blob.len() };
        if starts.is_empty() && !whole {
            starts.push(0);
        }
        Ok(Self { starts, end, whole })
    }

    /// The index of the local file at `path`, which `blob` shows, kept in `keep`: read from there if it is of this file as it is now,
    /// else built and written. Where it cannot be written it is built each time.
    ///
    /// # Errors
    /// As [`build`](Index::build).
    pub fn kept(blob: &Blob, path: &Path, keep: &Keep, group: Group) -> Result<Self> {
        let file = keep.file(path);
        let stamp = stamp(path);
        if let Some(stamp) = stamp
            && stamp.0 == blob.len()
            && let Some(found) = Self::load(&file, stamp, group)
        {
            return Ok(found);
        }
        let built = Self::build(blob, group)?;
        if let Some(stamp) = stamp.filter(|_| built.whole) {
            // A folder that cannot be written to costs time, not the run.
            let _ = built.save(&file, stamp, group);
        }
        Ok(built)
    }

    fn load(file: &Path, stamp: (u64, u64), group: Group) -> Option<Self> {
        let len = fs::metadata(file).ok()?.len();
        // Each sample takes a block at least.
        if len > 8 * (stamp.0 / 512 + HEAD as u64 + 1) {
            return None;
        }
        let bytes = fs::read(file).ok()?;
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        let numbers: Vec<_> =
            body.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let (&[magic, kind, size, time, end, count], starts) = numbers.split_first_chunk::<HEAD>()?;
        let is_this = (magic, kind, size, time) == (MAGIC, group as u64, stamp.0, stamp.1);
        let is_whole = xxh3_64(body) == u64::from_le_bytes(*sum)
            && starts.len() as u64 == count
            && body.len().is_multiple_of(8);
        let ordered = starts.is_sorted() && starts.last().is_none_or(|&last| last <= end) && end <= size;
        (is_this && is_whole && ordered).then(|| Self { starts: starts.to_vec(), end, whole: true })
    }

    /// Written whole or not at all, as several may write it at once.
    fn save(&self, file: &Path, (size, time): (u64, u64), group: Group) -> std::io::Result<()> {
        let head = [MAGIC, group as u64, size, time, self.end, self.starts.len() as u64];
        let mut bytes: Vec<u8> =
            head.iter().chain(&self.starts).flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let part = PathBuf::from(name);
        fs::write(&part, bytes)?;
        fs::rename(&part, file).inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
    }
}

/// Where indexes are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// Beside each archive, under its name and `.index`.
    Beside,
    /// In a folder, under a hash of the archive's path.
    Folder(PathBuf),
}

impl Keep {
    /// Where the index of this archive is.
    fn file(&self, archive: &Path) -> PathBuf {
        match self {
            Self::Beside => {
                let mut name = archive.as_os_str().to_owned();
                name.push(".index");
                name.into()
            }
            Self::Folder(folder) => {
                let whole = fs::canonicalize(archive).unwrap_or_else(|_| archive.to_owned());
                folder.join(format!("{:016x}.index", xxh3_64(whole.as_os_str().as_encoded_bytes())))
            }
        }
    }
}

/// Size and time of change, in nanoseconds, of a file.
pub(crate) fn stamp(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    let time = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((metadata.len(), u64::try_from(time.as_nanos()).ok()?))
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, Str};

    use super::*;
    use crate::untar::{piece, samples};

    fn shard() -> Buffer {
        let mut builder = tar::Builder::new(Vec::new());
        for number in 0..20_usize {
            for field in ["jpg", "cls"] {
                let mut header = tar::Header::new_gnu();
                let bytes = vec![number as u8; number * 100];
                header.set_size(bytes.len() as u64);
                let name = format!("{}{number:04}.{field}", "d/".repeat(number * 9));
                builder.append_data(&mut header, name, &bytes[..]).unwrap();
            }
        }
        builder.into_inner().unwrap().into()
    }

    #[test]
    fn each_piece_gives_the_samples_that_the_whole_gives() {
        let shard = shard();
        for group in [Group::WebDataset, Group::None] {
            let whole: Vec<_> =
                samples(shard.clone(), Str::from("s"), 1, group).map(Result::unwrap).collect();
            let index = Index::build(&Blob::from(shard.clone()), group).unwrap();
            assert_eq!(index.starts.len(), whole.len());
            let ends = index.starts.iter().skip(1).chain([&index.end]);
            for (number, (&start, &end)) in index.starts.iter().zip(ends).enumerate() {
                let bytes = shard.slice(start as usize..end as usize);
                let found: Vec<_> = piece(bytes, start, number as u64, Str::from("s"), 1, group)
                    .map(Result::unwrap)
                    .collect();
                assert_eq!(found, whole[number..=number]);
            }
        }
    }

    #[test]
    fn an_index_is_kept_until_its_archive_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.tar");
        let shard = shard();
        fs::write(&path, &shard).unwrap();
        let blob = Blob::from(shard.clone());
        let built = Index::kept(&blob, &path, &Keep::Beside, Group::WebDataset).unwrap();
        let file = folder.path().join("s.tar.index");
        let stamp = stamp(&path).unwrap();
        assert_eq!(Index::load(&file, stamp, Group::WebDataset), Some(built));
        assert_eq!(Index::load(&file, stamp, Group::None), None);
        assert_eq!(Index::load(&file, (stamp.0, stamp.1 + 1), Group::WebDataset), None);
        let kept = fs::read(&file).unwrap();
        for at in 0..kept.len() {
            let mut damaged = kept.clone();
            damaged[at] ^= 1;
            fs::write(&file, damaged).unwrap();
            assert_eq!(Index::load(&file, stamp, Group::WebDataset), None, "{at}");
        }
    }
}
