//! Links: the names of a group's members, in its header or in a heap beside it (sections IV.A.2.c and g).

use forebay_core::{Error, Result};

use crate::{
    bytes::size,
    file::File,
    structure::{
        btree2,
        fractal_heap::FractalHeap,
        header::{Body, Header, kind},
        symbols,
    },
};

/// A name in a group, and what it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name.
    pub name: String,
    /// What it leads to.
    pub target: Target,
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// An object, by the address of its header.
    Object(u64),
    /// A path.
    Soft(String),
    /// A path in another file.
    External(String, String),
    /// Something that a program defined for itself.
    Other(u8),
}

/// The links of a group, in the order they are stored in.
pub(crate) fn links(file: &File, header: &Header) -> Result<Vec<Link>> {
    if let Some((body, at)) = header.body(file, kind::SYMBOL_TABLE)? {
        return symbols::links(file, &body, at);
    }
    let messages = header.messages.iter().filter(|message| message.kind == kind::LINK);
    let mut links = messages.map(|message| read(file, &message.body(file)?)).collect::<Result<Vec<_>>>()?;
    let Some((body, at)) = header.body(file, kind::LINK_INFO)? else { return Ok(links) };
    let mut cursor = file.cursor(&body, at);
    cursor.version("the link info", 0..=0)?;
    let flags = cursor.u8()?;
    cursor.skip(if flags & 1 == 0 { 0 } else { 8 })?;
    let (Some(heap), Some(tree)) = (cursor.address()?, cursor.address()?) else { return Ok(links) };
    let heap = FractalHeap::open(file, heap)?;
    btree2::visit(file, tree, &mut |_, record| {
        let mut record = file.cursor(record, tree);
        record.skip(4)?;
        let id = record.take(record.left().min(heap.id_len()))?;
        links.push(read(file, &(heap.object(id)?, tree))?);
        Ok(())
    })?;
    Ok(links)
}

fn read(file: &File, (body, at): &Body) -> Result<Link> {
    let mut cursor = file.cursor(body, *at);
    cursor.version("a link", 1..=1)?;
    let flags = cursor.u8()?;
    let class = if flags & 8 == 0 { 0 } else { cursor.u8()? };
    cursor.skip(if flags & 4 == 0 { 0 } else { 8 })?;
    cursor.skip(if flags & 16 == 0 { 0 } else { 1 })?;
    let len = size(cursor.uint(1 << (flags & 3))?)?;
    let name = text(cursor.take(len)?);
    if name.is_empty() {
        return Err(Error::corrupt("a link without a name").context("byte", cursor.at()));
    }
    let target = match class {
        0 => Target::Object(cursor.address_of("a link")?),
        1 => {
            let len = usize::from(cursor.u16()?);
            Target::Soft(text(cursor.take(len)?))
        }
        64 => {
            cursor.skip(3)?;
            let file = text(cursor.text()?);
            Target::External(file, text(cursor.text()?))
        }
        other => Target::Other(other),
    };
    Ok(Link { name, target })
}

/// Names are meant to be UTF-8, and not always are.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
