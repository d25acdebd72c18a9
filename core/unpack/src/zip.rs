//! A zip archive's directory and the members it lists: APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.

use std::ops::Range;

use forebay_core::{Blob, Buffer, BufferMut, Error, Result};

use crate::{Codec, crc32, inflate, unpack};

const END: &[u8] = b"PK\x05\x06";
const END_LEN: u64 = 22;
/// The end and the longest comment behind it.
const END_REACH: u64 = END_LEN + 0xffff;
const LOCATOR: &[u8] = b"PK\x06\x07";
const LOCATOR_LEN: u64 = 20;
const END_64: &[u8] = b"PK\x06\x06";
const ENTRY: &[u8] = b"PK\x01\x02";
const ENTRY_LEN: usize = 46;
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_LEN: u64 = 30;

/// The members that a zip archive's directory lists, in its order. Its errors are `Corrupt`, with the byte within the directory.
///
/// Members are stored, or packed by deflate, bzip2, zstd or xz; zip64 archives are read too.
///
/// # Examples
/// ```
/// use forebay_core::{Blob, Buffer, BufferMut};
/// use forebay_unpack::Directory;
///
/// // The end of an archive without members.
/// let mut archive = b"PK\x05\x06".to_vec();
/// archive.resize(22, 0);
/// let directory = Directory::open(&Blob::from(Buffer::from(archive)), 1 << 20)?;
/// assert_eq!(directory.count(), 0);
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub struct Directory {
    blob: Blob,
    entries: Buffer,
    at: usize,
    left: u64,
    /// What stands before the archive, which its offsets do not count.
    before: u64,
}

/// One member of a zip archive, as the [`Directory`] has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// The name; where it is no UTF-8, as of code page 437.
    pub name: String,
    /// Where its local header starts.
    pub offset: u64,
    /// How many bytes it unpacks to.
    pub size: u64,
    packed: u64,
    sum: u32,
    method: u16,
    encrypted: bool,
    /// Unix: the kind of file.
    mode: u32,
    raw_name: Vec<u8>,
}

impl Member {
    /// Whether it is a file: neither a folder nor a link or device.
    #[must_use]
    pub fn is_file(&self) -> bool {
        !self.name.ends_with('/') && matches!(self.mode & 0o170_000, 0 | 0o100_000)
    }
}

/// The end of an archive: how many entries there are, and where.
struct End {
    at: u64,
    count: u64,
    size: u64,
    offset: u64,
}

impl Directory {
    /// Finds and reads the directory of the archive in `blob`. What stands before the archive is passed over.
    ///
    /// # Errors
    /// `Corrupt` when there is none or it does not fit, or when members share bytes, as those of bombs do; `Limit` for one larger
    /// than `limit` bytes; `Unsupported` for archives of several files; the store's own.
    pub fn open(blob: &Blob, limit: u64) -> Result<Self> {
        let end = End::find(blob)?;
        let start = end.at.checked_sub(end.size).ok_or_else(|| {
            Error::corrupt(format!(
                "a directory of {} bytes, and there are {} before its end",
                end.size, end.at
            ))
        })?;
        let before = start.checked_sub(end.offset).ok_or_else(|| {
            Error::corrupt(format!(
                "the directory is said to start at byte {}, and is at {start}",
                end.offset
            ))
        })?;
        if end.size > limit {
            return Err(Error::limit(format!("a directory of {} bytes, at most {limit} are read", end.size)));
        }
        let entries = blob.read(start..end.at)?;
        let this = Self { blob: blob.clone(), entries, at: 0, left: end.count, before };
        this.check_overlaps(start)?;
        Ok(this)
    }

    /// The next member; none at the end.
    fn advance(&mut self) -> Result<Option<Member>> {
        if self.left == 0 {
            return Ok(None);
        }
        let found = self.parse(self.at);
        let (member, end) = found
            .inspect_err(|_| self.left = 0)
            .map_err(|error| error.context("byte of directory", self.at))?;
        (self.at, self.left) = (end, self.left - 1);
        Ok(Some(member))
    }

    /// Where in the directory the next member stands, for [`member`](Directory::member).
    #[must_use]
    pub const fn place(&self) -> usize {
        self.at
    }

    /// The member that stands at a [`place`](Directory::place) of the directory.
    ///
    /// # Errors
    /// `Corrupt` when none does.
    pub fn member(&self, place: usize) -> Result<Member> {
        self.parse(place).map(|(member, _)| member).map_err(|error| error.context("byte of directory", place))
    }

    /// The contents of `member`: a slice of the archive where it is stored as it is, else in memory from `alloc`.
    ///
    /// # Errors
    /// `Corrupt` with the member, for a local header that differs, broken bytes or a wrong sum; `Limit` above `limit`
    /// bytes; `Unsupported` for encryption and other methods; the store's own.
    pub fn read(
        &self,
        member: &Member,
        limit: u64,
        alloc: impl FnMut(usize) -> Result<BufferMut>,
    ) -> Result<Buffer> {
        self.contents(member, limit, alloc).map_err(|error| {
            error.context("member", &member.name).context("byte", member.offset.saturating_add(self.before))
        })
    }

