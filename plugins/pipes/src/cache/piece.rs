//! Samples as a file, and back.
//!
//! A piece is a magic, the XXH3 of all behind it, the number of its first sample, how many there are, the lengths of the flat bytes and of the large buffers, and
//! then these, each from a multiple of 64 on ([`codec`](forebay_core::codec)). Numbers are little-endian, of 64 bits.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use forebay_core::{
    Buffer, Chunk, Context, Error, Result, Sample,
    codec::{Decoder, Encoder},
};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub(super) const MAGIC: &[u8; 8] = b"FBPIECE1";
/// Magic and sum.
const HEAD: usize = 16;
/// Tensors are read where they lie.
const ALIGN: usize = 64;

/// Writes samples, of which `first` is the number of the first; gives how many bytes the file has.
pub(super) fn write(path: &Path, first: u64, chunk: &mut Chunk, encoder: &mut Encoder) -> Result<u64> {
    encoder.encode(chunk)?;
    let mut head = Vec::new();
    let lens = encoder.parts.iter().map(|part| part.len() as u64);
    let numbers = [first, chunk.len() as u64, encoder.flat.len() as u64, encoder.parts.len() as u64];
    numbers.into_iter().chain(lens).for_each(|number| head.extend_from_slice(&number.to_le_bytes()));
    let parts = encoder.parts.iter().map(|part| &part[..]);
    let all: Vec<&[u8]> = [&head[..], &encoder.flat].into_iter().chain(parts).collect();
    let written = File::create_new(path).and_then(|mut file| put(&mut file, &all));
    encoder.forget();
    written.map_err(|error| Error::from(error).context("file", path.display()))
}

fn put(file: &mut File, all: &[&[u8]]) -> io::Result<u64> {
    const ZEROS: [u8; ALIGN] = [0; ALIGN];
    let mut at = HEAD;
    let mut pieces = Vec::with_capacity(2 * all.len());
    for bytes in all {
        pieces.push(*bytes);
        at += bytes.len();
        let gap = at.next_multiple_of(ALIGN) - at;
        pieces.push(&ZEROS[..gap]);
        at += gap;
    }
    let mut sum = Xxh3::new();
    pieces.iter().for_each(|piece| sum.update(piece));
    file.write_all(&[*MAGIC, sum.digest().to_le_bytes()].concat())?;
    pieces.into_iter().try_for_each(|piece| file.write_all(piece))?;
    Ok(at as u64)
}

/// Reads the samples of a file that has so many bytes, and of which the first has this number.
///
/// # Errors
/// `Corrupt` unless it is as it was written; `Io`.
pub(super) fn read(
    path: &Path,
    (first, bytes): (u64, u64),
    decoder: &mut Decoder,
    cx: &Context,
) -> Result<Vec<Sample>> {
    let len = usize::try_from(bytes).map_err(|_| Error::corrupt("larger than memory"))?;
    let mut memory = cx.alloc(len)?;
    let mut file = File::open(path)?;
    file.read_exact(&mut memory)?;
    if file.read(&mut [0])? != 0 {
        return Err(Error::corrupt("longer than it was"));
    }
    let all = memory.freeze();
    let (head, rest) = all.split_at_checked(HEAD).ok_or_else(|| Error::corrupt("too short"))?;
    if head != [*MAGIC, xxh3_64(rest).to_le_bytes()].concat() {
        return Err(Error::corrupt("its sum is wrong"));
    }
    let mut chunk = decode(&all, first, decoder).ok_or_else(|| Error::corrupt("its lengths are wrong"))??;
    Ok(std::iter::from_fn(|| chunk.pop()).collect())
}

fn decode(all: &Buffer, first: u64, decoder: &mut Decoder) -> Option<Result<Chunk>> {
    let number = |place: usize| {
        let bytes = all.get(HEAD + 8 * place..HEAD + 8 * place + 8)?;
        Some(u64::from_le_bytes((&*bytes).try_into().ok()?))
    };
    let len = |place: usize| usize::try_from(number(place)?).ok();
    let count = len(3)?;
    if number(0)? != first || count > all.len() / 8 {
        return None;
    }
    let mut at = (HEAD + 8 * (4 + count)).next_multiple_of(ALIGN);
    let mut part = |len: usize| {
        let part = all.get(at..at.checked_add(len)?)?;
        at = (at + len).next_multiple_of(ALIGN);
        Some(part)
    };
    let flat = part(len(2)?)?;
    let parts = (4..4 + count).map(|place| part(len(place)?)).collect::<Option<Vec<_>>>()?;
    let chunk = decoder.decode(&flat, &parts);
    Some(chunk.and_then(|chunk| match chunk.len() as u64 == number(1).unwrap_or_default() {
        true => Ok(chunk),
        false => Err(Error::corrupt("it has another number of samples")),
    }))
}
