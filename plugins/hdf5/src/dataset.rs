//! A dataset: its shape and type, and its elements, row by row.

mod kept;

use std::{ops::Range, sync::Arc};

use forebay_core::{Buffer, BufferMut, Error, Result, Value};

use self::kept::Kept;
use crate::{
    bytes::size,
    datatype::Datatype,
    file::File,
    filter::{self, Scratch},
    object::{Attribute, attributes},
    structure::{
        attribute,
        chunks::{Chunk, Grid},
        dataspace::Dataspace,
        datatype, fill,
        global_heap::GlobalHeap,
        header::{Header, kind},
        layout::{self, Chunked, Layout},
        pipeline::{self, Filter},
    },
    value::Values,
};

/// Where memory for elements comes from: a host's pool, or the heap.
pub type Alloc<'a> = &'a dyn Fn(usize) -> Result<BufferMut>;

/// Memory from the heap.
pub(crate) fn heap_memory(len: usize) -> Result<BufferMut> {
    Ok(BufferMut::zeroed(len))
}

/// Elements of one type in a block of some shape. Cheap to clone, safe to read from many threads.
#[derive(Clone)]
pub struct Dataset(Arc<Inner>);

struct Inner {
    file: File,
    header: Header,
    path: String,
    datatype: Datatype,
    dataspace: Dataspace,
    layout: Layout,
    filters: Vec<Filter>,
    fill: Option<Buffer>,
    external: bool,
    kept: Kept,
}

impl Dataset {
    pub(crate) fn of(file: &File, header: Header, path: &str) -> Result<Self> {
        let body = |kind: u16, what: &str| {
            let missing =
                || Error::corrupt(format!("a dataset without its {what}")).context("byte", header.address);
            header.body(file, kind)?.ok_or_else(missing)
        };
        let datatype = datatype::read(file, &body(kind::DATATYPE, "datatype")?)?;
        let dataspace = Dataspace::read(file, &body(kind::DATASPACE, "dataspace")?)?;
        let layout = layout::read(file, &body(kind::LAYOUT, "layout")?)?;
        if let (Layout::Chunked(chunked), Some(dims)) = (&layout, &dataspace.dims)
            && chunked.dims.len() != dims.len()
        {
            let error = format!("chunks of shape {:?} for a dataset of shape {dims:?}", chunked.dims);
            return Err(Error::corrupt(error).context("byte", header.address));
        }
        let filters =
            header.body(file, kind::PIPELINE)?.map(|body| pipeline::read(file, &body)).transpose()?;
        let fill = fill::read(file, &header)?.filter(|fill| fill.len() == datatype.size);
        let external = header.find(kind::EXTERNAL_FILES).is_some();
        let (file, path, filters) = (file.clone(), path.to_owned(), filters.unwrap_or_default());
        let kept = Kept::default();
        let inner = Inner { file, header, path, datatype, dataspace, layout, filters, fill, external, kept };
        Ok(Self(Arc::new(inner)))
    }