    fn contents(
        &self,
        member: &Member,
        limit: u64,
        alloc: impl FnMut(usize) -> Result<BufferMut>,
    ) -> Result<Buffer> {
        let &Member { size, packed, method, encrypted, .. } = member;
        if encrypted {
            return Err(Error::unsupported("the member is encrypted"));
        }
        if size > limit {
            return Err(Error::limit(format!("a member of {size} bytes, at most {limit} are unpacked")));
        }
        let bytes = self.blob.read(self.packed(member)?)?;
        let small = usize::try_from(size).map_err(|error| Error::limit(error.to_string()))?;
        let codec = |codec| (codec, packed, size);
        let found = match method {
            0 if packed == size => bytes,
            0 => return Err(Error::corrupt(format!("{packed} bytes are stored, expected {size}"))),
            8 if size / 1032 > packed => {
                return Err(Error::corrupt(format!("{packed} bytes cannot unpack to {size}")));
            }
            8 => inflate(&bytes, small, alloc)?,
            12 => unpacked(codec(Codec::Bzip2), &bytes, alloc)?,
            93 => unpacked(codec(Codec::Zstd), &bytes, alloc)?,
            95 => unpacked(codec(Codec::Xz), &bytes, alloc)?,
            other => return Err(Error::unsupported(format!("packed by method {other}"))),
        };
        match (crc32(&found), member.sum) {
            (sum, stated) if sum == stated => Ok(found),
            (sum, stated) => Err(Error::corrupt(format!("its CRC-32 is {sum:08x}, stated is {stated:08x}"))),
        }
    }

    /// Where the packed bytes of `member` lie, as its local header says.
    fn packed(&self, member: &Member) -> Result<Range<u64>> {
        let start = member.offset.saturating_add(self.before);
        let end = start.saturating_add(LOCAL_LEN).saturating_add(member.raw_name.len() as u64);
        let local = self.blob.read(start..end)?;
        if !local.starts_with(LOCAL) {
            return Err(Error::corrupt("no local header where the directory says"));
        }
        let (name, extra) = (u64::from(u16_at(&local, 26)), u64::from(u16_at(&local, 28)));
        // Two names for one member are how files are smuggled past a check.
        if local.get(LOCAL_LEN as usize..).as_deref() != Some(&member.raw_name[..])
            || name != member.raw_name.len() as u64
        {
            return Err(Error::corrupt("the local header has another name than the directory"));
        }
        let data = end.saturating_add(extra);
        Ok(data..data.saturating_add(member.packed))
    }

    fn parse(&self, at: usize) -> Result<(Member, usize)> {
        let rest = self.entries.get(at..).unwrap_or_default();
        if rest.len() < ENTRY_LEN || !rest.starts_with(ENTRY) {
            return Err(Error::corrupt(format!("expected {} more members, found none", self.left)));
        }
        let lens = [28, 30, 32].map(|place| usize::from(u16_at(&rest, place)));
        let [name_len, extra_len, comment_len] = lens;
        let len = ENTRY_LEN + name_len + extra_len + comment_len;
        if rest.len() < len {
            return Err(Error::corrupt(format!(
                "truncated member of the directory: {} bytes of {len}",
                rest.len()
            )));
        }
        let raw_name = rest.get(ENTRY_LEN..ENTRY_LEN + name_len).unwrap_or_default();
        let extra = rest.get(ENTRY_LEN + name_len..ENTRY_LEN + name_len + extra_len).unwrap_or_default();
        let flags = u16_at(&rest, 8);
        let mut member = Member {
            name: text(&raw_name),
            offset: u64::from(u32_at(&rest, 42)),
            size: u64::from(u32_at(&rest, 24)),
            packed: u64::from(u32_at(&rest, 20)),
            sum: u32_at(&rest, 16),
            method: u16_at(&rest, 10),
            encrypted: flags & 1 != 0,
            mode: if rest.get(5..6).as_deref() == Some(&[3]) { u32_at(&rest, 38) >> 16 } else { 0 },
            raw_name: raw_name.to_vec(),
        };
        wide_numbers(&mut member, &extra)?;
        Ok((member, at + len))
    }

