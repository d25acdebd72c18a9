//! Unpacks bytes at once, into memory that the caller gives.

use std::io::Read;

use forebay_core::{Blob, Buffer, BufferMut, Error, Result};
use libdeflater::Decompressor;

use crate::{Codec, Input, Unpacked, stream::error_of};

/// How much is asked for at first where nothing says how much it will be, at least.
const FIRST: u64 = 16 << 10;

/// Unpacks `bytes`, packed by `codec`, to at most `limit` bytes, in memory from `alloc`.
///
/// Cost: one block of memory if the packed bytes tell their length, as gzip, zstd and lz4 mostly do. Otherwise
/// each block is twice as large as the one before. gzip and zlib of one member are unpacked at once, at about
/// twice the speed of a stream.
///
/// ```
/// use forebay_core::BufferMut;
/// use forebay_unpack::{Codec, unpack};
///
/// let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH-\xca\xcf\xe3\x02\0\x94\x9f\xa1\x9d\x06\0\0\0";
/// let alloc = |len| Ok(BufferMut::zeroed(len));
/// assert_eq!(&unpack(Codec::Gzip, &packed[..].to_vec().into(), 100, alloc)?[..], b"heron\n");
/// assert!(unpack(Codec::Gzip, &packed[..].to_vec().into(), 5, alloc).is_err());
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` for broken bytes, bytes that end too early and bytes behind the end, with the place; `Limit` for more than
/// `limit`; those of `alloc`.
pub fn unpack(
    codec: Codec,
    bytes: &Buffer,
    limit: u64,
    mut alloc: impl FnMut(usize) -> Result<BufferMut>,
) -> Result<Buffer> {
    let guess = guess(codec, bytes).filter(|&guess| guess <= limit);
    if let Some(guess) = guess
        && let Some(found) = at_once(codec, bytes, guess, &mut alloc)?
    {
        return Ok(found);
    }
    let mut stream = Unpacked::new(codec, Box::new(Input::new(Blob::from(bytes.clone()), 0)))?;
    let first = guess.unwrap_or((bytes.len() as u64).saturating_mul(3).max(FIRST)).min(limit);
    // No larger than the limit, which the caller thinks can be had.
    let mut memory = alloc(usize::try_from(first).unwrap_or(usize::MAX))?;
    let mut filled = 0;
    loop {
        if filled == memory.len() {
            let mut probe = [0];
            if read(&mut stream, &mut probe)? == 0 {
                break;
            }
            memory = grown(memory, limit, &mut alloc)?;
            memory[filled] = probe[0];
            filled += 1;
            continue;
        }
        match read(&mut stream, &mut memory[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    memory.truncate(filled);
    Ok(memory.freeze())
}

/// Unpacks deflated bytes without a header (RFC 1951), which must give exactly `size` bytes.
///
/// Check `size` against a limit before, and the result against a checksum.
///
/// # Errors
/// `Corrupt` for broken bytes or another number of them; those of `alloc`.
pub fn inflate(bytes: &[u8], size: usize, alloc: impl FnOnce(usize) -> Result<BufferMut>) -> Result<Buffer> {
    let mut memory = alloc(size)?;
    match Decompressor::new().deflate_decompress(bytes, &mut memory) {
        Ok(found) if found == size => Ok(memory.freeze()),
        Ok(found) => Err(Error::corrupt(format!("{found} bytes came out of deflated ones, expected {size}"))),
        Err(error) => Err(Error::corrupt(format!("broken deflated bytes, or more than {size}: {error}"))),
    }
}

/// The CRC-32 of gzip and zip.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    libdeflater::crc32(bytes)
}

fn read(stream: &mut Unpacked, out: &mut [u8]) -> Result<usize> {
    loop {
        match stream.read(out) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            found => return found.map_err(error_of),
        }
    }
}

/// Twice the memory, with what was in it.
fn grown(
    full: BufferMut,
    limit: u64,
    alloc: &mut impl FnMut(usize) -> Result<BufferMut>,
) -> Result<BufferMut> {
    let len = full.len() as u64;
    if len >= limit {
        return Err(Error::limit(format!("more than {limit} bytes unpacked")));
    }
    let wanted = len.saturating_mul(2).max(FIRST).min(limit);
    let mut more = alloc(usize::try_from(wanted).unwrap_or(usize::MAX))?;
    more[..full.len()].copy_from_slice(&full);
    Ok(more)
}

/// How much the bytes say that they unpack to, if that can be.
fn guess(codec: Codec, bytes: &[u8]) -> Option<u64> {
    let len = bytes.len() as u64;
    match codec {
        Codec::Gzip => {
            let stated = bytes.last_chunk::<4>().map(|last| u64::from(u32::from_le_bytes(*last)))?;
            // Deflate gives at most 1032 for one.
            (stated <= len.saturating_mul(1032)).then_some(stated)
        }
        Codec::Zstd => {
            let stated = zstd::zstd_safe::get_frame_content_size(bytes).ok()??;
            // A block of three bytes may stand for 128 KiB of one.
            (stated <= len.saturating_mul(44_000)).then_some(stated)
        }
        Codec::Lz4 => {
            let stated = bytes
                .get(4)
                .filter(|flags| **flags & 8 != 0)
                .and_then(|_| bytes.get(6..14)?.first_chunk::<8>());
            let stated = u64::from_le_bytes(*stated?);
            (stated <= len.saturating_mul(255)).then_some(stated)
        }
        _ => None,
    }
}

/// The fast way for what is a single gzip member, unpacked to exactly `guess` bytes; none when it may be anything else,
/// which the stream then judges.
fn at_once(
    codec: Codec,
    bytes: &[u8],
    guess: u64,
    alloc: &mut impl FnMut(usize) -> Result<BufferMut>,
) -> Result<Option<Buffer>> {
    let (Codec::Gzip, Ok(size), Some(end)) = (codec, usize::try_from(guess), bytes.last_chunk::<8>()) else {
        return Ok(None);
    };
    // The library does not say where the member ended, but that its last eight bytes are the sum and the length of what it
    // gave. Where those stand at the end and nowhere before, the end is where it ended.
    let packed = bytes.get(..bytes.len() - 1).unwrap_or_default();
    if packed.windows(8).any(|window| window == end) {
        return Ok(None);
    }
    let mut memory = alloc(size)?;
    let found = Decompressor::new().gzip_decompress(bytes, &mut memory);
    if found.ok() != Some(size) {
        return Ok(None);
    }
    let sum = libdeflater::crc32(&memory).to_le_bytes();
    let is_end = end.starts_with(&sum);
    Ok(is_end.then(|| memory.freeze()))
}
