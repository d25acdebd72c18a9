//! A [`Blob`] as the Parquet reader wants it: what is far away is fetched once, in the ranges that will be needed.

use std::{
    io::{self, Read},
    ops::Range,
};

use bytes::{Buf as _, Bytes};
use forebay_core::{Blob, Buffer, Result};
use parquet::{
    errors::ParquetError,
    file::reader::{ChunkReader, Length},
};

/// Ranges that lie closer than this are fetched in one.
const GAP: u64 = 1 << 20;

/// The bytes of a file, of which some ranges are here.
#[derive(Clone)]
pub(crate) struct Chunks {
    blob: Blob,
    /// Ranges in order, with their bytes.
    here: Vec<(Range<u64>, Bytes)>,
}

impl Chunks {
    /// The bytes of `blob`, with these ranges at hand.
    pub(crate) fn new(blob: &Blob, mut ranges: Vec<Range<u64>>) -> Result<Self> {
        if let Some(all) = blob.in_memory() {
            let here = vec![(0..blob.len(), Bytes::from_owner(all.clone()))];
            return Ok(Self { blob: blob.clone(), here });
        }
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(GAP) => {
                    last.end = last.end.max(range.end)
                }
                _ => joined.push(range),
            }
        }
        let fetch = |range: Range<u64>| Ok((range.clone(), Bytes::from_owner(blob.read(range)?)));
        Ok(Self { blob: blob.clone(), here: joined.into_iter().map(fetch).collect::<Result<_>>()? })
    }

    /// What is here of the bytes from `start` on.
    pub(crate) fn from(&self, start: u64) -> Option<Bytes> {
        let (range, bytes) = self.here.iter().find(|(range, _)| range.contains(&start))?;
        Some(bytes.slice(usize::try_from(start - range.start).ok()?..))
    }

    fn read(&self, range: Range<u64>) -> Result<Buffer, ParquetError> {
        self.blob.read(range).map_err(|error| ParquetError::External(Box::new(error)))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.blob.len()
    }
}

/// Reads bytes, of which there must be as many as are asked for.
///
/// The library passes over what it does not know by copying so many bytes to nowhere, which ends where the bytes do, without an error: a
/// list that claims 2^31 numbers would take its time for each.
pub(crate) struct Reader(Bytes);

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(self.0.len());
        if len == 0 && !into.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.0.copy_to_slice(&mut into[..len]);
        Ok(len)
    }
}

impl ChunkReader for Chunks {
    type T = Reader;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let bytes = match self.from(start) {
            Some(bytes) => bytes,
            None => Bytes::from_owner(self.read(start..self.len().min(start.saturating_add(GAP)))?),
        };
        Ok(Reader(bytes))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match self.from(start).filter(|bytes| bytes.len() >= length) {
            Some(bytes) => Ok(bytes.slice(..length)),
            None => Ok(Bytes::from_owner(self.read(start..start.saturating_add(length as u64))?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_beyond_the_end_is_an_error() {
        let mut reader = Reader(Bytes::from_static(b"abcde"));
        let mut pass = |len| io::copy(&mut reader.by_ref().take(len), &mut io::sink());
        assert_eq!(pass(3).unwrap(), 3);
        assert_eq!(pass(2).unwrap(), 2);
        assert_eq!(pass(0).unwrap(), 0);
        assert_eq!(pass(8).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
