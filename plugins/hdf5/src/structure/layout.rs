//! Data layout messages: where a dataset's elements lie (section IV.A.2.i).

use forebay_core::{Buffer, Error, Result};

use crate::{bytes::Cursor, file::File, structure::header::Body};

/// Where the elements lie.
pub(crate) enum Layout {
    /// In the header.
    Compact(Buffer),
    /// In one piece; nowhere, if nothing was ever written.
    Contiguous(Option<u64>),
    Chunked(Chunked),
    /// In datasets of other files.
    Virtual,
}

/// Elements in chunks of one shape.
pub(crate) struct Chunked {
    /// The shape of a chunk.
    pub(crate) dims: Vec<u64>,
    pub(crate) index: Index,
    /// Where the index lies; nowhere, if nothing was ever written.
    pub(crate) address: Option<u64>,
    /// Chunks that reach over the edge are stored as they are.
    pub(crate) raw_edges: bool,
    /// Sizes of chunks take eight bytes.
    pub(crate) wide_sizes: bool,
}

/// How the chunks are found.
pub(crate) enum Index {
    BTree1,
    /// The only one: its size and which filters were left out, if there are any.
    Single(Option<(u64, u32)>),
    Implicit,
    FixedArray,
    ExtensibleArray,
    BTree2,
}

pub(crate) fn read(file: &File, (body, at): &Body) -> Result<Layout> {
    let mut cursor = file.cursor(body, *at);
    match cursor.version("the layout", 1..=5)? {
        1 | 2 => read_first(cursor, body),
        version => {
            let class = cursor.u8()?;
            match (class, version) {
                (0, _) => {
                    let len = usize::from(cursor.u16()?);
                    compact(cursor, body, len)
                }
                (1, _) => Ok(Layout::Contiguous(cursor.address()?)),
                (2, 3) => read_chunked(cursor),
                (2, _) => read_indexed(cursor, version),
                (3, 4 | 5) => Ok(Layout::Virtual),
                _ => Err(cursor.corrupt(format!("found layout class {class}, expected 0 to 3"))),
            }
        }
    }
}

fn compact(mut cursor: Cursor<'_>, body: &Buffer, len: usize) -> Result<Layout> {
    let start = cursor.taken();
    cursor.skip(len)?;
    Ok(Layout::Compact(body.get(start..start + len).unwrap_or_default()))
}

fn read_first(mut cursor: Cursor<'_>, body: &Buffer) -> Result<Layout> {
    let (rank, class) = (cursor.u8()?, cursor.u8()?);
    cursor.skip(5)?;
    let address = if class == 0 { None } else { cursor.address()? };
    let mut dims = (0..rank).map(|_| Ok(u64::from(cursor.u32()?))).collect::<Result<Vec<_>>>()?;
    match class {
        0 => {
            let len = cursor.u32()? as usize;
            compact(cursor, body, len)
        }
        1 => Ok(Layout::Contiguous(address)),
        2 => {
            // The last one is the size of an element.
            dims.pop();
            chunked(&cursor, dims, Index::BTree1, address)
        }
        _ => Err(cursor.corrupt(format!("found layout class {class}, expected 0 to 2"))),
    }
}

fn read_chunked(mut cursor: Cursor<'_>) -> Result<Layout> {
    let rank = cursor.u8()?;
    let address = cursor.address()?;
    let mut dims = (0..rank).map(|_| Ok(u64::from(cursor.u32()?))).collect::<Result<Vec<_>>>()?;
    dims.pop();
    chunked(&cursor, dims, Index::BTree1, address)
}

fn chunked(cursor: &Cursor<'_>, dims: Vec<u64>, index: Index, address: Option<u64>) -> Result<Layout> {
    if dims.is_empty() || dims.contains(&0) {
        return Err(cursor.corrupt(format!("found chunks of shape {dims:?}, expected lengths above 0")));
    }
    Ok(Layout::Chunked(Chunked { dims, index, address, raw_edges: false, wide_sizes: false }))
}

fn read_indexed(mut cursor: Cursor<'_>, version: u8) -> Result<Layout> {
    let (flags, rank, width) = (cursor.u8()?, cursor.u8()?, usize::from(cursor.u8()?));
    if !(1..=8).contains(&width) {
        return Err(cursor.corrupt(format!("lengths of axes in {width} bytes, expected 1 to 8")));
    }
    let mut dims = (0..rank).map(|_| cursor.uint(width)).collect::<Result<Vec<_>>>()?;
    dims.pop();
    let index = match cursor.u8()? {
        1 if flags & 2 != 0 => Index::Single(Some((cursor.length()?, cursor.u32()?))),
        1 => Index::Single(None),
        2 => Index::Implicit,
        3 => cursor.skip(1).map(|()| Index::FixedArray)?,
        4 => cursor.skip(5).map(|()| Index::ExtensibleArray)?,
        5 => cursor.skip(6).map(|()| Index::BTree2)?,
        kind => {
            return Err(Error::corrupt(format!("found chunk index {kind}, expected 1 to 5"))
                .context("byte", cursor.at()));
        }
    };
    let address = cursor.address()?;
    match chunked(&cursor, dims, index, address)? {
        Layout::Chunked(chunks) => {
            Ok(Layout::Chunked(Chunked { raw_edges: flags & 1 != 0, wide_sizes: version == 5, ..chunks }))
        }
        other => Ok(other),
    }
}
