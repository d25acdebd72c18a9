//! The scan: reads or passes over each block, and writes rows of RGB as soon as their levels are there.

use crate::jpeg::bits::Bits;
use crate::jpeg::block::{self, Broken, Coder};
use crate::jpeg::header::Pass;
use crate::jpeg::region::{Plane, Region};
use crate::jpeg::simd::{Machine, Work};
use crate::jpeg::upsample::{self, Rows};
use crate::jpeg::{color, idct};

/// Why a scan could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The data ends before the picture does.
    EndsEarly,
    /// A code that the tables lack, or more coefficients than a block has.
    BadCode,
    /// Something else where a restart marker belongs.
    NoRestart,
}

/// Working memory, which its thread keeps.
#[derive(Default)]
pub(crate) struct Memory {
    /// The levels of two rows of MCUs, plane by plane.
    levels: Vec<u8>,
    /// One enlarged row of each plane.
    pub(super) rows: [Vec<u8>; 3],
    pub(super) sums: Vec<u16>,
}

/// The levels of a plane: row `y` is in place `y % rows`.
pub(super) struct Ring<'a> {
    pub(super) levels: &'a mut [u8],
    pub(super) stride: usize,
    pub(super) rows: usize,
}

impl Ring<'_> {
    #[inline(always)]
    fn row(&self, y: usize) -> &[u8] {
        let at = y % self.rows * self.stride;
        &self.levels[at..at + self.stride]
    }

    /// Puts the levels of a block at row `y`, which is one of eight rows' first, and column `x`.
    #[inline(always)]
    fn put(&mut self, y: usize, x: usize, levels: &[u8; 64]) {
        let at = y % self.rows * self.stride;
        let rows = &mut self.levels[at..at + self.stride * 8];
        for (row, levels) in rows.chunks_exact_mut(self.stride).zip(levels.as_chunks::<8>().0) {
            row[x..x + 8].copy_from_slice(levels);
        }
    }
}

/// A picture's scan, and where the pixels of the region go.
pub(crate) struct Scan<'a> {
    pub(crate) pass: &'a Pass<'a>,
    pub(crate) region: &'a Region,
    /// One for each component.
    pub(crate) coders: Vec<Coder<'a>>,
    pub(crate) memory: &'a mut Memory,
    /// Three bytes for each pixel of the region.
    pub(crate) out: &'a mut [u8],
}

impl Work for Scan<'_> {
    type Output = Result<(), Fault>;

    #[inline(always)]
    fn run<M: Machine>(self, machine: M) -> Self::Output {
        let Self { pass, region, coders, memory, out } = self;
        let lens: Vec<usize> = region.planes.iter().map(|plane| plane.stride() * plane.down * 16).collect();
        let len = lens.iter().sum();
        if memory.levels.len() < len {
            memory.levels.resize(len, 0);
        }
        let mut rest = memory.levels.as_mut_slice();
        let mut rings = Vec::with_capacity(3);
        for (plane, len) in region.planes.iter().zip(lens) {
            let (levels, after) = rest.split_at_mut(len);
            rest = after;
            rings.push(Ring { levels, stride: plane.stride(), rows: plane.down * 16 });
        }
        let mut blocks = Blocks {
            bits: Bits::new(pass.bytes),
            planes: &region.planes,
            coders: &coders,
            rings,
            before: [0; 3],
        };
        let mut pixels = Pixels { region, rows: &mut memory.rows, sums: &mut memory.sums, out, done: 0 };
        let mut restarts = 0_u8;
        let (mut at, mut due) = (0, pass.restart);
        let last = (region.rows.end - 1) * region.across + region.columns.end;
        while at < last {
            if pass.restart > 0 && at == due {
                blocks.restart(restarts)?;
                restarts = (restarts + 1) % 8;
                due += pass.restart;
            }
            // To the end of the row, or to the next restart marker.
            let row = at / region.across;
            let first = row * region.across;
            if pass.restart > 0 && !region.needs(at..due) {
                at = due.min(last);
            } else {
                let mut end = (first + region.across).min(last);
                if pass.restart > 0 {
                    end = end.min(due);
                }
                blocks.read(machine, row, at - first..end - first).map_err(|Broken| blocks.fault())?;
                at = end;
            }
            if at == last || at >= first + region.across {
                if blocks.bits.overrun() {
                    return Err(Fault::EndsEarly);
                }
                let rows = if at == last { region.rows.end } else { at / region.across };
                pixels.write(machine, &blocks.rings, rows);
            }
        }
        Ok(())
    }
}

/// The coded blocks, and the levels of those that are kept.
pub(super) struct Blocks<'a> {
    pub(super) bits: Bits<'a>,
    pub(super) planes: &'a [Plane],
    pub(super) coders: &'a [Coder<'a>],
    pub(super) rings: Vec<Ring<'a>>,
    /// The first coefficient of each component's last block.
    pub(super) before: [i32; 3],
}

