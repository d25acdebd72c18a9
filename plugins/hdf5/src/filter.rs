//! Filters: what was done to a chunk before it was stored, and how it is undone.

mod bits;
mod bitshuffle;
mod blosc;
mod fletcher32;
mod lz4;
mod lzf;
mod nbit;
mod scale_offset;
mod shuffle;

use std::io::Read as _;

use forebay_core::{BufferMut, Error, Result};

use crate::{dataset::Alloc, structure::pipeline::Filter};

const DEFLATE: u16 = 1;
const FLETCHER32: u16 = 3;

/// Memory between filters, used again for each chunk, and the decompressor.
#[derive(Default)]
pub(crate) struct Scratch {
    front: Option<BufferMut>,
    back: Option<BufferMut>,
    inflate: Option<libdeflater::Decompressor>,
}

/// Undoes all filters but those in `mask`, from last to first: `stored` becomes the bytes of `out`, all of them.
pub(crate) fn undo(
    filters: &[Filter],
    mask: u32,
    stored: &[u8],
    out: &mut [u8],
    scratch: &mut Scratch,
    alloc: Alloc<'_>,
) -> Result<()> {
    let used = |place: usize| mask.checked_shr(place as u32).unwrap_or(0) & 1 == 0;
    let steps: Vec<&Filter> = filters
        .iter()
        .enumerate()
        .filter(|(place, _)| used(*place))
        .map(|(_, filter)| filter)
        .rev()
        .collect();
    let (mut held, mut len) = (false, stored.len());
    for (nth, filter) in steps.iter().enumerate() {
        let input = match (&scratch.front, held) {
            (Some(front), true) => front.get(..len),
            _ => stored.get(..len),
        };
        let input = input.unwrap_or_default();
        if filter.id == FLETCHER32 {
            len = fletcher32::verify(input)?;
            continue;
        }
        if nth + 1 == steps.len() {
            let made = decode(filter, input, out, &mut scratch.inflate)?;
            return whole(made, out.len());
        }
        let sums = steps[nth + 1..].iter().filter(|filter| filter.id == FLETCHER32).count();
        let most = (out.len() + 4 * sums).max(input.len());
        if scratch.back.as_ref().is_none_or(|back| back.len() < most) {
            scratch.back = Some(alloc(most)?);
        }
        let Some(back) = scratch.back.as_mut().and_then(|back| back.get_mut(..most)) else { continue };
        len = decode(filter, input, back, &mut scratch.inflate)?;
        std::mem::swap(&mut scratch.front, &mut scratch.back);
        held = true;
    }
    let last = match (&scratch.front, held) {
        (Some(front), true) => front.get(..len),
        _ => stored.get(..len),
    };
    let last = last.unwrap_or_default();
    whole(last.len(), out.len())?;
    out.copy_from_slice(last);
    Ok(())
}

fn whole(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!("a chunk of {found} bytes, expected {expected}")))
}

/// The first bytes of `out`, `len` of them.
fn as_many(len: usize, out: &mut [u8]) -> Result<&mut [u8]> {
    let most = out.len();
    out.get_mut(..len)
        .ok_or_else(|| Error::corrupt(format!("a chunk of {len} bytes, expected at most {most}")))
}

/// How many bytes the largest chunk has that `stored` bytes can become, where that is known.
pub(crate) fn most(filters: &[Filter], stored: u64) -> u64 {
    // Deflate makes at most 1032 bytes of one.
    let deflates = filters.iter().filter(|filter| filter.id == DEFLATE).count() as u32;
    let plain = filters.iter().all(|filter| matches!(filter.id, 1..=3));
    if plain { stored.saturating_add(64).saturating_mul(1100_u64.saturating_pow(deflates)) } else { u64::MAX }
}

/// Whether a filter can be undone.
pub(crate) fn is_known(id: u16) -> bool {
    matches!(id, DEFLATE..=FLETCHER32 | 5 | 6 | 307 | 32000 | 32001 | 32004 | 32008 | 32015)
}

/// Undoes one filter; gives how many bytes it wrote.
fn decode(
    filter: &Filter,
    input: &[u8],
    out: &mut [u8],
    inflate: &mut Option<libdeflater::Decompressor>,
) -> Result<usize> {
    match filter.id {
        DEFLATE => inflate_zlib(input, out, inflate),
        2 => shuffle::undo(filter, input, out),
        5 => nbit::undo(filter, input, out),
        6 => scale_offset::undo(filter, input, out),
        307 => bunzip2(input, out),
        32000 => lzf::undo(input, out),
        32001 => blosc::undo(input, out, inflate),
        32004 => lz4::undo(input, out),
        32008 => bitshuffle::undo(filter, input, out),
        32015 => unzstd(input, out),
        id => Err(Error::unsupported(format!("chunks with filter {}", name(id, &filter.name)))),
    }
}

/// A filter's number with its name, for messages.
fn name(id: u16, stored: &str) -> String {
    let known = match id {
        4 => "szip",
        305 => "lzo",
        32013 => "zfp",
        32026 => "blosc2",
        _ => stored,
    };
    format!("{id} ({})", if known.is_empty() { "unknown" } else { known })
}

fn inflate_zlib(
    input: &[u8],
    out: &mut [u8],
    inflate: &mut Option<libdeflater::Decompressor>,
) -> Result<usize> {
    let inflate = inflate.get_or_insert_with(libdeflater::Decompressor::new);
    inflate.zlib_decompress(input, out).map_err(|error| match error {
        libdeflater::DecompressionError::BadData => Error::corrupt("a chunk whose deflate data is damaged"),
        libdeflater::DecompressionError::InsufficientSpace => {
            Error::corrupt(format!("a chunk that inflates to more than the {} bytes expected", out.len()))
        }
    })
}

fn unzstd(input: &[u8], out: &mut [u8]) -> Result<usize> {
    zstd::bulk::decompress_to_buffer(input, out)
        .map_err(|error| Error::corrupt(format!("a chunk whose zstd data is damaged: {error}")))
}

fn bunzip2(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut reader = bzip2::read::BzDecoder::new(input);
    let mut made = 0;
    while made < out.len() {
        match reader.read(&mut out[made..]) {
            Ok(0) => break,
            Ok(count) => made += count,
            Err(error) => {
                return Err(Error::corrupt(format!("a chunk whose bzip2 data is damaged: {error}")));
            }
        }
    }
    Ok(made)
}

/// Copies bytes from `distance` back, which may reach into those it writes; gives where it ended.
fn copy_back(out: &mut [u8], at: usize, distance: usize, len: usize) -> Option<usize> {
    let (start, end) = (at.checked_sub(distance)?, at.checked_add(len)?);
    if end > out.len() || distance == 0 {
        return None;
    }
    if distance >= len {
        out.copy_within(start..start + len, at);
    } else {
        for place in at..end {
            out[place] = out[place - distance];
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_that_are_known_are_those_that_are_undone() {
        for id in 0..=u16::MAX {
            let filter = Filter { id, name: String::new(), options: Vec::new() };
            let found = decode(&filter, &[], &mut [0; 8], &mut None);
            let refused = found.is_err_and(|error| error.message().starts_with("chunks with filter"));
            // Its sum is verified elsewhere.
            assert_eq!(is_known(id), !refused || id == FLETCHER32, "{id}");
        }
    }
}
