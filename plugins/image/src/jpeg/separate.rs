//! Components in scans of their own: all levels are held, then the pixels are written.

use crate::jpeg::bits::Bits;
use crate::jpeg::block::{Broken, Coder};
use crate::jpeg::fault::{Fault, Why};
use crate::jpeg::header::{COMPONENTS, Pass};
use crate::jpeg::region::{Plane, Region};
use crate::jpeg::scan::{Blocks, Memory, Pixels, rings};
use crate::jpeg::simd::{Machine, Work};

/// A picture's scans, and where the pixels of the region go.
pub(crate) struct Separate<'a> {
    pub(crate) passes: &'a [Pass<'a>],
    pub(crate) region: &'a Region,
    /// One for each component.
    pub(crate) coders: Vec<Coder<'a>>,
    /// The levels of all planes under the region: [`len`](Separate::len) of them.
    pub(crate) levels: &'a mut [u8],
    pub(crate) memory: &'a mut Memory,
    /// Three bytes for each pixel of the region.
    pub(crate) out: &'a mut [u8],
}

impl Separate<'_> {
    /// How many levels a region has.
    pub(crate) fn len(region: &Region) -> usize {
        region.planes.iter().map(|plane| plane.stride() * rows(plane)).sum()
    }
}

impl Work for Separate<'_> {
    type Output = Result<(), Fault>;

    #[inline(always)]
    fn run<M: Machine>(self, machine: M) -> Self::Output {
        let Self { passes, region, coders, levels, memory, out } = self;
        for pass in passes {
            read(machine, pass, region, &coders, levels)?;
        }
        let rings = rings(region, levels, rows);
        let mut pixels = Pixels { region, rows: &mut memory.rows, sums: &mut memory.sums, out, done: 0 };
        pixels.write(machine, &rings, region.rows.end);
        Ok(())
    }
}

/// Reads one scan.
///
/// ITU-T T.81, A.2: of several components blocks are interleaved in MCUs, of one they come row by row, without those that only fill
/// the last MCU.
#[inline(always)]
fn read<M: Machine>(
    machine: M,
    pass: &Pass<'_>,
    region: &Region,
    coders: &[Coder<'_>],
    levels: &mut [u8],
) -> Result<(), Fault> {
    let mut planes: Vec<Plane> = pass.components.iter().map(|&at| region.planes[at].clone()).collect();
    let coders: Vec<_> = pass.components.iter().map(|&at| coders[at]).collect();
    let (mut across, mut down) = (region.across, region.down);
    if let [plane] = &mut *planes {
        (plane.across, plane.down) = (1, 1);
        (across, down) = (plane.width.div_ceil(8), plane.height.div_ceil(8));
    }
    let rings = rings(region, levels, rows).into_iter().enumerate();
    let rings = rings.filter(|(at, _)| pass.components.contains(at)).map(|(_, ring)| ring).collect();
    let bits = Bits::new(pass.bytes);
    let mut blocks = Blocks { bits, planes: &planes, coders: &coders, rings, before: [0; COMPONENTS] };
    let (mut at, mut due, mut restarts) = (0, pass.restart, 0_u8);
    let last = across * down;
    while at < last {
        if pass.restart > 0 && at == due {
            blocks.restart(restarts)?;
            restarts = restarts.wrapping_add(1);
            due += pass.restart;
        }
        // To the end of the row, or to the next restart marker.
        let row = at / across;
        let first = row * across;
        let end = if pass.restart > 0 { due.min(first + across) } else { first + across };
        blocks
            .read(machine, row, at - first..end - first)
            .map_err(|Broken| blocks.bits.fault(Why::BadCode))?;
        if blocks.bits.overrun() {
            return Err(blocks.bits.fault(Why::EndsEarly));
        }
        at = end;
    }
    Ok(())
}

/// The rows of a plane that are kept.
fn rows(plane: &Plane) -> usize {
    plane.block_rows.len() * 8
}
