//! Progressive files: scan by scan the bits of all coefficients come together, then the blocks of the region are transformed.
//!
//! Which scans there are is held to ITU-T T.81, annex G: each bit of each coefficient comes once, from the highest on. So what is cut
//! off is known, with a marker of the end behind it or not, and there is no more work than there are bits.

use std::ops::Range;

use crate::jpeg::bits::Bits;
use crate::jpeg::block::{Broken, PLACES};
use crate::jpeg::fault::{Fault, Why};
use crate::jpeg::header::{COMPONENTS, Header, Segments, named};
use crate::jpeg::huffman::Symbols;
use crate::jpeg::idct;
use crate::jpeg::region::{Plane, Region};
use crate::jpeg::scan::Memory;
use crate::jpeg::simd::{Machine, Work};

/// The most scans of a picture. With all coefficients of four components each in a scan of its own there are 253; by the
/// standard there may be a few thousand, whose work is out of all proportion to their bytes.
pub(crate) const MOST_SCANS: usize = 256;

/// In the place of the lowest bit of a coefficient that is known: none is.
const UNKNOWN: u8 = u8::MAX;

/// Words for each block: its coefficients, and the marks of those that are not zero.
const WORDS: usize = 17;

/// A picture's scans, and where the pixels of the region go.
pub(crate) struct Progressive<'a> {
    pub(crate) header: &'a Header<'a>,
    /// The scans come next.
    pub(crate) segments: Segments<'a>,
    pub(crate) region: &'a Region,
    /// Memory for the coefficients: [`len`](Progressive::len) of them.
    pub(crate) words: &'a mut [u64],
    pub(crate) memory: &'a mut Memory,
    /// Three bytes for each pixel of the region.
    pub(crate) out: &'a mut [u8],
}

impl Progressive<'_> {
    /// How many words the coefficients take, of a file with so much data.
    ///
    /// Each block has a bit at least, so that a short file gets no large memory.
    pub(crate) fn len(region: &Region, segments: &Segments<'_>) -> Result<usize, Fault> {
        let blocks = region.planes.iter().map(|plane| blocks(plane).iter().product::<usize>()).sum::<usize>();
        if blocks > segments.rest.len().saturating_mul(8) {
            return Err(Fault { why: Why::EndsEarly, left: 0 });
        }
        Ok(blocks * WORDS)
    }
}

/// The rows and columns of a plane's blocks, without those that only fill the last MCUs.
fn blocks(plane: &Plane) -> [usize; 2] {
    [plane.height.div_ceil(8), plane.width.div_ceil(8)]
}

impl Work for Progressive<'_> {
    type Output = Result<(), Fault>;

    #[inline(always)]
    fn run<M: Machine>(self, machine: M) -> Self::Output {
        let Self { header, mut segments, region, words, memory, out } = self;
        words.fill(0);
        let mut parts = parts(region, words);
        let mut scans = 0;
        while parts.iter().any(|part| part.known != [0; 64]) {
            let (marker, segment) = segments.next()?;
            match marker {
                0xda => {}
                0xd9 => return Err(Fault::at(segments.last, Why::Unfinished)),
                // Comments, what applications put there, and the number of lines once more.
                0xe0..=0xef | 0xfe | 0xdc => continue,
                _ => return Err(Fault::at(segments.last, Why::BadMarker)),
            }
            scans += 1;
            let scan = match scans {
                ..=MOST_SCANS => scan(segment, header, &segments, &mut parts),
                _ => Err(Why::TooManyScans),
            };
            let scan = scan.map_err(|why| Fault::at(segments.last, why))?;
            let bits = Bits::new(segments.rest);
            let bits = if scan.first == 0 {
                dc(bits, &scan, region, &mut parts)?
            } else {
                ac(bits, &scan, &mut parts)?
            };
            segments.rest = bits.marker();
        }
        write(machine, &parts, region, memory, out);
        Ok(())
    }
}

/// One component's coefficients.
struct Part<'a> {
    /// Rows and columns of its blocks.
    size: [usize; 2],
    /// Its blocks in an MCU, one below the other and side by side.
    mcu: [usize; 2],
    /// The coefficients at their places, without their factors.
    blocks: &'a mut [[i16; 64]],
    /// For each block a bit for each coefficient but the first, in the order of the file: whether it is not zero.
    marks: &'a mut [u64],
    /// Down to which bit each coefficient is known.
    known: [u8; 64],
    /// What the coefficients at their places are multiplied with.
    factors: [i16; 64],
}

