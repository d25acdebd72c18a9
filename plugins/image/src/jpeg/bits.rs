//! The entropy-coded bytes as bits.

use crate::jpeg::fault::{Fault, Why};

/// Reads bits of entropy-coded bytes, in which 0xff is written as 0xff 0x00, up to the next marker.
///
/// What is rarely called takes and gives it whole, so that in the loops it stays in registers.
#[derive(Clone, Copy)]
pub(crate) struct Bits<'a> {
    /// The bytes up to the next 0xff.
    clean: &'a [u8],
    /// From that 0xff on.
    rest: &'a [u8],
    /// The next bits, from the highest on. Those past `count` are either zero or what will come there.
    buffer: u64,
    count: u32,
    /// Zeros that were made up since the bytes had ended; they are the last that came into the buffer.
    made_up: u64,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let (clean, rest) = up_to_ff(bytes);
        Self { clean, rest, buffer: 0, count: 0, made_up: 0 }
    }

    /// Sees to it that at least 56 bits are there.
    #[inline(always)]
    pub(crate) fn refill(&mut self) {
        if let Some((next, _)) = self.clean.split_first_chunk::<8>() {
            self.buffer |= u64::from_be_bytes(*next) >> self.count;
            // As many whole bytes as fit; `& 7` only tells the compiler what is true already.
            let taken = ((63 - self.count) >> 3) & 7;
            self.clean = &self.clean[taken as usize..];
            self.count |= 56;
        } else {
            *self = self.refilled_bytewise();
        }
    }

    #[cold]
    #[inline(never)]
    fn refilled_bytewise(mut self) -> Self {
        while self.count < 56 {
            let byte = self.byte().unwrap_or_else(|| {
                self.made_up += 8;
                0
            });
            self.buffer |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
        self
    }

    fn byte(&mut self) -> Option<u8> {
        if let Some((byte, clean)) = self.clean.split_first() {
            self.clean = clean;
            return Some(*byte);
        }
        let rest = self.rest.strip_prefix(b"\xff\x00")?;
        (self.clean, self.rest) = up_to_ff(rest);
        Some(0xff)
    }

    /// The next bits, from the highest on.
    #[inline(always)]
    pub(crate) fn ahead(&self) -> u64 {
        self.buffer
    }

    /// Goes on by `count` bits, which must be there.
    #[inline(always)]
    pub(crate) fn consume(&mut self, count: u32) {
        debug_assert!(count < 64 && count <= self.count);
        self.buffer <<= count & 63;
        self.count = self.count.wrapping_sub(count);
    }

    /// Takes the next `count` bits, at most 31, which must be there.
    #[inline(always)]
    pub(crate) fn take(&mut self, count: u32) -> u32 {
        let bits = (self.buffer >> 1 >> (63 - count)) as u32;
        self.consume(count);
        bits
    }

    /// Whether bits were consumed that the file does not have.
    pub(crate) fn overrun(&self) -> bool {
        self.made_up > u64::from(self.count)
    }

    /// The bytes from the next marker on.
    pub(crate) fn marker(&self) -> &'a [u8] {
        let mut rest = self.rest;
        while let Some(after) = rest.strip_prefix(b"\xff\x00") {
            (_, rest) = up_to_ff(after);
        }
        while let [0xff, 0xff, ..] = rest {
            rest = &rest[1..];
        }
        rest
    }

    /// Those behind the next restart marker, which must be of this number.
    pub(crate) fn behind_restart(&self, number: u8) -> Result<Self, Fault> {
        if self.overrun() {
            return Err(self.fault(Why::EndsEarly));
        }
        match *self.marker() {
            [0xff, marker, ref rest @ ..] if marker == 0xd0 + number % 8 => Ok(Self::new(rest)),
            ref rest @ ([] | [0xff]) => Err(Fault::at(rest, Why::EndsEarly)),
            ref rest => Err(Fault::at(rest, Why::NoRestart)),
        }
    }

    /// A fault at the next bits, or that they are missing.
    #[cold]
    pub(crate) fn fault(&self, why: Why) -> Fault {
        if self.overrun() {
            return Fault::at(self.rest, Why::EndsEarly);
        }
        let ahead = (u64::from(self.count) - self.made_up) / 8;
        Fault { why, left: self.clean.len() + self.rest.len() + ahead as usize }
    }
}

/// The bytes before the first 0xff, and those from it on.
fn up_to_ff(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (blocks, _) = bytes.as_chunks::<32>();
    // Without a way out of the inner loop it is a handful of vector instructions.
    let has = |block: &&[u8; 32]| block.iter().fold(false, |found, byte| found | (*byte == 0xff));
    let start = blocks.iter().take_while(|block| !has(block)).count() * 32;
    let at = bytes[start..].iter().position(|byte| *byte == 0xff).map_or(bytes.len(), |at| start + at);
    bytes.split_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_bits_and_stops_at_a_marker() {
        for lead in 0..40 {
            let mut bytes: Vec<u8> = (0..lead).map(|i| i * 5).collect();
            let mut plain = bytes.clone();
            bytes.extend(b"\xff\x00\x12\xff\x00\xff\x00\x34\xff\xd3\xff\x00\x77");
            plain.extend(b"\xff\x12\xff\xff\x34");
            for step in 1..=32 {
                let mut bits = Bits::new(&bytes);
                let mut at = 0;
                while at + step <= plain.len() * 8 {
                    bits.refill();
                    for bit in 0..step {
                        let expected = plain[(at + bit) / 8] >> (7 - (at + bit) % 8) & 1;
                        assert_eq!((bits.ahead() >> (63 - bit) & 1) as u8, expected, "{lead} {step} {at}");
                    }
                    bits.consume(step as u32);
                    at += step;
                }
                assert!(!bits.overrun());
                assert!(bits.marker().starts_with(b"\xff\xd3"));
                bits.refill();
                bits.consume(step as u32);
                assert!(bits.overrun(), "{lead} {step} {at}");
            }
        }
    }
}
