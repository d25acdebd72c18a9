//! `random_resized_crop`: a random rectangle of a picture, in one size.
//!
//! ```toml
//! [random_resized_crop]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | random_resized_crop [160, 224] scale=[0.5, 1] | decode"''']
//! cases = ["PICTURES | random_resized_crop [5, 2]"]
//!
//! [[random_resized_crop.ending]]
//! graph = "files '../plugins/image/seeds/*.jpg' open=read | take N | random_resized_crop 4 | flip"
//! instead = "files '../plugins/image/seeds/*.jpg' open=read | repeat | random_resized_crop 4 | flip"
//! why = "a folder has an end: its files come again"
//! ```

use forebay_core::{
    Context, DataPipe, Error, Map, OneOrMany, PipeInfo, PipeOrder, Randomness, Result, Sample, options,
};

use crate::field;
use crate::pixels::Crop;
use crate::resize::{Filter, resized, size_of};

/// Which rectangles may be drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CropRange {
    /// The least and greatest share of the picture's area.
    pub scale: [f64; 2],
    /// The least and greatest ratio of width to height.
    pub ratio: [f64; 2],
}

impl Default for CropRange {
    fn default() -> Self {
        Self { scale: [0.08, 1.0], ratio: [3.0 / 4.0, 4.0 / 3.0] }
    }
}

impl CropRange {
    /// Fails unless both ranges are positive, finite and in order.
    ///
    /// # Errors
    /// [`Invalid`](forebay_core::ErrorKind::Invalid), naming the range.
    pub fn check(&self) -> Result<()> {
        for (name, [least, greatest]) in [("scale", self.scale), ("ratio", self.ratio)] {
            if !(least > 0.0 && least <= greatest && greatest.is_finite()) {
                let message =
                    format!("{name} is [{least}, {greatest}], expected two positive numbers in order");
                return Err(Error::invalid(message).context("option", name));
            }
        }
        Ok(())
    }

    /// Draws a rectangle of a `height` x `width` picture, as torchvision defines it.
    ///
    /// `uniform` gives numbers from 0 up to, not including, 1, and is called in this order: up to ten times
    /// for the area and for the logarithm of the ratio, until the rectangle fits, then for its top and its
    /// left. If none fits, the largest rectangle in the middle with an allowed ratio is taken.
    ///
    /// ```
    /// use forebay_image::CropRange;
    ///
    /// let crop = CropRange::default().draw([375, 500], || 0.5);
    /// assert_eq!((crop.height, crop.width), (318, 318));
    /// assert_eq!((crop.top, crop.left), (29, 91));
    /// ```
    #[must_use]
    pub fn draw(&self, [height, width]: [usize; 2], mut uniform: impl FnMut() -> f64) -> Crop {
        let area = height as f64 * width as f64;
        // The plain-Rust logarithm and exponential give the same bits on every machine.
        let [least, greatest] = self.ratio.map(libm::log);
        for _ in 0..10 {
            let target = area * between(self.scale, uniform());
            let ratio = libm::exp(between([least, greatest], uniform()));
            let columns = (target * ratio).sqrt().round_ties_even() as usize;
            let rows = (target / ratio).sqrt().round_ties_even() as usize;
            if (1..=width).contains(&columns) && (1..=height).contains(&rows) {
                let top = below(height - rows + 1, uniform());
                let left = below(width - columns + 1, uniform());
                return Crop { top, left, height: rows, width: columns };
            }
        }
        self.fallback([height, width])
    }

    fn fallback(&self, [height, width]: [usize; 2]) -> Crop {
        let [least, greatest] = self.ratio;
        let ratio = width as f64 / height as f64;
        let fit = |side: f64, most: usize| (side.round_ties_even() as usize).clamp(1, most.max(1));
        let (rows, columns) = if ratio < least {
            (fit(width as f64 / least, height), width)
        } else if ratio > greatest {
            (height, fit(height as f64 * greatest, width))
        } else {
            (height, width)
        };
        Crop { top: (height - rows) / 2, left: (width - columns) / 2, height: rows, width: columns }
    }
}

/// The point of the range that `share` of it lies below.
fn between([least, greatest]: [f64; 2], share: f64) -> f64 {
    least + (greatest - least) * share
}

