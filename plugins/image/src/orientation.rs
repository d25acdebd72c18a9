//! Turning a picture the way its Exif orientation says, on the way to plain RGB.

use image::metadata::Orientation;

use crate::pixels::Crop;

/// Side of the square tiles that a turned picture is written in, so that both sides stay in the cache.
const TILE: usize = 32;

/// Where the red, green and blue bytes of a decoded pixel are, and how many bytes it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) step: usize,
    pub(crate) rgb: [usize; 3],
    /// Where its alpha is, if it has one.
    pub(crate) alpha: Option<usize>,
}

impl Layout {
    /// Plain RGB.
    pub(crate) const RGB: Self = Self { step: 3, rgb: [0, 1, 2], alpha: None };
    /// RGB and alpha.
    pub(crate) const RGBA: Self = Self { step: 4, rgb: [0, 1, 2], alpha: Some(3) };
}

/// The orientation in an Exif block, which some writers begin with the marker of JPEG files.
pub(crate) fn from_exif(block: &[u8]) -> Orientation {
    let block = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    Orientation::from_exif_chunk(block).unwrap_or(Orientation::NoTransforms)
}

/// Whether height and width change places.
pub(crate) fn turns(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    matches!(orientation, Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH)
}

/// The rectangle of the stored `height` x `width` pixels that is seen at `crop` of the turned picture.
pub(crate) fn stored(orientation: Orientation, [height, width]: [usize; 2], crop: Crop) -> Crop {
    let Crop { top, left, height: rows, width: columns } = crop;
    let crop = |top, left, height, width| Crop { top, left, height, width };
    match orientation {
        Orientation::NoTransforms => crop(top, left, rows, columns),
        Orientation::FlipHorizontal => crop(top, width - left - columns, rows, columns),
        Orientation::Rotate180 => crop(height - top - rows, width - left - columns, rows, columns),
        Orientation::FlipVertical => crop(height - top - rows, left, rows, columns),
        Orientation::Rotate90FlipH => crop(left, top, columns, rows),
        Orientation::Rotate90 => crop(height - left - columns, top, columns, rows),
        Orientation::Rotate270FlipH => crop(height - left - columns, width - top - rows, columns, rows),
        Orientation::Rotate270 => crop(left, width - top - rows, columns, rows),
    }
}

/// Writes the `height` x `width` pixels of `src`, laid out as `layout`, to `out` as turned RGB.
pub(crate) fn write_rgb(
    src: &[u8],
    [height, width]: [usize; 2],
    layout: Layout,
    orientation: Orientation,
    out: &mut [u8],
) {
    if orientation == Orientation::NoTransforms {
        return match layout.step {
            1 => convert::<1>(src, layout, out),
            2 => convert::<2>(src, layout, out),
            4 => convert::<4>(src, layout, out),
            6 => convert::<6>(src, layout, out),
            8 => convert::<8>(src, layout, out),
            _ => convert::<3>(src, layout, out),
        };
    }
    let (rows, columns) = if turns(orientation) { (width, height) } else { (height, width) };
    for top in (0..rows).step_by(TILE) {
        for left in (0..columns).step_by(TILE) {
            for y in top..rows.min(top + TILE) {
                for x in left..columns.min(left + TILE) {
                    let from = origin(orientation, [height, width], [y, x]) * layout.step;
                    let to = (y * columns + x) * 3;
                    put(&src[from..from + layout.step], layout, &mut out[to..to + 3]);
                }
            }
        }
    }
}

/// Writes the `height` x `width` pixels of `src`, of `step` bytes each, to `out`, turned.
pub(crate) fn turn(
    src: &[u8],
    [height, width]: [usize; 2],
    step: usize,
    orientation: Orientation,
    out: &mut [u8],
) {
    let columns = if turns(orientation) { height } else { width };
    for (at, pixel) in out.chunks_exact_mut(step).enumerate() {
        let from = origin(orientation, [height, width], [at / columns, at % columns]) * step;
        pixel.copy_from_slice(&src[from..from + step]);
    }
}

