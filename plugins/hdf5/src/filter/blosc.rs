//! Blosc 1, filter 32001: blocks, which may be shuffled, in one of several compressions.
//!
//! Source: "Blosc Chunk Format", <https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst>; the code is our own.

use forebay_core::{Error, Result, zeroed};

use super::{bitshuffle, copy_back, shuffle};
use crate::bytes::uint;

const HEAD: usize = 16;
/// Smaller blocks are never split by bytes.
const SPLIT_LEAST: usize = 128;
const SPLIT_WIDTH: usize = 16;

struct Head {
    flags: u8,
    width: usize,
    block: usize,
}

pub(super) fn undo(
    input: &[u8],
    out: &mut [u8],
    inflate: &mut Option<libdeflater::Decompressor>,
) -> Result<usize> {
    let damaged = || Error::corrupt("a chunk whose blosc data is damaged");
    let head = input.get(..HEAD).ok_or_else(damaged)?;
    let number = |at: usize| uint(&head[at..at + 4]) as usize;
    let (flags, width, total) = (head[2], usize::from(head[3]).max(1), number(4));
    let out = out.get_mut(..total).ok_or_else(|| Error::corrupt(format!("blosc data of {total} bytes")))?;
    if flags & 2 != 0 {
        out.copy_from_slice(input.get(HEAD..HEAD + total).ok_or_else(damaged)?);
        return Ok(total);
    }
    let head = Head { flags, width, block: number(8) };
    if head.block == 0 {
        return if total == 0 { Ok(0) } else { Err(damaged()) };
    }
    let mut plain = zeroed(head.block.min(total))?;
    for (nth, part) in out.chunks_mut(head.block).enumerate() {
        let start = input.get(HEAD + 4 * nth..HEAD + 4 * nth + 4).ok_or_else(damaged)?;
        let from = input.get(uint(start) as usize..).ok_or_else(damaged)?;
        let plain = plain.get_mut(..part.len()).ok_or_else(damaged)?;
        unpack(from, plain, &head, inflate)?.ok_or_else(damaged)?;
        match (flags & 1, flags & 4, part.len() % (8 * width)) {
            (1, _, _) if width > 1 => shuffle::unshuffle(width, plain, part),
            (_, 4, 0) => bitshuffle::unshuffle(plain, part, width),
            _ => part.copy_from_slice(plain),
        }
    }
    Ok(total)
}

/// One block, which may be split into parts, each after its length.
fn unpack(
    mut from: &[u8],
    out: &mut [u8],
    head: &Head,
    inflate: &mut Option<libdeflater::Decompressor>,
) -> Result<Option<()>> {
    let splits = head.flags & 0x10 == 0
        && head.width <= SPLIT_WIDTH
        && out.len() == head.block
        && out.len() / head.width >= SPLIT_LEAST;
    let len = if splits { out.len() / head.width } else { out.len() };
    for part in out.chunks_mut(len.max(1)) {
        let Some((packed, rest)) =
            from.get(4..).and_then(|body| body.split_at_checked(uint(&from[..4]) as usize))
        else {
            return Ok(None);
        };
        from = rest;
        let made = match head.flags >> 5 {
            _ if packed.len() == part.len() => {
                part.copy_from_slice(packed);
                Some(part.len())
            }
            0 => blosclz(packed, part),
            1 => lz4_flex::block::decompress_into(packed, part).ok(),
            3 => Some(super::inflate_zlib(packed, part, inflate)?),
            4 => zstd::bulk::decompress_to_buffer(packed, part).ok(),
            kind => {
                return Err(Error::unsupported(format!(
                    "blosc with compression {kind}, expected 0 (blosclz), 1 (lz4), 3 (zlib) or 4 (zstd)"
                )));
            }
        };
        if made != Some(part.len()) {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

/// BloscLZ, which is FastLZ with far distances.
fn blosclz(input: &[u8], out: &mut [u8]) -> Option<usize> {
    const FAR: usize = 8191;
    let mut from = 0;
    let mut next = || {
        let byte = input.get(from).copied().map(usize::from);
        from += 1;
        byte
    };
    let mut to = 0;
    // The first byte is always of literals.
    let mut control = next()? & 31;
    loop {
        if control >= 32 {
            let (mut len, high) = ((control >> 5) - 1, (control & 31) << 8);
            if len == 6 {
                loop {
                    let more = next()?;
                    len += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = next()?;
            let distance =
                if low == 255 && high == 31 << 8 { (next()? << 8) + next()? + FAR } else { high + low };
            to = copy_back(out, to, distance + 1, len + 3)?;
        } else {
            for _ in 0..=control {
                *out.get_mut(to)? = next()? as u8;
                to += 1;
            }
        }
        match next() {
            Some(byte) => control = byte,
            None => return Some(to),
        }
    }
}
