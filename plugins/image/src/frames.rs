//! All frames of a picture, one after the other, each as it is shown.

use std::io::Cursor;

use forebay_core::{Error, Result};
use image::codecs::{gif::GifDecoder, png::PngDecoder, webp::WebPDecoder};
use image::{AnimationDecoder as _, ImageDecoder, ImageError};

use crate::decoder::check_size;
use crate::decoder::raster::{Format, broken, limits};
use crate::encoded::Encoded;
use crate::pixels::{self, Crop};

/// The frames of a GIF, a WebP or a PNG; of any other picture its only one.
///
/// ```no_run
/// use forebay_image::Frames;
///
/// let bytes = std::fs::read("walk.gif")?;
/// let frames = Frames::open(&bytes, 100_000_000)?;
/// let ([height, width], count) = (frames.size(), frames.count());
/// let (mut rgb, mut milliseconds) = (vec![0; count * height * width * 3], vec![0.0; count]);
/// frames.read(&mut rgb, &mut milliseconds)?;
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub struct Frames<'a> {
    kind: Kind<'a>,
    size: [usize; 2],
    count: usize,
}

enum Kind<'a> {
    Still(Encoded<'a>),
    Moving(Format, image::Frames<'a>),
}

impl<'a> Frames<'a> {
    /// Reads the header and counts the frames, without taking memory for them.
    ///
    /// # Errors
    /// `Limit` for a frame of more than `max_pixels`, `Corrupt` for a broken header, `Unsupported` for bytes of no known format.
    pub fn open(bytes: &'a [u8], max_pixels: u64) -> Result<Self> {
        let Some((format, count)) = moving(bytes) else {
            let still = Encoded::open(bytes, max_pixels)?;
            return Ok(Self { size: still.size(), kind: Kind::Still(still), count: 1 });
        };
        let failed = |error| broken(format, error);
        let source = Cursor::new(bytes);
        let (size, frames) = match format {
            Format::Gif => opened(GifDecoder::new(source).map_err(failed)?, max_pixels, |decoder| {
                Ok(decoder.into_frames())
            }),
            Format::WebP => opened(WebPDecoder::new(source).map_err(failed)?, max_pixels, |decoder| {
                Ok(decoder.into_frames())
            }),
            _ => {
                let decoder = PngDecoder::with_limits(source, limits(max_pixels)).map_err(failed)?;
                opened(decoder, max_pixels, |decoder| Ok(decoder.apng()?.into_frames()))
            }
        }?;
        let frames = frames.map_err(failed)?;
        Ok(Self { kind: Kind::Moving(format, frames), size, count })
    }

    /// Height and width of each.
    #[must_use]
    pub fn size(&self) -> [usize; 2] {
        self.size
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Decodes the first frames into `out` as RGB, as many as there are `milliseconds`, each as it is shown: with what the frames
    /// before left of it, and without alpha. Writes for how long each is shown.
    ///
    /// # Errors
    /// `Corrupt` if the data is broken or ends early, `Invalid` if `out` is not frames x height x width x 3 bytes.
    pub fn read(self, out: &mut [u8], milliseconds: &mut [f64]) -> Result<()> {
        let [height, width] = self.size;
        let len = pixels::byte_len([height, width, 3])?;
        if milliseconds.len() > self.count || len.checked_mul(milliseconds.len()) != Some(out.len()) {
            return Err(Error::invalid(format!(
                "{} frames of {} and {} bytes wanted, there are {} of {len} bytes each",
                milliseconds.len(),
                self.count,
                out.len(),
                self.count
            )));
        }
        let mut outs = out.chunks_exact_mut(len).zip(milliseconds);
        match self.kind {
            Kind::Still(still) => outs.next().map_or(Ok(()), |(out, shown)| {
                *shown = 0.0;
                still.read(Crop { top: 0, left: 0, height, width }, out)
            }),
            Kind::Moving(format, mut frames) => {
                for (at, (out, shown)) in outs.enumerate() {
                    let here = |error: Error| error.context("frame", at);
                    let frame = match frames.next() {
                        Some(frame) => frame.map_err(|error| here(broken(format, error)))?,
                        None => return Err(here(Error::corrupt(format!("{format:?} data ends early")))),
                    };
                    let (ticks, of) = frame.delay().numer_denom_ms();
                    *shown = f64::from(ticks) / f64::from(of.max(1));
                    let rgba = frame.buffer().as_raw();
                    if rgba.len() / 4 != len / 3 {
                        return Err(here(Error::corrupt("a frame of another size")));
                    }
                    for (out, [rgb @ .., _]) in
                        out.as_chunks_mut::<3>().0.iter_mut().zip(rgba.as_chunks::<4>().0)
                    {
                        *out = *rgb;
                    }
                }
                Ok(())
            }
        }
    }
}

/// The size of what `decoder` reads, after the check of the limits, and its frames.
fn opened<'a, D: ImageDecoder>(
    mut decoder: D,
    max_pixels: u64,
    frames: impl FnOnce(D) -> Result<image::Frames<'a>, ImageError>,
) -> Result<([usize; 2], Result<image::Frames<'a>, ImageError>)> {
    let (width, height) = decoder.dimensions();
    check_size([u64::from(height), u64::from(width)], max_pixels)?;
    let limited = decoder.set_limits(limits(max_pixels));
    Ok(([height as usize, width as usize], limited.and_then(|()| frames(decoder))))
}

/// The format of an animation, and how many frames it has; `None` for any other picture.
fn moving(bytes: &[u8]) -> Option<(Format, usize)> {
    let (format, count) = if bytes.starts_with(b"GIF8") {
        (Format::Gif, gif_frames(bytes)?)
    } else if bytes.starts_with(b"\x89PNG") {
        (Format::Png, png_frames(bytes)?)
    } else if bytes.get(8..12) == Some(b"WEBP") {
        (Format::WebP, webp_frames(bytes)?)
    } else {
        return None;
    };
    (count > 0).then_some((format, count))
}

/// The number in a PNG's `acTL` chunk, which comes before the pixels.
fn png_frames(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes.get(8..)?;
    loop {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (name, after) = after.split_first_chunk::<4>()?;
        match name {
            b"acTL" => return Some(u32::from_be_bytes(*after.first_chunk()?) as usize),
            b"IDAT" | b"IEND" => return None,
            _ => rest = after.get((u32::from_be_bytes(*len) as usize).checked_add(4)?..)?,
        }
    }
}

/// How many `ANMF` chunks a WebP file has.
fn webp_frames(bytes: &[u8]) -> Option<usize> {
    let (mut rest, mut count) = (bytes.get(12..)?, 0);
    while let Some((name, after)) = rest.split_first_chunk::<4>() {
        let Some((len, after)) = after.split_first_chunk::<4>() else { break };
        count += usize::from(name == b"ANMF");
        let len = u32::from_le_bytes(*len) as usize;
        rest = after.get(len.checked_add(len & 1)?..).unwrap_or_default();
    }
    Some(count)
}

/// How many pictures a GIF holds: those whose header is there.
fn gif_frames(bytes: &[u8]) -> Option<usize> {
    /// The bytes of the table of colours that these flags tell of.
    fn colors(flags: u8) -> usize {
        if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
    }
    /// What follows the blocks of data.
    fn behind(mut rest: &[u8]) -> &[u8] {
        while let Some((&len, after)) = rest.split_first() {
            rest = after.get(usize::from(len)..).unwrap_or_default();
            if len == 0 {
                break;
            }
        }
        rest
    }
    let mut rest = bytes.get(13 + colors(*bytes.get(10)?)..)?;
    let mut count = 0;
    loop {
        match *rest {
            [0x2c, _, _, _, _, _, _, _, _, flags, ref after @ ..] => {
                count += 1;
                // Behind the colours a byte tells how long codes are.
                rest = behind(after.get(colors(flags) + 1..).unwrap_or_default());
            }
            [0x21, _, ref after @ ..] => rest = behind(after),
            [0x3b, ..] | [] => return Some(count),
            [_, ref after @ ..] => rest = after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_of_a_gif_are_counted_without_decoding() {
        let mut gif = b"GIF89a\x02\0\x02\0\x80\0\0".to_vec();
        gif.extend([0; 6]); // two colours
        assert_eq!(gif_frames(&gif), Some(0));
        for count in 1..4 {
            gif.extend(b"\x21\xf9\x04\0\x0a\0\0\0");
            gif.extend(b"\x2c\0\0\0\0\x02\0\x02\0\0\x02\x03\x2c\x2c\x2c\0");
            assert_eq!(gif_frames(&gif), Some(count));
        }
        gif.push(0x3b);
        gif.extend(b"\x2c\0\0\0\0\x02\0\x02\0\0\x02");
        assert_eq!(gif_frames(&gif), Some(3));
        for len in 0..gif.len() {
            assert!(gif_frames(&gif[..len]).unwrap_or(0) <= 3);
        }
    }
}
