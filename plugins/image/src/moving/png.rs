//! The chunks of a PNG, of an animated one above all: Portable Network Graphics (Third Edition), sections 5 and 11.3.6.

use forebay_core::{Error, Result};
use image::metadata::Orientation;

use crate::decoder::raster::Format;
use crate::moving::{After, Moving, Part};
use crate::orientation;
use crate::pixels::Crop;

const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// The file, of whose frames other files are made, and what each of those begins with.
pub(super) struct Stills<'a> {
    file: &'a [u8],
    /// The data of `IHDR`, with another size.
    header: [u8; 13],
    /// `PLTE` and `tRNS`.
    colors: Vec<u8>,
}

struct Chunk<'a> {
    name: &'a [u8; 4],
    /// Length, name, data and checksum.
    whole: &'a [u8],
    data: &'a [u8],
    at: usize,
}

/// The number of frames in the chunk `acTL`, which comes before the pixels.
pub(super) fn count(bytes: &[u8]) -> Option<u32> {
    let found = before_pixels(bytes).find(|chunk| chunk.name == b"acTL")?;
    Some(number(found.data, 0)?).filter(|count| *count > 0)
}

/// Refuses a palette that is no list of colours (section 11.2.2), which the image crate takes as it is, and panics over.
pub(crate) fn check_palette(bytes: &[u8]) -> Result<()> {
    let odd = |chunk: &Chunk<'_>| chunk.name == b"PLTE" && !chunk.data.len().is_multiple_of(3);
    match before_pixels(bytes).find(odd) {
        Some(chunk) => {
            let len = chunk.data.len();
            Err(chunk.broken(&format!("has {len} bytes, expected three for each colour")))
        }
        None => Ok(()),
    }
}

/// The chunks before the first with pixels, as far as they are whole.
fn before_pixels(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut at = bytes.starts_with(SIGNATURE).then_some(SIGNATURE.len());
    let chunks = std::iter::from_fn(move || {
        let chunk = chunk(bytes, at?).ok()?;
        at = Some(chunk.at + chunk.whole.len());
        Some(chunk)
    });
    chunks.take_while(|chunk| !matches!(chunk.name, b"IDAT" | b"IEND"))
}

/// Finds the first `count` frames.
pub(super) fn open(file: &[u8], count: u32) -> Result<Moving<'_>> {
    let (mut at, mut stored, mut orientation) = (8, [0, 0], Orientation::NoTransforms);
    let (mut header, mut colors) = ([0; 13], Vec::new());
    let (mut numbers, mut parts) = (0, Vec::<Part>::new());
    loop {
        let chunk = chunk(file, at)?;
        at += chunk.whole.len();
        match chunk.name {
            b"IDAT" => {}
            b"fdAT" => chunk.follows(&mut numbers)?,
            _ => chunk.check()?,
        }
        match chunk.name {
            b"IHDR" => {
                let (Some(data), Some(width), Some(height)) =
                    (chunk.data.first_chunk(), number(chunk.data, 0), number(chunk.data, 4))
                else {
                    return Err(chunk.broken("is too short"));
                };
                (header, stored) = (*data, [height as usize, width as usize]);
            }
            b"PLTE" | b"tRNS" => colors.extend_from_slice(chunk.whole),
            b"eXIf" => orientation = orientation::from_exif(chunk.data),
            b"fcTL" => {
                chunk.follows(&mut numbers)?;
                let part =
                    part(&chunk, at, parts.is_empty()).ok_or_else(|| chunk.broken("makes no sense"))?;
                parts.push(part);
            }
            b"IEND" => break,
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.chunks.end = at;
        }
    }
    if parts.len() < count as usize {
        let found = parts.len();
        return Err(Error::corrupt(format!("PNG of {found} frames, its header says {count}")));
    }
    parts.truncate(count as usize);
    let stills = super::Stills::Png(Stills { file, header, colors });
    Ok(Moving { format: Format::Png, stored, orientation, parts, stills })
}

