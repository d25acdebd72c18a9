//! LZ4 in the blocks of HDF5's filter 32004.

use forebay_core::{Error, Result};

pub(super) fn undo(input: &[u8], out: &mut [u8]) -> Result<usize> {
    decode(input, out).ok_or_else(|| Error::corrupt("a chunk whose LZ4 data is damaged"))
}

/// A head with the length and that of a block, then blocks, each after its length; all big-endian.
fn decode(input: &[u8], out: &mut [u8]) -> Option<usize> {
    let total = usize::try_from(u64::from_be_bytes(*input.first_chunk()?)).ok()?;
    let block = u32::from_be_bytes(*input.get(8..)?.first_chunk()?) as usize;
    let out = out.get_mut(..total)?;
    if block == 0 {
        return (total == 0).then_some(0);
    }
    let mut rest = input.get(12..)?;
    for part in out.chunks_mut(block) {
        rest = block_into(rest, part)?;
    }
    Some(total)
}

/// One block after its length, which becomes all of `out`; gives what follows. A block as long as that was stored as it is.
pub(super) fn block_into<'a>(input: &'a [u8], out: &mut [u8]) -> Option<&'a [u8]> {
    let len = u32::from_be_bytes(*input.first_chunk()?) as usize;
    let (block, rest) = input.get(4..)?.split_at_checked(len)?;
    if len == out.len() {
        out.copy_from_slice(block);
    } else if lz4_flex::block::decompress_into(block, out).ok()? != out.len() {
        return None;
    }
    Some(rest)
}
