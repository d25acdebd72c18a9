//! A TIFF reader of its own: pages of any depth and kind of number, as they are or as RGB.

mod color;
mod directory;
mod page;
mod rows;
mod unpack;

use forebay_core::{DType, Error, Result};
use image::metadata::Orientation;

use crate::orientation::{self, Layout};
use crate::pixels::{Pixels, byte_len};
use crate::scratch;
use crate::tiff::directory::Reader;
use crate::tiff::page::{Color, Number, Page};

/// The first page of a TIFF or BigTIFF file, whose directory has been read.
///
/// ```no_run
/// use forebay_image::Tiff;
///
/// let bytes = std::fs::read("heights.tif")?;
/// let page = Tiff::open(&bytes, 100_000_000)?;
/// let [height, width, channels] = page.shape();
/// let mut samples = vec![0; height * width * channels * page.dtype().size()];
/// page.read_samples(&mut samples)?;
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Tiff<'a> {
    reader: Reader<'a>,
    page: Page<'a>,
}

impl<'a> Tiff<'a> {
    /// Reads the header and the first directory, without taking memory for pixels.
    ///
    /// # Errors
    /// [`Limit`](forebay_core::ErrorKind::Limit) if there are more than `max_pixels`,
    /// [`Corrupt`](forebay_core::ErrorKind::Corrupt) if a tag is missing or broken,
    /// [`Unsupported`](forebay_core::ErrorKind::Unsupported) for samples of unequal depths and for colours such as Lab.
    pub fn open(bytes: &'a [u8], max_pixels: u64) -> Result<Self> {
        let (reader, first) = Reader::open(bytes)?;
        let page = Page::new(&reader.directory(first)?, max_pixels)?;
        Ok(Self { reader, page })
    }

    /// Height and width of the picture, turned as its orientation says.
    #[must_use]
    pub fn size(&self) -> [usize; 2] {
        let Page { height, width, .. } = self.page;
        if orientation::turns(self.page.orientation) { [width, height] } else { [height, width] }
    }

