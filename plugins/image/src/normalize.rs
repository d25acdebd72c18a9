//! `normalize`: bytes, pixel by pixel, to standardised numbers, channel by channel.
//!
//! ```toml
//! [normalize]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | resize 224 | decode | normalize"''']
//! cases = ["PICTURES | normalize"]
//! ```

use forebay_core::{Context, DType, DataPipe, Error, Map, PipeInfo, Result, Sample, options};

use crate::{Pixels, field, simd};

/// Mean of ImageNet's red, green and blue, of 1.
pub const IMAGENET_MEAN: [f64; 3] = [0.485, 0.456, 0.406];
/// Standard deviation of ImageNet's red, green and blue, of 1.
pub const IMAGENET_STD: [f64; 3] = [0.229, 0.224, 0.225];

/// What turns one channel's byte into its number: `byte * scale + bias`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// 1 / (255 std).
    pub scale: f32,
    /// -mean / std.
    pub bias: f32,
}

/// The [`Levels`] of each channel, for means and standard deviations of bytes over 255.
///
/// # Errors
/// [`Invalid`](forebay_core::ErrorKind::Invalid) if there are not as many means as deviations, a number is
/// not finite, or a deviation is zero.
pub fn levels(mean: &[f64], std: &[f64]) -> Result<Vec<Levels>> {
    if mean.len() != std.len() || mean.is_empty() {
        return Err(Error::invalid(format!("found {} means and {} deviations", mean.len(), std.len())));
    }
    let levels = mean
        .iter()
        .zip(std)
        .map(|(mean, std)| Levels { scale: (1.0 / (255.0 * std)) as f32, bias: (-mean / std) as f32 });
    let levels: Vec<Levels> = levels.collect();
    if levels.iter().any(|levels| !levels.scale.is_finite() || !levels.bias.is_finite()) {
        return Err(Error::invalid(format!("mean {mean:?} and std {std:?} give no finite numbers")));
    }
    Ok(levels)
}

/// Writes `src` to `out` channel by channel, each byte as `byte * scale + bias`.
///
/// The product is rounded before the sum, on every machine, so that the bits are the same on all of them.
///
/// # Errors
/// [`Invalid`](forebay_core::ErrorKind::Invalid) unless there are [`Levels`] for each channel and `out` has a
/// number for each byte.
///
/// ```
/// use forebay_image::{Pixels, levels, normalize};
///
/// let levels = levels(&[0.5, 0.5, 0.5], &[0.5, 0.5, 0.5])?;
/// let mut out = [0.0; 6];
/// normalize(&Pixels::new(&[0, 255, 0, 255, 0, 255], [1, 2, 3])?, &levels, &mut out)?;
/// assert_eq!(out, [-1.0, 1.0, 1.0, -1.0, -1.0, 1.0]);
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub fn normalize(src: &Pixels<'_>, levels: &[Levels], out: &mut [f32]) -> Result<()> {
    if src.channels() != levels.len() || src.bytes().len() != out.len() {
        return Err(Error::invalid(format!(
            "{} bytes of {} channels do not fit levels of {} channels and {} numbers",
            src.bytes().len(),
            src.channels(),
            levels.len(),
            out.len()
        )));
    }
    let done = match levels.try_into() {
        Ok(levels) => simd::normalize_rgb(src.bytes(), levels, out),
        Err(_) => 0,
    };
    plain(src.bytes(), levels, done, out);
    Ok(())
}

/// The same from pixel `done` on, for any machine and number of channels.
pub(crate) fn plain(src: &[u8], levels: &[Levels], done: usize, out: &mut [f32]) {
    let channels = levels.len();
    let count = src.len() / channels;
    for (channel, (levels, plane)) in levels.iter().zip(out.chunks_exact_mut(count)).enumerate() {
        let pixels = src.chunks_exact(channels).skip(done);
        for (out, pixel) in plane.iter_mut().skip(done).zip(pixels) {
            *out = f32::from(pixel[channel]) * levels.scale + levels.bias;
        }
    }
}

options! {
    /// Options of `normalize`.
    pub struct NormalizeOptions {
        /// The mean of each channel, from 0 to 1; by default ImageNet's.
        mean: Vec<f64> = [0.485, 0.456, 0.406];
        /// The standard deviation of each channel, from 0 to 1; by default ImageNet's.
        std: Vec<f64> = [0.229, 0.224, 0.225];
        /// The field with the picture; null for the first that holds one.
        field: Option<String> = null;
    }
}

/// The pipe `normalize`: a uint8 tensor [height, width, channels] to float32 [channels, height, width].
pub struct Normalize {
    levels: Vec<Levels>,
    field: Option<String>,
}

impl DataPipe for Normalize {
    const INFO: PipeInfo = PipeInfo {
        name: "normalize",
        summary: "Bytes [height, width, channels] to standardised float32 [channels, height, width]",
        ..PipeInfo::DEFAULT
    };
    type Options = NormalizeOptions;

    fn new(options: NormalizeOptions) -> Result<Self> {
        let levels = levels(&options.mean, &options.std).map_err(|error| error.context("option", "std"))?;
        Ok(Self { levels, field: options.field })
    }
}

impl Map for Normalize {
    fn map(&self, sample: &mut Sample, cx: &Context<'_>) -> Result<()> {
        field::change(sample, self.field.as_deref(), |src| {
            let [height, width, channels] = [src.height(), src.width(), src.channels()];
            let shape = [channels, height, width];
            let tensor = field::tensor([height, width, channels], shape, DType::F32, cx, |out| {
                let out = bytemuck::try_cast_slice_mut(out).map_err(|error| {
                    Error::bug(format!("the host's memory does not hold float32: {error}"))
                })?;
                normalize(src, &self.levels, out)
            });
            tensor.map(Some)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_close_to_the_textbook() {
        let src: Vec<u8> = (0..=255).flat_map(|byte| [byte; 3]).collect();
        let levels = levels(&IMAGENET_MEAN, &IMAGENET_STD).unwrap();
        let mut out = vec![0.0; src.len()];
        normalize(&Pixels::new(&src, [16, 16, 3]).unwrap(), &levels, &mut out).unwrap();
        for (index, found) in out.iter().enumerate() {
            let (channel, byte) = (index / 256, (index % 256) as f64);
            let expected = (byte / 255.0 - IMAGENET_MEAN[channel]) / IMAGENET_STD[channel];
            assert!((f64::from(*found) - expected).abs() < 5e-7, "byte {byte}: {found} and {expected}");
        }
    }

    #[test]
    fn other_channel_counts_and_bad_levels() {
        let grey = levels(&[0.0], &[1.0 / 255.0]).unwrap();
        let mut out = [0.0; 3];
        normalize(&Pixels::new(&[7, 8, 9], [1, 3, 1]).unwrap(), &grey, &mut out).unwrap();
        assert_eq!(out, [7.0, 8.0, 9.0]);
        assert!(normalize(&Pixels::new(&[7, 8, 9], [1, 1, 3]).unwrap(), &grey, &mut out).is_err());
        assert!(levels(&[0.5], &[0.0]).is_err());
        assert!(levels(&[0.5], &[]).is_err());
        assert!(levels(&[f64::NAN], &[1.0]).is_err());
    }
}
