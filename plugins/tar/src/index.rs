//! Where the samples of a shard start.

use std::path::Path;

use forebay_core::{Blob, ErrorKind, Keep, Result, Stamp, names::split_name};

use crate::{archive::Archive, header::Kind, untar::Group, walk::Place};

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
        let stamp = Stamp::of(path).filter(|stamp| stamp.size == blob.len());
        if let Some(stamp) = stamp
            && let Some(found) = Self::load(keep, path, stamp, group)
        {
            return Ok(found);
        }
        let built = Self::build(blob, group)?;
        if let Some(stamp) = stamp.filter(|_| built.whole) {
            let numbers: Vec<_> = [built.end].into_iter().chain(built.starts.iter().copied()).collect();
            // A folder that cannot be written to costs time, not the run.
            let _ = keep.save(path, group.kept_as(), stamp, &numbers);
        }
        Ok(built)
    }

    fn load(keep: &Keep, path: &Path, stamp: Stamp, group: Group) -> Option<Self> {
        // Each sample takes a block at least.
        let numbers = keep.load(path, group.kept_as(), stamp, stamp.size / 512 + 1)?;
        let (&end, starts) = numbers.split_first()?;
        let ordered =
            starts.is_sorted() && starts.last().is_none_or(|&last| last <= end) && end <= stamp.size;
        ordered.then(|| Self { starts: starts.to_vec(), end, whole: true })
    }
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
        std::fs::write(&path, &shard).unwrap();
        let blob = Blob::from(shard.clone());
        let built = Index::kept(&blob, &path, &Keep::Beside, Group::WebDataset).unwrap();
        let stamp = Stamp::of(&path).unwrap();
        let load = |stamp, group| Index::load(&Keep::Beside, &path, stamp, group);
        assert_eq!(load(stamp, Group::WebDataset), Some(built));
        assert_eq!(load(stamp, Group::None), None);
        assert_eq!(load(Stamp { time: stamp.time + 1, ..stamp }, Group::WebDataset), None);
        // What no archive of this size has is not believed.
        for numbers in [&[][..], &[1 << 40], &[512, 1024, 0], &[512, 600]] {
            Keep::Beside.save(&path, Group::WebDataset.kept_as(), stamp, numbers).unwrap();
            assert_eq!(load(stamp, Group::WebDataset), None, "{numbers:?}");
        }
    }
}
