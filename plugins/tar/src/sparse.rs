//! Files with holes, stored without them: where what is stored belongs. The formats are GNU tar's: the old one, whose map is in
//! the header, and pax 0.0, 0.1 and 1.0 (GNU tar manual, "Storing Sparse Files").

use std::ops::Range;

use forebay_core::{Error, Result};

/// More parts than this are refused: a file system has no use for so many holes.
const PARTS_LIMIT: usize = 1 << 20;

/// A file with holes: its size, and the parts that are stored, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sparse {
    pub(crate) size: u64,
    /// Where each part starts in the file, and how long it is.
    parts: Vec<(u64, u64)>,
}

impl Sparse {
    /// A file of `size` bytes, of which the parts with these starts and lengths are stored, in `stored` bytes.
    pub(crate) fn new(size: u64, numbers: &[u64], stored: u64) -> Result<Self> {
        let (pairs, rest) = numbers.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Error::corrupt("the map of a sparse file lacks a number"));
        }
        let (mut end, mut sum) = (0_u64, 0_u64);
        let mut parts = Vec::new();
        for &[start, len] in pairs {
            if start < end {
                return Err(Error::corrupt(format!(
                    "the map of a sparse file goes back from byte {end} to byte {start}"
                )));
            }
            let fits = start.checked_add(len).filter(|&end| end <= size).zip(sum.checked_add(len));
            let Some((new_end, new_sum)) = fits.filter(|(_, sum)| *sum <= stored) else {
                return Err(Error::corrupt(format!(
                    "{len} bytes at byte {start} of a sparse file of {size}, of which {stored} are stored"
                )));
            };
            (end, sum) = (new_end, new_sum);
            if len > 0 {
                parts.push((start, len));
            }
        }
        Ok(Self { size, parts })
    }

    /// Puts what is `stored` where it belongs in `out`, which is as long as the file, and zeros everywhere else.
    pub(crate) fn expand(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let short = || Error::corrupt("a sparse file has fewer bytes than its map says");
        let index = |number: u64| usize::try_from(number).map_err(|_| short());
        let (mut filled, mut taken) = (0, 0);
        for &(start, len) in &self.parts {
            let (start, len) = (index(start)?, index(len)?);
            let part = stored.get(taken..taken + len).ok_or_else(short)?;
            out.get_mut(filled..start).ok_or_else(short)?.fill(0);
            out.get_mut(start..start + len).ok_or_else(short)?.copy_from_slice(part);
            (filled, taken) = (start + len, taken + len);
        }
        out.get_mut(filled..).ok_or_else(short)?.fill(0);
        Ok(())
    }
}

/// The map that stands before the contents of a pax 1.0 file: how many parts, then two numbers for each, a line each.
#[derive(Default)]
pub(crate) struct Map {
    wanted: Option<usize>,
    pub(crate) numbers: Vec<u64>,
    digits: Option<u64>,
}

impl Map {
    /// Takes over one block; says whether another one follows.
    pub(crate) fn read(&mut self, block: &[u8]) -> Result<bool> {
        for &byte in block {
            match (byte, self.digits) {
                (b'0'..=b'9', digits) => {
                    let digits = digits
                        .unwrap_or(0)
                        .checked_mul(10)
                        .and_then(|ten| ten.checked_add((byte - b'0').into()));
                    self.digits =
                        Some(digits.ok_or_else(|| {
                            Error::corrupt("a number of 65 bits in the map of a sparse file")
                        })?);
                }
                (b'\n', Some(number)) => {
                    self.digits = None;
                    if self.line(number)? {
                        return Ok(false);
                    }
                }
                (other, _) => {
                    let found = other.escape_ascii();
                    return Err(Error::corrupt(format!(
                        "found `{found}` in the map of a sparse file, expected digits"
                    )));
                }
            }
        }
        Ok(true)
    }

    /// Takes over one number; says whether it was the last.
    fn line(&mut self, number: u64) -> Result<bool> {
        let Some(wanted) = self.wanted else {
            let parts =
                usize::try_from(number).ok().filter(|&parts| parts <= PARTS_LIMIT).ok_or_else(|| {
                    Error::limit(format!("a sparse file of {number} parts, at most {PARTS_LIMIT} are read"))
                })?;
            self.wanted = Some(2 * parts);
            return Ok(parts == 0);
        };
        self.numbers.push(number);
        Ok(self.numbers.len() == wanted)
    }
}

/// Where the starts and lengths lie in a block of an old GNU map that begins at `from` and has `count` pairs.
pub(crate) fn places(from: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..2 * count).map(move |number| from + 12 * number..from + 12 * (number + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_where_the_map_says() {
        let sparse = Sparse::new(8, &[2, 3, 6, 1, 8, 0], 4).unwrap();
        let mut out = [9; 8];
        sparse.expand(b"abcd", &mut out).unwrap();
        assert_eq!(&out, b"\0\0abc\0d\0");
        assert!(sparse.expand(b"abc", &mut out).is_err());
        assert!(sparse.expand(b"abcd", &mut [0; 5]).is_err());
    }

    #[test]
    fn maps_that_cannot_be_are_refused() {
        for numbers in [&[1][..], &[4, 1, 2, 1], &[7, 2], &[0, 5], &[u64::MAX, 2], &[0, u64::MAX]] {
            assert!(Sparse::new(8, numbers, 4).is_err(), "{numbers:?}");
        }
    }

    #[test]
    fn a_map_before_the_contents_may_take_several_blocks() {
        let mut map = Map::default();
        assert!(map.read(b"2\n0\n1").unwrap());
        assert!(!map.read(b"0\n20\n5\n\0\0").unwrap());
        assert_eq!(map.numbers, [0, 10, 20, 5]);
        for bad in ["x", "\n", "1\n-", "99999999999999999999999\n", "99999999\n"] {
            assert!(Map::default().read(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(!Map::default().read(b"0\n").unwrap());
    }
}
