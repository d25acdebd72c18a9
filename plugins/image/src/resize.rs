//! `resize`: a picture, or a rectangle of it, in another size.
//!
//! ```toml
//! [resize]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | resize 224 shorter=true | decode"''']
//! cases = ["PICTURES | resize 5 filter=lanczos3 | batch 4"]
//! ```

use std::cell::RefCell;

use fast_image_resize::images::{TypedCroppedImage, TypedImage, TypedImageRef};
use fast_image_resize::pixels::{InnerPixel, U8, U8x2, U8x3, U8x4};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, Resizer};
use forebay_core::{
    Context, DType, DataPipe, Error, Map, OneOrMany, PipeInfo, Result, Sample, Tensor, options,
};

use crate::field;
use crate::pixels::{Crop, Pixels};

/// A thread gives back the resizer's working memory when it is over this.
const KEEP: usize = 64 << 20;

thread_local! {
    static RESIZER: RefCell<Resizer> = RefCell::new(Resizer::new());
}

/// How the pixels of another size are made. All but [`Nearest`](Filter::Nearest) look at every pixel they
/// cover, as Pillow does and torchvision with `antialias=True`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// The pixel in the middle, as it is.
    Nearest,
    /// A tent.
    #[default]
    Bilinear,
    /// Catmull-Rom's cubic, which Pillow calls bicubic.
    CatmullRom,
    /// Lanczos' windowed sinc of three lobes.
    Lanczos3,
}

impl Filter {
    /// The names that [`from_name`](Self::from_name) knows.
    pub const NAMES: [&'static str; 4] = ["nearest", "bilinear", "catmullrom", "lanczos3"];

    /// The filter of this name.
    ///
    /// # Errors
    /// [`Invalid`](forebay_core::ErrorKind::Invalid) for a name that is not in [`NAMES`](Self::NAMES).
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "nearest" => Self::Nearest,
            "bilinear" => Self::Bilinear,
            "catmullrom" => Self::CatmullRom,
            "lanczos3" => Self::Lanczos3,
            _ => {
                return Err(Error::invalid(format!("no filter {name:?}, expected one of {:?}", Self::NAMES)));
            }
        })
    }

    fn algorithm(self) -> ResizeAlg {
        match self {
            Self::Nearest => ResizeAlg::Nearest,
            Self::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
            Self::CatmullRom => ResizeAlg::Convolution(FilterType::CatmullRom),
            Self::Lanczos3 => ResizeAlg::Convolution(FilterType::Lanczos3),
        }
    }
}

/// Writes the rectangle `crop` of `src` to `out` as `height` x `width` pixels.
///
/// Nothing outside of `crop` is looked at, so it equals cutting first, without the copy.
///
/// # Errors
/// [`Invalid`](forebay_core::ErrorKind::Invalid) if `crop` is not inside `src`, `out` has another length, or
/// there are more than four channels.
///
/// ```
/// use forebay_image::{Filter, Pixels, resize};
///
/// let src = Pixels::new(&[10, 20, 30, 40], [2, 2, 1])?;
/// let mut out = [0; 1];
/// resize(&src, src.whole(), [1, 1], Filter::Bilinear, &mut out)?;
/// assert_eq!(out, [25]);
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub fn resize(
    src: &Pixels<'_>,
    crop: Crop,
    [height, width]: [usize; 2],
    filter: Filter,
    out: &mut [u8],
) -> Result<()> {
    crop.check([src.height(), src.width()])?;
    Pixels::check_out([height, width, src.channels()], out)?;
    let typed = match src.channels() {
        1 => resize_typed::<U8>,
        2 => resize_typed::<U8x2>,
        3 => resize_typed::<U8x3>,
        4 => resize_typed::<U8x4>,
        other => {
            return Err(Error::unsupported(format!("resizing {other} channels, expected at most 4")));
        }
    };
    typed(src, crop, [height, width], filter, out)
}

fn resize_typed<P: InnerPixel + PixelTrait>(
    src: &Pixels<'_>,
    crop: Crop,
    [height, width]: [usize; 2],
    filter: Filter,
    out: &mut [u8],
) -> Result<()> {
    let whole = TypedImageRef::<P>::from_buffer(side(src.width())?, side(src.height())?, src.bytes())
        .map_err(|error| Error::bug(error.to_string()))?;
    let view = TypedCroppedImage::new(
        whole,
        side(crop.left)?,
        side(crop.top)?,
        side(crop.width)?,
        side(crop.height)?,
    )
    .map_err(|error| Error::bug(error.to_string()))?;
    let mut out = TypedImage::<P>::from_buffer(side(width)?, side(height)?, out)
        .map_err(|error| Error::bug(error.to_string()))?;
    let options = fast_image_resize::ResizeOptions::new().resize_alg(filter.algorithm()).use_alpha(false);
    RESIZER.with_borrow_mut(|resizer| {
        let result = resizer.resize_typed(&view, &mut out, &options);
        if resizer.size_of_internal_buffers() > KEEP {
            resizer.reset_internal_buffers();
        }
        result.map_err(|error| Error::bug(error.to_string()))
    })
}

fn side(pixels: usize) -> Result<u32> {
    u32::try_from(pixels).map_err(|_| Error::unsupported(format!("a side of {pixels} pixels")))
}

/// The size whose shorter side is `shorter`, of the same shape as `height` x `width` (torchvision's rule: the
/// longer side is cut, not rounded).
#[must_use]
pub fn by_shorter_side([height, width]: [usize; 2], shorter: usize) -> [usize; 2] {
    let longer = |long: usize, short: usize| {
        let long = long as u128 * shorter as u128 / short.max(1) as u128;
        usize::try_from(long).unwrap_or(usize::MAX)
    };
    if width <= height { [longer(height, width), shorter] } else { [shorter, longer(width, height)] }
}

