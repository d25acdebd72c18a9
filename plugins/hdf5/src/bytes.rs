//! Reading numbers out of bytes, every length checked.

use std::ops::RangeInclusive;

use forebay_core::{Error, Result};

/// How wide addresses and lengths are in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) address: usize,
    pub(crate) length: usize,
}

/// A place in some bytes of a file, from which little-endian numbers are taken.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where in the file the bytes start.
    base: u64,
    sizes: Sizes,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], base: u64, sizes: Sizes) -> Self {
        Self { bytes, at: 0, base, sizes }
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let Some(end) = end else {
            return Err(self.corrupt(format!("{} bytes are left, expected {count}", self.left())));
        };
        let taken = self.bytes.get(self.at..end).unwrap_or_default();
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn skip(&mut self, count: usize) -> Result<()> {
        self.take(count).map(|_| ())
    }

    /// An unsigned number of `width` bytes, at most eight.
    pub(crate) fn uint(&mut self, width: usize) -> Result<u64> {
        Ok(uint(self.take(width.min(8))?))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.uint(1)? as u8)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(self.uint(2)? as u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(self.uint(4)? as u32)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.uint(8)
    }

    /// An address in the file; `None` for the one that is all ones, which stands for nowhere.
    pub(crate) fn address(&mut self) -> Result<Option<u64>> {
        let bytes = self.take(self.sizes.address)?;
        Ok(if bytes.iter().all(|&byte| byte == 0xff) { None } else { Some(uint(bytes)) })
    }

    /// An address that must be somewhere.
    pub(crate) fn address_of(&mut self, what: &str) -> Result<u64> {
        match self.address()? {
            Some(address) => Ok(address),
            None => Err(self.corrupt(format!("{what} has no address"))),
        }
    }

    pub(crate) fn length(&mut self) -> Result<u64> {
        self.uint(self.sizes.length)
    }

    /// The signature that a structure begins with.
    pub(crate) fn signature(&mut self, expected: &[u8; 4]) -> Result<()> {
        let start = self.clone();
        let found = self.take(4)?;
        if found == expected {
            return Ok(());
        }
        let (found, expected) = (found.escape_ascii(), expected.escape_ascii());
        Err(start.corrupt(format!("found the signature \"{found}\", expected \"{expected}\"")))
    }

    /// A version, one of those that are known.
    pub(crate) fn version(&mut self, what: &str, known: RangeInclusive<u8>) -> Result<u8> {
        let version = self.u8()?;
        if known.contains(&version) {
            return Ok(version);
        }
        let (first, last) = (known.start(), known.end());
        Err(self.corrupt(format!("found version {version} of {what}, expected {first} to {last}")))
    }

    /// The bytes up to the next zero, which is taken too.
    pub(crate) fn text(&mut self) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match rest.iter().position(|&byte| byte == 0) {
            Some(end) => Ok(self.take(end + 1)?.get(..end).unwrap_or_default()),
            None => Err(self.corrupt("a name without an end")),
        }
    }

    /// Goes on to a multiple of eight, counted from `start`.
    pub(crate) fn align_from(&mut self, start: u64) -> Result<()> {
        let past = (self.at().wrapping_sub(start) % 8) as usize;
        self.skip((8 - past) % 8)
    }

    /// Where in the file the next byte is.
    pub(crate) fn at(&self) -> u64 {
        self.base.wrapping_add(self.at as u64)
    }

    /// How many bytes were taken.
    pub(crate) fn taken(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Goes on with other widths.
    pub(crate) fn with_sizes(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }

    /// Checks that the next four bytes are the checksum of all before.
    pub(crate) fn checksum(&mut self, what: &str) -> Result<()> {
        let expected = checksum(self.bytes.get(..self.at).unwrap_or_default());
        match self.u32()? {
            found if found == expected => Ok(()),
            found => {
                Err(self.corrupt(format!("the checksum of {what} is {found:#x}, expected {expected:#x}")))
            }
        }
    }

    /// An error at this place.
    pub(crate) fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt(message).context("byte", self.at())
    }
}

/// A little-endian unsigned number of at most eight bytes.
pub(crate) fn uint(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// How many bytes a number up to `limit` takes: one and a byte for each eight bits of its logarithm.
pub(crate) fn width_of(limit: u64) -> usize {
    limit.checked_ilog2().unwrap_or(0) as usize / 8 + 1
}

/// A number as a length in memory.
pub(crate) fn size(value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::limit(format!("{value} bytes do not fit into memory")))
}

/// Jenkins' lookup3, the checksum of HDF5's newer structures.
///
/// Source: Bob Jenkins, "lookup3.c", 2006 (public domain), `hashlittle` with a start value of 0.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let whole = bytes.len().saturating_sub(1) / 12 * 12;
    let (blocks, tail) = bytes.split_at(whole);
    let word = |part: &[u8], at: usize| {
        uint(part.get(at..).map_or(&[][..], |rest| &rest[..rest.len().min(4)])) as u32
    };
    for block in blocks.chunks_exact(12) {
        a = a.wrapping_add(word(block, 0));
        b = b.wrapping_add(word(block, 4));
        c = c.wrapping_add(word(block, 8));
        for (rotation, turn) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
            let (x, y, z) = match rotation % 3 {
                0 => (&mut a, &mut c, b),
                1 => (&mut b, &mut a, c),
                _ => (&mut c, &mut b, a),
            };
            *x = x.wrapping_sub(*y) ^ y.rotate_left(turn);
            *y = y.wrapping_add(z);
        }
    }
    if tail.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(tail, 0));
    b = b.wrapping_add(word(tail, 4));
    c = c.wrapping_add(word(tail, 8));
    for (rotation, turn) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (x, y) = match rotation % 3 {
            0 => (&mut c, b),
            1 => (&mut a, c),
            _ => (&mut b, a),
        };
        *x = (*x ^ y).wrapping_sub(y.rotate_left(turn));
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_lookup3() {
        // From the self-test of lookup3.c.
        assert_eq!(checksum(b""), 0xdead_beef);
        assert_eq!(checksum(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn widths_count_bytes() {
        assert_eq!([1, 255, 256, 65535, 65536].map(width_of), [1, 1, 2, 2, 3]);
    }
}
