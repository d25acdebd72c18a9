//! Fractal heaps: links, attributes and shared messages of new groups (section III.G).

use forebay_core::{Buffer, Error, Result};

use crate::{
    bytes::{Cursor, size, uint, width_of},
    file::File,
    structure::btree2,
};

/// A heap whose objects can be read.
pub(crate) struct FractalHeap<'a> {
    file: &'a File,
    address: u64,
    id_len: usize,
    /// Blocks end with a checksum of theirs.
    huge: Option<u64>,
    huge_len: usize,
    /// Bytes in an offset and in a length of an id.
    offset_width: usize,
    length_width: usize,
    width: u64,
    start: u64,
    max_direct: u64,
    root: Option<u64>,
    /// Rows of the root, if that is an indirect block.
    rows: u64,
    filtered: bool,
    long_tiny: bool,
}

impl<'a> FractalHeap<'a> {
    pub(crate) fn open(file: &'a File, address: u64) -> Result<Self> {
        let (a, l) = (file.sizes().address as u64, file.sizes().length as u64);
        let head = file.read_up_to(address, 26 + 3 * a + 12 * l + l + 64)?;
        let mut cursor = file.cursor(&head, address);
        cursor.signature(b"FRHP")?;
        cursor.version("the heap", 0..=0)?;
        let (id_len, filter_len) = (usize::from(cursor.u16()?), cursor.u16()?);
        let _flags = cursor.u8()?;
        let max_managed = u64::from(cursor.u32()?);
        let _next_huge = cursor.length()?;
        let huge = cursor.address()?;
        let _free = (cursor.length()?, cursor.address()?);
        for _ in 0..8 {
            cursor.length()?;
        }
        let width = u64::from(cursor.u16()?);
        let (start, max_direct) = (cursor.length()?, cursor.length()?);
        let bits = cursor.u16()?;
        let _rows_at_first = cursor.u16()?;
        let (root, rows) = (cursor.address()?, u64::from(cursor.u16()?));
        let powers = start.is_power_of_two() && max_direct.is_power_of_two() && width.is_power_of_two();
        if !powers || bits > 64 || max_direct < start || id_len < 2 || rows > 64 {
            return Err(cursor.corrupt(format!(
                "a heap {width} blocks wide, of {start} to {max_direct} bytes each, {bits} bits and {rows} rows"
            )));
        }
        if filter_len == 0 {
            cursor.checksum("the heap")?;
        }
        let offset_width = usize::from(bits).div_ceil(8);
        let length_width = (max_direct.ilog2() as usize).div_ceil(8).min(width_of(max_managed));
        Ok(Self {
            file,
            address,
            id_len,
            huge,
            huge_len: file.sizes().address + file.sizes().length,
            offset_width,
            length_width,
            width,
            start,
            max_direct,
            root,
            rows,
            filtered: filter_len > 0,
            long_tiny: id_len > 18,
        })
    }

    /// How many bytes an id has.
    pub(crate) fn id_len(&self) -> usize {
        self.id_len
    }

    /// The object with this id.
    pub(crate) fn object(&self, id: &[u8]) -> Result<Buffer> {
        let first = id.first().copied().unwrap_or(0xff);
        match first >> 4 {
            0 => self.managed(id.get(1..).unwrap_or_default()),
            1 => self.huge(id.get(1..).unwrap_or_default()),
            2 => {
                let (len, from) = match self.long_tiny {
                    true => (usize::from(first & 15) << 8 | usize::from(*id.get(1).unwrap_or(&0)), 2),
                    false => (usize::from(first & 15), 1),
                };
                let bytes = id
                    .get(from..from + len + 1)
                    .ok_or_else(|| self.corrupt("a tiny object beyond its id"))?;
                Ok(bytes.to_vec().into())
            }
            kind => Err(self.corrupt(format!("found an id of kind {kind}, expected 0 to 2"))),
        }
    }

    fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt(message).context("byte", self.address)
    }

    fn managed(&self, id: &[u8]) -> Result<Buffer> {
        if self.filtered {
            return Err(Error::unsupported("a heap with filters").context("byte", self.address));
        }
        let mut cursor = self.file.cursor(id, self.address);
        let (offset, len) = (cursor.uint(self.offset_width)?, cursor.uint(self.length_width)?);
        let (block, from) = self.locate(offset)?;
        let Some((block, from)) = block.map(|block| (block, from)) else {
            return Err(self.corrupt(format!("no block has byte {offset} of the heap")));
        };
        self.file.read(block.wrapping_add(from), len)
    }

    /// The direct block with this byte of the heap, and where in it the byte is.
    fn locate(&self, offset: u64) -> Result<(Option<u64>, u64)> {
        let Some(mut block) = self.root else { return Ok((None, 0)) };
        if self.rows == 0 {
            return Ok(((offset < self.start).then_some(block), offset));
        }
        let (mut rows, mut offset) = (self.rows, offset);
        // Each indirect block is smaller than the one above it.
        for _ in 0..64 {
            let (row, column, within) = self.place(offset);
            if row >= rows {
                return Ok((None, 0));
            }
            let head = 5 + self.file.sizes().address as u64 + self.offset_width as u64;
            let entry = (row * self.width + column) * self.file.sizes().address as u64;
            let bytes = self.file.read(block, 4)?;
            self.file.cursor(&bytes, block).signature(b"FHIB")?;
            let bytes = self.file.read(block.wrapping_add(head + entry), self.file.sizes().address as u64)?;
            let Some(child) = self.file.cursor(&bytes, block).address()? else { return Ok((None, 0)) };
            if self.block_len(row) <= self.max_direct {
                return Ok((Some(child), within));
            }
            rows =
                u64::from((self.block_len(row) / self.start.saturating_mul(self.width)).max(1).ilog2()) + 1;
            (block, offset) = (child, within);
        }
        Err(self.corrupt("blocks that lead in a circle"))
    }

    /// How long the blocks of a row are: the first two rows alike, then twice as long each.
    fn block_len(&self, row: u64) -> u64 {
        let doublings = u32::try_from(row.saturating_sub(1)).unwrap_or(u32::MAX);
        self.start.checked_shl(doublings).filter(|len| len >> doublings == self.start).unwrap_or(u64::MAX)
    }

    /// The row and column of the block with this byte of an indirect block, and where in it the byte is.
    fn place(&self, offset: u64) -> (u64, u64, u64) {
        let first = self.start.saturating_mul(self.width);
        let row = if offset < first { 0 } else { u64::from((offset / first).ilog2()) + 1 };
        let row_start = if row == 0 { 0 } else { first << (row - 1) };
        let len = self.block_len(row);
        let within = offset - row_start;
        (row, within / len, within % len)
    }

    fn huge(&self, id: &[u8]) -> Result<Buffer> {
        if self.filtered {
            return Err(Error::unsupported("a heap with filters").context("byte", self.address));
        }
        if self.id_len > self.huge_len {
            return self.huge_at(&mut self.file.cursor(id, self.address));
        }
        let tree = self.huge.ok_or_else(|| self.corrupt("a huge object, and no tree of them"))?;
        let wanted = uint(id.get(..id.len().min(self.file.sizes().length)).unwrap_or_default());
        let mut found = None;
        btree2::visit(self.file, tree, &mut |_, record| {
            let mut cursor = self.file.cursor(record, tree);
            let (place, mut id) = (cursor.clone(), cursor.clone());
            id.skip(self.huge_len)?;
            cursor.skip(0)?;
            if id.length()? == wanted {
                found = Some(self.huge_at(&mut place.clone())?);
            }
            Ok(())
        })?;
        found.ok_or_else(|| self.corrupt(format!("no huge object has number {wanted}")))
    }

    fn huge_at(&self, cursor: &mut Cursor<'_>) -> Result<Buffer> {
        let (address, len) = (cursor.address_of("a huge object")?, cursor.length()?);
        if len > self.file.limit() {
            return Err(Error::limit(format!("an object of {len} bytes")).context("byte", address));
        }
        size(len)?;
        self.file.read(address, len)
    }
}