/// Shares out the words.
fn parts<'a>(region: &Region, mut words: &'a mut [u64]) -> Vec<Part<'a>> {
    let mut parts = Vec::with_capacity(COMPONENTS);
    for plane in &region.planes {
        let size = blocks(plane);
        let (own, after) = words.split_at_mut(size[0] * size[1] * WORDS);
        let (blocks, marks) = own.split_at_mut(size[0] * size[1] * (WORDS - 1));
        let blocks = bytemuck::cast_slice_mut(blocks);
        words = after;
        let (mcu, known, factors) = ([plane.down, plane.across], [UNKNOWN; 64], [0; 64]);
        parts.push(Part { size, mcu, blocks, marks, known, factors });
    }
    parts
}

/// What the header of a scan says.
struct Scan {
    /// The places of its components, and their tables; there is none for bits below the first ones of a first coefficient.
    components: Vec<(usize, Option<Symbols>)>,
    /// The first and the last coefficient.
    first: u32,
    last: u32,
    /// Whether bits of these coefficients came before.
    is_more: bool,
    /// The lowest bit that comes.
    low: u32,
    restart: usize,
}

/// Reads the header of a scan, and keeps what it says of the components.
fn scan(
    segment: &[u8],
    header: &Header<'_>,
    segments: &Segments<'_>,
    parts: &mut [Part<'_>],
) -> Result<Scan, Why> {
    let (named, [first, last, bits]) = named(segment, &header.components).ok_or(Why::BadScan)?;
    let (high, low) = (bits >> 4, bits & 15);
    // ITU-T T.81, G.1.1.1: first coefficients come by themselves, others of one component; one bit more each time.
    let is_first = first == 0 && last == 0;
    let is_band = first > 0 && first <= last && last < 64 && named.len() == 1;
    if !(is_first || is_band) || low > 13 || (high > 0 && high != low + 1) {
        return Err(Why::BadScan);
    }
    let mut components = Vec::with_capacity(named.len());
    for (place, table) in named {
        let (part, component) = (&mut parts[place], &header.components[place]);
        if part.known == [UNKNOWN; 64] {
            let factors = segments.factors(component).ok_or(Why::NoTable)?;
            for (factor, place) in factors.iter().zip(PLACES) {
                part.factors[usize::from(place)] = factor.cast_signed();
            }
        }
        let known = &mut part.known[usize::from(first)..=usize::from(last)];
        let before = if high == 0 { UNKNOWN } else { high };
        if known.iter().any(|known| *known != before) {
            return Err(Why::BadOrder);
        }
        known.fill(low);
        let spec = match (is_first, high) {
            (false, _) => Some(segments.ac(table).ok_or(Why::NoTable)?),
            (true, 0) => Some(segments.dc(table).ok_or(Why::NoTable)?),
            (true, _) => None,
        };
        components.push((place, spec.as_ref().map(Symbols::new)));
    }
    let (first, last, low) = (u32::from(first), u32::from(last), u32::from(low));
    Ok(Scan { components, first, last, is_more: high > 0, low, restart: segments.restart })
}

/// Calls `read` with the numbers of MCUs row by row, parted where restart markers are, and whether there was one before them.
#[inline(always)]
fn each_row<'a>(
    mut bits: Bits<'a>,
    restart: usize,
    [down, across]: [usize; 2],
    mut read: impl FnMut(&mut Bits<'a>, Range<usize>, bool) -> Result<(), Broken>,
) -> Result<Bits<'a>, Fault> {
    let (mut at, mut due, mut restarts) = (0, restart, 0_u8);
    while at < down * across {
        let is_restart = restart > 0 && at == due;
        if is_restart {
            bits = bits.behind_restart(restarts)?;
            restarts = restarts.wrapping_add(1);
            due += restart;
        }
        let row = (at / across + 1) * across;
        let end = if restart > 0 { row.min(due) } else { row };
        read(&mut bits, at..end, is_restart).map_err(|Broken| bits.fault(Why::BadCode))?;
        if bits.overrun() {
            return Err(bits.fault(Why::EndsEarly));
        }
        at = end;
    }
    Ok(bits)
}