options! {
    /// Options of `resize`.
    pub struct ResizeOptions {
        /// Height and width, or one number for both.
        size: OneOrMany<usize> = required, in 1..=65535;
        /// How to compute the new pixels.
        filter: String = "bilinear", one_of ["nearest", "bilinear", "catmullrom", "lanczos3"];
        /// Keep the aspect ratio, and make the shorter side `size`, which must be one number.
        shorter: bool = false;
        /// The field with the picture, decoded or not; null for the first field that holds one.
        field: Option<String> = null;
    }
}

/// The pipe `resize`: a picture in another size.
pub struct Resize {
    size: [usize; 2],
    filter: Filter,
    shorter: bool,
    field: Option<String>,
}

impl DataPipe for Resize {
    const INFO: PipeInfo =
        PipeInfo { name: "resize", summary: "A picture in another size, antialiased", ..PipeInfo::DEFAULT };
    type Options = ResizeOptions;

    fn new(options: ResizeOptions) -> Result<Self> {
        if options.shorter && options.size.0.len() != 1 {
            return Err(Error::invalid("with shorter, size is one number").context("option", "size"));
        }
        Ok(Self {
            size: size_of(&options.size)?,
            filter: Filter::from_name(&options.filter)?,
            shorter: options.shorter,
            field: options.field,
        })
    }
}

impl Map for Resize {
    fn map(&self, sample: &mut Sample, cx: &Context<'_>) -> Result<()> {
        field::change_any(sample, self.field.as_deref(), cx, |picture| {
            let [height, width] = picture.size();
            let whole = Crop { top: 0, left: 0, height, width };
            let size = if self.shorter { by_shorter_side([height, width], self.size[0]) } else { self.size };
            if size == [height, width] {
                return picture.cut(whole, cx);
            }
            picture.part(whole, |src, crop| resized(src, crop, size, self.filter, cx)).map(Some)
        })
    }
}

/// The tensor of [`resize`], in the host's memory.
pub(crate) fn resized(
    src: &Pixels<'_>,
    crop: Crop,
    [height, width]: [usize; 2],
    filter: Filter,
    cx: &Context<'_>,
) -> Result<Tensor> {
    let shape = [height, width, src.channels()];
    field::tensor(shape, shape, DType::U8, cx, |out| resize(src, crop, [height, width], filter, out))
}

/// Height and width of an option that takes one number or two.
pub(crate) fn size_of(option: &OneOrMany<usize>) -> Result<[usize; 2]> {
    match option.0[..] {
        [side] => Ok([side, side]),
        [height, width] => Ok([height, width]),
        _ => Err(Error::invalid(format!("found {} numbers, expected height and width", option.0.len()))
            .context("option", "size")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixels::cut;

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn cropping_in_one_pass_equals_cutting_first() {
        for channels in 1..=4 {
            let src = noise(90 * 120 * channels);
            let src = Pixels::new(&src, [90, 120, channels]).unwrap();
            let crop = Crop { top: 13, left: 7, height: 61, width: 83 };
            let mut small = vec![0; crop.height * crop.width * channels];
            cut(&src, crop, &mut small).unwrap();
            let small = Pixels::new(&small, [crop.height, crop.width, channels]).unwrap();
            for filter in Filter::NAMES.map(|name| Filter::from_name(name).unwrap()) {
                let (mut one, mut two) = (vec![0; 32 * 40 * channels], vec![0; 32 * 40 * channels]);
                resize(&src, crop, [32, 40], filter, &mut one).unwrap();
                resize(&small, small.whole(), [32, 40], filter, &mut two).unwrap();
                assert_eq!(one, two, "{filter:?}, {channels} channels");
            }
        }
    }

    #[test]
    fn is_antialiased_and_keeps_flat_colour() {
        let stripes: Vec<u8> = (0..100 * 100).map(|i| if i % 2 == 0 { 0 } else { 200 }).collect();
        let src = Pixels::new(&stripes, [100, 100, 1]).unwrap();
        let mut out = [0; 100];
        resize(&src, src.whole(), [10, 10], Filter::Bilinear, &mut out).unwrap();
        // At the sides the tent is cut off, so the stripes there do not quite balance.
        assert!(out.iter().all(|byte| byte.abs_diff(100) <= 3), "{out:?}");
        let flat = [77; 30 * 30 * 3];
        let src = Pixels::new(&flat, [30, 30, 3]).unwrap();
        for filter in Filter::NAMES.map(|name| Filter::from_name(name).unwrap()) {
            let mut out = [0; 50 * 20 * 3];
            resize(&src, src.whole(), [50, 20], filter, &mut out).unwrap();
            assert_eq!(out, [77; 50 * 20 * 3], "{filter:?}");
        }
    }

    #[test]
    fn sizes_and_refusals() {
        assert_eq!(by_shorter_side([375, 500], 256), [256, 341]);
        assert_eq!(by_shorter_side([500, 375], 256), [341, 256]);
        assert_eq!(by_shorter_side([10, 10], 256), [256, 256]);
        let bytes = [0; 12];
        let src = Pixels::new(&bytes, [2, 2, 3]).unwrap();
        let mut out = [0; 3];
        let outside = Crop { top: 1, left: 0, height: 2, width: 1 };
        assert!(resize(&src, outside, [1, 1], Filter::Bilinear, &mut out).is_err());
        assert!(resize(&src, src.whole(), [1, 2], Filter::Bilinear, &mut out).is_err());
        assert!(Filter::from_name("cubic").unwrap_err().to_string().contains("catmullrom"));
    }
}
