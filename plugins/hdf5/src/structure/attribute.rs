//! Attribute messages, and attributes kept in a heap beside the header (sections IV.A.2.m and v).

use forebay_core::{Buffer, Error, Result};

use crate::{
    bytes::Cursor,
    datatype::Datatype,
    file::File,
    structure::{
        btree2,
        dataspace::Dataspace,
        datatype,
        fractal_heap::FractalHeap,
        header::{Body, Header, kind},
        shared,
    },
};

/// One attribute as it is stored.
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) dataspace: Dataspace,
    pub(crate) data: Buffer,
}

/// The bodies of an object's attributes, in the order they are stored in.
pub(crate) fn bodies(file: &File, header: &Header) -> Result<Vec<Body>> {
    let messages = header.messages.iter().filter(|message| message.kind == kind::ATTRIBUTE);
    let mut bodies = messages.map(|message| message.body(file)).collect::<Result<Vec<_>>>()?;
    let Some((body, at)) = header.body(file, kind::ATTRIBUTE_INFO)? else { return Ok(bodies) };
    let mut cursor = file.cursor(&body, at);
    cursor.version("the attribute info", 0..=0)?;
    let flags = cursor.u8()?;
    cursor.skip(if flags & 1 == 0 { 0 } else { 2 })?;
    let (Some(heap), Some(tree)) = (cursor.address()?, cursor.address()?) else { return Ok(bodies) };
    let heap = FractalHeap::open(file, heap)?;
    btree2::visit(file, tree, &mut |_, record| {
        let mut record = file.cursor(record, tree);
        let (id, flags) = (record.take(8)?, record.u8()?);
        bodies.push(match flags & 2 {
            0 => (heap.object(id)?, tree),
            // In the heap of shared messages: as a message of type 1 of version 3 leads there.
            _ => shared::resolve(file, kind::ATTRIBUTE, ([&[3, 1], id].concat().into(), tree))?,
        });
        Ok(())
    })?;
    Ok(bodies)
}

pub(crate) fn read(file: &File, (body, at): &Body) -> Result<Stored> {
    let mut cursor = file.cursor(body, *at);
    let version = cursor.version("the attribute", 1..=3)?;
    let flags = if version == 1 { cursor.skip(1).map(|()| 0)? } else { cursor.u8()? };
    let [name, datatype, dataspace] = [cursor.u16()?, cursor.u16()?, cursor.u16()?].map(usize::from);
    cursor.skip(if version == 3 { 1 } else { 0 })?;
    let name = part(&mut cursor, body, version, name)?.0;
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    let at_name = |error: Error| error.context("attribute", &name);
    let datatype = part(&mut cursor, body, version, datatype).map_err(at_name)?;
    let datatype = if flags & 1 == 0 { datatype } else { shared::resolve(file, kind::DATATYPE, datatype)? };
    let dataspace = part(&mut cursor, body, version, dataspace).map_err(at_name)?;
    let dataspace =
        if flags & 2 == 0 { dataspace } else { shared::resolve(file, kind::DATASPACE, dataspace)? };
    let data = body.get(cursor.taken()..).unwrap_or_default();
    Ok(Stored {
        datatype: datatype::read(file, &datatype).map_err(at_name)?,
        dataspace: Dataspace::read(file, &dataspace).map_err(at_name)?,
        name,
        data,
    })
}

/// The next part of an attribute; in version 1 it is padded.
fn part(cursor: &mut Cursor<'_>, body: &Buffer, version: u8, len: usize) -> Result<Body> {
    let (start, at) = (cursor.taken(), cursor.at());
    cursor.skip(if version == 1 { len.next_multiple_of(8) } else { len })?;
    Ok((body.get(start..start + len).unwrap_or_default(), at))
}
