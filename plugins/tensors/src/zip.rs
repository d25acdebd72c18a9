//! Zip archives, as far as npz files need them: stored and deflated members, with zip64.
//!
//! APPNOTE.TXT 6.3.10, sections 4.3 to 4.5.

use std::ops::Range;

use flate2::{Decompress, FlushDecompress, Status};
use forebay_core::{Buffer, Error, Result};

use crate::memory::Memory;

const LOCAL: &[u8] = b"PK\x03\x04";
const ENTRY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
const END64: &[u8] = b"PK\x06\x06";
const LOCATOR64: &[u8] = b"PK\x06\x07";
/// Bytes of the record at the end, without its comment.
const END_LEN: usize = 22;
const ENTRY_LEN: usize = 46;
const LOCAL_LEN: usize = 30;
/// What stands in a field whose value is in the zip64 extra.
const ELSEWHERE: u64 = u32::MAX as u64;

/// A member, by the central directory.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    encrypted: bool,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    /// Where its local header is.
    offset: u64,
}

/// The members, in the order of the central directory.
pub(crate) fn members(archive: &[u8]) -> Result<Vec<Member>> {
    let directory = directory(archive)?;
    let mut at = directory.start;
    let mut members = Vec::new();
    while at < directory.end {
        let (member, len) = entry(archive, at).map_err(|error| error.context("byte", at))?;
        members.push(member);
        at += len;
    }
    Ok(members)
}

/// Where the central directory is.
fn directory(archive: &[u8]) -> Result<Range<usize>> {
    let last = archive.len().checked_sub(END_LEN);
    let first = last.map_or(0, |last| last.saturating_sub(usize::from(u16::MAX)));
    let ends_here = |&at: &usize| {
        archive.get(at..at + 4) == Some(END)
            && number(archive, at + 20, 2)
                .is_ok_and(|comment| at + END_LEN + comment as usize == archive.len())
    };
    let end = last.and_then(|last| (first..=last).rev().find(ends_here));
    let end = end.ok_or_else(|| {
        Error::corrupt("found no end of a zip archive; it is cut off, or is no zip")
            .context("byte", archive.len())
    })?;
    let (mut size, mut start) = (number(archive, end + 12, 4)?, number(archive, end + 16, 4)?);
    if let Some(locator) = end.checked_sub(20)
        && archive.get(locator..locator + 4) == Some(LOCATOR64)
    {
        let at = place(number(archive, locator + 8, 8)?)?;
        expect(archive, at, END64, "the end of a zip64 archive")?;
        (size, start) =
            (number(archive, at.saturating_add(40), 8)?, number(archive, at.saturating_add(48), 8)?);
    }
    let stop = start.checked_add(size).filter(|&stop| stop <= end as u64);
    let stop = stop.ok_or_else(|| {
        Error::corrupt(format!("a directory of {size} bytes at byte {start} does not lie before byte {end}"))
            .context("byte", end)
    })?;
    Ok(place(start)?..place(stop)?)
}

/// The entry at `at`, and its length.
fn entry(archive: &[u8], at: usize) -> Result<(Member, usize)> {
    expect(archive, at, ENTRY, "an entry of the directory")?;
    let field = |offset: usize, len: usize| number(archive, at + offset, len);
    let (name_len, extra_len, comment_len) =
        (field(28, 2)? as usize, field(30, 2)? as usize, field(32, 2)? as usize);
    let name_at = at + ENTRY_LEN;
    let name = archive.get(name_at..name_at + name_len).ok_or_else(|| cut(archive))?;
    let extra_at = name_at + name_len;
    let extra = archive.get(extra_at..extra_at + extra_len).ok_or_else(|| cut(archive))?;
    let mut places = [field(24, 4)?, field(20, 4)?, field(42, 4)?];
    if places.contains(&ELSEWHERE) {
        let values = zip64(extra).ok_or_else(|| Error::corrupt("the zip64 sizes are missing"))?;
        for (index, value) in places.iter_mut().filter(|value| **value == ELSEWHERE).enumerate() {
            *value = number(values, index * 8, 8)?;
        }
    }
    let [size, packed, offset] = places;
    let member = Member {
        name: String::from_utf8_lossy(name).into_owned(),
        encrypted: field(8, 2)? & 1 == 1,
        method: field(10, 2)? as u16,
        crc: field(16, 4)? as u32,
        packed,
        size,
        offset,
    };
    Ok((member, ENTRY_LEN + name_len + extra_len + comment_len))
}

