//! Smaller colour planes to whole ones, as libjpeg does: those of half the width or height in its "fancy" way, three parts of the
//! nearer level and one of the next, others by repeating levels.

use std::ops::Range;

/// What one row of a plane is enlarged from: its levels from `start` on, and the plane's true width.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) near: &'a [u8],
    /// The row that is next nearest; `near` itself where the height stays.
    pub(crate) far: &'a [u8],
    /// Which of the plane's columns `near` and `far` begin with.
    pub(crate) start: usize,
    pub(crate) width: usize,
}

impl<'a> Rows<'a> {
    /// These columns of both.
    #[inline(always)]
    fn part(&self, columns: Range<usize>) -> (&'a [u8], &'a [u8]) {
        let columns = columns.start - self.start..columns.end - self.start;
        (&self.near[columns.clone()], &self.far[columns])
    }
}

/// Writes the two columns for each of `columns` to `out`; `sums` is working memory.
///
/// The height may be doubled as well. Planes of at most two columns are only repeated, as libjpeg does.
#[inline(always)]
pub(crate) fn wider(
    rows: Rows<'_>,
    columns: Range<usize>,
    is_taller: bool,
    sums: &mut Vec<u16>,
    out: &mut [u8],
) {
    let (first, end) = (columns.start.max(1) - 1, (columns.end + 1).min(rows.width));
    let (near, far) = rows.part(first..end);
    let count = columns.len();
    let out = &mut out[..count * 2];
    if rows.width <= 2 {
        let row = &rows.near[columns.start - rows.start..];
        out.as_chunks_mut::<2>().0.iter_mut().zip(row).for_each(|(out, level)| *out = [*level; 2]);
        return;
    }
    // One more at either side; beyond the plane its last column goes on.
    sums.clear();
    sums.resize(count + 2, 0);
    let lead = usize::from(columns.start == 0);
    let inner = &mut sums[lead..lead + (end - first)];
    if is_taller {
        let levels = near.iter().zip(far);
        inner
            .iter_mut()
            .zip(levels)
            .for_each(|(sum, (near, far))| *sum = u16::from(*near) * 3 + u16::from(*far));
    } else {
        inner.iter_mut().zip(near).for_each(|(sum, level)| *sum = u16::from(*level));
    }
    if lead == 1 {
        sums[0] = sums[1];
    }
    if columns.end == rows.width {
        sums[count + 1] = sums[count];
    }
    if is_taller { spread::<8, 7, 4>(sums, out) } else { spread::<1, 2, 2>(sums, out) }
}

/// Writes two levels for each but the first and the last of `sums`.
#[inline(always)]
fn spread<const LEFT: u16, const RIGHT: u16, const SHIFT: u32>(sums: &[u16], out: &mut [u8]) {
    let count = out.len() / 2;
    let (before, here, after) = (&sums[..count], &sums[1..count + 1], &sums[2..count + 2]);
    let out = &mut out.as_chunks_mut::<2>().0[..count];
    for at in 0..count {
        let left = (here[at] * 3 + before[at] + LEFT) >> SHIFT;
        let right = (here[at] * 3 + after[at] + RIGHT) >> SHIFT;
        out[at] = (left | right << 8).to_le_bytes();
    }
}

/// Writes the levels of `columns`, of twice the height, to `out`; `is_below` says that `far` is below `near`.
#[inline(always)]
pub(crate) fn taller(rows: Rows<'_>, columns: Range<usize>, is_below: bool, out: &mut [u8]) {
    let bias = 1 + u16::from(is_below);
    let (near, far) = rows.part(columns);
    for ((near, far), out) in near.iter().zip(far).zip(out) {
        *out = ((u16::from(*near) * 3 + u16::from(*far) + bias) >> 2) as u8;
    }
}

/// Writes each level of `columns` so many times to `out`.
pub(crate) fn repeated(rows: Rows<'_>, columns: Range<usize>, times: usize, out: &mut [u8]) {
    let (levels, _) = rows.part(columns);
    for (level, out) in levels.iter().zip(out.chunks_exact_mut(times)) {
        out.fill(*level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libjpeg's loops, written down as they stand there.
    fn libjpeg(near: &[u8], far: &[u8], is_taller: bool) -> Vec<u8> {
        let (sums, left, right, shift): (Vec<u16>, _, _, _) = if is_taller {
            let sum = |(near, far): (&u8, &u8)| u16::from(*near) * 3 + u16::from(*far);
            (near.iter().zip(far).map(sum).collect(), 8, 7, 4)
        } else {
            (near.iter().map(|level| u16::from(*level)).collect(), 1, 2, 2)
        };
        let mut out = Vec::new();
        for (at, here) in sums.iter().enumerate() {
            let before = if at == 0 { *here } else { sums[at - 1] };
            let after = *sums.get(at + 1).unwrap_or(here);
            out.push(((here * 3 + before + left) >> shift) as u8);
            out.push(((here * 3 + after + right) >> shift) as u8);
        }
        if near.len() <= 2 { near.iter().flat_map(|level| [*level; 2]).collect() } else { out }
    }

    #[test]
    fn every_part_equals_that_part_of_the_whole() {
        for width in 1..40 {
            let level = |at: usize, row: usize| (at * 97 + row * 61 + at * at) as u8;
            let near: Vec<u8> = (0..width).map(|at| level(at, 0)).collect();
            let far: Vec<u8> = (0..width).map(|at| level(at, 1)).collect();
            let mut sums = Vec::new();
            for is_taller in [false, true] {
                let whole = libjpeg(&near, &far, is_taller);
                for from in 0..width {
                    for end in from + 1..=width {
                        let start = from.saturating_sub(1);
                        let rows = Rows { near: &near[start..], far: &far[start..], start, width };
                        let mut out = vec![0; (end - from) * 2];
                        wider(rows, from..end, is_taller, &mut sums, &mut out);
                        assert_eq!(out, whole[from * 2..end * 2], "{width} {from} {end}");
                    }
                }
            }
        }
    }

    #[test]
    fn taller_rounds_up_and_down_in_turns() {
        let rows = Rows { near: &[10, 10, 10], far: &[11, 12, 13], start: 5, width: 9 };
        let mut out = [0; 2];
        taller(rows, 6..8, false, &mut out);
        assert_eq!(out, [10, 11]);
        taller(rows, 5..7, true, &mut out);
        assert_eq!(out, [10, 11]);
    }
}
