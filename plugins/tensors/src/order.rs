//! Elements that lie in any order, put into row-major order.

/// Elements of a tile's side: a tile is read and written while both sides of it are in the nearest cache.
const TILE: usize = 32;

/// Copies elements of `block` bytes from `source`, where they lie by `axes`, each a length and a step in bytes, to `out`, where they lie
/// in row-major order. Whether all of them lie in `source` and fill `out`; if not, nothing is copied.
pub(crate) fn gather(source: &[u8], axes: &[(usize, usize)], block: usize, out: &mut [u8]) -> bool {
    let count = axes.iter().try_fold(1_usize, |count, &(len, _)| count.checked_mul(len));
    if count.and_then(|count| count.checked_mul(block)) != Some(out.len()) || block == 0 {
        return false;
    }
    if out.is_empty() {
        return true;
    }
    let last = axes.iter().try_fold(block, |end, &(len, step)| end.checked_add(step.checked_mul(len - 1)?));
    if last.is_none_or(|end| end > source.len()) {
        return false;
    }
    // A width known to the compiler becomes one instruction.
    match block {
        1 => by_tiles(source, axes, 1, out, row::<1>),
        2 => by_tiles(source, axes, 2, out, row::<2>),
        4 => by_tiles(source, axes, 4, out, row::<4>),
        8 => by_tiles(source, axes, 8, out, row::<8>),
        16 => by_tiles(source, axes, 16, out, row::<16>),
        _ => by_tiles(source, axes, block, out, |source, step, out| {
            for (at, element) in out.chunks_exact_mut(block).enumerate() {
                element.copy_from_slice(&source[at * step..at * step + block]);
            }
        }),
    }
    true
}

/// Copies elements that lie `step` bytes from each other.
#[inline(always)]
fn row<const N: usize>(source: &[u8], step: usize, out: &mut [u8]) {
    let mut from = 0;
    for element in out.as_chunks_mut::<N>().0 {
        element.copy_from_slice(&source[from..from + N]);
        from += step;
    }
}

/// One axis: how many elements, and how many bytes from each to the next, in the source and in the output.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    from: usize,
    to: usize,
}

/// Goes tile by tile over the two axes along which source and output are walked best, the last and that of the smallest step, and row by
/// row over all others.
#[inline(always)]
fn by_tiles(
    source: &[u8],
    axes: &[(usize, usize)],
    block: usize,
    out: &mut [u8],
    copy: impl Fn(&[u8], usize, &mut [u8]),
) {
    let mut to = block;
    let mut axes: Vec<Axis> = axes
        .iter()
        .rev()
        .map(|&(len, from)| {
            let axis = Axis { len, from, to };
            to *= len;
            axis
        })
        .collect();
    axes.retain(|axis| axis.len > 1);
    // From here on the first is the one that moves fastest in the output.
    let single = Axis { len: 1, from: 0, to: 0 };
    let across = if axes.is_empty() { single } else { axes.remove(0) };
    let nearest = axes.iter().enumerate().min_by_key(|(_, axis)| axis.from);
    let down = match nearest.filter(|(_, axis)| axis.from < across.from) {
        Some((at, _)) => axes.remove(at),
        None => single,
    };
    let mut index = vec![0; axes.len()];
    let (mut from, mut to) = (0, 0);
    loop {
        for top in (0..down.len).step_by(TILE) {
            for left in (0..across.len).step_by(TILE) {
                let rows = top..down.len.min(top + TILE);
                let columns = left..across.len.min(left + TILE);
                for row in rows {
                    let from = from + row * down.from + columns.start * across.from;
                    let to = to + row * down.to + columns.start * across.to;
                    copy(&source[from..], across.from, &mut out[to..to + columns.len() * block]);
                }
            }
        }
        let mut moved = false;
        for (index, axis) in index.iter_mut().zip(&axes) {
            *index += 1;
            (from, to) = (from + axis.from, to + axis.to);
            if *index < axis.len {
                moved = true;
                break;
            }
            (from, to) = (from - axis.from * axis.len, to - axis.to * axis.len);
            *index = 0;
        }
        if !moved {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One element after the other.
    fn plain(source: &[u8], axes: &[(usize, usize)], block: usize) -> Vec<u8> {
        let Some((&(len, step), rest)) = axes.split_first() else { return source[..block].to_vec() };
        (0..len).flat_map(|at| plain(&source[at * step..], rest, block)).collect()
    }

    #[test]
    fn every_order_of_the_axes_and_every_width() {
        let shapes: [&[usize]; 6] =
            [&[3, 70], &[65, 33], &[4, 5, 6], &[33, 2, 40], &[1, 7, 1, 9], &[2, 3, 4, 5]];
        let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 0, 3, 1]];
        let mut tried = 0;
        for shape in shapes {
            for block in [1, 2, 3, 4, 8, 12, 16] {
                for order in orders {
                    let mut axes: Vec<_> = shape.iter().map(|&len| (len, 0)).collect();
                    let mut step = block;
                    for at in order.into_iter().filter(|at| *at < shape.len()) {
                        axes[at].1 = step;
                        step *= axes[at].0;
                    }
                    let source: Vec<u8> = (0..step).map(|at| (at * 31 + at / 251) as u8).collect();
                    let mut out = vec![0; step];
                    assert!(gather(&source, &axes, block, &mut out));
                    assert!(out == plain(&source, &axes, block), "{axes:?} {block}");
                    assert!(!gather(&source[1..], &axes, block, &mut out));
                    assert!(!gather(&source, &axes, block, &mut out[1..]));
                    tried += 1;
                }
            }
        }
        assert_eq!(tried, 168);
    }
}
