//! Animations of WebP and PNG: each frame is a still of its own, which is put upon those before it.

pub(crate) mod png;
mod webp;

use forebay_core::{Error, Result};
use image::metadata::Orientation;

use crate::decoder::{
    check_size,
    raster::{Format, Other},
};
use crate::orientation::{self, Layout};
use crate::pixels::{Crop, byte_len};
use crate::scratch;

/// An animation whose chunks have been found.
pub(crate) struct Moving<'a> {
    format: Format,
    stored: [usize; 2],
    orientation: Orientation,
    parts: Vec<Part>,
    stills: Stills<'a>,
}

/// What the files of stills are made of.
enum Stills<'a> {
    WebP(webp::Stills<'a>),
    Png(png::Stills<'a>),
}

/// A frame: which part of the picture it changes, and how.
struct Part {
    place: Crop,
    milliseconds: f64,
    /// What is transparent shows what is below, rather than nothing.
    blends: bool,
    after: After,
    /// The bytes of the file where its chunks are.
    chunks: std::ops::Range<usize>,
}

/// What is left of a frame for the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Stays,
    Cleared,
    Undone,
}

impl<'a> Moving<'a> {
    /// Finds the frames of an animated WebP or PNG; `None` for any other bytes.
    pub(crate) fn open(bytes: &'a [u8], max_pixels: u64) -> Result<Option<Self>> {
        let moving = if webp::is_moving(bytes) {
            webp::open(bytes)?
        } else if let Some(count) = png::count(bytes) {
            png::open(bytes, count)?
        } else {
            return Ok(None);
        };
        check_size(moving.stored.map(|side| side as u64), max_pixels)?;
        let [height, width] = moving.stored;
        for (at, part) in moving.parts.iter().enumerate() {
            part.place.check([height, width]).map_err(|_| {
                Error::corrupt(format!("{:?} is not inside a picture of {height} x {width}", part.place))
                    .context("frame", at)
            })?;
        }
        Ok(Some(moving))
    }

    /// Height and width of each frame, turned as the orientation says.
    pub(crate) fn size(&self) -> [usize; 2] {
        let [height, width] = self.stored;
        if orientation::turns(self.orientation) { [width, height] } else { [height, width] }
    }

    pub(crate) fn count(&self) -> usize {
        self.parts.len()
    }

    /// Decodes the first frames, as many as there are of `outs`, as RGB, and writes for how many milliseconds each is shown.
    pub(crate) fn read<'b>(&self, outs: impl Iterator<Item = (&'b mut [u8], &'b mut f64)>) -> Result<()> {
        let [height, width] = self.stored;
        let mut undo = Vec::new();
        scratch::with(byte_len([height, width, 4])?, |canvas| {
            canvas.fill(0);
            for (at, (part, (out, shown))) in self.parts.iter().zip(outs).enumerate() {
                if part.after == After::Undone {
                    undo.clear();
                    rows(canvas, width, part.place).for_each(|row| undo.extend_from_slice(row));
                }
                self.draw(part, canvas).map_err(|error| error.context("frame", at))?;
                orientation::write_rgb(canvas, self.stored, Layout::RGBA, self.orientation, out);
                *shown = part.milliseconds;
                match part.after {
                    After::Stays => {}
                    After::Cleared => rows(canvas, width, part.place).for_each(|row| row.fill(0)),
                    After::Undone => rows(canvas, width, part.place)
                        .zip(undo.chunks_exact(part.place.width * 4))
                        .for_each(|(row, before)| row.copy_from_slice(before)),
                }
            }
            Ok(())
        })
    }

    /// Puts a frame upon the canvas.
    fn draw(&self, part: &Part, canvas: &mut [u8]) -> Result<()> {
        let Crop { height, width, .. } = part.place;
        let file = match &self.stills {
            Stills::WebP(stills) => stills.file(part)?,
            Stills::Png(stills) => stills.file(part)?,
        };
        let still = Other::open(self.format, &file, (height * width) as u64)?;
        if still.stored() != [height, width] {
            let found = still.stored();
            return Err(Error::corrupt(format!("a picture of {found:?} in a frame of {height} x {width}")));
        }
        scratch::with(byte_len([height, width, 4])?, |drawn| {
            still.read_rgba(drawn)?;
            for (row, drawn) in rows(canvas, self.stored[1], part.place).zip(drawn.chunks_exact(width * 4)) {
                if !part.blends {
                    row.copy_from_slice(drawn);
                    continue;
                }
                for (under, over) in row.as_chunks_mut::<4>().0.iter_mut().zip(drawn.as_chunks::<4>().0) {
                    *under = blend(*over, *under);
                }
            }
            Ok(())
        })
    }
}

/// The rows of a rectangle of RGBA.
fn rows(canvas: &mut [u8], width: usize, place: Crop) -> impl Iterator<Item = &mut [u8]> {
    let rows = canvas.chunks_exact_mut(width * 4).skip(place.top).take(place.height);
    rows.map(move |row| &mut row[place.left * 4..][..place.width * 4])
}

/// A pixel upon another one, in whole numbers as libwebp rounds them.
fn blend(over: [u8; 4], under: [u8; 4]) -> [u8; 4] {
    let alpha = u32::from(over[3]);
    match (alpha, under[3]) {
        (255, _) | (_, 0) => over,
        (0, _) => under,
        _ => {
            let rest = (u32::from(under[3]) * (256 - alpha)) >> 8;
            let scale = (1 << 24) / (alpha + rest);
            // At most 255 times the sum of both, so that it fits.
            let mix = |at: usize| {
                let sum = u32::from(over[at]) * alpha + u32::from(under[at]) * rest;
                ((sum * scale) >> 24) as u8
            };
            [mix(0), mix(1), mix(2), (alpha + rest) as u8]
        }
    }
}
