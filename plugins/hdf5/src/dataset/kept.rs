//! What a dataset keeps from one piece of rows to the next: rows of chunks that are higher than a piece, and rows that were never written.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{Mutex, PoisonError},
};

use forebay_core::{Buffer, Error, Result};

use super::{Alloc, Dataset};
use crate::{bytes::size, structure::layout::Layout};

/// All rows of some chunks are kept unpacked where they take so many bytes, or one chunk alone does.
const BAND: u64 = 256 << 20;
/// How many such are kept of a dataset: threads may be at the end of one and at the start of the next.
const BANDS: usize = 2;

/// What is kept.
#[derive(Default)]
pub(super) struct Kept {
    /// Rows of whole chunks, unpacked, by the first of them.
    bands: Mutex<VecDeque<(u64, Buffer)>>,
    /// Elements that were never written: so many as were asked for at once.
    unwritten: Mutex<Buffer>,
}

impl Dataset {
    /// As [`bytes`](Dataset::bytes), for whoever reads the rows one piece after the other: of chunks that are higher than a piece all rows
    /// are unpacked at once, and kept until the last of them was read. What it gives is a copy then, so that a row keeps no more than its
    /// piece.
    pub(crate) fn piece(&self, rows: Range<u64>, alloc: Alloc<'_>) -> Result<Buffer> {
        let Some(band) = self.band(&rows) else { return self.bytes(rows, alloc) };
        let whole = self.unpacked(&band, &rows, alloc)?;
        let (from, to) = (rows.start - band.start, rows.end - band.start);
        let part = size(from * self.row_len())?..size(to * self.row_len())?;
        let part = whole.get(part).ok_or_else(|| Error::bug("fewer rows than were asked for"))?;
        let mut out = alloc(part.len())?;
        out.copy_from_slice(&part);
        Ok(out.freeze())
    }

    /// All rows of the chunks that have these, where they are unpacked together.
    fn band(&self, rows: &Range<u64>) -> Option<Range<u64>> {
        let Layout::Chunked(chunked) = &self.0.layout else { return None };
        let height = chunked.dims.first().copied().filter(|&height| height > 0)?;
        let start = rows.start / height * height;
        let band = start..start.saturating_add(height).min(self.rows());
        let len = (band.end.checked_sub(start)?).saturating_mul(self.row_len());
        let element = self.0.datatype.size as u64;
        let chunk_len = chunked.dims.iter().fold(element, |len, &dim| len.saturating_mul(dim));
        let fits = len <= BAND.max(chunk_len) && len <= self.0.file.limit();
        let few = !rows.is_empty() && rows.end <= band.end && (rows.start, rows.end) != (start, band.end);
        (few && fits && !self.0.filters.is_empty()).then_some(band)
    }

    /// The rows of a band: kept ones, or unpacked now. Whoever wants the same waits, and takes no memory of their own.
    fn unpacked(&self, band: &Range<u64>, rows: &Range<u64>, alloc: Alloc<'_>) -> Result<Buffer> {
        let mut bands = self.0.kept.bands.lock().unwrap_or_else(PoisonError::into_inner);
        let known = bands.iter().position(|(start, _)| *start == band.start).and_then(|at| bands.remove(at));
        let bytes = match known {
            Some((_, bytes)) => bytes,
            None => {
                if bands.len() >= BANDS {
                    bands.pop_front();
                }
                self.bytes(band.clone(), alloc)?
            }
        };
        if rows.end < band.end {
            bands.push_back((band.start, bytes.clone()));
        }
        Ok(bytes)
    }

    /// Rows that were never written. All share one buffer: of a dataset of large rows of which few were written, they would fill the memory.
    pub(super) fn unwritten(&self, len: usize, alloc: Alloc<'_>) -> Result<Buffer> {
        let mut kept = self.0.kept.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < len {
            *kept = Buffer::EMPTY;
            let mut out = alloc(len)?;
            self.fill(&mut out);
            *kept = out.freeze();
        }
        kept.get(..len).ok_or_else(|| Error::bug("fewer elements than were made"))
    }
}
