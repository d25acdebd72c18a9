//! The superblock: where everything starts (section II.A).

use forebay_core::{Blob, Error, Result};

use crate::bytes::{Cursor, Sizes};

pub(crate) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// What files of NetCDF before its version 4 begin with: they are no HDF5, and called alike.
pub(crate) const NETCDF: [&[u8]; 3] = [b"CDF\x01", b"CDF\x02", b"CDF\x05"];
/// More than any version of it takes.
const MOST: u64 = 128;

/// What the superblock says.
#[derive(Debug)]
pub(crate) struct Superblock {
    /// Where it lies; all addresses count from here.
    pub(crate) base: u64,
    pub(crate) sizes: Sizes,
    /// The header of the root group.
    pub(crate) root: u64,
    /// The header with further messages about the whole file.
    pub(crate) extension: Option<u64>,
}

/// Finds and reads the superblock, which lies at the start, or at 512, 1024, 2048 and so on.
pub(crate) fn find(blob: &Blob) -> Result<Superblock> {
    let mut at = 0;
    while at + 8 <= blob.len() {
        let head = blob.read(at..(at + MOST).min(blob.len()))?;
        if head.starts_with(&SIGNATURE) {
            return read(blob, at, &head);
        }
        at = if at == 0 { 512 } else { at * 2 };
    }
    let head = blob.read(0..blob.len().min(8))?;
    if NETCDF.iter().any(|start| head.starts_with(start)) {
        let message = "a file of NetCDF-3 (classic), which is no HDF5 and not supported; `nccopy -k nc4` makes NetCDF-4 of it, which is";
        return Err(Error::unsupported(message));
    }
    let (found, expected) = (head.escape_ascii(), SIGNATURE.escape_ascii());
    Err(Error::corrupt(format!(
        "no HDF5 file: it begins with \"{found}\", and \"{expected}\" stands neither there nor at 512, 1024, 2048, ..."
    ))
    .context("byte", 0))
}

fn read(blob: &Blob, base: u64, head: &[u8]) -> Result<Superblock> {
    let mut cursor = Cursor::new(head, base, Sizes { address: 8, length: 8 });
    cursor.skip(8)?;
    let version = cursor.version("the superblock", 0..=3)?;
    let (superblock, stored_base, end) = match version {
        0 | 1 => read_old(cursor, base, version)?,
        _ => read_new(cursor, base)?,
    };
    // A block put before the file afterwards moves all of it.
    let end = end.saturating_sub(stored_base).saturating_add(base);
    if end > blob.len() {
        let len = blob.len();
        return Err(Error::corrupt(format!(
            "the file was cut short, or is the first of several that one was split into (family), which are not supported: {len} bytes, expected {end}"
        )));
    }
    Ok(superblock)
}

fn sizes(cursor: &mut Cursor<'_>) -> Result<Sizes> {
    let sizes = Sizes { address: cursor.u8()?.into(), length: cursor.u8()?.into() };
    match sizes {
        Sizes { address: 2 | 4 | 8, length: 2 | 4 | 8 } => Ok(sizes),
        Sizes { address, length } => Err(cursor
            .corrupt(format!("addresses of {address} and lengths of {length} bytes, expected 2, 4 or 8"))),
    }
}

fn read_old(mut cursor: Cursor<'_>, base: u64, version: u8) -> Result<(Superblock, u64, u64)> {
    cursor.skip(4)?;
    let sizes = sizes(&mut cursor)?;
    // Reserved, the ranks of two kinds of B-tree, flags, and in version 1 the rank of a third.
    cursor.skip(1 + 4 + 4 + if version == 1 { 4 } else { 0 })?;
    let mut cursor = cursor.with_sizes(sizes);
    let stored_base = cursor.address_of("the base")?;
    let _free_space = cursor.address()?;
    let end = cursor.address_of("the end of the file")?;
    if cursor.address()?.is_some() {
        return Err(Error::unsupported("the file is split over several files (family or multi), which are not supported: `h5repart` joins them").context("byte", base));
    }
    let _name = cursor.uint(sizes.address)?;
    let root = cursor.address_of("the root group")?;
    Ok((Superblock { base, sizes, root, extension: None }, stored_base, end))
}

fn read_new(mut cursor: Cursor<'_>, base: u64) -> Result<(Superblock, u64, u64)> {
    let sizes = sizes(&mut cursor)?;
    cursor.skip(1)?;
    let mut cursor = cursor.with_sizes(sizes);
    let stored_base = cursor.address_of("the base")?;
    let extension = cursor.address()?;
    let end = cursor.address_of("the end of the file")?;
    let root = cursor.address_of("the root group")?;
    cursor.checksum("the superblock")?;
    Ok((Superblock { base, sizes, root, extension }, stored_base, end))
}
