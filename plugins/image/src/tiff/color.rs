//! From samples to RGB of 8 bits.

use forebay_core::{Error, Result};

use crate::tiff::page::{Color, Number, Page};
use crate::tiff::rows::get;

/// Writes the samples of a page as RGB. Of more than 8 bits the upper 8 are kept, fewer are spread over the range.
pub(super) fn to_rgb(page: &Page<'_>, samples: &[u8], out: &mut [u8]) -> Result<()> {
    match page.size() {
        1 => pixels::<1>(page, samples, out),
        2 => pixels::<2>(page, samples, out),
        4 => pixels::<4>(page, samples, out),
        _ => pixels::<8>(page, samples, out),
    }
}

fn pixels<const SIZE: usize>(page: &Page<'_>, samples: &[u8], out: &mut [u8]) -> Result<()> {
    let bits = page.bits;
    let most = (1_u64 << bits.min(8)) - 1;
    let level = |bytes: &[u8; SIZE]| {
        let number = get::<SIZE>(*bytes);
        if bits >= 8 { (number >> (bits - 8)) as u8 } else { ((number * 255 + most / 2) / most) as u8 }
    };
    let pixels = samples.as_chunks::<SIZE>().0.chunks_exact(page.samples).zip(out.as_chunks_mut::<3>().0);
    match page.color {
        Color::BlackIsZero => pixels.for_each(|(pixel, out)| *out = [level(&pixel[0]); 3]),
        Color::WhiteIsZero => pixels.for_each(|(pixel, out)| *out = [255 - level(&pixel[0]); 3]),
        Color::Rgb if page.premultiplied => pixels.for_each(|(pixel, out)| {
            let alpha = level(&pixel[3]);
            *out = [0, 1, 2].map(|channel| undo(level(&pixel[channel]), alpha));
        }),
        Color::Rgb => pixels.for_each(|(pixel, out)| *out = [0, 1, 2].map(|channel| level(&pixel[channel]))),
        Color::YCbCr if page.compression == super::unpack::JPEG => {
            pixels.for_each(|(pixel, out)| *out = [0, 1, 2].map(|channel| level(&pixel[channel])));
        }
        Color::YCbCr => pixels.for_each(|(pixel, out)| *out = ycbcr([0, 1, 2].map(|at| level(&pixel[at])))),
        Color::Cmyk => pixels.for_each(|(pixel, out)| *out = cmyk([0, 1, 2, 3].map(|at| level(&pixel[at])))),
        Color::Palette => {
            let palette = palette(page)?;
            for (pixel, out) in pixels {
                // A number of so many bits is below the length.
                *out = palette.get(get::<SIZE>(pixel[0]) as usize).copied().unwrap_or_default();
            }
        }
    }
    Ok(())
}

/// Colours were multiplied by their alpha.
fn undo(level: u8, alpha: u8) -> u8 {
    match alpha {
        0 => 0,
        alpha => (u32::from(level) * 255 / u32::from(alpha)).min(255) as u8,
    }
}

/// Ink as Pillow mixes it: each over black.
fn cmyk([cyan, magenta, yellow, black]: [u8; 4]) -> [u8; 3] {
    let white = 255 - u32::from(black);
    [cyan, magenta, yellow].map(|ink| {
        let product = u32::from(ink) * white + 128;
        (white - (((product >> 8) + product) >> 8).min(white)) as u8
    })
}

/// The full range of JPEG (BT.601).
fn ycbcr([y, blue, red]: [u8; 3]) -> [u8; 3] {
    let [y, blue, red] = [f32::from(y), f32::from(blue) - 128.0, f32::from(red) - 128.0];
    let rgb = [y + 1.402 * red, y - 0.344_136 * blue - 0.714_136 * red, y + 1.772 * blue];
    rgb.map(|level| (level + 0.5).clamp(0.0, 255.0) as u8)
}

/// All reds, then all greens, then all blues, of 16 bits.
fn palette(page: &Page<'_>) -> Result<Vec<[u8; 3]>> {
    let list = page.palette.ok_or_else(|| Error::corrupt("TIFF of colours by number without ColorMap"))?;
    if page.bits > 16 || page.number != Number::Unsigned {
        return Err(Error::unsupported(format!("TIFF of colours by numbers of {} bits", page.bits)));
    }
    let count = 1_u64 << page.bits;
    let color = |index: u64| {
        let level = |plane: u64| list.get(plane * count + index).map(|level| (level >> 8) as u8);
        Some([level(0)?, level(1)?, level(2)?])
    };
    let colors: Option<Vec<_>> = (0..count).map(color).collect();
    colors.ok_or_else(|| {
        Error::corrupt(format!("TIFF of {} colour levels, expected 3 times {count}", list.count()))
    })
}
