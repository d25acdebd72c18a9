//! The chunks of a RIFF file: where the sound is, and what it is.
//!
//! Multimedia Programming Interface and Data Specifications 1.0, "RIFF WAVE"; EBU Tech 3306 for RF64;
//! RFC 2361 for the format codes.

use std::ops::Range;

use forebay_core::{Error, Result};

/// What one sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Pcm,
    Float,
    MuLaw,
    ALaw,
}

/// A sound: what it is, and where in the file.
#[derive(Debug)]
pub(crate) struct Sound {
    pub(crate) coding: Coding,
    pub(crate) channels: usize,
    pub(crate) rate: u32,
    /// Bits that count in each sample.
    pub(crate) bits: u16,
    /// Bytes of each sample.
    pub(crate) width: usize,
    pub(crate) data: Range<usize>,
}

/// What a length says that is not known or stands elsewhere.
const UNKNOWN: u32 = u32::MAX;
/// The last 14 bytes of the GUIDs that stand for a format code.
const GUID: &[u8] = &[0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];

/// Finds the sound in a file.
pub(crate) fn sound(file: &[u8]) -> Result<Sound> {
    let wide = match (file.get(..4), file.get(8..12)) {
        (Some(b"RIFF"), Some(b"WAVE")) => false,
        (Some(b"RF64" | b"BW64"), Some(b"WAVE")) => true,
        (Some(b"RIFX"), Some(b"WAVE")) => {
            return Err(Error::unsupported("RIFX, which is big-endian").context("byte", 0));
        }
        _ => return Err(Error::corrupt("expected RIFF, a length and WAVE").context("byte", 0)),
    };
    let (mut at, mut format, mut long) = (12_usize, None, None);
    loop {
        let Some((head, _)) = file.get(at..).and_then(|rest| rest.split_first_chunk::<8>()) else {
            let missing = if format.is_some() { "data" } else { "fmt" };
            return Err(
                Error::corrupt(format!("the file ends, expected a chunk `{missing}`")).context("byte", at)
            );
        };
        let (name, len) =
            ([head[0], head[1], head[2], head[3]], u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
        let start = at + 8;
        let left = file.len() - start;
        let located = |error: Error| error.context("byte", start);
        let part = usize::try_from(len).ok().filter(|&len| len <= left);
        let short = || {
            let name = String::from_utf8_lossy(&name).into_owned();
            Error::corrupt(format!("a chunk `{name}` of {len} bytes, and the file ends after {left}"))
                .context("byte", at)
        };
        match &name {
            b"data" => {
                let (coding, channels, rate, bits, width) = format.ok_or_else(|| {
                    Error::corrupt("the chunk `data` comes before `fmt `").context("byte", at)
                })?;
                let len = match (len, long) {
                    (UNKNOWN, Some(long)) if wide => {
                        usize::try_from(long).ok().filter(|&long| long <= left).ok_or_else(short)?
                    }
                    (UNKNOWN, _) => left,
                    _ => part.ok_or_else(short)?,
                };
                return Ok(Sound { coding, channels, rate, bits, width, data: start..start + len });
            }
            b"fmt " => {
                let len = part.ok_or_else(short)?;
                format =
                    Some(read_format(file.get(start..start + len).unwrap_or_default()).map_err(located)?);
            }
            b"ds64" => {
                let sizes = part.and_then(|len| file.get(start..start + len)).ok_or_else(short)?;
                let size = sizes.get(8..16).and_then(|size| size.first_chunk());
                long = Some(u64::from_le_bytes(
                    *size.ok_or_else(|| located(Error::corrupt("a short chunk `ds64`")))?,
                ));
            }
            _ => {}
        }
        // Chunks begin at even places.
        at = start + part.ok_or_else(short)?;
        at += at % 2;
    }
}

type Format = (Coding, usize, u32, u16, usize);

fn read_format(chunk: &[u8]) -> Result<Format> {
    let u16_at = |at: usize| chunk.get(at..at + 2).map(|two| u16::from_le_bytes([two[0], two[1]]));
    let short = || Error::corrupt(format!("a chunk `fmt ` of {} bytes", chunk.len()));
    let (mut code, channels) = (u16_at(0).ok_or_else(short)?, u16_at(2).ok_or_else(short)?);
    let rate = chunk.get(4..8).and_then(|four| four.first_chunk()).ok_or_else(short)?;
    let rate = u32::from_le_bytes(*rate);
    let (frame, container) = (u16_at(12).ok_or_else(short)?, u16_at(14).ok_or_else(short)?);
    let mut bits = container;
    if code == 0xfffe {
        let guid = chunk.get(24..40).ok_or_else(short)?;
        if !guid.ends_with(GUID) {
            return Err(Error::unsupported("an extensible format that is none of the known codes"));
        }
        code = u16::from_le_bytes([guid[0], guid[1]]);
        bits = u16_at(18).filter(|&valid| valid > 0).unwrap_or(container);
    }
    let (coding, widths): (_, &[u16]) = match code {
        1 => (Coding::Pcm, &[1, 2, 3, 4]),
        3 => (Coding::Float, &[4, 8]),
        6 => (Coding::ALaw, &[1]),
        7 => (Coding::MuLaw, &[1]),
        _ => {
            return Err(Error::unsupported(format!(
                "the format {code:#06x}, known are PCM, float, A-law and mu-law"
            )));
        }
    };
    let width = container.div_ceil(8);
    if channels == 0
        || !widths.contains(&width)
        || bits == 0
        || bits > container
        || u32::from(width) * u32::from(channels) != u32::from(frame)
    {
        let message = format!(
            "{channels} channels of {bits} in {container} bits, {frame} bytes a frame, for {coding:?}"
        );
        return Err(Error::corrupt(message));
    }
    if coding != Coding::Pcm && container != width * 8 {
        return Err(Error::corrupt(format!("{coding:?} of {container} bits")));
    }
    Ok((coding, usize::from(channels), rate, bits, usize::from(width)))
}
