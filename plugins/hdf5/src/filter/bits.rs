//! Numbers of any count of bits, one after the other, the highest bit first.

/// Where in some bytes the next bit is.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `count` bits, at most 64, as a number; `None` when there are fewer.
    pub(super) fn take(&mut self, count: u32) -> Option<u64> {
        let mut value = 0_u64;
        let mut left = count.min(64) as usize;
        while left > 0 {
            let byte = usize::from(*self.bytes.get(self.at / 8)?);
            let free = 8 - self.at % 8;
            let part = free.min(left);
            let bits = byte >> (free - part) & ((1 << part) - 1);
            value = value << part | bits as u64;
            self.at += part;
            left -= part;
        }
        Some(value)
    }
}

/// Writes the low bytes of a number in an element's order.
pub(super) fn put(value: u64, big: bool, out: &mut [u8]) {
    let bytes = value.to_le_bytes();
    for (place, byte) in out.iter_mut().enumerate() {
        *byte = bytes.get(place).copied().unwrap_or(0);
    }
    if big {
        out.reverse();
    }
}