    /// The path of the dataset.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The address of the dataset's header.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.header.address
    }

    /// What an element is.
    #[must_use]
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// The length of each axis; none for a single element, `None` for a dataset that never has any.
    #[must_use]
    pub fn shape(&self) -> Option<&[u64]> {
        self.0.dataspace.dims.as_deref()
    }

    /// How many rows there are: the length of the first axis, or one for a single element.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.shape().map_or(0, |shape| shape.first().copied().unwrap_or(1))
    }

    /// Whether there is an axis to count rows along; a single element has none, nor has a dataset without any.
    pub(crate) fn has_rows(&self) -> bool {
        self.shape().is_some_and(|shape| !shape.is_empty())
    }

    /// The shape of a row.
    #[must_use]
    pub fn row_shape(&self) -> &[u64] {
        self.shape().and_then(|shape| shape.get(1..)).unwrap_or_default()
    }

    /// Bytes of a row, as they are in the file.
    #[must_use]
    pub fn row_len(&self) -> u64 {
        self.row_shape().iter().fold(self.0.datatype.size as u64, |len, &axis| len.saturating_mul(axis))
    }

    /// The shape of a chunk, if there are chunks.
    #[must_use]
    pub fn chunk_shape(&self) -> Option<&[u64]> {
        match &self.0.layout {
            Layout::Chunked(chunked) => Some(&chunked.dims),
            _ => None,
        }
    }

    /// How the elements lie: `compact`, `contiguous`, `chunked` or `virtual`.
    #[must_use]
    pub fn layout(&self) -> &'static str {
        match &self.0.layout {
            Layout::Compact(_) => "compact",
            Layout::Contiguous(_) => "contiguous",
            Layout::Chunked(_) => "chunked",
            Layout::Virtual => "virtual",
        }
    }

    /// The filters that each chunk went through, in order.
    #[must_use]
    pub fn filters(&self) -> &[Filter] {
        &self.0.filters
    }

    /// How many attributes the dataset has.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub fn attribute_count(&self) -> Result<usize> {
        attribute::bodies(&self.0.file, &self.0.header).map(|bodies| bodies.len())
    }

    /// The dataset's attributes, in the order they are stored in.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Limit`.
    pub fn attributes(&self) -> Result<Vec<Attribute>> {
        attributes(&self.0.file, &self.0.header)
    }

    /// Some rows as one value, in memory from the heap: numbers are a tensor, anything else a list.
    ///
    /// # Errors
    /// As [`bytes`](Dataset::bytes).
    pub fn read_rows(&self, rows: Range<u64>) -> Result<Value> {
        let bytes = self.bytes(rows.clone(), &heap_memory)?;
        let mut dims = self.row_shape().to_vec();
        if self.shape().is_some_and(|shape| !shape.is_empty()) {
            dims.insert(0, rows.end - rows.start);
        }
        let dims = dims.into_iter().map(size).collect::<Result<Vec<_>>>()?;
        let heap = GlobalHeap::new(&self.0.file);
        Values::new(&heap, &heap_memory).make(&self.0.datatype, &dims, &bytes).map_err(|error| self.at(error))
    }

    /// The bytes of some rows as they are in the file, in memory from `alloc`; a slice of the file, where they lie there
    /// in one piece as they are.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` for a filter that is not known, and for elements in other files; `Invalid` when there are not
    /// so many rows; `Limit` when they take more memory than the file was opened with.
    pub fn bytes(&self, rows: Range<u64>, alloc: Alloc<'_>) -> Result<Buffer> {
        self.read(rows, alloc).map_err(|error| self.at(error))
    }

    fn at(&self, error: Error) -> Error {
        error.context("dataset", &self.0.path)
    }

    fn read(&self, rows: Range<u64>, alloc: Alloc<'_>) -> Result<Buffer> {
        let inner = &*self.0;
        let (all, row_len) = (self.rows(), self.row_len());
        if rows.start > rows.end || rows.end > all {
            let Range { start, end } = rows;
            return Err(Error::invalid(format!("rows {start} to {end} of {all}")));
        }
        let len = (rows.end - rows.start).saturating_mul(row_len);
        let limit = inner.file.limit();
        if len > limit {
            return Err(Error::limit(format!("rows of {len} bytes, at most {limit} are taken")));
        }
        self.lies_here()?;
        if len == 0 {
            return Ok(Buffer::EMPTY);
        }
        match &inner.layout {
            Layout::Compact(bytes) => {
                let start = rows.start.saturating_mul(row_len);
                let (start, end) = (size(start)?, size(start.saturating_add(len))?);
                let missing =
                    || Error::corrupt(format!("{} bytes in the header, expected {end}", bytes.len()));
                bytes.get(start..end).ok_or_else(missing)
            }
            Layout::Contiguous(Some(address)) => {
                inner.file.data(address.saturating_add(rows.start.saturating_mul(row_len)), len)
            }
            Layout::Contiguous(None) | Layout::Virtual => self.unwritten(size(len)?, alloc),
            Layout::Chunked(chunked) => self.read_chunks(chunked, &rows, size(len)?, alloc),
        }
    }

    fn lies_here(&self) -> Result<()> {
        if self.0.external {
            return Err(Error::unsupported("the elements lie in other files"));
        }
        if matches!(self.0.layout, Layout::Virtual) {
            return Err(Error::unsupported("a virtual dataset: its elements lie in other datasets"));
        }
        Ok(())
    }

    /// Whether rows can be read, as far as that can be told without reading all; none of them may have more than `limit` bytes.
    ///
    /// # Errors
    /// That of the rows.
    pub(crate) fn check(&self, limit: u64) -> Result<()> {
        let len = self.row_len();
        if len > limit {
            let error = Error::limit(format!("rows of {len} bytes, at most {limit} are taken"));
            return Err(self.at(error));
        }
        self.lies_here().map_err(|error| self.at(error))?;
        // Of a filter that may be left out chunks can say that it was.
        let unknown = self.0.filters.iter().any(|filter| !filter::is_known(filter.id));
        if unknown { self.bytes(0..self.rows().min(1), &heap_memory).map(drop) } else { Ok(()) }
    }

    fn read_chunks(
        &self,
        chunked: &Chunked,
        rows: &Range<u64>,
        len: usize,
        alloc: Alloc<'_>,
    ) -> Result<Buffer> {
        let inner = &*self.0;
        let shape = self.shape().unwrap_or_default();
        let element = inner.datatype.size as u64;
        let chunk_len = chunked.dims.iter().try_fold(element, |len, &dim| len.checked_mul(dim));
        let limit = inner.file.limit();
        let Some(chunk_len) = chunk_len.filter(|&len| len <= limit) else {
            let dims = &chunked.dims;
            return Err(Error::limit(format!("chunks of shape {dims:?}, at most {limit} bytes are taken")));
        };
        let max = &inner.dataspace.max;
        let filtered = !inner.filters.is_empty();
        let grid = Grid { file: &inner.file, layout: chunked, shape, max, chunk_len, filtered };
        let mut chunks = grid.touching(rows)?;
        chunks.sort_unstable_by(|one, two| one.offset.cmp(&two.offset));
        if let Some(pair) = chunks.windows(2).find(|pair| pair[0].offset == pair[1].offset) {
            return Err(Error::corrupt(format!("two chunks at {:?}", pair[0].offset)));
        }
        if chunks.is_empty() {
            return self.unwritten(len, alloc);
        }
        let part = Part { shape, rows, dims: &chunked.dims, element };
        if let [only] = chunks.as_slice()
            && let Some(start) = part.within(only)
            && self.undone(only, chunked, shape).is_empty()
        {
            return inner.file.data(only.address.saturating_add(start), len as u64);
        }
        let mut out = alloc(len)?;
        if chunks.iter().map(|chunk| part.covered(chunk)).sum::<u64>() < len as u64 {
            self.fill(&mut out);
        }
        let mut scratch = Scratch::default();
        let mut whole: Option<BufferMut> = None;
        for chunk in &chunks {
            let filters = self.undone(chunk, chunked, shape);
            let place = |error: Error| {
                error.context("chunk", format!("{:?}", chunk.offset)).context("byte", chunk.address)
            };
            let direct =
                part.direct(chunk).and_then(|at| out.get_mut(at..at.checked_add(chunk_len as usize)?));
            if filter::most(filters, chunk.size) < chunk_len {
                let stored = chunk.size;
                return Err(place(Error::corrupt(format!(
                    "{stored} bytes cannot hold a chunk of {chunk_len}"
                ))));
            }
            // A chunk without filters may be stored with more than it needs.
            let stored = if filters.is_empty() { chunk_len } else { chunk.size };
            let stored = inner.file.data(chunk.address, stored).map_err(place)?;
            match direct {
                Some(out) => {
                    filter::undo(filters, chunk.mask, &stored, out, &mut scratch, alloc).map_err(place)?
                }
                None if filters.is_empty() => part.scatter(chunk, &stored, &mut out),
                None => {
                    let whole = match &mut whole {
                        Some(whole) => whole,
                        none => none.insert(alloc(size(chunk_len)?)?),
                    };
                    filter::undo(filters, chunk.mask, &stored, whole, &mut scratch, alloc).map_err(place)?;
                    part.scatter(chunk, whole, &mut out);
                }
            }
        }
        Ok(out.freeze())
    }

    /// The filters that this chunk went through, but for those of its mask: none for one over the edge, in some files.
    fn undone(&self, chunk: &Chunk, chunked: &Chunked, shape: &[u64]) -> &[Filter] {
        let over = |((&at, &dim), &axis): ((&u64, &u64), &u64)| at.saturating_add(dim) > axis;
        let edge = chunk.offset.iter().zip(&chunked.dims).zip(shape).any(over);
        if chunked.raw_edges && edge { &[] } else { &self.0.filters }
    }

    /// Makes all elements what those are that were never written.
    fn fill(&self, out: &mut [u8]) {
        match &self.0.fill {
            Some(fill) => out.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill)),
            None => out.fill(0),
        }
    }
}

