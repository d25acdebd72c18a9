//! What the tags of a page say: TIFF 6.0, sections 3 to 8, 13 to 16, 19, 21 and 22.

use forebay_core::{DType, Error, Result};
use image::metadata::Orientation;

use crate::decoder::check_size;
use crate::tiff::directory::{Directory, List};

/// What the samples of a pixel mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Color {
    WhiteIsZero,
    BlackIsZero,
    Rgb,
    Palette,
    Cmyk,
    YCbCr,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Unsigned,
    Signed,
    Float,
}

/// A page, all of whose tags make sense together.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) height: usize,
    pub(super) width: usize,
    /// Samples of a pixel, extra ones included.
    pub(super) samples: usize,
    /// Bits of a sample.
    pub(super) bits: usize,
    pub(super) number: Number,
    pub(super) color: Color,
    /// Whether red, green and blue of premultiplied pixels must be divided by the sample behind them.
    pub(super) premultiplied: bool,
    /// Each sample has strips or tiles of its own.
    pub(super) planar: bool,
    /// Rows and columns of a strip or tile.
    pub(super) chunk: [usize; 2],
    pub(super) offsets: List<'a>,
    pub(super) lengths: Option<List<'a>>,
    pub(super) compression: u64,
    pub(super) fax_options: u64,
    pub(super) predictor: u64,
    /// The first pixel is in the lowest bit of a byte.
    pub(super) reversed: bool,
    pub(super) palette: Option<List<'a>>,
    pub(super) jpeg_tables: Option<&'a [u8]>,
    /// Columns and rows that share a pair of colour differences.
    pub(super) sharing: [usize; 2],
    pub(super) orientation: Orientation,
}

impl<'a> Page<'a> {
    pub(super) fn new(directory: &Directory<'a>, max_pixels: u64) -> Result<Self> {
        let number = |tag, default| Ok::<u64, Error>(directory.first(tag)?.unwrap_or(default));
        let needed = |tag, name: &str| {
            directory.first(tag)?.ok_or_else(|| Error::corrupt(format!("TIFF page without {name}")))
        };
        let (width, height) = (needed(256, "ImageWidth")?, needed(257, "ImageLength")?);
        check_size([height, width], max_pixels)?;
        let samples = number(277, 1)?;
        let bits = bits(directory, samples)?;
        let color = color(number(262, if samples < 3 { 1 } else { 2 })?)?;
        let sample_format = match number(339, 1)? {
            1 | 4 => Number::Unsigned,
            2 => Number::Signed,
            3 => Number::Float,
            other => return Err(Error::unsupported(format!("TIFF of sample format {other}"))),
        };
        let tiled = directory.get(322).is_some();
        let (rows, columns) = match tiled {
            true => (needed(323, "TileLength")?, needed(322, "TileWidth")?),
            false => (number(278, height)?.min(height), width),
        };
        // Padded to whole tiles it must be within the limit too: so much is unpacked.
        let padded = |side: u64, tile: u64| side.div_ceil(tile.max(1)).saturating_mul(tile);
        check_size([padded(height, rows), padded(width, columns)], max_pixels)?;
        // Some writers of tiles give the tags of strips for where they are.
        let either = |tile, strip| directory.get(if tiled { tile } else { strip }).or(directory.get(strip));
        let offsets = either(324, 273).ok_or_else(|| Error::corrupt("TIFF page without strips or tiles"))?;
        let sharing = match directory.get(530) {
            Some(list) => [list.value(530, 0)? as usize, list.value(530, 1)? as usize],
            None => [2, 2],
        };
        if !sharing.iter().all(|by| [1, 2, 4].contains(by)) {
            return Err(Error::corrupt(format!(
                "TIFF with {sharing:?} pixels for a colour, expected 1, 2 or 4"
            )));
        }
        // All sizes are within the limit of pixels, so that they fit.
        let page = Self {
            height: height as usize,
            width: width as usize,
            samples: samples as usize,
            bits,
            number: sample_format,
            color,
            premultiplied: number(338, 0)? == 1 && color == Color::Rgb && samples == 4,
            planar: number(284, 1)? == 2 && samples > 1,
            chunk: [rows as usize, columns as usize],
            offsets,
            lengths: either(325, 279),
            compression: number(259, 1)?,
            fax_options: number(292, 0)?,
            predictor: number(317, 1)?,
            reversed: number(266, 1)? == 2,
            palette: directory.get(320),
            jpeg_tables: directory.get(347).and_then(|tables| tables.bytes()),
            sharing,
            orientation: u8::try_from(number(274, 1)?)
                .ok()
                .and_then(Orientation::from_exif)
                .unwrap_or(Orientation::NoTransforms),
        };
        page.check(max_pixels)
    }