/// The zip64 part of an extra field.
fn zip64(mut extra: &[u8]) -> Option<&[u8]> {
    while let [id0, id1, len0, len1, rest @ ..] = extra {
        let (part, after) = rest.split_at_checked(usize::from(u16::from_le_bytes([*len0, *len1])))?;
        if [*id0, *id1] == [1, 0] {
            return Some(part);
        }
        extra = after;
    }
    None
}

impl Member {
    /// The contents: a slice of the archive where they are stored, else unpacked into this memory. The checksum is checked.
    pub(crate) fn read(&self, archive: &Buffer, memory: &Memory) -> Result<Buffer> {
        let at = place(self.offset)?;
        self.contents(archive, at, memory).map_err(|error| error.context("byte", at))
    }

    fn contents(&self, archive: &Buffer, at: usize, memory: &Memory) -> Result<Buffer> {
        if self.encrypted {
            return Err(Error::unsupported("the member is encrypted"));
        }
        expect(archive, at, LOCAL, "a member")?;
        let skip = LOCAL_LEN + number(archive, at + 26, 2)? as usize + number(archive, at + 28, 2)? as usize;
        let start = at + skip;
        let stop = start.checked_add(place(self.packed)?).ok_or_else(|| cut(archive))?;
        let packed = archive.get(start..stop).ok_or_else(|| cut(archive))?;
        let size = place(self.size)?;
        let bytes = match self.method {
            0 if packed.len() == size => packed,
            0 => return Err(Error::corrupt(format!("{} bytes are stored as {size}", packed.len()))),
            8 => inflate(&packed, size, memory)?,
            method => {
                return Err(Error::unsupported(format!(
                    "packed by method {method}, known are 0 (stored) and 8 (deflate)"
                )));
            }
        };
        match crc32fast::hash(&bytes) {
            crc if crc == self.crc => Ok(bytes),
            crc => Err(Error::corrupt(format!("the checksum is {crc:08x}, expected {:08x}", self.crc))),
        }
    }

    /// How many bytes it says that it has.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

fn inflate(packed: &[u8], size: usize, memory: &Memory) -> Result<Buffer> {
    let mut out = memory.take(size)?;
    let mut inflater = Decompress::new(false);
    let status = inflater.decompress(packed, &mut out, FlushDecompress::Finish);
    let status = status.map_err(|error| Error::corrupt(format!("unreadable deflate data: {error}")))?;
    let found = inflater.total_out();
    if status != Status::StreamEnd || found != size as u64 {
        let more = if status == Status::StreamEnd { "" } else { " or more, or data that is cut off" };
        return Err(Error::corrupt(format!("unpacked {found} bytes{more}, expected {size}")));
    }
    Ok(out.freeze())
}

/// The number of `len` bytes at `at`.
fn number(bytes: &[u8], at: usize, len: usize) -> Result<u64> {
    let found = at.checked_add(len).and_then(|end| bytes.get(at..end)).ok_or_else(|| cut(bytes))?;
    Ok(found.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn place(number: u64) -> Result<usize> {
    // Far below the greatest number, so that sums with lengths of headers do not overflow.
    usize::try_from(number).ok().filter(|&at| at < usize::MAX / 4).ok_or_else(|| {
        Error::corrupt(format!("found the place or length {number}, which is beyond any file"))
    })
}

fn expect(archive: &[u8], at: usize, magic: &[u8], what: &str) -> Result<()> {
    match archive.get(at..at + magic.len()) {
        Some(found) if found == magic => Ok(()),
        Some(found) => Err(Error::corrupt(format!("found {found:02x?}, expected {what}"))),
        None => Err(cut(archive)),
    }
}

fn cut(archive: &[u8]) -> Error {
    Error::corrupt(format!("the archive ends at byte {}, within what it says it has", archive.len()))
}
