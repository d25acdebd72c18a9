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
    Buffer, Chunk, Context, Error, Result,
    codec::{Decoder, Encoder},
};
use xxhash_rust::xxh3::Xxh3;

pub(super) const MAGIC: &[u8; 8] = b"FBPIECE1";
/// Magic and sum.
const HEAD: usize = 16;
/// The numbers behind them: of the first sample, of samples, of flat bytes, of large buffers.
const NUMBERS: usize = 32;
const ALIGN: usize = 64;

/// Writes samples, of which `first` is the number of the first; gives how many bytes the file has.
pub(super) fn write(path: &Path, first: u64, chunk: &Chunk, encoder: &mut Encoder) -> Result<u64> {
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
) -> Result<Chunk> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != bytes {
        return Err(Error::corrupt("its length is wrong"));
    }
    let mut head = [0; HEAD + NUMBERS];
    file.read_exact(&mut head)?;
    let (magic, rest) = head.split_at(MAGIC.len());
    let (numbers, _) = rest.as_chunks::<8>();
    let [sum, found, count, flat, parts] = numbers else { return Err(Error::bug("a head of five numbers")) };
    let [sum, found, count, flat, parts] =
        [sum, found, count, flat, parts].map(|number| u64::from_le_bytes(*number));
    if magic != MAGIC || found != first || parts > bytes / 8 || flat > bytes {
        return Err(Error::corrupt("its head is wrong"));
    }
    let mut reader = Reader { file, cx, left: bytes - head.len() as u64, at: head.len(), sum: Xxh3::new() };
    reader.sum.update(head.get(HEAD..).unwrap_or_default());
    let lens = reader.take(8 * parts)?;
    let flat = reader.part(flat)?;
    let (lens, _) = lens.as_chunks::<8>();
    let parts = lens.iter().map(|len| reader.part(u64::from_le_bytes(*len))).collect::<Result<Vec<_>>>()?;
    reader.gap()?;
    if reader.left != 0 || reader.sum.digest() != sum {
        return Err(Error::corrupt("its sum is wrong"));
    }
    let chunk = decoder.decode(&flat, &parts)?;
    if chunk.len() as u64 != count {
        return Err(Error::corrupt("it has another number of samples"));
    }
    Ok(chunk)
}

/// What is still to be read of a piece. Each part has memory of its own, so that a sample that is held keeps no other.
struct Reader<'a> {
    file: File,
    cx: &'a Context<'a>,
    left: u64,
    at: usize,
    sum: Xxh3,
}

impl Reader<'_> {
    fn take(&mut self, len: u64) -> Result<Buffer> {
        let short = || Error::corrupt("its lengths are wrong");
        self.left = self.left.checked_sub(len).ok_or_else(short)?;
        let mut memory = self.cx.alloc(usize::try_from(len).map_err(|_| short())?)?;
        self.file.read_exact(&mut memory)?;
        self.sum.update(&memory);
        self.at += memory.len();
        Ok(memory.freeze())
    }

    /// The zeros up to the next part.
    fn gap(&mut self) -> Result<()> {
        self.take((self.at.next_multiple_of(ALIGN) - self.at) as u64).map(drop)
    }

    fn part(&mut self, len: u64) -> Result<Buffer> {
        self.gap()?;
        self.take(len)
    }
}
