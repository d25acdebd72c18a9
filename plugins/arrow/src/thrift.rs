//! A look at Parquet's Thrift structs before the library reads them: what it would take memory or stack for.
//!
//! Source: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

use forebay_core::{Error, Result};

/// The most structs and lists within each other.
const DEPTH: usize = 32;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
pub(crate) const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub(crate) const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Bytes in the compact protocol, and how far they were looked at.
pub(crate) struct Skim<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Skim<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were looked at.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Looks at the fields of a struct: `each` is given a field's number, its type and what follows, and says whether it took
    /// the field; otherwise it is passed over.
    pub(crate) fn fields(&mut self, mut each: impl FnMut(i64, u8, &mut Self) -> Result<bool>) -> Result<()> {
        let mut id = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let (delta, kind) = (head >> 4, head & 15);
            id = if delta == 0 { self.int()? } else { id + i64::from(delta) };
            if !each(id, kind, self)? {
                self.pass(kind, DEPTH)?;
            }
        }
    }

    /// The type and number of a list's items, which follow.
    pub(crate) fn list(&mut self) -> Result<(u8, u64)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((head & 15, count))
    }

    /// An integer of any width.
    pub(crate) fn int(&mut self) -> Result<i64> {
        let bits = self.varint()?;
        Ok((bits >> 1) as i64 ^ -((bits & 1) as i64))
    }

    fn pass(&mut self, kind: u8, depth: usize) -> Result<()> {
        let inner = depth.checked_sub(1).ok_or_else(|| self.broken("structs nested too deep"))?;
        match kind {
            TRUE | FALSE => Ok(()),
            3 => self.skip(1),
            4..=6 => self.varint().map(|_| ()),
            DOUBLE => self.skip(8),
            UUID => self.skip(16),
            BINARY => self.varint().and_then(|len| self.skip(len)),
            LIST | SET => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.pass_item(kind, inner))
            }
            MAP => match self.varint()? {
                0 => Ok(()),
                count => {
                    let kinds = self.byte()?;
                    (0..count).try_for_each(|_| {
                        self.pass_item(kinds >> 4, inner)?;
                        self.pass_item(kinds & 15, inner)
                    })
                }
            },
            STRUCT => loop {
                let head = self.byte()?;
                if head == 0 {
                    return Ok(());
                }
                if head >> 4 == 0 {
                    self.varint()?;
                }
                self.pass(head & 15, inner)?;
            },
            _ => Err(self.broken("a field of no known type")),
        }
    }

    /// Passes over an item of a list, where truth takes a byte.
    fn pass_item(&mut self, kind: u8, depth: usize) -> Result<()> {
        match kind {
            TRUE | FALSE => self.skip(1),
            _ => self.pass(kind, depth),
        }
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.broken("the end"))?;
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, len: u64) -> Result<()> {
        let left = self.bytes.len() - self.at;
        let len = usize::try_from(len).ok().filter(|len| *len <= left);
        self.at += len.ok_or_else(|| self.broken("the end"))?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(self.broken("an integer of more than 64 bits"))
    }

    fn broken(&self, found: &str) -> Error {
        Error::corrupt(format!("unreadable Thrift: found {found} at byte {} of the struct", self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_fields_and_passes_over_the_rest() {
        // 1: i32 -3; 2: list of 2 structs {1: binary "ab"}; 4: true; 20: i64 300
        let bytes = [0x15, 5, 0x19, 0x2c, 0x18, 2, b'a', b'b', 0, 0x18, 0, 0, 0x21, 0x06, 40, 0xd8, 4, 0, 99];
        let (mut skim, mut found) = (Skim::new(&bytes), Vec::new());
        skim.fields(|id, kind, skim| {
            let taken = matches!(kind, 5 | 6);
            if taken {
                found.push((id, skim.int()?));
            }
            Ok(taken)
        })
        .unwrap();
        assert_eq!((found, skim.at()), (vec![(1, -3), (20, 300)], bytes.len() - 1));
        for end in 0..bytes.len() - 1 {
            assert!(Skim::new(&bytes[..end]).fields(|_, _, _| Ok(false)).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn lists_that_claim_too_much_or_nest_too_deep_are_refused() {
        assert!(Skim::new(&[0x19, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x0f]).fields(|_, _, _| Ok(false)).is_err());
        assert!(Skim::new(&[0x1c; 100_000]).fields(|_, _, _| Ok(false)).is_err());
        assert!(Skim::new(&[0x19; 100_000]).fields(|_, _, _| Ok(false)).is_err());
    }
}
