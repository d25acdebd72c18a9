//! Extensible arrays: the index of chunks of a dataset that grows along one axis (section VII.D).

use forebay_core::{Buffer, Result};

use crate::{file::File, structure::fixed_array::verify};

/// Elements, found by number.
pub(crate) struct ExtensibleArray<'a> {
    file: &'a File,
    element_len: u64,
    /// Elements in the index block itself, and in the smallest data block.
    in_index: u64,
    smallest: u64,
    /// Elements in a page of a data block.
    page: u64,
    /// Bytes in a block's place within the array.
    offset_width: u64,
    /// Super blocks whose data blocks the index block knows, and how many those are.
    direct_supers: u64,
    direct_blocks: u64,
    /// The index block, and where it lies.
    index: Option<(Buffer, u64)>,
}

/// A super block's data blocks: their number, the elements in each, and what came before.
struct Super {
    blocks: u64,
    elements: u64,
    first_element: u64,
    first_block: u64,
}

impl<'a> ExtensibleArray<'a> {
    pub(crate) fn open(file: &'a File, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let head = file.read(address, 16 + (6 * sizes.length + sizes.address) as u64)?;
        let mut cursor = file.cursor(&head, address);
        cursor.signature(b"EAHD")?;
        cursor.version("the extensible array", 0..=0)?;
        let _client = cursor.u8()?;
        let element_len = u64::from(cursor.u8()?);
        let bits = u64::from(cursor.u8()?);
        let (in_index, smallest) = (u64::from(cursor.u8()?), u64::from(cursor.u8()?));
        let pointers = u64::from(cursor.u8()?);
        let page_bits = cursor.u8()?;
        cursor.skip(6 * sizes.length)?;
        let index = cursor.address()?;
        cursor.checksum("the extensible array")?;
        let powers = smallest.is_power_of_two() && pointers.is_power_of_two();
        if !powers
            || bits > 64
            || page_bits > 63
            || bits < u64::from(smallest.max(1).ilog2())
            || element_len == 0
        {
            return Err(cursor.corrupt(format!(
                "an array of 2^{bits} elements, {smallest} in a block, {pointers} blocks and pages of 2^{page_bits}"
            )));
        }
        let supers = 1 + bits - u64::from(smallest.ilog2());
        let direct_supers = 2 * u64::from(pointers.ilog2());
        let direct_blocks = 2 * (pointers - 1);
        let mut array = Self {
            file,
            element_len,
            in_index,
            smallest,
            page: 1 << page_bits,
            offset_width: bits.div_ceil(8),
            direct_supers,
            direct_blocks,
            index: None,
        };
        if let Some(at) = index {
            let pointers = direct_blocks + supers.saturating_sub(direct_supers);
            let len = array.prefix(false) + in_index * element_len + pointers * sizes.address as u64 + 4;
            let block = file.read(at, len)?;
            file.cursor(&block, at).signature(b"EAIB")?;
            verify(&block, at)?;
            array.index = Some((block, at));
        }
        Ok(array)
    }

    /// Bytes before a block's contents.
    fn prefix(&self, placed: bool) -> u64 {
        6 + self.file.sizes().address as u64 + if placed { self.offset_width } else { 0 }
    }

    /// The bytes of an element and where they lie; `None` for one that was never set.
    pub(crate) fn element(&self, number: u64) -> Result<Option<(Buffer, u64)>> {
        let Some((index, index_at)) = &self.index else { return Ok(None) };
        let elements_at = self.prefix(false);
        if number < self.in_index {
            let at = elements_at + number * self.element_len;
            return Ok(index
                .get(at as usize..(at + self.element_len) as usize)
                .map(|bytes| (bytes, index_at + at)));
        }
        let number = number - self.in_index;
        // The super blocks double every other time, beginning with the smallest data block.
        let order = u64::from((number / self.smallest).saturating_add(1).ilog2());
        let level = self.super_block(order);
        let (nth, within) = (
            (number - level.first_element) / level.elements,
            (number - level.first_element) % level.elements,
        );
        let pointers = elements_at + self.in_index * self.element_len;
        let block = if order < self.direct_supers {
            self.pointer(*index_at + pointers, level.first_block + nth)?
        } else {
            let skipped = self.direct_blocks + order - self.direct_supers;
            match self.pointer(*index_at + pointers, skipped)? {
                Some(above) => self.below(above, &level, nth, within)?,
                None => None,
            }
        };
        block.map_or(Ok(None), |block| self.in_block(block, &level, within))
    }

    fn super_block(&self, order: u64) -> Super {
        let (mut first_element, mut first_block) = (0_u64, 0_u64);
        for before in 0..order {
            first_element += (1 << (before / 2)) * ((1 << before.div_ceil(2)) * self.smallest);
            first_block += 1 << (before / 2);
        }
        Super {
            blocks: 1 << (order / 2),
            elements: (1 << order.div_ceil(2)) * self.smallest,
            first_element,
            first_block,
        }
    }

    /// An address in a list of them.
    fn pointer(&self, list: u64, number: u64) -> Result<Option<u64>> {
        let width = self.file.sizes().address as u64;
        let at = list.saturating_add(number.saturating_mul(width));
        self.file.cursor(&self.file.read(at, width)?, at).address()
    }

    /// The nth data block of a super block; `None` as well when the element's page was never written.
    fn below(&self, at: u64, level: &Super, nth: u64, within: u64) -> Result<Option<u64>> {
        self.file.cursor(&self.file.read(at, 4)?, at).signature(b"EASB")?;
        let pages = if level.elements > self.page { level.elements / self.page } else { 0 };
        let map_len = pages.div_ceil(8);
        if pages > 0 {
            let bit = within / self.page;
            let place = at
                .saturating_add(self.prefix(true))
                .saturating_add(nth.saturating_mul(map_len))
                .saturating_add(bit / 8);
            let bits = self.file.read(place, 1)?;
            if bits.first().is_none_or(|bits| bits & 0x80 >> (bit % 8) == 0) {
                return Ok(None);
            }
        }
        let maps = level.blocks.saturating_mul(map_len);
        self.pointer(at.saturating_add(self.prefix(true)).saturating_add(maps), nth)
    }

    fn in_block(&self, block: u64, level: &Super, within: u64) -> Result<Option<(Buffer, u64)>> {
        self.file.cursor(&self.file.read(block, 4)?, block).signature(b"EADB")?;
        let mut at = within.saturating_mul(self.element_len);
        if level.elements > self.page {
            // A checksum ends the head, and each page.
            at = at.saturating_add(4 + within / self.page * 4);
        }
        let at = at.saturating_add(block).saturating_add(self.prefix(true));
        Ok(Some((self.file.read(at, self.element_len)?, at)))
    }
}
