//! One block of 8 x 8 coefficients: read, or passed over.

use crate::jpeg::bits::Bits;
use crate::jpeg::huffman::{END, Entry, LONG, Table};

/// The bits are not what the tables allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

/// For each coefficient in the order of the file, its place in the block.
pub(crate) const PLACES: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// What the blocks of one component are read with.
#[derive(Clone, Copy)]
pub(crate) struct Coder<'a> {
    pub(crate) dc: &'a Table,
    pub(crate) ac: &'a Table,
    /// What the coefficients are multiplied with, in the order of the file.
    pub(crate) factors: &'a [u16; 64],
}

impl Coder<'_> {
    #[inline(always)]
    fn put(&self, block: &mut [i16; 64], index: u32, value: i32) {
        let index = index as usize & 63;
        // It wraps around only where no picture would have it, and does so on every machine.
        block[usize::from(PLACES[index])] = value.wrapping_mul(i32::from(self.factors[index])) as i16;
    }
}

/// Reads a block into `block`, which holds zeros, and gives the index in the file of the last coefficient.
///
/// `before` is the first coefficient of the component's last block, without its factor.
#[inline(always)]
pub(crate) fn read(
    bits: &mut Bits<'_>,
    coder: &Coder<'_>,
    before: &mut i32,
    block: &mut [i16; 64],
) -> Result<u32, Broken> {
    dc(bits, coder.dc, before)?;
    coder.put(block, 0, *before);
    let mut last = 0;
    loop {
        bits.refill();
        // Twice at most 21 bits: a code found in one look with its value, or what one look holds.
        if coefficients(bits, coder, &mut last, block)? || coefficients(bits, coder, &mut last, block)? {
            return Ok(last);
        }
    }
}

/// Reads one or two coefficients that are not the first, and what zeros come before them; whether it was the last.
#[inline(always)]
fn coefficients(
    bits: &mut Bits<'_>,
    coder: &Coder<'_>,
    last: &mut u32,
    block: &mut [i16; 64],
) -> Result<bool, Broken> {
    let ahead = bits.ahead();
    let entry = coder.ac.entry(ahead);
    let first = *last + entry.advance();
    let second = first + entry.second_advance();
    // One comparison for the usual case; its opposite is the end, a long code, or the very last coefficient.
    if second < 63 {
        bits.consume(entry.total_of_both());
        // Without a second, both are in the same place, and the first comes to stay.
        coder.put(block, second, entry.second_value());
        coder.put(block, first, entry.value(ahead));
        *last = second;
        return Ok(false);
    }
    if first < 63 && entry.second_advance() == END {
        bits.consume(entry.total_of_both());
        coder.put(block, first, entry.value(ahead));
        *last = first;
        return Ok(true);
    }
    let (entry, ahead) = whole(bits, coder.ac, entry)?;
    if entry.advance() == END {
        return Ok(true);
    }
    *last += entry.advance();
    if *last > 63 {
        return Err(Broken);
    }
    coder.put(block, *last, entry.value(ahead));
    Ok(*last == 63)
}

/// Goes on behind a block.
#[inline(always)]
pub(crate) fn skip(bits: &mut Bits<'_>, coder: &Coder<'_>, before: &mut i32) -> Result<(), Broken> {
    dc(bits, coder.dc, before)?;
    let mut last = 0;
    loop {
        let run = coder.ac.codes(bits.ahead());
        let next = last + run.advance();
        if next < 63 {
            // At most 30 bits, behind 21 of the first coefficient.
            bits.consume(run.total());
            last = next;
        } else if run.advance() >= END && next < END + 63 {
            bits.consume(run.total());
            return Ok(());
        } else {
            let entry = coder.ac.entry(bits.ahead());
            let (entry, _) = whole(bits, coder.ac, entry)?;
            if entry.advance() == END {
                return Ok(());
            }
            last += entry.advance();
            if last >= 63 {
                return if last == 63 { Ok(()) } else { Err(Broken) };
            }
        }
        bits.refill();
    }
}

/// Reads the first coefficient of a block.
#[inline(always)]
fn dc(bits: &mut Bits<'_>, table: &Table, before: &mut i32) -> Result<(), Broken> {
    bits.refill();
    let entry = table.entry(bits.ahead());
    let (entry, ahead) = whole(bits, table, entry)?;
    *before = before.wrapping_add(entry.value(ahead));
    Ok(())
}

/// Goes on behind `entry`, or behind the code that is too long for it; the entry, and the bits from its code on.
#[inline(always)]
fn whole(bits: &mut Bits<'_>, table: &Table, entry: Entry) -> Result<(Entry, u64), Broken> {
    let ahead = bits.ahead();
    if entry.advance() == LONG {
        let (after, entry, ahead) = long(*bits, table)?;
        *bits = after;
        return Ok((entry, ahead));
    }
    bits.consume(entry.total());
    Ok((entry, ahead))
}

#[cold]
#[inline(never)]
fn long<'a>(mut bits: Bits<'a>, table: &Table) -> Result<(Bits<'a>, Entry, u64), Broken> {
    bits.refill();
    let ahead = bits.ahead();
    let entry = table.long(ahead).ok_or(Broken)?;
    bits.consume(entry.total());
    bits.refill();
    Ok((bits, entry, ahead))
}
