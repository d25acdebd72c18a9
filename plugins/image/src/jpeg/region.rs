//! Which blocks of each plane a rectangle of the picture needs.

use std::ops::Range;

use crate::jpeg::header::{Colors, Component, Header};
use crate::pixels::Crop;

/// A plane of levels, and the part of it that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plane {
    /// Blocks of an MCU, side by side and one below the other.
    pub(crate) across: usize,
    pub(crate) down: usize,
    /// How many columns and rows of the picture are over one of its own.
    pub(crate) wide: usize,
    pub(crate) tall: usize,
    /// Its columns and rows, without what fills the last blocks.
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// The columns under the rectangle.
    pub(crate) columns: Range<usize>,
    /// The blocks under the rectangle and, where it is enlarged, under one more column and row at each side.
    pub(crate) blocks: Range<usize>,
    pub(crate) block_rows: Range<usize>,
}

impl Plane {
    /// Bytes of one row of what is kept.
    pub(crate) fn stride(&self) -> usize {
        self.blocks.len() * 8
    }

    /// Whether it is enlarged by libjpeg's "fancy" way, which is only for twice the width and height.
    pub(crate) fn is_fancy(&self) -> bool {
        self.wide <= 2 && self.tall <= 2
    }

    /// The row that is next to the picture's row `y`, and the next nearest one; itself where rows are repeated.
    pub(crate) fn rows(&self, y: usize) -> [usize; 2] {
        if self.tall == 1 || !self.is_fancy() {
            return [y / self.tall; 2];
        }
        let far =
            if y.is_multiple_of(2) { (y / 2).saturating_sub(1) } else { (y / 2 + 1).min(self.height - 1) };
        [y / 2, far]
    }
}

/// What a rectangle needs of a picture.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) crop: Crop,
    pub(crate) colors: Colors,
    pub(crate) planes: Vec<Plane>,
    /// MCUs in a row of the picture, and in a column.
    pub(crate) across: usize,
    pub(crate) down: usize,
    /// The rows and columns of MCUs that hold blocks which are kept.
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl Region {
    /// What `crop` needs, which is inside of the picture and not empty.
    pub(crate) fn new(header: &Header<'_>, crop: Crop) -> Self {
        let most =
            |count: fn(&Component<'_>) -> usize| header.components.iter().map(count).max().unwrap_or(1);
        let (across, down) = (most(|component| component.across), most(|component| component.down));
        let planes = header.components.iter().map(|component| {
            let (wide, tall) = (across / component.across, down / component.down);
            let (width, columns, blocks) = span(header.width, crop.left..crop.left + crop.width, wide);
            let (height, _, block_rows) = span(header.height, crop.top..crop.top + crop.height, tall);
            let (across, down) = (component.across, component.down);
            Plane { across, down, wide, tall, width, height, columns, blocks, block_rows }
        });
        let planes: Vec<Plane> = planes.collect();
        let cover = |span: fn(&Plane) -> (&Range<usize>, usize)| {
            let starts = planes.iter().map(|plane| span(plane).0.start / span(plane).1);
            let ends = planes.iter().map(|plane| span(plane).0.end.div_ceil(span(plane).1));
            starts.min().unwrap_or(0)..ends.max().unwrap_or(0)
        };
        let rows = cover(|plane| (&plane.block_rows, plane.down));
        let columns = cover(|plane| (&plane.blocks, plane.across));
        let (across, down) = (header.width.div_ceil(across * 8), header.height.div_ceil(down * 8));
        Self { crop, colors: header.colors, across, down, rows, columns, planes }
    }

    /// Whether some of these MCUs, counted row by row, hold a block that is kept.
    pub(crate) fn needs(&self, mcus: Range<usize>) -> bool {
        let rows = mcus.start / self.across..mcus.end.div_ceil(self.across);
        (rows.start.max(self.rows.start)..rows.end.min(self.rows.end)).any(|row| {
            let first = row * self.across;
            mcus.start < first + self.columns.end && mcus.end > first + self.columns.start
        })
    }
}

/// How long a side of the plane is, its part that `wanted` of the picture's side is over, and the blocks to keep.
fn span(side: usize, wanted: Range<usize>, ratio: usize) -> (usize, Range<usize>, Range<usize>) {
    let side = side.div_ceil(ratio);
    let under = wanted.start / ratio..wanted.end.div_ceil(ratio);
    let more = usize::from(ratio > 1);
    let (first, end) = (under.start.saturating_sub(more), (under.end + more).min(side));
    (side, under, first / 8..end.div_ceil(8))
}