/// Some rows of a dataset, and how chunks lie over them.
struct Part<'a> {
    shape: &'a [u64],
    rows: &'a Range<u64>,
    dims: &'a [u64],
    element: u64,
}

impl Part<'_> {
    /// Where along an axis the chunk and the rows have elements in common.
    fn common(&self, chunk: &Chunk, axis: usize) -> Range<u64> {
        let from = chunk.offset.get(axis).copied().unwrap_or(0);
        let to = from.saturating_add(self.dims[axis]).min(self.shape[axis]);
        if axis == 0 { from.max(self.rows.start)..to.min(self.rows.end) } else { from..to }
    }

    /// Bytes that a chunk gives.
    fn covered(&self, chunk: &Chunk) -> u64 {
        let lens = (0..self.shape.len())
            .map(|axis| self.common(chunk, axis))
            .map(|range| range.end.saturating_sub(range.start));
        lens.fold(self.element, u64::saturating_mul)
    }

    fn row_len(&self) -> u64 {
        self.shape[1..].iter().fold(self.element, |len, &axis| len * axis)
    }

    /// Where in a chunk that has all of the rows, and nothing beside them, these start.
    fn within(&self, chunk: &Chunk) -> Option<u64> {
        let before = self.rows.start.checked_sub(*chunk.offset.first()?)?;
        let wide = self.dims[1..] == self.shape[1..];
        let all = before + (self.rows.end - self.rows.start) <= self.dims[0];
        (wide && all).then_some(before * self.row_len())
    }

    /// Where among the rows' bytes a chunk lies whose bytes are just those of some of the rows.
    fn direct(&self, chunk: &Chunk) -> Option<usize> {
        let first = chunk.offset.first().copied()?;
        let wide = self.dims[1..] == self.shape[1..];
        let at = first.checked_sub(self.rows.start)?;
        wide.then_some(usize::try_from(at * self.row_len()).ok()?)
    }

    /// Copies what the chunk and the rows have in common.
    fn scatter(&self, chunk: &Chunk, bytes: &[u8], out: &mut [u8]) {
        let axes = self.shape.len();
        let common: Vec<_> = (0..axes).map(|axis| self.common(chunk, axis)).collect();
        if common.iter().any(Range::is_empty) {
            return;
        }
        let last = axes - 1;
        let run = ((common[last].end - common[last].start) * self.element) as usize;
        let mut place: Vec<u64> = common.iter().map(|range| range.start).collect();
        loop {
            let (mut from, mut to) = (0, 0);
            for (axis, at) in place.iter().enumerate() {
                from = from * self.dims[axis] + at - chunk.offset[axis];
                to = to * self.shape[axis] + at - if axis == 0 { self.rows.start } else { 0 };
            }
            let (from, to) = ((from * self.element) as usize, (to * self.element) as usize);
            if let (Some(out), Some(bytes)) = (out.get_mut(to..to + run), bytes.get(from..from + run)) {
                out.copy_from_slice(bytes);
            }
            // The next run: the last axis but one goes fastest.
            let mut axis = last;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                place[axis] += 1;
                if place[axis] < common[axis].end {
                    break;
                }
                place[axis] = common[axis].start;
            }
        }
    }
}
