//! The chunks of an animated WebP: WebP Container Specification, "Extended File Format" and "Animation".

use forebay_core::{Error, Result};
use image::metadata::Orientation;

use crate::decoder::raster::Format;
use crate::moving::{After, Moving, Part};
use crate::orientation;
use crate::pixels::Crop;

/// The file, of whose frames other files are made.
pub(super) struct Stills<'a>(&'a [u8]);

struct Chunk<'a> {
    name: &'a [u8; 4],
    /// Name, length, data, and the byte that makes it even.
    whole: &'a [u8],
    data: &'a [u8],
}

/// Whether the header says that this is an animation.
pub(super) fn is_moving(bytes: &[u8]) -> bool {
    bytes.get(8..16) == Some(b"WEBPVP8X") && bytes.get(20).is_some_and(|flags| flags & 2 != 0)
}

pub(super) fn open(bytes: &[u8]) -> Result<Moving<'_>> {
    let len = bytes.get(4..).and_then(number::<4>).unwrap_or(0).saturating_add(8);
    // The last byte only makes the length even.
    if len > bytes.len() + 1 {
        return Err(ends_early(bytes.len()));
    }
    let file = bytes.get(..len).unwrap_or(bytes);
    let (mut at, mut stored, mut orientation) = (12, [0, 0], Orientation::NoTransforms);
    let mut parts = Vec::new();
    while at < file.len() {
        let Chunk { name, whole, data } = chunk(file, at)?;
        match name {
            b"VP8X" => {
                let [width, height] = [4, 7].map(|at| data.get(at..).and_then(number::<3>));
                let (Some(width), Some(height)) = (width, height) else { return Err(ends_early(at)) };
                stored = [height + 1, width + 1];
            }
            b"EXIF" => orientation = orientation::from_exif(data),
            b"ANMF" => {
                let start = at + 8;
                let part = part(data, start).ok_or_else(|| {
                    Error::corrupt(format!("WebP frame of {} bytes, expected 16 and a picture", data.len()))
                        .context("byte", at)
                })?;
                parts.push(part);
            }
            _ => {}
        }
        at += whole.len();
    }
    if parts.is_empty() {
        return Err(Error::corrupt("WebP that says it is an animation, without frames"));
    }
    let stills = super::Stills::WebP(Stills(file));
    Ok(Moving { format: Format::WebP, stored, orientation, parts, stills })
}

/// What a frame's chunk says, whose data begins at `start` of the file.
fn part(data: &[u8], start: usize) -> Option<Part> {
    let number = |at: usize| data.get(at..).and_then(number::<3>);
    let flags = *data.get(15)?;
    Some(Part {
        place: Crop {
            left: number(0)? * 2,
            top: number(3)? * 2,
            width: number(6)? + 1,
            height: number(9)? + 1,
        },
        milliseconds: number(12)? as f64,
        blends: flags & 2 == 0,
        after: if flags & 1 == 0 { After::Stays } else { After::Cleared },
        chunks: start + 16..start + data.len(),
    })
}

impl Stills<'_> {
    /// A frame as a file of its own.
    pub(super) fn file(&self, part: &Part) -> Result<Vec<u8>> {
        let mut at = part.chunks.start;
        let file = self.0.get(..part.chunks.end).unwrap_or_default();
        let mut alpha = None;
        while at < file.len() {
            let Chunk { name, whole, data } = chunk(file, at)?;
            match name {
                b"ALPH" => alpha = Some(whole),
                b"VP8L" => return Ok(riff(&[whole])),
                b"VP8 " => {
                    // Before memory is taken for as many pixels as it says.
                    let size =
                        [8, 6].map(|at| data.get(at..).and_then(number::<2>).map(|side| side & 0x3fff));
                    let Crop { height, width, .. } = part.place;
                    if size != [Some(height), Some(width)] {
                        return Err(Error::corrupt(format!(
                            "WebP frame of {height} x {width} with another picture"
                        ))
                        .context("byte", at));
                    }
                    let Some(alpha) = alpha else { return Ok(riff(&[whole])) };
                    let mut head = b"VP8X\x0a\0\0\0\x10\0\0\0".to_vec();
                    for side in [width, height] {
                        head.extend_from_slice(&(side as u32 - 1).to_le_bytes()[..3]);
                    }
                    return Ok(riff(&[&head, alpha, whole]));
                }
                _ => {}
            }
            at += whole.len();
        }
        Err(Error::corrupt("WebP frame without a picture").context("byte", part.chunks.start))
    }
}

/// A file of these chunks.
fn riff(chunks: &[&[u8]]) -> Vec<u8> {
    let body = chunks.concat();
    let len = (body.len() as u32 + 4).to_le_bytes();
    [b"RIFF", &len[..], b"WEBP", &body].concat()
}

/// The chunk at `at`.
fn chunk(file: &[u8], at: usize) -> Result<Chunk<'_>> {
    let found = || {
        let rest = file.get(at..)?;
        let (name, after) = rest.split_first_chunk::<4>()?;
        let len = number::<4>(after)?;
        let data = after.get(4..)?.get(..len)?;
        let whole = rest.get(..8 + len + len % 2).unwrap_or(rest);
        Some(Chunk { name, whole, data })
    };
    found().ok_or_else(|| ends_early(at))
}

fn ends_early(at: usize) -> Error {
    Error::corrupt("WebP data ends early").context("byte", at)
}

/// The first bytes as a number, the lowest first.
fn number<const BYTES: usize>(bytes: &[u8]) -> Option<usize> {
    let bytes = bytes.first_chunk::<BYTES>()?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}
