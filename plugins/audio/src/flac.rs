//! `flac`: a FLAC file to its samples, by claxon.
//!
//! RFC 9639.
//!
//! ```toml
//! [flac]
//! gives = "a struct: `samples`, an integer tensor `[frames, channels]`; `rate`, frames a second; `bits`, as stored"
//! when = "sound, in less space than WAV"
//! ```

use claxon::{Block, FlacReader, metadata::StreamInfo};
use forebay_core::{
    Buffer, BufferMut, Context, DType, Decoder, DecoderInfo, Error, ErrorKind, Limits, Magic, NoOptions,
    Result, Value, Wanted,
};

use crate::sound::{chosen, scaled, size, value};

/// Decodes a FLAC file: see [`parse_flac`].
#[derive(Debug)]
pub struct Flac;

impl Decoder for Flac {
    const INFO: DecoderInfo = DecoderInfo {
        name: "flac",
        summary: "FLAC sound to `samples` [frames, channels], `rate` and `bits`",
        extensions: &["flac"],
        media_types: &["audio/flac"],
        magic: &[Magic { offset: 0, bytes: b"fLaC" }],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value> {
        decode(bytes, wanted.dtype, cx.limits().bytes, &|len| cx.alloc(len))
    }
}

/// Reads a FLAC file: a struct of `samples`, a tensor `[frames, channels]`; `rate`, frames a second; and `bits`, as stored for each sample.
///
/// With `dtype` F32 samples are between -1 and 1, with [`DType::ANY`] of the smallest type that holds them: int8, int16 or int32.
///
/// # Errors
/// `Corrupt` with the frame, counted in samples of a channel; `Unsupported` for samples of other than 8, 12, 16, 20 and 24 bits, and
/// for another `dtype`; `Limit` when the samples need more memory than is usual for one value.
pub fn parse_flac(bytes: &Buffer, dtype: DType) -> Result<Value> {
    decode(bytes, dtype, Limits::DEFAULT.bytes, &|len| Ok(BufferMut::zeroed(len)))
}

fn decode(
    bytes: &Buffer,
    wanted: DType,
    limit: u64,
    alloc: &dyn Fn(usize) -> Result<BufferMut>,
) -> Result<Value> {
    let mut reader = FlacReader::new(&bytes[..]).map_err(broken)?;
    let info = reader.streaminfo();
    let (channels, bits) = (info.channels as usize, info.bits_per_sample);
    let dtype = chosen(wanted, stored(bits))?;
    let frames = info.samples.map(|frames| usize::try_from(frames).unwrap_or(usize::MAX));
    // A stream that does not say how long it is is gathered first.
    let known = frames.map(|frames| alloc(size(frames, channels, dtype, limit)?)).transpose()?;
    let mut out = known.map_or_else(|| Out::Grows(Vec::new()), Out::Fixed);
    let (mut done, mut blocks, mut memory) = (0_usize, reader.blocks(), Vec::new());
    while frames.is_none_or(|frames| done < frames) {
        let here = |error: Error| error.context("frame", done);
        let Some(block) = blocks.read_next_or_eof(memory).map_err(|error| here(broken(error)))? else {
            break;
        };
        let all = done.saturating_add(block.duration() as usize);
        if block.channels() as usize != channels || frames.is_some_and(|frames| all > frames) {
            let message = format!(
                "a block of {} channels and {} frames, expected {channels} channels and {frames:?} frames in all",
                block.channels(),
                block.duration(),
            );
            return Err(here(Error::corrupt(message)));
        }
        let end = size(all, channels, dtype, limit).map_err(here)?;
        let out = out.part(done * channels * dtype.size(), end);
        write(&block, &info, dtype, out).map_err(here)?;
        memory = block.into_buffer();
        done = all;
    }
    if frames.is_some_and(|frames| done < frames) {
        let message = format!("the file ends after {done} frames, expected {}", frames.unwrap_or(0));
        return Err(Error::corrupt(message).context("byte", bytes.len()));
    }
    let samples = match out {
        Out::Fixed(out) => out,
        Out::Grows(bytes) => {
            let mut out = alloc(bytes.len())?;
            out.copy_from_slice(&bytes);
            out
        }
    };
    value(samples.freeze(), dtype, [done, channels], info.sample_rate, bits)
}

/// Where samples are written.
enum Out {
    Fixed(BufferMut),
    Grows(Vec<u8>),
}

impl Out {
    /// The bytes from `start` to `end`, which were held against the limit.
    fn part(&mut self, start: usize, end: usize) -> &mut [u8] {
        match self {
            Self::Fixed(out) => &mut out[start..end],
            Self::Grows(out) => {
                out.resize(end, 0);
                &mut out[start..end]
            }
        }
    }
}

/// The smallest type that holds samples of so many bits.
fn stored(bits: u32) -> DType {
    match bits {
        ..=8 => DType::I8,
        9..=16 => DType::I16,
        _ => DType::I32,
    }
}

/// Writes the samples of a block, channel beside channel.
fn write(block: &Block, info: &StreamInfo, dtype: DType, out: &mut [u8]) -> Result<()> {
    let sign = info.bits_per_sample - 1;
    if dtype == DType::F32 {
        each(block, sign, out, |x| scaled(x, sign))
    } else if dtype == DType::I8 {
        each(block, sign, out, |x| [x as u8])
    } else if dtype == DType::I16 {
        each(block, sign, out, |x| (x as i16).to_le_bytes())
    } else {
        each(block, sign, out, i32::to_le_bytes)
    }
}

/// Writes samples of `sign` bits and a sign, which they are checked to be.
fn each<const N: usize>(
    block: &Block,
    sign: u32,
    out: &mut [u8],
    work: impl Fn(i32) -> [u8; N],
) -> Result<()> {
    let (out, channels) = (out.as_chunks_mut::<N>().0, block.channels() as usize);
    for channel in 0..block.channels() {
        let mut beyond = 0;
        let places = out.iter_mut().skip(channel as usize).step_by(channels);
        for (&sample, place) in block.channel(channel).iter().zip(places) {
            // What is left besides the sign.
            beyond |= (sample >> sign) ^ (sample >> 31);
            *place = work(sample);
        }
        if beyond != 0 {
            let message = format!("a sample that does not fit into {} bits", sign + 1);
            return Err(Error::corrupt(message).context("channel", channel));
        }
    }
    Ok(())
}

/// Claxon's error as ours.
fn broken(error: claxon::Error) -> Error {
    match error {
        claxon::Error::IoError(_) => Error::corrupt("FLAC data ends early"),
        claxon::Error::FormatError(what) => Error::corrupt(format!("FLAC cannot be decoded: {what}")),
        claxon::Error::Unsupported(what) => {
            Error::new(ErrorKind::Unsupported, format!("FLAC cannot be decoded: {what}"))
        }
    }
}

#[cfg(test)]
#[path = "flac_tests.rs"]
mod tests;
