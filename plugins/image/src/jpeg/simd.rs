//! The vector kernels of JPEG. Each equals its plain twin byte for byte.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::jpeg::color;
use crate::jpeg::idct::{self, SHIFTS, factor};

/// What a machine offers for the inner loops.
pub(crate) trait Machine: Copy {
    /// Transforms the coefficients of a block into levels, as [`idct::plain`] does.
    fn idct(self, block: &[i16; 64], out: &mut [u8; 64]);
    /// Turns a row into RGB, as [`color::plain`] does.
    fn color(self, y: &[u8], cb: &[u8], cr: &[u8], out: &mut [u8]);
}

/// Work that is compiled anew for each kind of machine.
///
/// `run` and what it calls must be `inline(always)` to be made of the instructions of that machine.
pub(crate) trait Work {
    /// What comes of it.
    type Output;
    /// Does the work.
    fn run<M: Machine>(self, machine: M) -> Self::Output;
}

/// Does `work` with the best that this machine has.
pub(crate) fn on_this_machine<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(machine) = Avx2::detect() {
        // SAFETY: the features are there.
        return unsafe { with_avx2(work, machine) };
    }
    work.run(Plain)
}

/// Any machine.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Machine for Plain {
    fn idct(self, block: &[i16; 64], out: &mut [u8; 64]) {
        idct::plain(block, out);
    }

    fn color(self, y: &[u8], cb: &[u8], cr: &[u8], out: &mut [u8]) {
        color::plain(y, cb, cr, out);
    }
}

