//! Messages that several headers share: those of a committed datatype, and those in the file's heap (sections IV.A.1 and III.G).

use forebay_core::{Error, Result};

use crate::{
    file::File,
    structure::{
        fractal_heap::FractalHeap,
        header::{Body, Header, kind},
    },
};

/// The heaps with messages that are shared all over a file, each with the kinds it has, as a mask.
pub(crate) struct Table {
    heaps: Vec<(u16, u64)>,
}

impl Table {
    /// The table that the superblock's extension names, if it does.
    pub(crate) fn of(file: &File) -> Result<Option<Self>> {
        let Some(extension) = file.superblock().extension else { return Ok(None) };
        let Some((body, at)) = Header::read(file, extension)?.body(file, kind::SHARED_TABLE)? else {
            return Ok(None);
        };
        let mut cursor = file.cursor(&body, at);
        cursor.version("the message of shared messages", 0..=0)?;
        let (address, count) = (cursor.address_of("the table of shared messages")?, cursor.u8()?);
        let bytes = file.read(address, 8 + u64::from(count) * (14 + 2 * file.sizes().address as u64))?;
        let mut cursor = file.cursor(&bytes, address);
        cursor.signature(b"SMTB")?;
        let mut heaps = Vec::new();
        for _ in 0..count {
            cursor.skip(2)?;
            let kinds = cursor.u16()?;
            cursor.skip(4 + 2 + 2 + 2)?;
            let _index = cursor.address()?;
            if let Some(heap) = cursor.address()? {
                heaps.push((kinds, heap));
            }
        }
        cursor.checksum("the table of shared messages")?;
        Ok(Some(Self { heaps }))
    }
}

/// The body of a message of `kind`, to which the body `here` leads.
pub(crate) fn resolve(file: &File, wanted: u16, (here, at): Body) -> Result<Body> {
    let mut cursor = file.cursor(&here, at);
    let version = cursor.version("a shared message", 1..=3)?;
    let place = cursor.u8()?;
    match (version, place) {
        (1, _) => cursor.skip(6 + file.sizes().length)?,
        (_, 1) => return in_heap(file, wanted, cursor.take(8)?, at),
        _ => {}
    }
    let address = cursor.address_of("a shared message")?;
    let header = Header::read(file, address)?;
    let found = header.find(wanted).and_then(|message| message.own_body());
    found.ok_or_else(|| {
        Error::corrupt(format!("no message {wanted:#x} in the header that shares it"))
            .context("byte", address)
    })
}

fn in_heap(file: &File, wanted: u16, id: &[u8], at: u64) -> Result<Body> {
    let missing = || Error::corrupt(format!("no heap has shared messages {wanted:#x}")).context("byte", at);
    let table = file.shared().ok_or_else(missing)?;
    let heap = table
        .heaps
        .iter()
        .find(|(kinds, _)| kinds.checked_shr(wanted.into()).unwrap_or(0) & 1 == 1)
        .ok_or_else(missing)?;
    Ok((FractalHeap::open(file, heap.1)?.object(id)?, at))
}
