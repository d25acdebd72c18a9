//! One 512-byte header block: its checksum, kind, numbers and names. Nothing here knows what follows it.

use std::{borrow::Cow, ops::Range};

use forebay_core::{Error, Result};

use crate::sparse::places;

/// The unit of a tar archive: headers are one block, contents are padded to whole blocks.
pub(crate) const BLOCK: usize = 512;

/// Where the fields of a header lie (POSIX.1-1988 ustar; V7 ends with the link name).
const NAME: Range<usize> = 0..100;
const SIZE: Range<usize> = 124..136;
const CHECKSUM: Range<usize> = 148..156;
const KIND: usize = 156;
const LINK: Range<usize> = 157..257;
const MAGIC: Range<usize> = 257..265;
const PREFIX: Range<usize> = 345..500;
/// star keeps times where the last bytes of the prefix would be, and says so at the end of the block.
const STAR_PREFIX: Range<usize> = 345..476;
const STAR_MAGIC: Range<usize> = 508..512;
const SPARSE_MAP: usize = 386;
const SPARSE_MORE: usize = 482;
const SPARSE_SIZE: Range<usize> = 483..495;
const SPARSE_MORE_NEXT: usize = 504;

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A regular file, contiguous ones among them.
    File,
    /// Another name of an earlier member.
    HardLink,
    /// A symbolic link.
    SymLink,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A file with holes, stored without them.
    Sparse,
    /// Any other type flag, such as GNU's `D`, `M`, `N` and `V`.
    Other(u8),
}

impl Kind {
    /// Whether contents follow the header. The others may state a size all the same, which says nothing.
    pub(crate) fn has_contents(self) -> bool {
        matches!(self, Self::File | Self::Sparse | Self::Other(_))
    }
}

/// What a header introduces: a member, or something that tells more about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Member(Kind),
    /// The next member's name (`L`).
    LongName,
    /// The next member's link target (`K`).
    LongLink,
    /// pax records for the next member (`x`; Solaris: `X`).
    Pax,
    /// pax records for all members to come (`g`).
    GlobalPax,
}

/// A header block whose checksum is right.
pub(crate) struct Header<'a> {
    block: Cow<'a, [u8]>,
}

impl<'a> Header<'a> {
    /// Takes `block`, which is [`BLOCK`] bytes long, if its checksum is right.
    pub(crate) fn parse(block: Cow<'a, [u8]>) -> Result<Self> {
        let this = Self { block };
        let stated = number(this.field(CHECKSUM));
        let field: u64 = this.field(CHECKSUM).iter().map(|&byte| u64::from(byte)).sum();
        // The checksum's own bytes count as spaces.
        let spaces = CHECKSUM.len() as u64 * u64::from(b' ');
        let sum = sum(&this.block) - field + spaces;
        match stated {
            Some(stated) if stated == sum || i64::try_from(stated) == Ok(this.signed_sum()) => Ok(this),
            Some(stated) => Err(Error::corrupt(format!(
                "no tar header: its checksum says {stated}, its bytes sum up to {sum}"
            ))),
            None => Err(Error::corrupt("no tar header: the place of its checksum holds no number")),
        }
    }

    /// The sum with bytes taken as signed, which old Sun and HP-UX programs wrote.
    fn signed_sum(&self) -> i64 {
        let signed = |bytes: &[u8]| bytes.iter().map(|&byte| i64::from(byte.cast_signed())).sum::<i64>();
        signed(&self.block) - signed(self.field(CHECKSUM)) + CHECKSUM.len() as i64 * i64::from(b' ')
    }

    pub(crate) fn role(&self) -> Role {
        let flag = self.byte(KIND);
        Role::Member(match flag {
            0 | b'0' | b'7' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::SymLink,
            b'3' => Kind::CharDevice,
            b'4' => Kind::BlockDevice,
            b'5' => Kind::Directory,
            b'6' => Kind::Fifo,
            b'S' => Kind::Sparse,
            b'L' => return Role::LongName,
            b'K' => return Role::LongLink,
            b'x' | b'X' => return Role::Pax,
            b'g' => return Role::GlobalPax,
            other => Kind::Other(other),
        })
    }

    /// Whether it has no type: V7 had none for directories, a slash at the end of the whole name says so.
    pub(crate) fn is_untyped(&self) -> bool {
        self.byte(KIND) == 0
    }

    /// How many bytes follow, by this header alone.
    pub(crate) fn size(&self) -> Result<u64> {
        number(self.field(SIZE)).ok_or_else(|| {
            let found = self.field(SIZE).escape_ascii();
            Error::corrupt(format!("size is `{found}`, expected an octal or a positive base-256 number"))
        })
    }