/// A machine with AVX2 and both sets of bit instructions: the proof is that there is a value of it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        has_all.then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Machine for Avx2 {
    #[inline(always)]
    fn idct(self, block: &[i16; 64], out: &mut [u8; 64]) {
        // SAFETY: the features are there, as `self` proves.
        unsafe { idct_avx2(block, out) }
    }

    #[inline(always)]
    fn color(self, y: &[u8], cb: &[u8], cr: &[u8], out: &mut [u8]) {
        // SAFETY: the features are there, as `self` proves.
        unsafe { color_avx2(y, cb, cr, out) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn with_avx2<W: Work>(work: W, machine: Avx2) -> W::Output {
    work.run(machine)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn idct_avx2(block: &[i16; 64], out: &mut [u8; 64]) {
    let (rows, _) = block.as_chunks::<8>();
    // SAFETY: each row has 16 bytes.
    let load = |at: usize| unsafe { _mm_loadu_si128(rows[at].as_ptr().cast()) };
    let rows = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
    let columns = turn(pass::<{ SHIFTS[0] as i32 }>(rows));
    let split = |both| (_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    let [(c0, c4), (c1, c5), (c2, c6), (c3, c7)] = columns.map(split);
    let rows = turn(pass::<{ SHIFTS[1] as i32 }>([c0, c1, c2, c3, c4, c5, c6, c7]));
    let middle = _mm256_set1_epi8(-128);
    // Rows 0 and 1 with 4 and 5, then 2 and 3 with 6 and 7.
    let upper = _mm256_xor_si256(_mm256_packs_epi16(rows[0], rows[1]), middle);
    let lower = _mm256_xor_si256(_mm256_packs_epi16(rows[2], rows[3]), middle);
    let (r01, r45) = split(upper);
    let (r23, r67) = split(lower);
    for (out, rows) in out.as_chunks_mut::<16>().0.iter_mut().zip([r01, r23, r45, r67]) {
        // SAFETY: `out` has 16 bytes.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), rows) };
    }
}

/// Eight columns at once of `idct::pass`, of rows; the outputs two by two: 4 columns of one and of the other, then the
/// other 4 of both.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pass<const SHIFT: i32>(v: [__m128i; 8]) -> [__m256i; 4] {
    let pair = |a, b| _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
    let both = |pair, factors: [[i16; 2]; 2]| {
        factors.map(|[p, q]| {
            let factors = i32::from(p) & 0xffff | i32::from(q) << 16;
            _mm256_madd_epi16(pair, _mm256_set1_epi32(factors))
        })
    };
    let wide = |levels| _mm256_slli_epi32(_mm256_cvtepi16_epi32(levels), 13);
    let [outer, inner] = both(pair(v[2], v[6]), factor::EVEN);
    let (sum, difference) = (wide(_mm_add_epi16(v[0], v[4])), wide(_mm_sub_epi16(v[0], v[4])));
    // What is left off is rounded here, once for all outputs.
    let half = _mm256_set1_epi32(1 << (SHIFT - 1));
    let (sum, difference) = (_mm256_add_epi32(sum, half), _mm256_add_epi32(difference, half));
    let even = [
        _mm256_add_epi32(sum, outer),
        _mm256_add_epi32(difference, inner),
        _mm256_sub_epi32(difference, inner),
        _mm256_sub_epi32(sum, outer),
    ];
    let sums = pair(_mm_add_epi16(v[7], v[3]), _mm_add_epi16(v[5], v[1]));
    let [first, second] = both(sums, factor::SUMS);
    let [a, d] = both(pair(v[7], v[1]), factor::OUTER);
    let [b, c] = both(pair(v[5], v[3]), factor::INNER);
    let odd = [
        _mm256_add_epi32(d, second),
        _mm256_add_epi32(c, first),
        _mm256_add_epi32(b, second),
        _mm256_add_epi32(a, first),
    ];
    let plus = |at: usize| _mm256_srai_epi32(_mm256_add_epi32(even[at], odd[at]), SHIFT);
    let minus = |at: usize| _mm256_srai_epi32(_mm256_sub_epi32(even[at], odd[at]), SHIFT);
    [
        _mm256_packs_epi32(plus(0), plus(1)),
        _mm256_packs_epi32(plus(2), plus(3)),
        _mm256_packs_epi32(minus(3), minus(2)),
        _mm256_packs_epi32(minus(1), minus(0)),
    ]
}

/// Turns what [`pass`] gives: column 0 with 4, 1 with 5, 2 with 6 and 3 with 7.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn turn([v01, v23, v45, v67]: [__m256i; 4]) -> [__m256i; 4] {
    let four = |a, b| {
        let (low, high) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
        (_mm256_unpacklo_epi16(low, high), _mm256_unpackhi_epi16(low, high))
    };
    let ((upper01, upper23), (lower01, lower23)) = (four(v01, v23), four(v45, v67));
    [
        _mm256_unpacklo_epi64(upper01, lower01),
        _mm256_unpackhi_epi64(upper01, lower01),
        _mm256_unpacklo_epi64(upper23, lower23),
        _mm256_unpackhi_epi64(upper23, lower23),
    ]
}

/// Sixteen pixels a step. The last step goes back so that it has as many too.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn color_avx2(y: &[u8], cb: &[u8], cr: &[u8], out: &mut [u8]) {
    let count = y.len().min(cb.len()).min(cr.len()).min(out.len() / 3);
    if count < 16 {
        return color::plain(y, cb, cr, out);
    }
    let steps = (0..count - 16).step_by(16).chain([count - 16]);
    for at in steps {
        let part = |plane: &[u8]| {
            let levels: &[u8] = &plane[at..at + 16];
            // SAFETY: there are 16 bytes.
            _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(levels.as_ptr().cast()) })
        };
        let rgb = interleaved(rgb16(part(y), part(cb), part(cr)));
        let out = &mut out[at * 3..at * 3 + 48];
        for (out, bytes) in out.as_chunks_mut::<16>().0.iter_mut().zip(rgb) {
            // SAFETY: `out` has 16 bytes.
            unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) };
        }
    }
}