/// Index of the stored pixel that is seen at row `y`, column `x` of the turned picture.
fn origin(orientation: Orientation, [height, width]: [usize; 2], [y, x]: [usize; 2]) -> usize {
    let (row, column) = match orientation {
        Orientation::NoTransforms => (y, x),
        Orientation::FlipHorizontal => (y, width - 1 - x),
        Orientation::Rotate180 => (height - 1 - y, width - 1 - x),
        Orientation::FlipVertical => (height - 1 - y, x),
        Orientation::Rotate90FlipH => (x, y),
        Orientation::Rotate90 => (height - 1 - x, y),
        Orientation::Rotate270FlipH => (height - 1 - x, width - 1 - y),
        Orientation::Rotate270 => (x, width - 1 - y),
    };
    row * width + column
}

/// Upright pixels of `STEP` bytes.
fn convert<const STEP: usize>(src: &[u8], layout: Layout, out: &mut [u8]) {
    for (pixel, out) in src.as_chunks::<STEP>().0.iter().zip(out.as_chunks_mut::<3>().0) {
        *out = layout.rgb.map(|index| pixel[index]);
    }
}

fn put(pixel: &[u8], layout: Layout, out: &mut [u8]) {
    for (out, index) in out.iter_mut().zip(layout.rgb) {
        *out = pixel[index];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixels::{Pixels, cut};

    /// The stored rows of each orientation whose picture is `ab / cd / ef`, written down by hand.
    #[test]
    fn all_eight_show_the_same_picture() {
        let stored: [(u8, [usize; 2], &str); 8] = [
            (1, [3, 2], "abcdef"),
            (2, [3, 2], "badcfe"),
            (3, [3, 2], "fedcba"),
            (4, [3, 2], "efcdab"),
            (5, [2, 3], "acebdf"),
            (6, [2, 3], "bdface"),
            (7, [2, 3], "fdbeca"),
            (8, [2, 3], "ecafdb"),
        ];
        for (number, size, letters) in stored {
            let src: Vec<u8> = letters.bytes().flat_map(|letter| [letter; 3]).collect();
            let mut out = [0; 18];
            write_rgb(&src, size, Layout::RGB, Orientation::from_exif(number).unwrap(), &mut out);
            let seen: String = out.chunks(3).map(|pixel| char::from(pixel[0])).collect();
            assert_eq!(seen, "abcdef", "orientation {number}");
        }
    }

    #[test]
    fn a_part_is_stored_where_it_is_seen() {
        let (height, width) = (7, 5);
        let src: Vec<u8> = (0..height * width).flat_map(|i| [i as u8; 3]).collect();
        for orientation in (1..=8).filter_map(Orientation::from_exif) {
            let (rows, columns) = if turns(orientation) { (width, height) } else { (height, width) };
            let mut whole = vec![0; src.len()];
            write_rgb(&src, [height, width], Layout::RGB, orientation, &mut whole);
            let whole = Pixels::new(&whole, [rows, columns, 3]).unwrap();
            let crop = Crop { top: 1, left: 2, height: 4, width: 3 };
            let (mut expected, mut part, mut found) = ([0; 36], [0; 36], [0; 36]);
            cut(&whole, crop, &mut expected).unwrap();
            let from = stored(orientation, [height, width], crop);
            cut(&Pixels::new(&src, [height, width, 3]).unwrap(), from, &mut part).unwrap();
            write_rgb(&part, [from.height, from.width], Layout::RGB, orientation, &mut found);
            assert_eq!(found, expected, "{orientation:?}");
        }
    }

    #[test]
    fn turns_across_tiles_as_the_image_crate_does() {
        let (height, width) = (45, 70);
        let src: Vec<u8> = (0..height * width * 3).map(|i| (i * 7 + i / 251) as u8).collect();
        for number in 1..=8 {
            let orientation = Orientation::from_exif(number).unwrap();
            let picture = image::RgbImage::from_raw(width as u32, height as u32, src.clone()).unwrap();
            let mut expected = image::DynamicImage::ImageRgb8(picture);
            expected.apply_orientation(orientation);
            let mut out = vec![0; src.len()];
            write_rgb(&src, [height, width], Layout::RGB, orientation, &mut out);
            assert_eq!(out, expected.into_bytes(), "orientation {number}");
        }
    }

    #[test]
    fn hostile_exif_is_upright() {
        let block = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        assert_eq!(from_exif(block), Orientation::Rotate90);
        for len in 0..block.len() - 4 {
            assert_eq!(from_exif(&block[..len]), Orientation::NoTransforms, "{len} bytes");
        }
    }
}
