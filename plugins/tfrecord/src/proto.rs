//! Protocol buffers, as far as reading a message field by field needs them.
//!
//! <https://protobuf.dev/programming-guides/encoding/>

use forebay_core::{Error, Result};

/// What one field of a message holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wire<'a> {
    /// A number of seven bits a byte, as it stands there.
    Varint(&'a [u8]),
    /// Eight bytes.
    Fixed64,
    /// A message, text, bytes or packed numbers.
    Bytes(Message<'a>),
    /// Four bytes.
    Fixed32(&'a [u8]),
}

/// A message, or bytes within one, and where in the whole it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Message<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Message<'a> {
    /// The next field's number and contents, which are taken off; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let at = self.at;
        self.field().map(Some).map_err(|error| error.context("byte", at))
    }

    fn field(&mut self) -> Result<(u64, Wire<'a>)> {
        let tag = number(self.varint()?)?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => {
                self.take(8)?;
                Wire::Fixed64
            }
            2 => {
                let len = number(self.varint()?)?;
                let at = self.at;
                Wire::Bytes(Message { bytes: self.take(len)?, at })
            }
            5 => Wire::Fixed32(self.take(4)?),
            other => {
                return Err(Error::corrupt(format!("found the wire type {other}, expected 0, 1, 2 or 5")));
            }
        };
        match tag >> 3 {
            0 => Err(Error::corrupt("found the field number 0")),
            field => Ok((field, wire)),
        }
    }

    fn varint(&mut self) -> Result<&'a [u8]> {
        let len =
            self.bytes.iter().position(|byte| byte & 0x80 == 0).map_or(self.bytes.len() + 1, |last| last + 1);
        self.take(len as u64)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let parts = usize::try_from(len).ok().and_then(|len| self.bytes.split_at_checked(len));
        let (front, rest) = parts.ok_or_else(|| {
            Error::corrupt(format!("expected {len} bytes, and the message ends after {}", self.bytes.len()))
        })?;
        (self.bytes, self.at) = (rest, self.at + front.len());
        Ok(front)
    }
}

/// The value of a varint.
pub(crate) fn number(varint: &[u8]) -> Result<u64> {
    if varint.len() > 10 || (varint.len() == 10 && varint.last().is_some_and(|&last| last > 1)) {
        return Err(Error::corrupt("a number of more than 64 bits"));
    }
    Ok(varint.iter().rev().fold(0, |number, &byte| number << 7 | u64::from(byte & 0x7f)))
}

/// The varints that stand one after the other in `packed`.
pub(crate) fn varints(packed: &[u8]) -> impl Iterator<Item = Result<u64>> {
    packed.split_inclusive(|byte| byte & 0x80 == 0).map(|varint| match varint.last() {
        Some(last) if last & 0x80 == 0 => number(varint),
        _ => Err(Error::corrupt("packed numbers end within a number")),
    })
}
