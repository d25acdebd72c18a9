//! The vector kernels of `normalize` and `flip`; with those of `jpeg/simd.rs` the only unsafe code of this crate. Each equals its plain twin
//! bit for bit.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::normalize::Levels;

/// Writes as many leading pixels of RGB `src` to the three planes of `out` as the machine has a kernel for.
///
/// Returns how many; the caller writes the rest. `out` is three planes of `src.len() / 3` numbers.
pub(crate) fn normalize_rgb(src: &[u8], levels: &[Levels; 3], out: &mut [f32]) -> usize {
    debug_assert_eq!(src.len(), out.len());
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the feature is there.
        return unsafe { normalize_rgb_avx2(src, levels, out) };
    }
    0
}

/// Writes each row of RGB `src` reversed to `out`, if the machine has a kernel for it and there is enough of it.
///
/// Returns whether it did. Both are rows of `width` pixels, and of equal length.
pub(crate) fn flip_rgb(src: &[u8], width: usize, out: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if width >= 5 && src.len() == out.len() && is_x86_feature_detected!("ssse3") {
        // SAFETY: the feature is there.
        unsafe { flip_rgb_ssse3(src, width, out) };
        return true;
    }
    false
}

/// Pixels whose planes are written one after the other: one stream of stores at a time is up to twice as fast
/// as three, and the bytes stay in the nearest cache for all three.
#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 512;

/// Eight pixels a step: each lane of a vector holds four of them, from which one shuffle picks a channel.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn normalize_rgb_avx2(src: &[u8], levels: &[Levels; 3], out: &mut [f32]) -> usize {
    let count = src.len() / 3;
    // The lower lane holds bytes 0 to 15 of the 24, the upper one 8 to 23: its pixels begin at its byte 4.
    // An index above 127 gives a zero byte.
    let first = _mm256_setr_epi32(0, 3, 6, 9, 4, 7, 10, 13);
    let first = _mm256_or_si256(first, _mm256_set1_epi32(0x8080_8000_u32.cast_signed()));
    for (block, src) in src.chunks(BLOCK * 3).enumerate() {
        for (channel, (plane, levels)) in out.chunks_exact_mut(count).zip(levels).enumerate() {
            let pick = _mm256_add_epi32(first, _mm256_set1_epi32(channel as i32));
            let (scale, bias) = (_mm256_set1_ps(levels.scale), _mm256_set1_ps(levels.bias));
            for (pixels, out) in src.chunks_exact(24).zip(plane[block * BLOCK..].chunks_exact_mut(8)) {
                // SAFETY: `pixels` has 24 bytes: 16 from the first on, and 16 from the eighth on.
                let both = unsafe {
                    let first = _mm_loadu_si128(pixels.as_ptr().cast());
                    let last = _mm_loadu_si128(pixels.as_ptr().add(8).cast());
                    _mm256_set_m128i(last, first)
                };
                let level = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(both, pick));
                let level = _mm256_add_ps(_mm256_mul_ps(level, scale), bias);
                // SAFETY: `out` has 8 numbers.
                unsafe { _mm256_storeu_ps(out.as_mut_ptr(), level) };
            }
        }
    }
    count / 8 * 8
}

/// Five pixels a step. The sixteenth byte of a store is wrong until the next store, to its right, mends it.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "ssse3")]
fn flip_rgb_ssse3(src: &[u8], width: usize, out: &mut [u8]) {
    assert!(width >= 5 && src.len() == out.len());
    // Read one byte early, so that the byte too many is before the pixels in `src` and after them in `out`.
    let reverse = _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
    let len = src.len();
    for row in (0..=len - width * 3).step_by(width * 3) {
        let mut step = |x: usize| {
            let (from, to) = (row + (width - 5 - x) * 3, row + x * 3);
            debug_assert!(from >= 1 && from + 15 <= len && to + 16 <= len);
            // SAFETY: the callers below keep to that.
            unsafe {
                let pixels = _mm_loadu_si128(src.as_ptr().add(from - 1).cast());
                _mm_storeu_si128(out.as_mut_ptr().add(to).cast(), _mm_shuffle_epi8(pixels, reverse));
            }
        };
        // Up to `width - 6` the byte too many is in the row, in both.
        (0..width - 5).step_by(5).for_each(&mut step);
        // The last step goes back so that it has five pixels too; its byte too many is in the rows around.
        if row > 0 && row + width * 3 < len {
            step(width - 5);
        } else {
            let end = row + width * 3;
            crate::flip::flip_row(&src[row..row + 15], 3, &mut out[end - 15..end]);
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::normalize::plain;

    #[test]
    fn kernels_equal_the_plain_twin_bit_for_bit() {
        let levels = crate::normalize::levels(&[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225]).unwrap();
        let levels: &[Levels; 3] = levels.as_slice().try_into().unwrap();
        for count in (1..100).chain([256 * 3, 50176]) {
            let src: Vec<u8> = (0..count * 3).map(|i| (i * 37 + i / 256) as u8).collect();
            let mut expected = vec![0.0; count * 3];
            plain(&src, levels, 0, &mut expected);
            let mut found = vec![f32::NAN; count * 3];
            let done = normalize_rgb(&src, levels, &mut found);
            assert_eq!(done, if is_x86_feature_detected!("avx2") { count / 8 * 8 } else { 0 });
            plain(&src, levels, done, &mut found);
            assert!(found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{count} pixels");
        }
    }
}