    /// Members that share bytes make small archives of endless contents: no writer makes them.
    fn check_overlaps(&self, directory: u64) -> Result<()> {
        let mut places = Vec::new();
        let mut look = Self { blob: self.blob.clone(), entries: self.entries.clone(), ..*self };
        while let Some(member) = look.advance()? {
            let start = member.offset.saturating_add(self.before);
            let len = LOCAL_LEN.saturating_add(member.raw_name.len() as u64).saturating_add(member.packed);
            places.push((start, start.saturating_add(len)));
        }
        places.sort_unstable();
        let ends = places.iter().skip(1).map(|place| place.0).chain([directory]);
        for ((start, end), next) in places.iter().zip(ends) {
            if *end > next {
                return Err(Error::corrupt(format!(
                    "the member ends at byte {end}, and the next one is at {next}"
                ))
                .context("byte", start));
            }
        }
        Ok(())
    }
}

impl Iterator for Directory {
    type Item = Result<Member>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

impl End {
    fn find(blob: &Blob) -> Result<Self> {
        let len = blob.len();
        let first = len.saturating_sub(END_REACH);
        let tail = blob.read(first..len)?;
        // The comment may hold the mark too, but not a comment length that fits.
        let fits = |at: &usize| {
            tail.get(*at..).is_some_and(|rest| {
                rest.starts_with(END) && END_LEN + u64::from(u16_at(&rest, 20)) == rest.len() as u64
            })
        };
        let found = (0..tail.len().saturating_sub(END_LEN as usize - 1)).rev().find(fits);
        let Some(found) = found else {
            return Err(Error::corrupt("no zip archive, or a truncated one: found no end of a directory"));
        };
        let end = tail.get(found..).unwrap_or_default();
        let at = first + found as u64;
        let this = Self {
            at,
            count: u64::from(u16_at(&end, 10)),
            size: u64::from(u32_at(&end, 12)),
            offset: u64::from(u32_at(&end, 16)),
        };
        if let Some(wide) = this.wide(blob)? {
            return Ok(wide);
        }
        let disks = (u16_at(&end, 4), u16_at(&end, 6));
        if disks != (0, 0) || u16_at(&end, 8) != u16_at(&end, 10) {
            return Err(Error::unsupported("a zip archive of several files"));
        }
        Ok(this)
    }

    /// The end of a zip64 archive, if this is one.
    fn wide(&self, blob: &Blob) -> Result<Option<Self>> {
        let Some(start) = self.at.checked_sub(LOCATOR_LEN) else { return Ok(None) };
        let locator = blob.read(start..self.at)?;
        if !locator.starts_with(LOCATOR) {
            return Ok(None);
        }
        if u32_at(&locator, 4) != 0 || u32_at(&locator, 16) > 1 {
            return Err(Error::unsupported("a zip archive of several files"));
        }
        // Its place does not count what stands before the archive, but it usually is 56 bytes long.
        for at in [u64_at(&locator, 8), start.saturating_sub(56)] {
            let end = at.saturating_add(56);
            if end > start {
                continue;
            }
            let record = blob.read(at..end)?;
            if record.starts_with(END_64) {
                let [count, size, offset] = [32, 40, 48].map(|place| u64_at(&record, place));
                return Ok(Some(Self { at, count, size, offset }));
            }
        }
        Err(Error::corrupt("no end of a zip64 directory where its locator says"))
    }
}

/// Takes the numbers that 32 bits cannot hold from the extra field of zip64.
fn wide_numbers(member: &mut Member, extra: &[u8]) -> Result<()> {
    let wide = u64::from(u32::MAX);
    let mut rest = extra;
    while let Some((head, behind)) = rest.split_first_chunk::<4>() {
        let len = usize::from(u16_at(head, 2));
        let Some(body) = behind.get(..len) else { break };
        if u16_at(head, 0) == 1 {
            let mut numbers = body.chunks_exact(8).map(|bytes| u64_at(bytes, 0));
            for number in [&mut member.size, &mut member.packed, &mut member.offset] {
                if *number == wide {
                    *number = numbers.next().ok_or_else(|| {
                        Error::corrupt("the zip64 field lacks a number").context("member", &member.name)
                    })?;
                }
            }
            return Ok(());
        }
        rest = behind.get(len..).unwrap_or_default();
    }
    Ok(())
}

/// What a codec with a format of its own packed, which must be as much as the directory says.
fn unpacked(
    (codec, packed, size): (Codec, u64, u64),
    bytes: &Buffer,
    alloc: impl FnMut(usize) -> Result<BufferMut>,
) -> Result<Buffer> {
    let found = unpack(codec, bytes, size, alloc)?;
    if found.len() as u64 == size {
        return Ok(found);
    }
    Err(Error::corrupt(format!("{packed} bytes unpack to {}, expected {size}", found.len())))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A name as text. Few writers set the bit that says UTF-8, so what can be UTF-8 is; else the PC's first code page.
fn text(name: &[u8]) -> String {
    const UPPER: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name
            .iter()
            .map(|&byte| match byte {
                0..128 => char::from(byte),
                _ => UPPER.chars().nth(usize::from(byte) - 128).unwrap_or(char::REPLACEMENT_CHARACTER),
            })
            .collect(),
    }
}