/// Reads first coefficients.
#[inline(always)]
fn dc<'a>(bits: Bits<'a>, scan: &Scan, region: &Region, parts: &mut [Part<'_>]) -> Result<Bits<'a>, Fault> {
    // ITU-T T.81, A.2: of several components blocks are interleaved in MCUs, of one they come row by row, without those that
    // only fill the last MCU.
    let alone = match &*scan.components {
        [(place, _)] => Some(parts[*place].size),
        _ => None,
    };
    let [down, across] = alone.unwrap_or([region.down, region.across]);
    let mut before = [0_i32; COMPONENTS];
    each_row(bits, scan.restart, [down, across], |bits, mcus, is_restart| {
        if is_restart {
            before = [0; COMPONENTS];
        }
        let row = mcus.start / across;
        for column in mcus.start - row * across..mcus.end - row * across {
            for ((place, table), before) in scan.components.iter().zip(&mut before) {
                let part = &mut parts[*place];
                let [tall, wide] = if alone.is_some() { [1, 1] } else { part.mcu };
                for y in row * tall..(row + 1) * tall {
                    for x in column * wide..(column + 1) * wide {
                        bits.refill();
                        let value = match table {
                            Some(table) => {
                                *before = before.wrapping_add(difference(bits, table)?);
                                *before << scan.low
                            }
                            None => (bits.take(1) << scan.low).cast_signed(),
                        };
                        if y < part.size[0] && x < part.size[1] {
                            part.blocks[y * part.size[1] + x][0] |= value as i16;
                        }
                    }
                }
            }
        }
        Ok(())
    })
}

/// By how much a first coefficient is more than the one before.
#[inline(always)]
fn difference(bits: &mut Bits<'_>, table: &Symbols) -> Result<i32, Broken> {
    let (len, size) = table.find(bits.ahead()).ok_or(Broken)?;
    bits.consume(len);
    Ok(signed(bits.take(size & 15), size & 15))
}

/// A value of so many bits; one that begins with a zero is negative.
#[inline(always)]
fn signed(bits: u32, size: u32) -> i32 {
    let is_negative = (bits << 1 >> size == 0) & (size > 0);
    bits.cast_signed() - if is_negative { (1 << size) - 1 } else { 0 }
}

/// Reads coefficients that are not the first.
#[inline(always)]
fn ac<'a>(bits: Bits<'a>, scan: &Scan, parts: &mut [Part<'_>]) -> Result<Bits<'a>, Fault> {
    let [(place, Some(table))] = &*scan.components else { return Err(bits.fault(Why::BadScan)) };
    let part = &mut parts[*place];
    // Blocks that follow with nothing new in them.
    let mut run = 0_usize;
    each_row(bits, scan.restart, part.size, |bits, mut range, is_restart| {
        if is_restart {
            run = 0;
        }
        while !range.is_empty() {
            if run > 0 && !scan.is_more {
                let count = run.min(range.len());
                run -= count;
                range.start += count;
                continue;
            }
            let (block, marks) = (&mut part.blocks[range.start], &mut part.marks[range.start]);
            if scan.is_more {
                more(bits, table, scan, &mut run, block, marks)?;
            } else {
                run = first(bits, table, scan, block, marks)?;
            }
            range.start += 1;
        }
        Ok(())
    })
}

/// Reads the first bits of a block; how many blocks follow without any.
#[inline(always)]
fn first(
    bits: &mut Bits<'_>,
    table: &Symbols,
    scan: &Scan,
    block: &mut [i16; 64],
    marks: &mut u64,
) -> Result<usize, Broken> {
    let mut at = scan.first;
    while at <= scan.last {
        bits.refill();
        let (len, symbol) = table.find(bits.ahead()).ok_or(Broken)?;
        bits.consume(len);
        let (zeros, size) = (symbol >> 4, symbol & 15);
        at += zeros;
        if size > 0 {
            if at > scan.last {
                return Err(Broken);
            }
            block[usize::from(PLACES[at as usize])] = (signed(bits.take(size), size) << scan.low) as i16;
            *marks |= 1 << at;
        } else if zeros < 15 {
            return Ok(run(bits, zeros) - 1);
        }
        at += 1;
    }
    if at == scan.last + 1 { Ok(0) } else { Err(Broken) }
}

/// Of how many blocks the code says that nothing new is in what is left of them.
#[inline(always)]
fn run(bits: &mut Bits<'_>, size: u32) -> usize {
    (1 << size) + bits.take(size) as usize
}

/// Reads one more bit of the coefficients of a block that are not zero, and the first one of others.
///
/// ITU-T T.81, G.1.2.3.
#[inline(always)]
fn more(
    bits: &mut Bits<'_>,
    table: &Symbols,
    scan: &Scan,
    nothing_new: &mut usize,
    block: &mut [i16; 64],
    marks: &mut u64,
) -> Result<(), Broken> {
    let unit = 1_i16 << scan.low;
    // Those that are yet to come.
    let mut left = u64::MAX << scan.first & u64::MAX >> (63 - scan.last);
    while *nothing_new == 0 && left != 0 {
        bits.refill();
        let (len, symbol) = table.find(bits.ahead()).ok_or(Broken)?;
        bits.consume(len);
        let (zeros, size) = (symbol >> 4, symbol & 15);
        let value = match size {
            0 if zeros < 15 => {
                *nothing_new = run(bits, zeros);
                break;
            }
            0 => None,
            1 => Some(if bits.take(1) == 1 { unit } else { -unit }),
            _ => return Err(Broken),
        };
        // The new one, or the last of sixteen zeros, is behind so many that stay zero.
        let mut zero = left & !*marks;
        for _ in 0..zeros {
            zero &= zero.wrapping_sub(1);
        }
        if zero == 0 {
            return Err(Broken);
        }
        let at = zero.trailing_zeros();
        correct(bits, left & *marks & ((1 << at) - 1), unit, block);
        if let Some(value) = value {
            block[usize::from(PLACES[at as usize])] = value;
            *marks |= 1 << at;
        }
        left &= u64::MAX << at << 1;
    }
    if *nothing_new > 0 {
        correct(bits, left & *marks, unit, block);
        *nothing_new -= 1;
    }
    Ok(())
}

/// Reads one more bit of each of `these` coefficients.
#[inline(always)]
fn correct(bits: &mut Bits<'_>, mut these: u64, unit: i16, block: &mut [i16; 64]) {
    while these != 0 {
        bits.refill();
        let (mut ahead, count) = (bits.ahead(), these.count_ones().min(32));
        for _ in 0..count {
            let coefficient = &mut block[usize::from(PLACES[these.trailing_zeros() as usize])];
            these &= these - 1;
            let away_from_zero = if *coefficient < 0 { -unit } else { unit };
            let is_set = (ahead.cast_signed() >> 63) as i16;
            *coefficient = coefficient.wrapping_add(away_from_zero & is_set);
            ahead <<= 1;
        }
        bits.consume(count);
    }
}

/// Transforms the blocks of the region, and writes its pixels.
#[inline(always)]
fn write<M: Machine>(machine: M, parts: &[Part<'_>], region: &Region, memory: &mut Memory, out: &mut [u8]) {
    let (mut rings, mut pixels) = memory.start(region, out);
    for row in region.rows.clone() {
        for ((plane, part), ring) in region.planes.iter().zip(parts).zip(&mut rings) {
            let rows = row * plane.down..(row + 1) * plane.down;
            for down in rows.filter(|down| plane.block_rows.contains(down)) {
                for across in plane.blocks.clone() {
                    let at = down * part.size[1] + across;
                    let block = &part.blocks[at];
                    let mut levels = [0; 64];
                    if part.marks[at] == 0 {
                        levels = [idct::flat(block[0].wrapping_mul(part.factors[0])); 64];
                    } else {
                        let mut product = [0; 64];
                        for (at, product) in product.iter_mut().enumerate() {
                            *product = block[at].wrapping_mul(part.factors[at]);
                        }
                        machine.idct(&product, &mut levels);
                    }
                    ring.put(down * 8, (across - plane.blocks.start) * 8, &levels);
                }
            }
        }
        pixels.write(machine, &rings, row + 1);
    }
}
