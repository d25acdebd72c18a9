//! The chunks of a dataset that touch some rows, whatever their index.

use std::ops::Range;

use forebay_core::{Error, Result};

use crate::{
    bytes::{Cursor, width_of},
    file::File,
    structure::{
        btree1, btree2, extensible_array, fixed_array,
        layout::{Chunked, Index},
    },
};

/// So many chunks are read at once, and no more.
const CHUNKS_LIMIT: u64 = 1 << 24;

/// One chunk that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The place of its first element.
    pub(crate) offset: Vec<u64>,
    /// Where in the file it lies, counted from the superblock.
    pub(crate) address: u64,
    /// How many bytes it takes there.
    pub(crate) size: u64,
    /// The filters that were left out for it, as bits.
    pub(crate) mask: u32,
}

/// All that finding chunks needs to know of a dataset.
pub(crate) struct Grid<'a> {
    pub(crate) file: &'a File,
    pub(crate) layout: &'a Chunked,
    pub(crate) shape: &'a [u64],
    pub(crate) max: &'a [u64],
    /// Bytes in a chunk before filters.
    pub(crate) chunk_len: u64,
    pub(crate) filtered: bool,
}

impl Grid<'_> {
    /// The chunks that touch `rows`, in the order of their index.
    pub(crate) fn touching(&self, rows: &Range<u64>) -> Result<Vec<Chunk>> {
        let Some(address) = self.layout.address else { return Ok(Vec::new()) };
        if rows.is_empty() || self.shape.contains(&0) {
            return Ok(Vec::new());
        }
        match self.layout.index {
            Index::BTree1 => self.btree1(address, rows),
            Index::BTree2 => self.btree2(address, rows),
            Index::Single(filtered) => {
                let (size, mask) = filtered.unwrap_or((self.chunk_len, 0));
                Ok(vec![Chunk { offset: vec![0; self.shape.len()], address, size, mask }])
            }
            Index::Implicit => self.counted(rows, &mut |number| {
                let place = number.checked_mul(self.chunk_len).and_then(|at| at.checked_add(address));
                Ok(place.map(|place| (place, self.chunk_len, 0)))
            }),
            Index::FixedArray => {
                let array = fixed_array::FixedArray::open(self.file, address)?;
                self.counted(rows, &mut |number| self.element(array.element(number)?))
            }
            Index::ExtensibleArray => {
                let array = extensible_array::ExtensibleArray::open(self.file, address)?;
                self.counted(rows, &mut |number| self.element(array.element(number)?))
            }
        }
    }

    fn height(&self) -> u64 {
        self.layout.dims.first().copied().unwrap_or(1)
    }

    fn touches(&self, chunk: &Chunk, rows: &Range<u64>) -> bool {
        let inside = chunk.offset.iter().zip(self.shape).all(|(offset, axis)| offset < axis);
        let first = chunk.offset.first().copied().unwrap_or(0);
        inside && first < rows.end && first.saturating_add(self.height()) > rows.start
    }

    fn btree1(&self, address: u64, rows: &Range<u64>) -> Result<Vec<Chunk>> {
        let wanted = btree1::Chunks { axes: self.shape.len(), rows: rows.clone(), height: self.height() };
        let mut chunks = Vec::new();
        btree1::visit_chunks(self.file, address, &wanted, &mut |key, address| {
            if key.offset.iter().zip(&self.layout.dims).any(|(offset, dim)| offset % dim != 0) {
                return Err(Error::corrupt(format!(
                    "a chunk at {:?}, not a multiple of its shape",
                    key.offset
                ))
                .context("byte", address));
            }
            let chunk = Chunk { offset: key.offset, address, size: key.size.into(), mask: key.mask };
            if self.touches(&chunk, rows) {
                chunks.push(chunk);
            }
            Ok(())
        })?;
        Ok(chunks)
    }

    fn btree2(&self, root: u64, rows: &Range<u64>) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        btree2::visit(self.file, root, &mut |kind, record| {
            let mut cursor = self.file.cursor(record, root);
            let address = cursor.address_of("a chunk")?;
            let (size, mask) = match kind {
                10 => (self.chunk_len, 0),
                11 => (cursor.uint(self.size_width())?, cursor.u32()?),
                _ => return Err(cursor.corrupt(format!("found a B-tree of type {kind}, expected 10 or 11"))),
            };
            let scaled = self.layout.dims.iter().map(|dim| Ok(cursor.u64()?.saturating_mul(*dim)));
            let chunk = Chunk { offset: scaled.collect::<Result<_>>()?, address, size, mask };
            if self.touches(&chunk, rows) {
                chunks.push(chunk);
            }
            Ok(())
        })?;
        Ok(chunks)
    }

    /// How many bytes a chunk's size takes in an index of version 4 or 5.
    fn size_width(&self) -> usize {
        match self.layout.wide_sizes {
            true => self.file.sizes().length,
            false => (1 + (self.chunk_len.max(1).ilog2() as usize + 8) / 8).min(8),
        }
    }

    /// What an element of an array of chunks says: address, size and mask.
    fn element(&self, bytes: Option<(forebay_core::Buffer, u64)>) -> Result<Option<(u64, u64, u32)>> {
        let Some((bytes, at)) = bytes else { return Ok(None) };
        let mut cursor: Cursor<'_> = self.file.cursor(&bytes, at);
        let Some(address) = cursor.address()? else { return Ok(None) };
        if !self.filtered {
            return Ok(Some((address, self.chunk_len, 0)));
        }
        let width = self.size_width();
        debug_assert!(width_of(self.chunk_len) <= width);
        Ok(Some((address, cursor.uint(width)?, cursor.u32()?)))
    }

    /// The chunks of an index that counts them, row by row; an axis without a bound counts slowest.
    fn counted(
        &self,
        rows: &Range<u64>,
        find: &mut dyn FnMut(u64) -> Result<Option<(u64, u64, u32)>>,
    ) -> Result<Vec<Chunk>> {
        let dims = &self.layout.dims;
        let mut order: Vec<usize> = (0..dims.len()).collect();
        if let Some(unbounded) = self.max.iter().position(|&max| max == u64::MAX) {
            order.remove(unbounded);
            order.insert(0, unbounded);
        }
        let along = |axis: usize| self.max.get(axis).copied().unwrap_or(0).div_ceil(dims[axis]);
        let mut steps = vec![1_u64; dims.len()];
        for pair in order.windows(2).rev() {
            steps[pair[0]] = steps[pair[1]].saturating_mul(along(pair[1]));
        }
        let ends: Vec<u64> = self.shape.iter().zip(dims).map(|(axis, dim)| axis.div_ceil(*dim)).collect();
        let mut place = vec![0; dims.len()];
        place[0] = rows.start / self.height();
        let end = rows.end.div_ceil(self.height()).min(ends[0]);
        let places =
            ends[1..].iter().fold(end.saturating_sub(place[0]), |count, &axis| count.saturating_mul(axis));
        if places > CHUNKS_LIMIT {
            return Err(Error::limit(format!(
                "rows in {places} chunks, at most {CHUNKS_LIMIT} are read at once"
            )));
        }
        let mut chunks = Vec::new();
        while place[0] < end {
            let number = place
                .iter()
                .zip(&steps)
                .try_fold(0_u64, |sum, (at, step)| sum.checked_add(at.checked_mul(*step)?));
            let found = number.map(&mut *find).transpose()?.flatten();
            if let Some((address, size, mask)) = found {
                let offset = place.iter().zip(dims).map(|(at, dim)| at * dim).collect();
                chunks.push(Chunk { offset, address, size, mask });
            }
            advance(&mut place, &ends);
        }
        Ok(chunks)
    }
}

/// Goes to the next place of a grid; the last axis runs fastest, and the first one over its end.
fn advance(place: &mut [u64], ends: &[u64]) {
    for axis in (0..place.len()).rev() {
        place[axis] += 1;
        if axis == 0 || place[axis] < ends[axis] {
            return;
        }
        place[axis] = 0;
    }
}