    /// Whether the tags go together.
    fn check(self, max_pixels: u64) -> Result<Self> {
        let few = self.shown();
        if self.samples < few {
            return Err(Error::corrupt(format!(
                "TIFF of {} samples a pixel, {:?} has {few}",
                self.samples, self.color
            )));
        }
        let fits = match self.number {
            Number::Float => [16, 32, 64].contains(&self.bits),
            Number::Signed => [8, 16, 32, 64].contains(&self.bits),
            Number::Unsigned => (1..=64).contains(&self.bits),
        };
        if !fits {
            return Err(Error::unsupported(format!(
                "TIFF of {:?} samples of {} bits",
                self.number, self.bits
            )));
        }
        let [rows, columns] = self.chunk;
        let pixels = (self.height * self.width).max(rows * columns) as u64;
        let bytes = pixels.saturating_mul(self.samples as u64).saturating_mul(self.size() as u64);
        if bytes > max_pixels.saturating_mul(16) {
            return Err(Error::limit(format!("TIFF of {bytes} bytes, the limit is {max_pixels} pixels")));
        }
        let ycbcr = self.color == Color::YCbCr && self.compression != super::unpack::JPEG;
        if ycbcr && (self.samples != 3 || self.bits != 8 || self.number != Number::Unsigned || self.planar) {
            return Err(Error::unsupported("TIFF of YCbCr that is not 3 interleaved samples of 8 bits"));
        }
        if self.shares() && self.predictor != 1 {
            return Err(Error::unsupported(format!(
                "TIFF of predictor {} for YCbCr whose pixels share colours",
                self.predictor
            )));
        }
        let chunks = self.height.div_ceil(rows) * self.width.div_ceil(columns);
        let planes = if self.planar { self.samples } else { 1 };
        if (chunks as u64).saturating_mul(planes as u64) > self.offsets.count() {
            return Err(Error::corrupt(format!(
                "TIFF of {} strips or tiles, its size takes {chunks} times {planes}",
                self.offsets.count()
            )));
        }
        Ok(self)
    }

    /// Whether pixels of YCbCr stand in blocks with the colours that they share.
    pub(super) fn shares(&self) -> bool {
        self.color == Color::YCbCr && self.compression != super::unpack::JPEG && self.sharing != [1, 1]
    }

    /// The samples of a pixel that its colour is made of.
    pub(super) fn shown(&self) -> usize {
        match self.color {
            Color::WhiteIsZero | Color::BlackIsZero | Color::Palette => 1,
            Color::Rgb if self.premultiplied => 4,
            Color::Rgb | Color::YCbCr => 3,
            Color::Cmyk => 4,
        }
    }

    /// Bytes of an unpacked sample.
    pub(super) fn size(&self) -> usize {
        self.bits.div_ceil(8).next_power_of_two()
    }

    /// The type of the samples.
    pub(super) fn dtype(&self) -> DType {
        match (self.number, self.size()) {
            (Number::Unsigned, 1) => DType::U8,
            (Number::Unsigned, 2) => DType::U16,
            (Number::Unsigned, 4) => DType::U32,
            (Number::Unsigned, _) => DType::U64,
            (Number::Signed, 1) => DType::I8,
            (Number::Signed, 2) => DType::I16,
            (Number::Signed, 4) => DType::I32,
            (Number::Signed, _) => DType::I64,
            (Number::Float, 2) => DType::F16,
            (Number::Float, 4) => DType::F32,
            (Number::Float, _) => DType::F64,
        }
    }
}

/// The bits of a sample, which must be those of all.
fn bits(directory: &Directory<'_>, samples: u64) -> Result<usize> {
    let Some(list) = directory.get(258) else { return Ok(1) };
    let first = list.value(258, 0)?;
    for index in 1..samples.min(list.count()) {
        let other = list.value(258, index)?;
        if other != first {
            return Err(Error::unsupported(format!("TIFF of samples of {first} and of {other} bits")));
        }
    }
    Ok(usize::try_from(first).unwrap_or(usize::MAX))
}

fn color(photometric: u64) -> Result<Color> {
    Ok(match photometric {
        0 => Color::WhiteIsZero,
        1 => Color::BlackIsZero,
        2 => Color::Rgb,
        3 => Color::Palette,
        5 => Color::Cmyk,
        6 => Color::YCbCr,
        other => return Err(Error::unsupported(format!("TIFF of photometric interpretation {other}"))),
    })
}
