//! A picture that is still in its file's bytes, for pipes that need only a part of it.

use forebay_core::{Decoder, DecoderInfo, Error, Result};

use crate::decoder::{
    formats::{
        BmpDecoder, GifDecoder, IcoDecoder, PngDecoder, PnmDecoder, QoiDecoder, WebPDecoder, is_ico, is_pnm,
    },
    has_magic,
    jpeg::{Jpeg, JpegDecoder},
    raster::{Format, Raster},
    tiff::TiffDecoder,
};
use crate::pixels::{Crop, Pixels, cut};
use crate::scratch;

/// A picture whose header has been read.
pub(crate) enum Encoded<'a> {
    Jpeg(Jpeg<'a>),
    Raster(Raster<'a>),
}

impl<'a> Encoded<'a> {
    /// Whether `bytes` begin as a file of a known format.
    pub(crate) fn is_known(bytes: &[u8]) -> bool {
        match format(bytes) {
            // Its two letters may as well begin a text: nothing is to be in its reserved bytes either.
            Some(Some(Format::Bmp)) => bytes.get(6..10) == Some(&[0; 4]),
            Some(Some(Format::Pnm)) => is_pnm(bytes),
            format => format.is_some(),
        }
    }

    /// Reads the header of a file of any format that this crate knows.
    pub(crate) fn open(bytes: &'a [u8], max_pixels: u64) -> Result<Self> {
        match format(bytes) {
            Some(None) => Jpeg::open(bytes, max_pixels).map(Self::Jpeg),
            Some(Some(format)) => Raster::open(format, bytes, max_pixels).map(Self::Raster),
            None => Err(Error::unsupported("bytes of no known format, expected a picture")),
        }
    }

    /// Height and width of the picture, turned as its orientation says.
    pub(crate) fn size(&self) -> [usize; 2] {
        match self {
            Self::Jpeg(jpeg) => jpeg.size(),
            Self::Raster(raster) => raster.size(),
        }
    }

    /// Decodes the rectangle `crop` into `out` as RGB.
    pub(crate) fn read(self, crop: Crop, out: &mut [u8]) -> Result<()> {
        let [height, width] = self.size();
        match self {
            Self::Jpeg(jpeg) => jpeg.read_region(crop, out),
            Self::Raster(raster) if crop == (Crop { top: 0, left: 0, height, width }) => raster.read(out),
            Self::Raster(raster) => scratch::with(height * width * 3, |whole| {
                raster.read(whole)?;
                cut(&Pixels::new(whole, [height, width, 3])?, crop, out)
            }),
        }
    }
}

/// The format by the first bytes; `Some(None)` is JPEG.
fn format(bytes: &[u8]) -> Option<Option<Format>> {
    const FORMATS: [(&DecoderInfo, Option<Format>); 9] = [
        (&JpegDecoder::INFO, None),
        (&PngDecoder::INFO, Some(Format::Png)),
        (&WebPDecoder::INFO, Some(Format::WebP)),
        (&GifDecoder::INFO, Some(Format::Gif)),
        (&BmpDecoder::INFO, Some(Format::Bmp)),
        (&TiffDecoder::INFO, Some(Format::Tiff)),
        (&QoiDecoder::INFO, Some(Format::Qoi)),
        (&PnmDecoder::INFO, Some(Format::Pnm)),
        (&IcoDecoder::INFO, Some(Format::Ico)),
    ];
    let found = FORMATS.iter().find(|(info, _)| has_magic(bytes, info)).map(|(_, format)| *format);
    found.filter(|format| *format != Some(Format::Ico) || is_ico(bytes))
}
