//! PNG, WebP, GIF, BMP, QOI, PNM, ICO and TGA by the image crate, and TIFF; read straight into the caller's memory where it is RGB already.

use std::io::Cursor;

use forebay_core::{Buffer, Context, Error, ErrorKind, Result, Value, Wanted};
use image::codecs::{
    bmp::BmpDecoder, gif::GifDecoder, ico::IcoDecoder, png::PngDecoder, pnm::PnmDecoder, qoi::QoiDecoder,
    tga::TgaDecoder, webp::WebPDecoder,
};
use image::error::{ImageError, ImageFormatHint};
use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, ImageFormat, Limits};

use crate::decoder::check_size;
use crate::decoder::ico::png_inside;
use crate::moving::Moving;
use crate::moving::png::check_palette;
use crate::orientation::{self, Layout};
use crate::tiff::Tiff;
use crate::{pixels, scratch};

/// A format other than JPEG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// WebP, lossy and lossless.
    WebP,
    /// Graphics Interchange Format; of an animation, the first frame.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// Tagged Image File Format; of several pages, the first.
    Tiff,
    /// The Quite OK Image Format.
    Qoi,
    /// Netpbm: PBM, PGM, PPM and PAM.
    Pnm,
    /// Windows icons and cursors; of several pictures, the largest.
    Ico,
    /// Truevision Targa.
    Tga,
}

/// A picture of one of these [formats](Format) whose header has been read.
///
/// ```no_run
/// use forebay_image::{Format, Raster};
///
/// let bytes = std::fs::read("scan.png")?;
/// let picture = Raster::open(Format::Png, &bytes, 100_000_000)?;
/// let [height, width] = picture.size();
/// let mut rgb = vec![0; height * width * 3];
/// picture.read(&mut rgb)?;
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub struct Raster<'a>(Kind<'a>);

/// What reads it.
enum Kind<'a> {
    Tiff(Box<Tiff<'a>>),
    /// An animated WebP, of which the first frame is read.
    Moving(Moving<'a>),
    Other(Other<'a>),
}

/// What the image crate reads.
pub(crate) struct Other<'a> {
    format: Format,
    decoder: Box<dyn ImageDecoder + 'a>,
    stored: [usize; 2],
    layout: Layout,
    orientation: Orientation,
}

impl<'a> Raster<'a> {
    /// Reads the header, without taking memory for pixels.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if there are more than `max_pixels`, [`Corrupt`](ErrorKind::Corrupt) if the
    /// header is broken, [`Unsupported`](ErrorKind::Unsupported) for what the decoder of the format does not read.
    pub fn open(format: Format, bytes: &'a [u8], max_pixels: u64) -> Result<Self> {
        if format == Format::Tiff {
            return Ok(Self(Kind::Tiff(Box::new(Tiff::open(bytes, max_pixels)?))));
        }
        if format == Format::WebP
            && let Some(moving) = Moving::open(bytes, max_pixels)?
        {
            return Ok(Self(Kind::Moving(moving)));
        }
        let inside = if format == Format::Ico { png_inside(bytes) } else { None };
        let (format, bytes) = inside.map_or((format, bytes), |png| (Format::Png, png));
        Other::open(format, bytes, max_pixels).map(Kind::Other).map(Self)
    }

    /// Height and width of the picture, turned as its orientation says.
    #[must_use]
    pub fn size(&self) -> [usize; 2] {
        match &self.0 {
            Kind::Tiff(tiff) => tiff.size(),
            Kind::Moving(moving) => moving.size(),
            Kind::Other(other) if orientation::turns(other.orientation) => [other.stored[1], other.stored[0]],
            Kind::Other(other) => other.stored,
        }
    }

    /// Decodes into `out` as RGB: alpha is dropped, grey repeated, and of 16 bits the upper 8 are kept.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) if the data is broken or ends early, [`Invalid`](ErrorKind::Invalid) if
    /// `out` is not height x width x 3 bytes, [`Unsupported`](ErrorKind::Unsupported) for a TIFF of floats.
    pub fn read(self, out: &mut [u8]) -> Result<()> {
        match self.0 {
            Kind::Tiff(tiff) => tiff.read(out),
            Kind::Moving(moving) => {
                let [height, width] = moving.size();
                pixels::Pixels::check_out([height, width, 3], out)?;
                moving.read(std::iter::once((out, &mut 0.0)))
            }
            Kind::Other(other) => other.read(out),
        }
    }
}

impl<'a> Other<'a> {
    /// Reads the header of a picture that does not move.
    pub(crate) fn open(format: Format, bytes: &'a [u8], max_pixels: u64) -> Result<Self> {
        let mut most = max_pixels;
        if let Some([height, width]) = declared_size(format, bytes) {
            check_size([height, width], max_pixels)?;
            most = height * width;
        }
        if format == Format::Png {
            check_palette(bytes)?;
        }
        let mut decoder = decoder(format, bytes, limits(most)).map_err(|error| broken(format, error))?;
        let (width, height) = decoder.dimensions();
        let size = [u64::from(height), u64::from(width)];
        check_size(size, max_pixels)?;
        decoder.set_limits(limits(size[0] * size[1])).map_err(|error| broken(format, error))?;
        let layout = layout(decoder.color_type())
            .ok_or_else(|| Error::unsupported(format!("{format:?} of {:?} pixels", decoder.color_type())))?;
        let orientation = match format {
            Format::WebP => webp_exif(bytes).map_or(Orientation::NoTransforms, orientation::from_exif),
            Format::Png => decoder
                .exif_metadata()
                .ok()
                .flatten()
                .map_or(Orientation::NoTransforms, |exif| orientation::from_exif(&exif)),
            _ => decoder.orientation().unwrap_or(Orientation::NoTransforms),
        };
        Ok(Self { format, decoder, stored: [height as usize, width as usize], layout, orientation })
    }

    /// Height and width as they are stored.
    pub(crate) fn stored(&self) -> [usize; 2] {
        self.stored
    }

    /// Decodes into `out` as RGBA, as it is stored.
    pub(crate) fn read_rgba(self, out: &mut [u8]) -> Result<()> {
        let [height, width] = self.stored;
        let Layout { step, rgb, alpha } = self.layout;
        scratch::with(pixels::byte_len([height, width, step])?, |raw| {
            self.decoder.read_image_boxed(raw).map_err(|error| broken(self.format, error))?;
            for (pixel, out) in raw.chunks_exact(step).zip(out.as_chunks_mut::<4>().0) {
                let [red, green, blue] = rgb.map(|at| pixel[at]);
                *out = [red, green, blue, alpha.map_or(255, |at| pixel[at])];
            }
            Ok(())
        })
    }

    fn read(self, out: &mut [u8]) -> Result<()> {
        let [height, width] = self.stored;
        pixels::Pixels::check_out([height, width, 3], out)?;
        let color = self.decoder.color_type();
        let failed = |error| broken(self.format, error);
        if color == ColorType::Rgb8 && self.orientation == Orientation::NoTransforms {
            return self.decoder.read_image_boxed(out).map_err(failed);
        }
        let len = pixels::byte_len([height, width, usize::from(color.bytes_per_pixel())])?;
        scratch::with(len, |raw| {
            self.decoder.read_image_boxed(raw).map_err(failed)?;
            orientation::write_rgb(raw, self.stored, self.layout, self.orientation, out);
            Ok(())
        })
    }
}

/// What the decoders of these formats do.
pub(crate) fn decode(format: Format, bytes: &Buffer, wanted: &Wanted<'_>, cx: &Context<'_>) -> Result<Value> {
    let raster = Raster::open(format, bytes, cx.limits().pixels)?;
    super::picture(raster.size(), wanted, cx, |out| raster.read(out))
}

/// What the image crate may take beside the output: eight bytes a pixel (RGBA of 16 bits), twice, and some for colour profiles and texts.
pub(crate) fn limits(pixels: u64) -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(pixels.saturating_mul(16).saturating_add(4 << 20));
    limits
}