/// What `fcTL` says of the frame whose chunks begin at `start`.
fn part(chunk: &Chunk<'_>, start: usize, is_first: bool) -> Option<Part> {
    let number = |at| number(chunk.data, at);
    let [.., delay0, delay1, of0, of1, after, blend] = *chunk.data else { return None };
    let [delay, of] = [[delay0, delay1], [of0, of1]].map(u16::from_be_bytes);
    Some(Part {
        place: Crop {
            width: number(4)? as usize,
            height: number(8)? as usize,
            left: number(12)? as usize,
            top: number(16)? as usize,
        },
        milliseconds: f64::from(delay) * 1000.0 / if of == 0 { 100.0 } else { f64::from(of) },
        blends: blend == 1,
        after: match after {
            0 => After::Stays,
            // Before the first frame there was nothing.
            2 if !is_first => After::Undone,
            1 | 2 => After::Cleared,
            _ => return None,
        },
        chunks: start..start,
    })
}

impl Stills<'_> {
    /// A frame as a file of its own.
    pub(super) fn file(&self, part: &Part) -> Result<Vec<u8>> {
        let mut header = self.header;
        header[..4].copy_from_slice(&(part.place.width as u32).to_be_bytes());
        header[4..8].copy_from_slice(&(part.place.height as u32).to_be_bytes());
        let mut file = SIGNATURE.to_vec();
        put(b"IHDR", &header, &mut file);
        file.extend_from_slice(&self.colors);
        let mut at = part.chunks.start;
        while at < part.chunks.end {
            let chunk = chunk(self.file, at)?;
            match chunk.name {
                b"IDAT" => file.extend_from_slice(chunk.whole),
                b"fdAT" => {
                    chunk.check()?;
                    put(b"IDAT", chunk.data.get(4..).unwrap_or_default(), &mut file);
                }
                _ => {}
            }
            at += chunk.whole.len();
        }
        put(b"IEND", &[], &mut file);
        Ok(file)
    }
}

impl Chunk<'_> {
    /// Fails unless the checksum is right.
    fn check(&self) -> Result<()> {
        let (body, sum) = self.whole.split_at(self.whole.len() - 4);
        if checksum(&body[4..]).to_be_bytes() == *sum {
            Ok(())
        } else {
            Err(self.broken("has another checksum"))
        }
    }

    /// Fails unless it has the next number of all chunks of frames.
    fn follows(&self, numbers: &mut u32) -> Result<()> {
        if number(self.data, 0) != Some(*numbers) {
            return Err(self.broken(&format!("has not the number {numbers}")));
        }
        *numbers = numbers.wrapping_add(1);
        Ok(())
    }

    fn broken(&self, why: &str) -> Error {
        Error::corrupt(format!("PNG chunk {} {why}", self.name.escape_ascii())).context("byte", self.at)
    }
}

/// The chunk at `at`.
fn chunk(file: &[u8], at: usize) -> Result<Chunk<'_>> {
    let found = || {
        let rest = file.get(at..)?;
        let len = number(rest, 0)? as usize;
        let whole = rest.get(..len.checked_add(12)?)?;
        let (name, after) = whole.get(4..)?.split_first_chunk()?;
        Some(Chunk { name, whole, data: after.get(..len)?, at })
    };
    found().ok_or_else(|| Error::corrupt("PNG data ends early").context("byte", at))
}

fn put(name: &[u8; 4], data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend_from_slice(name);
    out.extend_from_slice(data);
    let sum = checksum(&out[start..]);
    out.extend_from_slice(&sum.to_be_bytes());
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use forebay_core::ErrorKind;

    use super::*;
    use crate::decoder::raster::Raster;

    #[test]
    fn a_palette_that_is_no_list_of_colours_is_refused() {
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&[0, 0b0001_1000].repeat(4)).unwrap();
        let pixels = packer.finish().unwrap();
        let file = |palette: &[u8]| {
            let mut file = SIGNATURE.to_vec();
            // 4 by 4, 2 bits, of a palette.
            put(b"IHDR", &[0, 0, 0, 4, 0, 0, 0, 4, 2, 3, 0, 0, 0], &mut file);
            put(b"PLTE", palette, &mut file);
            put(b"IDAT", &pixels, &mut file);
            put(b"IEND", &[], &mut file);
            file
        };
        let mut out = [0; 48];
        Raster::open(Format::Png, &file(&[9; 9]), 100).unwrap().read(&mut out).unwrap();
        assert_eq!(out, [9; 48]);
        for len in [1, 2, 4, 10, 13, 767] {
            let error = Raster::open(Format::Png, &file(&vec![9; len]), 100).err().unwrap();
            assert_eq!((error.kind(), error.get("byte")), (ErrorKind::Corrupt, Some("33")), "{error}");
        }
    }
}