impl Blocks<'_> {
    /// Reads these MCUs of a row.
    #[inline(always)]
    pub(super) fn read<M: Machine>(
        &mut self,
        machine: M,
        row: usize,
        columns: std::ops::Range<usize>,
    ) -> Result<(), Broken> {
        // A copy of its own may stay in registers.
        let mut bits = self.bits;
        let mut result = Ok(());
        'all: for column in columns {
            let parts = self.planes.iter().zip(self.coders).zip(&mut self.rings).zip(&mut self.before);
            for (((plane, coder), ring), before) in parts {
                for down in row * plane.down..(row + 1) * plane.down {
                    let is_kept = plane.block_rows.contains(&down);
                    for across in column * plane.across..(column + 1) * plane.across {
                        result = if is_kept && plane.blocks.contains(&across) {
                            let x = (across - plane.blocks.start) * 8;
                            keep(machine, &mut bits, coder, before, |levels| ring.put(down * 8, x, levels))
                        } else {
                            block::skip(&mut bits, coder, before)
                        };
                        if result.is_err() {
                            break 'all;
                        }
                    }
                }
            }
        }
        self.bits = bits;
        result
    }

    /// Goes on behind the restart marker of this number.
    pub(super) fn restart(&mut self, number: u8) -> Result<(), Fault> {
        if self.bits.overrun() {
            return Err(Fault::EndsEarly);
        }
        match *self.bits.marker() {
            [0xff, marker, ref rest @ ..] if marker == 0xd0 + number => self.bits = Bits::new(rest),
            [] | [0xff] => return Err(Fault::EndsEarly),
            _ => return Err(Fault::NoRestart),
        }
        self.before = [0; 3];
        Ok(())
    }

    pub(super) fn fault(&self) -> Fault {
        if self.bits.overrun() { Fault::EndsEarly } else { Fault::BadCode }
    }
}

/// Reads a block and gives its levels to `put`.
#[inline(always)]
fn keep<M: Machine>(
    machine: M,
    bits: &mut Bits<'_>,
    coder: &Coder<'_>,
    before: &mut i32,
    put: impl FnOnce(&[u8; 64]),
) -> Result<(), Broken> {
    let mut block = [0; 64];
    let mut levels = [0; 64];
    if block::read(bits, coder, before, &mut block)? == 0 {
        levels = [idct::flat(block[0]); 64];
    } else {
        machine.idct(&block, &mut levels);
    }
    put(&levels);
    Ok(())
}

/// The pixels of the region.
pub(super) struct Pixels<'a> {
    pub(super) region: &'a Region,
    pub(super) rows: &'a mut [Vec<u8>; 3],
    pub(super) sums: &'a mut Vec<u16>,
    pub(super) out: &'a mut [u8],
    /// How many rows are written.
    pub(super) done: usize,
}

impl Pixels<'_> {
    /// Writes the rows for which the first `mcu_rows` rows of MCUs suffice.
    #[inline(always)]
    pub(super) fn write<M: Machine>(&mut self, machine: M, rings: &[Ring<'_>], mcu_rows: usize) {
        let crop = self.region.crop;
        while self.done < crop.height {
            let y = crop.top + self.done;
            let is_there = |plane: &Plane| plane.rows(y).iter().all(|row| *row < mcu_rows * plane.down * 8);
            if !self.region.planes.iter().all(is_there) {
                return;
            }
            for ((plane, ring), row) in self.region.planes.iter().zip(rings).zip(self.rows.iter_mut()) {
                enlarge(plane, ring, y, self.sums, row);
            }
            let mut levels: [&[u8]; 3] = [&[]; 3];
            let parts = self.region.planes.iter().zip(rings).zip(self.rows.iter());
            for (levels, ((plane, ring), row)) in levels.iter_mut().zip(parts) {
                let (row, start) = match (plane.is_narrow, plane.is_flat) {
                    (false, false) => (ring.row(y), crop.left - plane.blocks.start * 8),
                    (is_narrow, _) => (row.as_slice(), if is_narrow { crop.left % 2 } else { 0 }),
                };
                *levels = &row[start..start + crop.width];
            }
            let out = &mut self.out[self.done * crop.width * 3..][..crop.width * 3];
            match levels {
                [y, [], []] => color::grey(y, out),
                [y, cb, cr] => machine.color(y, cb, cr, out),
            }
            self.done += 1;
        }
    }
}

/// Enlarges what the picture's row `y` needs of a plane that is narrow or flat.
#[inline(always)]
fn enlarge(plane: &Plane, ring: &Ring<'_>, y: usize, sums: &mut Vec<u16>, out: &mut Vec<u8>) {
    if !plane.is_narrow && !plane.is_flat {
        return;
    }
    let [near, far] = plane.rows(y);
    let (near, far) = (ring.row(near), ring.row(far));
    let rows = Rows { near, far, start: plane.blocks.start * 8, width: plane.width };
    let columns = plane.columns.clone();
    let len = columns.len() * (1 + usize::from(plane.is_narrow));
    if out.len() < len {
        out.resize(len, 0);
    }
    if plane.is_narrow {
        upsample::wider(rows, columns, plane.is_flat, sums, out);
    } else {
        upsample::taller(rows, columns, !y.is_multiple_of(2), out);
    }
}