fn decoder<'a>(
    format: Format,
    bytes: &'a [u8],
    limits: Limits,
) -> Result<Box<dyn ImageDecoder + 'a>, ImageError> {
    let bytes = Cursor::new(bytes);
    Ok(match format {
        Format::Png => Box::new(PngDecoder::with_limits(bytes, limits)?),
        Format::WebP => Box::new(WebPDecoder::new(bytes)?),
        Format::Gif => Box::new(GifDecoder::new(bytes)?),
        Format::Bmp => Box::new(BmpDecoder::new(bytes)?),
        Format::Qoi => Box::new(QoiDecoder::new(bytes)?),
        Format::Pnm => Box::new(PnmDecoder::new(bytes)?),
        Format::Ico => Box::new(IcoDecoder::new(bytes)?),
        Format::Tga => Box::new(TgaDecoder::new(bytes)?),
        // It has a reader of its own.
        Format::Tiff => {
            return Err(ImageError::Unsupported(ImageFormatHint::Exact(ImageFormat::Tiff).into()));
        }
    })
}

/// The size in a PNG or BMP header, whose decoders read on, or refuse large ones in their own words.
fn declared_size(format: Format, bytes: &[u8]) -> Option<[u64; 2]> {
    match format {
        Format::Png if bytes.get(12..16)? == b"IHDR" => {
            let [width, height] =
                [16, 20].map(|at| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes));
            Some([u64::from(height?), u64::from(width?)])
        }
        Format::Bmp if *bytes.get(14)? >= 40 => {
            let [width, height] =
                [18, 22].map(|at| bytes.get(at..at + 4)?.try_into().ok().map(i32::from_le_bytes));
            Some([u64::from(height?.unsigned_abs()), u64::from(width?.unsigned_abs())])
        }
        _ => None,
    }
}

/// The Exif chunk of a WebP file, found here since the decoder trusts its length.
fn webp_exif(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.get(12..)?;
    loop {
        let (name, after) = rest.split_at_checked(4)?;
        let (len, after) = after.split_at_checked(4)?;
        let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
        if name == b"EXIF" {
            return after.get(..len);
        }
        rest = after.get(len.checked_add(len & 1)?..)?;
    }
}

/// Where red, green and blue are in a pixel of this kind; `None` for floats, which have no fixed range.
fn layout(color: ColorType) -> Option<Layout> {
    // Numbers of 16 bits come in the machine's own byte order.
    let high = usize::from(cfg!(target_endian = "little"));
    let rgb = match color {
        ColorType::L8 | ColorType::La8 => [0; 3],
        ColorType::Rgb8 | ColorType::Rgba8 => [0, 1, 2],
        ColorType::L16 | ColorType::La16 => [high; 3],
        ColorType::Rgb16 | ColorType::Rgba16 => [high, 2 + high, 4 + high],
        _ => return None,
    };
    let step = usize::from(color.bytes_per_pixel());
    let alpha = color.has_alpha().then(|| {
        if color == ColorType::La8 || color == ColorType::Rgba8 { step - 1 } else { step - 2 + high }
    });
    Some(Layout { step, rgb, alpha })
}

/// The image crate's error as ours.
pub(crate) fn broken(format: Format, error: ImageError) -> Error {
    let kind = match &error {
        ImageError::Unsupported(_) => ErrorKind::Unsupported,
        ImageError::Limits(_) => ErrorKind::Limit,
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            return Error::corrupt(format!("{format:?} data ends early"));
        }
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, format!("{format:?} cannot be decoded: {error}"))
}
