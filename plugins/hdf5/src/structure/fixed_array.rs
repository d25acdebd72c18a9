//! Fixed arrays: the index of chunks of a dataset that does not grow (section VII.C).

use forebay_core::{Buffer, Error, Result};

use crate::{
    bytes::{checksum, uint},
    file::File,
};

/// Elements, found by number.
pub(crate) struct FixedArray<'a> {
    file: &'a File,
    element_len: u64,
    count: u64,
    /// Elements in a page.
    page: u64,
    /// Where the elements start, and which pages there are, if there are pages.
    start: u64,
    pages: Option<Buffer>,
    /// The elements, if there are no pages.
    elements: Option<Buffer>,
}

impl<'a> FixedArray<'a> {
    pub(crate) fn open(file: &'a File, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let head = file.read(address, 12 + (sizes.address + sizes.length) as u64)?;
        let mut cursor = file.cursor(&head, address);
        cursor.signature(b"FAHD")?;
        cursor.version("the fixed array", 0..=0)?;
        let (_client, element_len, bits) = (cursor.u8()?, u64::from(cursor.u8()?), cursor.u8()?);
        let count = cursor.length()?;
        let block = cursor.address()?;
        cursor.checksum("the fixed array")?;
        let page =
            1_u64.checked_shl(bits.into()).ok_or_else(|| cursor.corrupt(format!("pages of 2^{bits}")))?;
        let mut array = Self { file, element_len, count, page, start: 0, pages: None, elements: None };
        let Some(block) = block else { return Ok(Self { count: 0, ..array }) };
        let prefix = 6 + sizes.address as u64;
        file.cursor(&file.read(block, 4)?, block).signature(b"FADB")?;
        if count > page {
            let map_len = count.div_ceil(page).div_ceil(8);
            let map = file.read(block, prefix + map_len + 4)?;
            verify(&map, block)?;
            array.pages = map.get(prefix as usize..(prefix + map_len) as usize);
            array.start = block + prefix + map_len + 4;
        } else {
            let len =
                count.checked_mul(element_len).ok_or_else(|| cursor.corrupt("an array without an end"))?;
            let whole = file.read(block, prefix.saturating_add(len).saturating_add(4))?;
            verify(&whole, block)?;
            array.start = block + prefix;
            array.elements = whole.get(prefix as usize..(prefix + len) as usize);
        }
        Ok(array)
    }

    /// The bytes of an element and where they lie; `None` for one that was never set.
    pub(crate) fn element(&self, number: u64) -> Result<Option<(Buffer, u64)>> {
        if number >= self.count {
            return Ok(None);
        }
        if let Some(elements) = &self.elements {
            let at = number * self.element_len;
            return Ok(elements
                .get(at as usize..(at + self.element_len) as usize)
                .map(|bytes| (bytes, self.start + at)));
        }
        let page = number / self.page;
        let map = self.pages.as_deref().unwrap_or_default();
        if map.get((page / 8) as usize).is_none_or(|bits| bits & 0x80 >> (page % 8) == 0) {
            return Ok(None);
        }
        let page_len = self.page.saturating_mul(self.element_len).saturating_add(4);
        let at = page
            .saturating_mul(page_len)
            .saturating_add((number % self.page).saturating_mul(self.element_len));
        let at = at.saturating_add(self.start);
        Ok(Some((self.file.read(at, self.element_len)?, at)))
    }
}

/// Checks the checksum that ends a block.
pub(crate) fn verify(block: &[u8], address: u64) -> Result<()> {
    let (body, found) = block.split_at(block.len().saturating_sub(4));
    let (expected, found) = (checksum(body), uint(found) as u32);
    if found == expected {
        return Ok(());
    }
    let error = format!("the checksum of an array's block is {found:#x}, expected {expected:#x}");
    Err(Error::corrupt(error).context("byte", address))
}
