//! Bitshuffle, filter 32008: the bits of elements sorted by their place, in blocks, which may be compressed.
//!
//! Source: the layout as <https://github.com/kiyo-masui/bitshuffle> documents it; the code is our own.

use forebay_core::{Error, Result};

use super::lz4;
use crate::structure::pipeline::Filter;

pub(super) fn undo(filter: &Filter, input: &[u8], out: &mut [u8]) -> Result<usize> {
    let option = |place: usize| filter.options.get(place).copied().unwrap_or(0) as usize;
    let width = option(2);
    let damaged = || Error::corrupt("a chunk whose bitshuffle data is damaged");
    if width == 0 {
        return Err(Error::corrupt("bitshuffle of elements of no bytes"));
    }
    match option(4) {
        0 => {
            super::whole(input.len(), out.len())?;
            let block = if option(3) == 0 { default_block(width) } else { option(3) };
            plain(input, out, width, block).ok_or_else(damaged)
        }
        kind @ (2 | 3) => packed(input, out, width, kind == 3).ok_or_else(damaged),
        kind => Err(Error::unsupported(format!(
            "bitshuffle with compression {kind}, expected 0, 2 (lz4) or 3 (zstd)"
        ))),
    }
}

/// How many elements a block has unless it is said.
fn default_block(width: usize) -> usize {
    (8192 / width / 8 * 8).max(128)
}

/// The lengths of the blocks, in bytes; fewer than eight elements at the end are left as they are.
fn blocks(len: usize, width: usize, block: usize) -> Option<(usize, usize)> {
    let block = block.checked_mul(width).filter(|&bytes| bytes > 0 && block.is_multiple_of(8))?;
    Some((block, len / width / 8 * 8 * width))
}

fn plain(input: &[u8], out: &mut [u8], width: usize, block: usize) -> Option<usize> {
    let (block, whole) = blocks(out.len(), width, block)?;
    let (shuffled, rest) = out.split_at_mut(whole);
    for (from, to) in input.get(..whole)?.chunks(block).zip(shuffled.chunks_mut(block)) {
        unshuffle(from, to, width);
    }
    rest.copy_from_slice(input.get(whole..)?);
    Some(out.len())
}

fn packed(input: &[u8], out: &mut [u8], width: usize, zstd: bool) -> Option<usize> {
    let total = usize::try_from(u64::from_be_bytes(*input.first_chunk()?)).ok()?;
    let block = u32::from_be_bytes(*input.get(8..)?.first_chunk()?) as usize;
    let mut input = input.get(12..)?;
    let out = out.get_mut(..total)?;
    let (block, whole) = blocks(total, width, block / width)?;
    let (shuffled, rest) = out.split_at_mut(whole);
    let mut unpacked = vec![0; block.min(whole)];
    for to in shuffled.chunks_mut(block) {
        let from = unpacked.get_mut(..to.len())?;
        if zstd {
            let len = u32::from_be_bytes(*input.first_chunk()?) as usize;
            let (packed, after) = input.get(4..)?.split_at_checked(len)?;
            zstd::bulk::decompress_to_buffer(packed, from).ok().filter(|&made| made == to.len())?;
            input = after;
        } else {
            input = lz4::block_into(input, from)?;
        }
        unshuffle(from, to, width);
    }
    rest.copy_from_slice(input.get(..rest.len())?);
    Some(total)
}

/// Undoes one block of a multiple of eight elements.
///
/// Byte `b` and bit `k` of all elements make a row of a bit each, the first element lowest.
pub(super) fn unshuffle(input: &[u8], out: &mut [u8], width: usize) {
    let row = out.len() / width / 8;
    for (group, elements) in out.chunks_exact_mut(8 * width).enumerate() {
        for byte in 0..width {
            let bits: [u8; 8] = std::array::from_fn(|bit| input[(byte * 8 + bit) * row + group]);
            let transposed = transpose(u64::from_le_bytes(bits)).to_le_bytes();
            for (element, value) in transposed.into_iter().enumerate() {
                elements[element * width + byte] = value;
            }
        }
    }
}

/// Transposes a matrix of 8 by 8 bits.
///
/// Source: Warren, "Hacker's Delight", section 7-3.
fn transpose(mut x: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let swapped = (x ^ x >> shift) & mask;
        x ^= swapped ^ swapped << shift;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_to_their_elements() {
        let plain: Vec<u8> = (0..96_u32).map(|at| (at * 37 % 251) as u8).collect();
        for width in [1, 2, 3, 4, 6, 12] {
            let row = plain.len() / width / 8;
            let mut shuffled = vec![0; plain.len()];
            for (at, value) in plain.iter().enumerate() {
                let (element, byte) = (at / width, at % width);
                for bit in 0..8 {
                    shuffled[(byte * 8 + bit) * row + element / 8] |= (value >> bit & 1) << (element % 8);
                }
            }
            let mut out = vec![0; plain.len()];
            unshuffle(&shuffled, &mut out, width);
            assert_eq!(out, plain, "width {width}");
        }
    }
}