/// The red, green and blue levels of 16 pixels, with libjpeg-turbo's ways to stay in 16 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn rgb16(y: __m256i, cb: __m256i, cr: __m256i) -> [__m128i; 3] {
    let middle = _mm256_set1_epi16(128);
    let (cb, cr) = (_mm256_sub_epi16(cb, middle), _mm256_sub_epi16(cr, middle));
    // 1.402 is 1 and 0.402, 1.772 is 2 less 0.228, both in 1 / 65536: twice the level, half of the product, rounded.
    let one = _mm256_set1_epi16(1);
    let part = |level, factor: i16| {
        let product = _mm256_mulhi_epi16(_mm256_add_epi16(level, level), _mm256_set1_epi16(factor));
        _mm256_srai_epi16(_mm256_add_epi16(product, one), 1)
    };
    let red = _mm256_add_epi16(y, _mm256_add_epi16(cr, part(cr, 26_345)));
    let blue = _mm256_add_epi16(y, _mm256_add_epi16(_mm256_add_epi16(cb, cb), part(cb, -14_942)));
    // -0.71414 is -1 and 0.28586.
    let factors = _mm256_set1_epi32((-22_554 & 0xffff) | 18_734 << 16);
    let half = _mm256_set1_epi32(32_768);
    let both = |pairs| _mm256_srai_epi32(_mm256_add_epi32(_mm256_madd_epi16(pairs, factors), half), 16);
    let green = _mm256_packs_epi32(both(_mm256_unpacklo_epi16(cb, cr)), both(_mm256_unpackhi_epi16(cb, cr)));
    let green = _mm256_add_epi16(y, _mm256_sub_epi16(green, cr));
    [red, green, blue].map(|levels| {
        let (low, high) = (_mm256_castsi256_si128(levels), _mm256_extracti128_si256(levels, 1));
        _mm_packus_epi16(low, high)
    })
}

/// The bytes of 16 pixels one after the other.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn interleaved(rgb: [__m128i; 3]) -> [__m128i; 3] {
    /// For each of the 48 bytes, which level of its channel it is; 0x80 where it is of another channel.
    const PICKS: [[[i8; 16]; 3]; 3] = {
        let mut picks = [[[-128; 16]; 3]; 3];
        let mut at = 0;
        while at < 48 {
            picks[at / 16][at % 3][at % 16] = (at / 3) as i8;
            at += 1;
        }
        picks
    };
    PICKS.map(|picks| {
        // SAFETY: each row of the table has 16 bytes.
        let pick = |channel: usize| unsafe { _mm_loadu_si128(picks[channel].as_ptr().cast()) };
        let part = |channel: usize| _mm_shuffle_epi8(rgb[channel], pick(channel));
        _mm_or_si128(_mm_or_si128(part(0), part(1)), part(2))
    })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn idct_equals_its_plain_twin() {
        let Some(machine) = Avx2::detect() else { return };
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as u32
        };
        for round in 0..60_000 {
            let mut block = [0; 64];
            let (count, shift) = (1 + random() % 64, round % 16);
            for _ in 0..count {
                block[random() as usize % 64] = (random() as u16).cast_signed() >> shift;
            }
            if round % 7 == 0 {
                block[random() as usize % 64] = if round % 2 == 0 { i16::MIN } else { i16::MAX };
            }
            let (mut expected, mut found) = ([0; 64], [1; 64]);
            idct::plain(&block, &mut expected);
            machine.idct(&block, &mut found);
            assert_eq!(found, expected, "{block:?}");
        }
    }

    #[test]
    fn color_equals_its_plain_twin() {
        let Some(machine) = Avx2::detect() else { return };
        let every: Vec<u8> = (0..=255).collect();
        for level in (0..=255).step_by(5) {
            for cr in 0..=255 {
                let (y, cr) = ([level; 256], [cr; 256]);
                let (mut expected, mut found) = ([0; 768], [1; 768]);
                color::plain(&y, &every, &cr, &mut expected);
                machine.color(&y, &every, &cr, &mut found);
                assert_eq!(found, expected, "{level} {}", cr[0]);
            }
        }
        for count in 1..70 {
            let (mut expected, mut found) = (vec![0; count * 3], vec![1; count * 3]);
            color::plain(&every[..count], &every[50..50 + count], &every[90..90 + count], &mut expected);
            machine.color(&every[..count], &every[50..50 + count], &every[90..90 + count], &mut found);
            assert_eq!(found, expected, "{count}");
        }
    }
}
