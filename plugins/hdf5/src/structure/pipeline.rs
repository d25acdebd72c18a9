//! Filter pipeline messages: what was done to each chunk, in order (section IV.A.2.l).

use forebay_core::Result;

use crate::{file::File, structure::header::Body};

/// One filter, as it was given when the dataset was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Its number in HDF5's registry.
    pub id: u16,
    /// Its name; empty for those that HDF5 brings along.
    pub name: String,
    /// What it was told.
    pub options: Vec<u32>,
}

pub(crate) fn read(file: &File, (body, at): &Body) -> Result<Vec<Filter>> {
    let mut cursor = file.cursor(body, *at);
    let version = cursor.version("the filters", 1..=2)?;
    let count = cursor.u8()?;
    cursor.skip(if version == 1 { 6 } else { 0 })?;
    let mut filters = Vec::new();
    for _ in 0..count {
        let id = cursor.u16()?;
        let name = if version == 1 || id >= 256 { usize::from(cursor.u16()?) } else { 0 };
        cursor.skip(2)?;
        let options = usize::from(cursor.u16()?);
        let padded = if version == 1 { name.next_multiple_of(8) } else { name };
        let name = cursor.take(padded)?.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let options_read = (0..options).map(|_| cursor.u32()).collect::<Result<_>>()?;
        cursor.skip(if version == 1 && options % 2 == 1 { 4 } else { 0 })?;
        filters.push(Filter { id, name, options: options_read });
    }
    Ok(filters)
}