/// One of `0..count`, for a `share` from 0 up to, not including, 1.
fn below(count: usize, share: f64) -> usize {
    ((count as f64 * share) as usize).min(count - 1)
}

options! {
    /// Options of `random_resized_crop`.
    pub struct RandomResizedCropOptions {
        /// Height and width, or one number for both.
        size: OneOrMany<usize> = required, in 1..=65535;
        /// The least and greatest share of the picture's area.
        scale: Vec<f64> = [0.08, 1.0];
        /// The least and greatest ratio of width to height.
        ratio: Vec<f64> = [0.75, 1.3333333333333333];
        /// How to compute the new pixels.
        filter: String = "bilinear", one_of ["nearest", "bilinear", "catmullrom", "lanczos3"];
        /// The field with the picture, decoded or not; null for the first field that holds one.
        field: Option<String> = null;
    }
}

/// The pipe `random_resized_crop`. It draws as [`CropRange::draw`] says.
///
/// Of a picture that is still encoded it decodes no more than the rectangle; the result is that of decoding first.
pub struct RandomResizedCrop {
    size: [usize; 2],
    range: CropRange,
    filter: Filter,
    field: Option<String>,
}

impl DataPipe for RandomResizedCrop {
    const INFO: PipeInfo = PipeInfo {
        name: "random_resized_crop",
        summary: "A random rectangle of a picture, in one size",
        order: PipeOrder { draws: Randomness::Always, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RandomResizedCropOptions;

    fn new(options: RandomResizedCropOptions) -> Result<Self> {
        let pair = |name: &str, numbers: &[f64]| {
            numbers.try_into().map_err(|_| {
                Error::invalid(format!("found {} numbers, expected two", numbers.len()))
                    .context("option", name)
            })
        };
        let range =
            CropRange { scale: pair("scale", &options.scale)?, ratio: pair("ratio", &options.ratio)? };
        range.check()?;
        Ok(Self {
            size: size_of(&options.size)?,
            range,
            filter: Filter::from_name(&options.filter)?,
            field: options.field,
        })
    }
}

impl Map for RandomResizedCrop {
    fn map(&self, sample: &mut Sample, cx: &Context<'_>) -> Result<()> {
        let mut rng = cx.rng(sample.uid());
        field::change_any(sample, self.field.as_deref(), cx, |picture| {
            let crop = self.range.draw(picture.size(), || rng.f64());
            picture.part(crop, |src, crop| resized(src, crop, self.size, self.filter, cx)).map(Some)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_inside_and_in_range() {
        let range = CropRange::default();
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut shares, mut ratios) = (0.0, 0.0);
        for _ in 0..10_000 {
            let crop = range.draw([375, 500], &mut uniform);
            assert!(crop.top + crop.height <= 375 && crop.left + crop.width <= 500, "{crop:?}");
            let ratio = crop.width as f64 / crop.height as f64;
            assert!((0.74..1.35).contains(&ratio), "{crop:?}");
            shares += (crop.height * crop.width) as f64 / (375.0 * 500.0) / 10_000.0;
            ratios += ratio / 10_000.0;
        }
        // The means of a million draws of torchvision's formula, written anew in Python: 0.4331 and 1.0452.
        assert!((shares - 0.4331).abs() < 0.01, "{shares}");
        assert!((ratios - 1.0452).abs() < 0.01, "{ratios}");
    }

    #[test]
    fn falls_back_to_the_middle() {
        let range = CropRange::default();
        let crop = range.draw([10, 1000], || 0.999);
        assert_eq!(crop, Crop { top: 0, left: 493, height: 10, width: 13 });
        let crop = range.draw([1000, 10], || 0.999);
        assert_eq!(crop, Crop { top: 493, left: 0, height: 13, width: 10 });
        assert_eq!(range.draw([1, 1], || 0.0), Crop { top: 0, left: 0, height: 1, width: 1 });
    }

    #[test]
    fn bad_ranges_are_named() {
        for (scale, ratio, name) in [
            ([0.0, 1.0], [1.0, 1.0], "scale"),
            ([0.5, 0.1], [1.0, 1.0], "scale"),
            ([0.1, 1.0], [1.0, f64::INFINITY], "ratio"),
            ([0.1, 1.0], [f64::NAN, 1.0], "ratio"),
        ] {
            assert!(CropRange { scale, ratio }.check().unwrap_err().to_string().starts_with(name));
        }
    }
}
