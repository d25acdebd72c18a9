//! All frames of a picture, one after the other, each as it is shown.

use std::io::Cursor;

use forebay_core::{Error, Result};
use image::codecs::gif::GifDecoder;
use image::{AnimationDecoder as _, ImageDecoder as _, metadata::Orientation};

use crate::decoder::check_size;
use crate::decoder::raster::{Format, broken, limits};
use crate::encoded::Encoded;
use crate::moving::Moving;
use crate::orientation::{self, Layout};
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
    Gif(image::Frames<'a>),
    Moving(Moving<'a>),
}

impl<'a> Frames<'a> {
    /// Reads the header and counts the frames, without taking memory for them.
    ///
    /// # Errors
    /// `Limit` for a frame of more than `max_pixels`, `Corrupt` for a broken header and for fewer frames than it says, `Unsupported` for
    /// bytes of no known format.
    pub fn open(bytes: &'a [u8], max_pixels: u64) -> Result<Self> {
        if bytes.starts_with(b"GIF8") {
            let count = gif_frames(bytes)?;
            if count > 0 {
                return Self::gif(bytes, max_pixels, count);
            }
        }
        if let Some(moving) = Moving::open(bytes, max_pixels)? {
            return Ok(Self { size: moving.size(), count: moving.count(), kind: Kind::Moving(moving) });
        }
        let still = Encoded::open(bytes, max_pixels)?;
        Ok(Self { size: still.size(), kind: Kind::Still(still), count: 1 })
    }

    fn gif(bytes: &'a [u8], max_pixels: u64, count: usize) -> Result<Self> {
        let failed = |error| broken(Format::Gif, error);
        let mut decoder = GifDecoder::new(Cursor::new(bytes)).map_err(failed)?;
        let (width, height) = decoder.dimensions();
        check_size([u64::from(height), u64::from(width)], max_pixels)?;
        decoder.set_limits(limits(u64::from(height) * u64::from(width))).map_err(failed)?;
        let size = [height as usize, width as usize];
        Ok(Self { kind: Kind::Gif(decoder.into_frames()), size, count })
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
            Kind::Moving(moving) => moving.read(outs),
            Kind::Gif(mut frames) => {
                for (at, (out, shown)) in outs.enumerate() {
                    let here = |error: Error| error.context("frame", at);
                    let frame = match frames.next() {
                        Some(frame) => frame.map_err(|error| here(broken(Format::Gif, error)))?,
                        None => return Err(here(Error::corrupt("GIF data ends early"))),
                    };
                    let (ticks, of) = frame.delay().numer_denom_ms();
                    *shown = f64::from(ticks) / f64::from(of.max(1));
                    let rgba = frame.buffer().as_raw();
                    if rgba.len() / 4 != len / 3 {
                        return Err(here(Error::corrupt("a frame of another size")));
                    }
                    orientation::write_rgb(rgba, self.size, Layout::RGBA, Orientation::NoTransforms, out);
                }
                Ok(())
            }
        }
    }
}

/// How many pictures a GIF holds, whose end must be there.
fn gif_frames(bytes: &[u8]) -> Result<usize> {
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
    let flags = bytes.get(10).copied().unwrap_or(0);
    let mut rest = bytes.get(13 + colors(flags)..).unwrap_or_default();
    let mut count = 0;
    loop {
        match *rest {
            [0x2c, _, _, _, _, _, _, _, _, flags, ref after @ ..] => {
                count += 1;
                // Behind the colours a byte tells how long codes are.
                rest = behind(after.get(colors(flags) + 1..).unwrap_or_default());
            }
            [0x21, _, ref after @ ..] => rest = behind(after),
            [0x3b, ..] => return Ok(count),
            [] => return Err(Error::corrupt("GIF data ends early: no trailer").context("frame", count)),
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
        let frames = |gif: &[u8]| gif_frames(&[gif, b";"].concat()).unwrap();
        assert_eq!(frames(&gif), 0);
        for count in 1..4 {
            gif.extend(b"\x21\xf9\x04\0\x0a\0\0\0");
            gif.extend(b"\x2c\0\0\0\0\x02\0\x02\0\0\x02\x03\x2c\x2c\x2c\0");
            assert_eq!(frames(&gif), count);
            assert!(gif_frames(&gif).is_err());
        }
        for len in 0..gif.len() {
            assert!(gif_frames(&gif[..len]).is_err(), "{len}");
        }
        gif.push(0x3b);
        gif.extend(b"\x2c\0\0\0\0\x02\0\x02\0\0\x02");
        assert_eq!(gif_frames(&gif).unwrap(), 3);
    }
}
