//! Fill value messages: what an element is that was never written (sections IV.A.2.e and f).

use forebay_core::{Buffer, Result};

use crate::{
    bytes::size,
    file::File,
    structure::header::{Header, kind},
};

/// The bytes of one element that was never written; `None` for zeros.
pub(crate) fn read(file: &File, header: &Header) -> Result<Option<Buffer>> {
    if let Some((body, at)) = header.body(file, kind::FILL)? {
        let mut cursor = file.cursor(&body, at);
        let present = match cursor.version("the fill value", 1..=3)? {
            3 => cursor.u8()? & 0x20 != 0,
            version => {
                cursor.skip(2)?;
                cursor.u8()? != 0 || version == 1
            }
        };
        if !present {
            return Ok(None);
        }
        let len = size(cursor.u32()?.into())?;
        // Version 1 has a length even for no value.
        let value = if len > cursor.left() { &[] } else { cursor.take(len)? };
        return Ok((!value.is_empty()).then(|| value.to_vec().into()));
    }
    let Some((body, at)) = header.body(file, kind::OLD_FILL)? else { return Ok(None) };
    let mut cursor = file.cursor(&body, at);
    let len = size(cursor.u32()?.into())?;
    let value = cursor.take(len)?;
    Ok((!value.is_empty()).then(|| value.to_vec().into()))
}
