//! The inverse transform of a block, as libjpeg's slow integer one.
//!
//! It is written in the steps of 16 bits that vector instructions have, so that both give the same bytes for
//! whatever a file holds, and libjpeg's for every picture.

/// Eight numbers: a row or a column.
type Eight = [i16; 8];

/// The numbers that pairs of inputs are multiplied with, in 1 / 8192.
pub(crate) mod factor {
    /// Of inputs 2 and 6: what goes to the outer and to the inner outputs.
    pub(crate) const EVEN: [[i16; 2]; 2] = [[4433 + 6270, 4433], [4433, 4433 - 15137]];
    /// Of inputs 7 + 3 and 5 + 1.
    pub(crate) const SUMS: [[i16; 2]; 2] = [[9633 - 16069, 9633], [9633, 9633 - 3196]];
    /// Of inputs 7 and 1.
    pub(crate) const OUTER: [[i16; 2]; 2] = [[2446 - 7373, -7373], [-7373, 12299 - 7373]];
    /// Of inputs 5 and 3.
    pub(crate) const INNER: [[i16; 2]; 2] = [[16819 - 20995, -20995], [-20995, 25172 - 20995]];
}

/// Bits that the columns keep below the point, and that both passes leave off.
pub(crate) const SHIFTS: [u32; 2] = [11, 18];

/// Transforms `block` into levels from 0 to 255.
pub(crate) fn plain(block: &[i16; 64], out: &mut [u8; 64]) {
    let rows = block.as_chunks::<8>().0;
    let mut columns = [[0; 8]; 8];
    for (x, column) in columns.iter_mut().enumerate() {
        *column = pass(std::array::from_fn(|y| rows[y][x]), SHIFTS[0]);
    }
    for (y, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let row = pass(std::array::from_fn(|x| columns[x][y]), SHIFTS[1]);
        *out = row.map(|level| (level.clamp(-128, 127) + 128) as u8);
    }
}

/// The level that all of a block has, of which only the first coefficient is not zero.
pub(crate) fn flat(first: i16) -> u8 {
    // What the columns keep saturates in 16 bits, as it does in `pass`.
    let kept = i32::from((i32::from(first) << 2).clamp(-0x8000, 0x7fff) as i16);
    (((kept + 16) >> 5).clamp(-128, 127) + 128) as u8
}

fn pass(v: Eight, shift: u32) -> Eight {
    let both = |[a, b]: [i16; 2], factors: [[i16; 2]; 2]| {
        factors.map(|[p, q]| (i32::from(a) * i32::from(p)).wrapping_add(i32::from(b) * i32::from(q)))
    };
    let wide = |level: i16| i32::from(level) << 13;
    let [outer, inner] = both([v[2], v[6]], factor::EVEN);
    let (sum, difference) = (wide(v[0].wrapping_add(v[4])), wide(v[0].wrapping_sub(v[4])));
    let even = [
        sum.wrapping_add(outer),
        difference.wrapping_add(inner),
        difference.wrapping_sub(inner),
        sum.wrapping_sub(outer),
    ];
    let [first, second] = both([v[7].wrapping_add(v[3]), v[5].wrapping_add(v[1])], factor::SUMS);
    let [a, d] = both([v[7], v[1]], factor::OUTER);
    let [b, c] = both([v[5], v[3]], factor::INNER);
    let odd = [d.wrapping_add(second), c.wrapping_add(first), b.wrapping_add(second), a.wrapping_add(first)];
    let narrow = |level: i32| {
        let level = level.wrapping_add(1 << (shift - 1)) >> shift;
        level.clamp(-0x8000, 0x7fff) as i16
    };
    std::array::from_fn(|at| {
        narrow(if at < 4 { even[at].wrapping_add(odd[at]) } else { even[7 - at].wrapping_sub(odd[7 - at]) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_close_to_the_textbook() {
        let mut state = 7_u32;
        for round in 0..500 {
            let mut block = [0; 64];
            for coefficient in block.iter_mut().take(1 + round % 64) {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *coefficient = (state >> 24) as i16 - 128;
            }
            let mut found = [0; 64];
            plain(&block, &mut found);
            for (at, level) in found.iter().enumerate() {
                let (y, x) = (at / 8, at % 8);
                let wave = |at: usize, frequency: usize| {
                    let scale = if frequency == 0 { 0.5_f64.sqrt() } else { 1.0 };
                    scale * ((2 * at + 1) as f64 * frequency as f64 * std::f64::consts::PI / 16.0).cos()
                };
                let sum: f64 = (0..64).map(|i| f64::from(block[i]) * wave(y, i / 8) * wave(x, i % 8)).sum();
                let expected = (sum / 4.0 + 128.0).clamp(0.0, 255.0);
                assert!((f64::from(*level) - expected).abs() < 1.0, "{block:?} {at}: {level} {expected}");
            }
        }
    }

    #[test]
    fn one_level_is_the_short_way_to_the_same() {
        for first in i16::MIN..=i16::MAX {
            let (mut block, mut out) = ([0; 64], [0; 64]);
            block[0] = first;
            plain(&block, &mut out);
            assert_eq!(out, [flat(first); 64], "{first}");
        }
    }
}
