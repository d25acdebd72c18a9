//! The header and the directories of a file, classic and big, in both byte orders: TIFF 6.0, section 2, and BigTIFF.

use forebay_core::{Error, Result};

/// The bytes of a file, and how numbers stand in them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    /// BigTIFF: offsets and counts have eight bytes.
    big: bool,
}

/// The values of a tag, which are read when they are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    reader: Reader<'a>,
    /// Bytes of a value.
    size: usize,
    count: u64,
    at: u64,
}

/// One directory: the tags of a page.
#[derive(Debug)]
pub(super) struct Directory<'a> {
    entries: Vec<(u16, List<'a>)>,
}

impl<'a> Reader<'a> {
    /// Reads the header; gives where the first directory is too.
    pub(super) fn open(bytes: &'a [u8]) -> Result<(Self, u64)> {
        let (big_endian, big) = match bytes.get(..4) {
            Some(b"II*\0") => (false, false),
            Some(b"MM\0*") => (true, false),
            Some(b"II+\0") => (false, true),
            Some(b"MM\0+") => (true, true),
            found => {
                let found = found.unwrap_or(bytes).escape_ascii();
                return Err(Error::corrupt(format!(
                    "TIFF begins with `{found}`, expected `II*\\0` or alike"
                )));
            }
        };
        let reader = Self { bytes, big_endian, big };
        let first = if big { reader.uint(8, 8) } else { reader.uint(4, 4) };
        Ok((reader, first.ok_or_else(|| Error::corrupt("TIFF header is cut off"))?))
    }

    pub(super) fn big_endian(&self) -> bool {
        self.big_endian
    }

    /// The bytes from `at` on, at most `len` of them.
    pub(super) fn slice(&self, at: u64, len: u64) -> Option<&'a [u8]> {
        let rest = self.bytes.get(usize::try_from(at).ok()?..)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
        rest.get(..len)
    }

    /// The number of `size` bytes at `at`.
    fn uint(&self, at: u64, size: usize) -> Option<u64> {
        let bytes = self.slice(at, size as u64).filter(|bytes| bytes.len() == size)?;
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) })
    }

    /// The directory at `at`. Tags of unknown types are passed over, as the standard asks.
    pub(super) fn directory(&self, at: u64) -> Result<Directory<'a>> {
        let cut = || Error::corrupt("TIFF directory is cut off").context("byte", at);
        let (word, entry_size, head) = if self.big { (8, 20, 8) } else { (4, 12, 2) };
        let count = self.uint(at, head).ok_or_else(cut)?;
        let start = at.saturating_add(head as u64);
        let len = count.checked_mul(entry_size).ok_or_else(cut)?;
        let whole = self.slice(start, len).is_some_and(|found| found.len() as u64 == len);
        if !whole {
            return Err(cut());
        }
        let mut entries = Vec::new();
        for at in (0..count).map(|index| start + index * entry_size) {
            let number = |at, size| self.uint(at, size).ok_or_else(cut);
            let (tag, kind, values) = (number(at, 2)?, number(at + 2, 2)?, number(at + 4, word)?);
            let size = match kind {
                1 | 2 | 6 | 7 => 1,
                3 | 8 => 2,
                4 | 9 | 11 | 13 => 4,
                5 | 10 | 12 | 16 | 17 | 18 => 8,
                _ => continue,
            };
            let inside = at + 4 + word as u64;
            let fits = values.saturating_mul(size as u64) <= word as u64;
            let at = if fits { inside } else { number(inside, word)? };
            // Two bytes: no loss.
            entries.push((tag as u16, List { reader: *self, size, count: values, at }));
        }
        Ok(Directory { entries })
    }
}

impl<'a> Directory<'a> {
    pub(super) fn get(&self, tag: u16) -> Option<List<'a>> {
        self.entries.iter().find(|(found, _)| *found == tag).map(|(_, list)| *list)
    }

    /// The first value of a tag, if it is there.
    pub(super) fn first(&self, tag: u16) -> Result<Option<u64>> {
        self.get(tag).map(|list| list.value(tag, 0)).transpose()
    }
}

impl<'a> List<'a> {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// One value; `None` beyond the last, and where the file has ended.
    pub(super) fn get(&self, index: u64) -> Option<u64> {
        if index >= self.count {
            return None;
        }
        self.reader.uint(self.at.checked_add(index.checked_mul(self.size as u64)?)?, self.size)
    }

    /// One value of `tag`, which must be there.
    pub(super) fn value(&self, tag: u16, index: u64) -> Result<u64> {
        self.get(index).ok_or_else(|| {
            Error::corrupt(format!("TIFF tag {tag} has no value {index}, or the file ends before it"))
                .context("byte", self.at)
        })
    }

    /// All values as they lie in the file.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        self.reader.slice(self.at, self.count.checked_mul(self.size as u64)?)
    }
}