    /// The name, with ustar's prefix before it.
    pub(crate) fn name(&self) -> Cow<'a, [u8]> {
        let name = self.text(NAME);
        // GNU's own magic differs: it keeps times and the like in the place of the prefix.
        if self.field(MAGIC).get(..6) != Some(b"ustar\0") {
            return name;
        }
        let star = self.field(STAR_MAGIC) == b"tar\0";
        let prefix = self.text(if star { STAR_PREFIX } else { PREFIX });
        if prefix.is_empty() { name } else { [&prefix, &b"/"[..], &name].concat().into() }
    }

    pub(crate) fn link(&self) -> Cow<'a, [u8]> {
        self.text(LINK)
    }

    /// Whether the map of an old GNU sparse header goes on in the next block.
    pub(crate) fn sparse_goes_on(&self) -> bool {
        self.byte(SPARSE_MORE) != 0
    }

    /// The size with its holes of an old GNU sparse file, and the numbers of its map.
    pub(crate) fn sparse(&self) -> Result<(u64, Vec<u64>)> {
        let size = number(self.field(SPARSE_SIZE)).ok_or_else(|| {
            let found = self.field(SPARSE_SIZE).escape_ascii();
            Error::corrupt(format!("the size of a sparse file is `{found}`, expected a number"))
        })?;
        let mut numbers = Vec::new();
        sparse_numbers(&self.block, SPARSE_MAP, 4, &mut numbers)?;
        Ok((size, numbers))
    }

    fn byte(&self, at: usize) -> u8 {
        self.block.get(at).copied().unwrap_or(0)
    }

    fn field(&self, range: Range<usize>) -> &[u8] {
        self.block.get(range).unwrap_or_default()
    }

    /// The bytes of `range` up to the first NUL.
    fn text(&self, range: Range<usize>) -> Cow<'a, [u8]> {
        let field = self.field(range.clone());
        let len = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
        part(&self.block, range.start..range.start + len)
    }
}

/// The sum of a block's bytes: most of the cost of a walk, so eight bytes are taken at a time, each in 16 bits.
fn sum(block: &[u8]) -> u64 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let (words, _) = block.as_chunks::<8>();
    // At most 128 bytes of 255 come together in 16 bits.
    let lanes = words.iter().take(BLOCK / 8).fold(0_u64, |lanes, word| {
        let word = u64::from_le_bytes(*word);
        lanes + (word & EVEN) + ((word >> 8) & EVEN)
    });
    (0..4).map(|lane| (lanes >> (16 * lane)) & 0xffff).sum()
}

/// Adds the numbers of a block that an old GNU sparse map goes on in, and says whether there is one more.
pub(crate) fn sparse_more(block: &[u8], numbers: &mut Vec<u64>) -> Result<bool> {
    sparse_numbers(block, 0, 21, numbers)?;
    Ok(block.get(SPARSE_MORE_NEXT).is_some_and(|&byte| byte != 0))
}

/// Adds `count` pairs of a map that begins at `from`; an empty pair ends it.
fn sparse_numbers(block: &[u8], from: usize, count: usize, numbers: &mut Vec<u64>) -> Result<()> {
    for place in places(from, count) {
        let field = block.get(place).unwrap_or_default();
        if field.first().is_none_or(|&byte| byte == 0) && numbers.len().is_multiple_of(2) {
            break;
        }
        let found = number(field).ok_or_else(|| {
            Error::corrupt(format!(
                "`{}` in the map of a sparse file, expected a number",
                field.escape_ascii()
            ))
        })?;
        numbers.push(found);
    }
    Ok(())
}

/// The bytes of `range`, borrowed where `bytes` is; none when it does not lie within.
pub(crate) fn part<'a>(bytes: &Cow<'a, [u8]>, range: Range<usize>) -> Cow<'a, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(range).unwrap_or_default()),
        Cow::Owned(bytes) => Cow::Owned(bytes.get(range).unwrap_or_default().to_vec()),
    }
}

/// A number: octal digits among spaces, up to a NUL, or GNU's base-256; `None` if it is neither or negative.
fn number(field: &[u8]) -> Option<u64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // 0x40 is the sign.
        let start = if first & 0x40 == 0 { u64::from(first & 0x3f) } else { return None };
        return rest.iter().try_fold(start, |sum, &byte| sum.checked_mul(256)?.checked_add(byte.into()));
    }
    let text = field.trim_ascii_start();
    let digits = text.iter().take_while(|&byte| matches!(byte, b'0'..=b'7')).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    let ends = rest.iter().take_while(|&&byte| byte != 0).all(u8::is_ascii_whitespace);
    // No field is so long that its digits, of three bits each, overflow.
    (ends && digits.len() <= 21)
        .then(|| digits.iter().fold(0, |sum, &byte| sum << 3 | u64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_base_256() {
        assert_eq!(number(b"0000017\0"), Some(15));
        assert_eq!(number(b"   17 \0x"), Some(15));
        assert_eq!(number(b"\0\0\0"), Some(0));
        assert_eq!(number(b"\x80\0\x01\x02"), Some(258));
        assert_eq!(number(b"18"), None);
        assert_eq!(number(b"-7"), None);
        assert_eq!(number(b"\xff\xff\xff"), None);
        assert_eq!(number(&[0x80, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]), None);
        assert_eq!(number(b""), None);
    }

    #[test]
    fn signed_and_unsigned_checksums_are_taken() {
        let mut block = vec![0_u8; BLOCK];
        block[..3].copy_from_slice(b"\xe4\xf6\xfc");
        for sum in [0xe4 + 0xf6 + 0xfc + 256, 0xe4 + 0xf6 + 0xfc + 256 - 3 * 256] {
            block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            assert!(Header::parse(Cow::Borrowed(&block)).is_ok());
        }
        block[CHECKSUM].copy_from_slice(b"000123\0 ");
        assert!(Header::parse(Cow::Borrowed(&block)).is_err());
    }
}
