//! Fletcher32: a checksum at a chunk's end.

use forebay_core::{Error, Result};

use crate::bytes::uint;

/// Checks the checksum; gives how many bytes come before it.
pub(super) fn verify(input: &[u8]) -> Result<usize> {
    let Some(len) = input.len().checked_sub(4) else {
        return Err(Error::corrupt(format!("a chunk of {} bytes, expected a checksum", input.len())));
    };
    let (body, stored) = input.split_at(len);
    let (found, expected) = (uint(stored) as u32, sum(body));
    // Old releases on little-endian machines stored the bytes of each half the other way round.
    let swapped = expected >> 8 & 0x00ff_00ff | expected << 8 & 0xff00_ff00;
    if found == expected || found == swapped {
        return Ok(len);
    }
    Err(Error::corrupt(format!("the checksum of a chunk is {found:#x}, expected {expected:#x}")))
}

/// Fletcher's checksum over big-endian words of 16 bits.
///
/// Source: RFC 1146 and H5_checksum_fletcher32: sums modulo 65535, begun with zero.
fn sum(bytes: &[u8]) -> u32 {
    let (mut one, mut two) = (0_u32, 0_u32);
    // So many words do not make the sums overflow.
    for block in bytes.chunks(720) {
        let mut words = block.chunks_exact(2);
        for word in &mut words {
            one += u32::from(word[0]) << 8 | u32::from(word[1]);
            two += one;
        }
        if let [last] = words.remainder() {
            one += u32::from(*last) << 8;
            two += one;
        }
        one = (one & 0xffff) + (one >> 16);
        two = (two & 0xffff) + (two >> 16);
    }
    one = (one & 0xffff) + (one >> 16);
    two = (two & 0xffff) + (two >> 16);
    two << 16 | one
}
