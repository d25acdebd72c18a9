//! The scan: reads or passes over each block, and writes rows of RGB as soon as their levels are there.

use crate::jpeg::bits::Bits;
use crate::jpeg::block::{self, Broken, Coder};
use crate::jpeg::fault::{Fault, Why};
use crate::jpeg::header::{COMPONENTS, Colors, Pass};
use crate::jpeg::region::{Plane, Region};
use crate::jpeg::simd::{Machine, Work};
use crate::jpeg::upsample::{self, Rows};
use crate::jpeg::{color, idct};

/// Working memory, which its thread keeps.
#[derive(Default)]
pub(crate) struct Memory {
    /// The levels of two rows of MCUs, plane by plane.
    levels: Vec<u8>,
    /// One enlarged row of each plane.
    pub(super) rows: [Vec<u8>; COMPONENTS],
    pub(super) sums: Vec<u16>,
}

impl Memory {
    /// Where the levels of two rows of MCUs go, plane by plane, and the pixels of the region, which go to `out`.
    pub(super) fn start<'a>(
        &'a mut self,
        region: &'a Region,
        out: &'a mut [u8],
    ) -> (Vec<Ring<'a>>, Pixels<'a>) {
        let rows = |plane: &Plane| plane.down * 16;
        let len = region.planes.iter().map(|plane| plane.stride() * rows(plane)).sum();
        if self.levels.len() < len {
            self.levels.resize(len, 0);
        }
        let pixels = Pixels { region, rows: &mut self.rows, sums: &mut self.sums, out, done: 0 };
        (rings(region, &mut self.levels, rows), pixels)
    }
}

/// Shares `levels` out among the planes, so many rows to each.
pub(super) fn rings<'a>(
    region: &Region,
    mut levels: &'a mut [u8],
    rows: impl Fn(&Plane) -> usize,
) -> Vec<Ring<'a>> {
    let mut rings = Vec::with_capacity(COMPONENTS);
    for plane in &region.planes {
        let (stride, rows) = (plane.stride(), rows(plane));
        let (own, after) = levels.split_at_mut(stride * rows);
        levels = after;
        rings.push(Ring { levels: own, stride, rows });
    }
    rings
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
    pub(super) fn put(&mut self, y: usize, x: usize, levels: &[u8; 64]) {
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
        let (rings, mut pixels) = memory.start(region, out);
        let bits = Bits::new(pass.bytes);
        let mut blocks =
            Blocks { bits, planes: &region.planes, coders: &coders, rings, before: [0; COMPONENTS] };
        let mut restarts = 0_u8;
        let (mut at, mut due) = (0, pass.restart);
        let last = (region.rows.end - 1) * region.across + region.columns.end;
        while at < last {
            if pass.restart > 0 && at == due {
                blocks.restart(restarts)?;
                restarts = restarts.wrapping_add(1);
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
                blocks
                    .read(machine, row, at - first..end - first)
                    .map_err(|Broken| blocks.bits.fault(Why::BadCode))?;
                at = end;
            }
            if at == last || at >= first + region.across {
                if blocks.bits.overrun() {
                    return Err(blocks.bits.fault(Why::EndsEarly));
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
    pub(super) before: [i32; COMPONENTS],
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
        self.bits = self.bits.behind_restart(number)?;
        self.before = [0; COMPONENTS];
        Ok(())
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
    pub(super) rows: &'a mut [Vec<u8>; COMPONENTS],
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
            let mut levels: [&[u8]; COMPONENTS] = [&[]; COMPONENTS];
            let parts = self.region.planes.iter().zip(rings).zip(self.rows.iter());
            for (levels, ((plane, ring), row)) in levels.iter_mut().zip(parts) {
                let (row, start) = match (plane.wide, plane.tall) {
                    (1, 1) => (ring.row(y), crop.left - plane.blocks.start * 8),
                    (wide, _) => (row.as_slice(), crop.left % wide),
                };
                *levels = &row[start..start + crop.width];
            }
            let out = &mut self.out[self.done * crop.width * 3..][..crop.width * 3];
            let [first, second, third, black] = levels;
            match self.region.colors {
                Colors::Grey => color::grey(first, out),
                Colors::Ycc => machine.color(first, second, third, out),
                Colors::Rgb => color::rgb(first, second, third, out),
                Colors::Cmyk => {
                    color::rgb(first, second, third, out);
                    color::darken(black, out);
                }
                Colors::Ycck => {
                    machine.color(first, second, third, out);
                    // What the inks leave of the light is 255 less what became YCbCr.
                    out.iter_mut().for_each(|level| *level = 255 - *level);
                    color::darken(black, out);
                }
            }
            self.done += 1;
        }
    }
}

/// Enlarges what the picture's row `y` needs of a plane that is smaller.
#[inline(always)]
fn enlarge(plane: &Plane, ring: &Ring<'_>, y: usize, sums: &mut Vec<u16>, out: &mut Vec<u8>) {
    if plane.wide == 1 && plane.tall == 1 {
        return;
    }
    let [near, far] = plane.rows(y);
    let (near, far) = (ring.row(near), ring.row(far));
    let rows = Rows { near, far, start: plane.blocks.start * 8, width: plane.width };
    let columns = plane.columns.clone();
    let len = columns.len() * plane.wide;
    if out.len() < len {
        out.resize(len, 0);
    }
    match plane.wide {
        wide if !plane.is_fancy() => upsample::repeated(rows, columns, wide, out),
        1 => upsample::taller(rows, columns, !y.is_multiple_of(2), out),
        _ => upsample::wider(rows, columns, plane.tall > 1, sums, out),
    }
}