    /// Height, width and samples of a pixel, of which the last may be alpha or anything else.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        let [height, width] = self.size();
        [height, width, self.page.samples]
    }

    /// The type of the samples: the smallest that holds their bits.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.page.dtype()
    }

    /// Whether the samples have a range that can be shown: floats and numbers with a sign have none.
    #[must_use]
    pub fn has_range(&self) -> bool {
        self.page.number == Number::Unsigned
    }

    /// Decodes into `out` as RGB of 8 bits, turned as the orientation says.
    ///
    /// Grey is repeated, alpha dropped, and of more than 8 bits the upper 8 are kept.
    ///
    /// # Errors
    /// [`Corrupt`](forebay_core::ErrorKind::Corrupt) if the data is broken or ends early,
    /// [`Unsupported`](forebay_core::ErrorKind::Unsupported) for a compression that is not known and for samples without a
    /// [range](Self::has_range), [`Invalid`](forebay_core::ErrorKind::Invalid) if `out` is not height x width x 3 bytes.
    pub fn read(&self, out: &mut [u8]) -> Result<()> {
        let page = &self.page;
        let (stored, dtype) = ([page.height, page.width], page.dtype());
        Pixels::check_out([page.height, page.width, 3], out)?;
        if !self.has_range() {
            return Err(Error::unsupported(format!("TIFF of {dtype} samples, which have no range to show")));
        }
        let upright = page.orientation == Orientation::NoTransforms;
        let plain =
            page.color == Color::Rgb || page.compression == unpack::JPEG && page.color == Color::YCbCr;
        if upright && plain && page.samples == 3 && page.bits == 8 {
            return self.chunks(3, out);
        }
        scratch::with(self.len()?, |samples| {
            // What is not shown may be missing.
            self.chunks(page.shown(), samples)?;
            if upright {
                return color::to_rgb(page, samples, out);
            }
            scratch::with(out.len(), |rgb| {
                color::to_rgb(page, samples, rgb)?;
                orientation::write_rgb(rgb, stored, Layout::RGB, page.orientation, out);
                Ok(())
            })
        })
    }

    /// Decodes the samples as they are into `out`: [`shape`](Self::shape) of [`dtype`](Self::dtype), in the machine's byte
    /// order, turned as the orientation says. Of JPEG in YCbCr, RGB.
    ///
    /// # Errors
    /// As [`read`](Self::read), for any kind of number.
    pub fn read_samples(&self, out: &mut [u8]) -> Result<()> {
        let page = &self.page;
        let len = self.len()?;
        if out.len() != len {
            return Err(Error::invalid(format!(
                "the output takes {len} bytes, found room for {}",
                out.len()
            )));
        }
        if page.orientation == Orientation::NoTransforms {
            return self.chunks(page.samples, out);
        }
        scratch::with(len, |stored| {
            self.chunks(page.samples, stored)?;
            let step = page.samples * page.size();
            orientation::turn(stored, [page.height, page.width], step, page.orientation, out);
            Ok(())
        })
    }

    /// The bytes of all samples.
    fn len(&self) -> Result<usize> {
        Ok(byte_len(self.shape())?.saturating_mul(self.page.size()))
    }

    /// Reads all strips or tiles, as they are stored; where each sample has its own, those of the first few.
    fn chunks(&self, few: usize, out: &mut [u8]) -> Result<()> {
        let page = &self.page;
        let [rows, columns] = page.chunk;
        let planes = if page.planar { few } else { 1 };
        let mut index = 0;
        for plane in 0..planes {
            for top in (0..page.height).step_by(rows) {
                for left in (0..page.width).step_by(columns) {
                    let place = Place { plane, top, left };
                    self.chunk(index, place, out).map_err(|error| error.context("strip or tile", index))?;
                    index += 1;
                }
            }
        }
        Ok(())
    }

    /// Reads one strip or tile into its place.
    fn chunk(&self, index: u64, place: Place, out: &mut [u8]) -> Result<()> {
        let page = &self.page;
        let [all_rows, columns] = page.chunk;
        let rows = all_rows.min(page.height - place.top);
        let step = if page.planar { 1 } else { page.samples };
        let shared = page.shares();
        let row = (columns * step * page.bits).div_ceil(8);
        let [across, down] = page.sharing;
        let block_row = columns.div_ceil(across) * (across * down + 2);
        let len = |rows: usize| if shared { rows.div_ceil(down) * block_row } else { rows * row };
        let offset = page.offsets.get(index).unwrap_or(u64::MAX);
        let length = page.lengths.map_or(Some(u64::MAX), |lengths| lengths.get(index)).unwrap_or(u64::MAX);
        let data = self.reader.slice(offset, length).unwrap_or_default();
        scratch::with(len(all_rows), |packed| {
            let filled =
                unpack::unpack(page, data, row, packed).map_err(|error| error.context("byte", offset))?;
            if filled < len(rows) {
                let wanted = len(rows);
                return Err(Error::corrupt(format!("TIFF data ends early: {filled} bytes of {wanted}"))
                    .context("byte", offset));
            }
            let line = columns * step * page.size();
            scratch::with(rows * line, |samples| {
                if shared {
                    rows::shared(page, packed, rows, samples);
                } else {
                    let lines = packed.chunks_exact_mut(row).zip(samples.chunks_exact_mut(line));
                    for (packed, line) in lines {
                        rows::row(page, self.reader.big_endian(), packed, step, line)?;
                    }
                }
                self.put(place, samples, step, out);
                Ok(())
            })
        })
    }

    /// Copies the samples of a strip or tile, as far as they are inside of the picture, to their place.
    fn put(&self, place: Place, samples: &[u8], step: usize, out: &mut [u8]) {
        let page = &self.page;
        let (size, pixel) = (page.size(), page.samples * page.size());
        let columns = page.chunk[1].min(page.width - place.left);
        for (row, line) in samples.chunks_exact(page.chunk[1] * step * size).enumerate() {
            let start = ((place.top + row) * page.width + place.left) * pixel;
            let out = &mut out[start..start + columns * pixel];
            if step == page.samples {
                out.copy_from_slice(&line[..out.len()]);
                continue;
            }
            for (out, sample) in out.chunks_exact_mut(pixel).zip(line.chunks_exact(size)) {
                out[place.plane * size..][..size].copy_from_slice(sample);
            }
        }
    }
}

/// Where a strip or tile stands.
#[derive(Clone, Copy)]
struct Place {
    plane: usize,
    top: usize,
    left: usize,
}
