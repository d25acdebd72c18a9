//! `encode_jpeg`, `encode_png` and `encode_webp`: a decoded picture to the bytes of a file.
//!
//! ```toml
//! [encode_jpeg]
//! examples = ['''forebay run "files 'examples/photos/*.tar' | untar | take 10 | resize 64 | encode_jpeg 80 | write_tar 'thumbnails-{:05}.tar'"''']
//! cases = ["PICTURES | encode_jpeg"]
//!
//! [encode_png]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | resize 64 | encode_png fast | rename 'jpg=png'"''']
//! cases = ["PICTURES | encode_png"]
//!
//! [encode_webp]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | resize 64 | encode_webp | rename 'jpg=webp'"''']
//! cases = ["PICTURES | encode_webp"]
//! ```

use forebay_core::{Buffer, Context, DataPipe, Error, Map, PipeInfo, Result, Sample, options};
use image::codecs::{jpeg::JpegEncoder, png, webp::WebPEncoder};
use image::{ExtendedColorType, ImageEncoder, ImageResult};

use crate::{field, pixels::Pixels};

options! {
    /// Options of `encode_jpeg`.
    pub struct EncodeJpegOptions {
        /// From 1, small, to 100, good; as libjpeg counts.
        quality: u32 = 90, in 1..=100;
        /// The field with the picture; null for the first that holds one.
        field: Option<String> = null;
    }
}

options! {
    /// Options of `encode_png`.
    pub struct EncodePngOptions {
        /// How much time to spend on a smaller file.
        effort: String = "default", one_of ["fast", "default", "best"];
        /// The field with the picture; null for the first that holds one.
        field: Option<String> = null;
    }
}

options! {
    /// Options of `encode_webp`.
    pub struct EncodeWebPOptions {
        /// The field with the picture; null for the first that holds one.
        field: Option<String> = null;
    }
}

macro_rules! encoders {
    ($($(#[$doc:meta])* $type:ident($options:ident), $name:literal, $summary:literal, $channels:expr, $encoder:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $type {
            options: $options,
        }

        impl DataPipe for $type {
            const INFO: PipeInfo = PipeInfo { name: $name, summary: $summary, ..PipeInfo::DEFAULT };
            type Options = $options;

            fn new(options: $options) -> Result<Self> {
                Ok(Self { options })
            }
        }

        impl Map for $type {
            fn map(&self, sample: &mut Sample, cx: &Context<'_>) -> Result<()> {
                let encoder: fn(&$options, &mut Vec<u8>, Picture) -> ImageResult<()> = $encoder;
                field::change(sample, self.options.field.as_deref(), |picture| {
                    encode(picture, &$channels, cx, |out, picture| encoder(&self.options, out, picture)).map(Some)
                })
            }
        }
    )*};
}

encoders! {
    /// Packs pictures of 1 or 3 channels as JPEG, baseline, its colour planes whole.
    EncodeJpeg(EncodeJpegOptions), "encode_jpeg", "Pictures to the bytes of JPEG files", [1, 3],
        |options, out, picture| picture.write(JpegEncoder::new_with_quality(out, options.quality as u8));
    /// Packs pictures of 1 to 4 channels as PNG.
    EncodePng(EncodePngOptions), "encode_png", "Pictures to the bytes of PNG files", [1, 2, 3, 4],
        |options, out, picture| {
            let effort = match options.effort.as_str() {
                "fast" => png::CompressionType::Fast,
                "best" => png::CompressionType::Best,
                _ => png::CompressionType::Default,
            };
            picture.write(png::PngEncoder::new_with_quality(out, effort, png::FilterType::Adaptive))
        };
    /// Packs pictures of 1 to 4 channels as lossless WebP.
    EncodeWebP(EncodeWebPOptions), "encode_webp", "Pictures to the bytes of lossless WebP files", [1, 2, 3, 4],
        |_, out, picture| picture.write(WebPEncoder::new_lossless(out));
}

/// What an encoder of the image crate is given.
struct Picture<'a> {
    bytes: &'a [u8],
    width: u32,
    height: u32,
    color: ExtendedColorType,
}

impl Picture<'_> {
    fn write(self, encoder: impl ImageEncoder) -> ImageResult<()> {
        encoder.write_image(self.bytes, self.width, self.height, self.color)
    }
}

/// The bytes that `write` makes of a picture with one of these numbers of channels, in the host's memory.
fn encode(
    picture: &Pixels<'_>,
    channels: &[usize],
    cx: &Context<'_>,
    write: impl FnOnce(&mut Vec<u8>, Picture<'_>) -> ImageResult<()>,
) -> Result<Buffer> {
    let color = match picture.channels() {
        found if !channels.contains(&found) => {
            let known: Vec<_> = channels.iter().map(usize::to_string).collect();
            let known = known.join(", ");
            return Err(Error::invalid(format!("a picture of {found} channels, expected one of {known}")));
        }
        1 => ExtendedColorType::L8,
        2 => ExtendedColorType::La8,
        3 => ExtendedColorType::Rgb8,
        _ => ExtendedColorType::Rgba8,
    };
    let side = |side: usize| {
        u32::try_from(side).map_err(|_| Error::invalid(format!("a picture with a side of {side} pixels")))
    };
    let (width, height) = (side(picture.width())?, side(picture.height())?);
    let mut bytes = Vec::new();
    write(&mut bytes, Picture { bytes: picture.bytes(), width, height, color })
        .map_err(|error| Error::invalid(format!("a picture of {height} x {width}: {error}")))?;
    let mut out = cx.alloc(bytes.len())?;
    out.copy_from_slice(&bytes);
    Ok(out.freeze())
}
