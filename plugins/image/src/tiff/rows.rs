//! From the rows of a strip to samples of whole bytes: byte order, odd depths, and predictors (TIFF 6.0, section 14, and
//! technical note 3).

use forebay_core::{Error, Result};

use crate::tiff::page::{Number, Page};

/// Writes the samples of one packed row to `out`, each of [`Page::size`] bytes in the machine's order.
pub(super) fn row(
    page: &Page<'_>,
    big_endian: bool,
    packed: &mut [u8],
    step: usize,
    out: &mut [u8],
) -> Result<()> {
    match page.predictor {
        1 => samples(page, big_endian, packed, out),
        2 if [8, 16, 32, 64].contains(&page.bits) => {
            samples(page, big_endian, packed, out);
            match page.size() {
                1 => sum::<1>(out, step),
                2 => sum::<2>(out, step),
                4 => sum::<4>(out, step),
                _ => sum::<8>(out, step),
            }
        }
        3 if page.number == Number::Float => floats(page.size(), packed, step, out),
        other => {
            return Err(Error::unsupported(format!("TIFF of predictor {other} for {} bits", page.bits)));
        }
    }
    Ok(())
}

fn samples(page: &Page<'_>, big_endian: bool, packed: &[u8], out: &mut [u8]) {
    let size = page.size();
    match page.bits {
        8 => out.copy_from_slice(&packed[..out.len()]),
        16 | 32 | 64 if big_endian == cfg!(target_endian = "big") => {
            out.copy_from_slice(&packed[..out.len()])
        }
        16 | 32 | 64 => {
            for (out, packed) in out.chunks_exact_mut(size).zip(packed.chunks_exact(size)) {
                out.copy_from_slice(packed);
                out.reverse();
            }
        }
        bits => {
            let mut stream = Bits { bytes: packed, held: 0, count: 0 };
            for out in out.chunks_exact_mut(size) {
                put(stream.take(bits), out);
            }
        }
    }
}

/// Writes the lower bytes of a number, in the machine's order.
fn put(value: u64, out: &mut [u8]) {
    let size = out.len();
    match cfg!(target_endian = "little") {
        true => out.copy_from_slice(&value.to_le_bytes()[..size]),
        false => out.copy_from_slice(&value.to_be_bytes()[8 - size..]),
    }
}

/// Numbers of any depth, the highest bit first whatever the byte order. After the end come zeros.
struct Bits<'a> {
    bytes: &'a [u8],
    held: u128,
    count: usize,
}

impl Bits<'_> {
    fn take(&mut self, bits: usize) -> u64 {
        while self.count < bits {
            let (byte, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
            // What overflows was taken long ago.
            self.held = self.held << 8 | u128::from(*byte);
            self.bytes = rest;
            self.count += 8;
        }
        self.count -= bits;
        (self.held >> self.count) as u64 & (u64::MAX >> (64 - bits))
    }
}

/// Adds to each number the one `step` before it.
fn sum<const SIZE: usize>(out: &mut [u8], step: usize) {
    let numbers = out.as_chunks_mut::<SIZE>().0;
    for index in step..numbers.len() {
        let [before, number] = [numbers[index - step], numbers[index]].map(get::<SIZE>);
        put(before.wrapping_add(number), &mut numbers[index]);
    }
}

/// A number of `SIZE` bytes in the machine's order.
pub(super) fn get<const SIZE: usize>(bytes: [u8; SIZE]) -> u64 {
    let mut all = [0; 8];
    if cfg!(target_endian = "little") {
        all[..SIZE].copy_from_slice(&bytes);
    } else {
        all[8 - SIZE..].copy_from_slice(&bytes);
    }
    u64::from_ne_bytes(all)
}

/// Floats whose bytes were sorted, the highest of all numbers first, and then made differences.
fn floats(size: usize, packed: &mut [u8], step: usize, out: &mut [u8]) {
    let len = out.len();
    let packed = &mut packed[..len];
    for index in step..len {
        packed[index] = packed[index].wrapping_add(packed[index - step]);
    }
    let count = len / size;
    for (index, out) in out.chunks_exact_mut(size).enumerate() {
        for (place, byte) in out.iter_mut().enumerate() {
            let rank = if cfg!(target_endian = "little") { size - 1 - place } else { place };
            *byte = packed[rank * count + index];
        }
    }
}

/// Pixels of YCbCr whose colour differences are shared, which stand together in blocks, to three samples each.
pub(super) fn shared(page: &Page<'_>, packed: &[u8], rows: usize, out: &mut [u8]) {
    let [across, down] = page.sharing;
    let columns = page.chunk[1];
    let blocks = packed.chunks_exact(across * down + 2);
    for (index, block) in blocks.enumerate() {
        let per_row = columns.div_ceil(across);
        let (top, left) = (index / per_row * down, index % per_row * across);
        let (levels, differences) = block.split_at(across * down);
        for (at, level) in levels.iter().enumerate() {
            let (y, x) = (top + at / across, left + at % across);
            if y < rows && x < columns {
                let pixel = &mut out[(y * columns + x) * 3..][..3];
                pixel.copy_from_slice(&[*level, differences[0], differences[1]]);
            }
        }
    }
}
