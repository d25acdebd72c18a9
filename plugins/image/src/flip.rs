//! `flip`: mirrors a picture left to right.
//!
//! ```toml
//! [flip]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | decode | flip 0.5"''']
//! cases = ["PICTURES | flip"]
//! ```

use forebay_core::{Context, DType, DataPipe, Map, PipeInfo, PipeOrder, Randomness, Result, Sample, options};

use crate::{Pixels, field, simd};

/// Writes `src` mirrored left to right to `out`.
///
/// # Errors
/// [`Invalid`](forebay_core::ErrorKind::Invalid) if `out` has another length than `src`.
///
/// ```
/// use forebay_image::{Pixels, flip};
///
/// let mut out = [0; 6];
/// flip(&Pixels::new(&[1, 2, 3, 4, 5, 6], [1, 2, 3])?, &mut out)?;
/// assert_eq!(out, [4, 5, 6, 1, 2, 3]);
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub fn flip(src: &Pixels<'_>, out: &mut [u8]) -> Result<()> {
    Pixels::check_out([src.height(), src.width(), src.channels()], out)?;
    if src.channels() == 3 && simd::flip_rgb(src.bytes(), src.width(), out) {
        return Ok(());
    }
    let len = src.width() * src.channels();
    for (row, out) in src.bytes().chunks_exact(len).zip(out.chunks_exact_mut(len)) {
        flip_row(row, src.channels(), out);
    }
    Ok(())
}

/// Writes the pixels of `row` to `out` from the last to the first.
pub(crate) fn flip_row(row: &[u8], channels: usize, out: &mut [u8]) {
    for (pixel, out) in row.chunks_exact(channels).rev().zip(out.chunks_exact_mut(channels)) {
        out.copy_from_slice(pixel);
    }
}

options! {
    /// Options of `flip`.
    pub struct FlipOptions {
        /// The probability of mirroring a picture.
        p: f64 = 0.5, in 0..=1;
        /// The field with the picture; null for the first that holds one.
        field: Option<String> = null;
    }
}

/// The pipe `flip`: mirrors a picture left to right with probability `p`. It draws one number.
pub struct Flip(FlipOptions);

impl DataPipe for Flip {
    const INFO: PipeInfo = PipeInfo {
        name: "flip",
        summary: "Mirrors a picture left to right, or leaves it, at random",
        order: PipeOrder { draws: Randomness::Always, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = FlipOptions;

    fn new(options: FlipOptions) -> Result<Self> {
        Ok(Self(options))
    }
}

impl Map for Flip {
    fn map(&self, sample: &mut Sample, cx: &Context<'_>) -> Result<()> {
        let mirrored = cx.rng(sample.uid()).bool(self.0.p);
        field::change(sample, self.0.field.as_deref(), |src| {
            if !mirrored {
                return Ok(None);
            }
            let shape = [src.height(), src.width(), src.channels()];
            field::tensor(shape, shape, DType::U8, cx, |out| flip(src, out)).map(Some)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_equals_plain_and_twice_is_nothing() {
        for channels in 1..=4 {
            for height in 1..4 {
                for width in (1..40).chain([224]) {
                    let src: Vec<u8> =
                        (0..height * width * channels).map(|i| (i * 31 + i / 256) as u8).collect();
                    let pixels = Pixels::new(&src, [height, width, channels]).unwrap();
                    let mut expected = src.clone();
                    for (row, out) in src.chunks(width * channels).zip(expected.chunks_mut(width * channels))
                    {
                        flip_row(row, channels, out);
                    }
                    let mut once = vec![0; src.len()];
                    flip(&pixels, &mut once).unwrap();
                    assert_eq!(once, expected, "{height} x {width} x {channels}");
                    let mut twice = vec![0; src.len()];
                    flip(&Pixels::new(&once, [height, width, channels]).unwrap(), &mut twice).unwrap();
                    assert_eq!(twice, src);
                }
            }
        }
    }
}
