//! The compressions of strips and tiles: TIFF 6.0, sections 9 to 11 and 13, and its supplements for JPEG and deflate.

use std::borrow::Cow;

use fax::{
    Color,
    decoder::{decode_g3, decode_g4, pels},
};
use forebay_core::{Error, Result};
use weezl::{BitOrder, LzwStatus, decode::Decoder as Lzw};
use zune_jpeg::zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};

use crate::tiff::page::{Color as Meaning, Page};

pub(super) const JPEG: u64 = 7;

/// Unpacks the rows of a strip or tile into `out`, as far as `data` goes; gives the bytes that were filled.
pub(super) fn unpack(page: &Page<'_>, data: &[u8], row: usize, out: &mut [u8]) -> Result<usize> {
    let reversed = || Cow::Owned(data.iter().map(|byte| byte.reverse_bits()).collect());
    let data: Cow<'_, [u8]> =
        if page.reversed && page.compression != JPEG { reversed() } else { data.into() };
    match page.compression {
        1 => {
            let len = data.len().min(out.len());
            out[..len].copy_from_slice(&data[..len]);
            Ok(len)
        }
        3 if page.fax_options & 1 != 0 => Err(Error::unsupported("TIFF of two-dimensional fax of group 3")),
        3 | 4 if page.bits != 1 || (page.samples != 1 && !page.planar) => {
            Err(Error::corrupt("TIFF of fax whose pixels are not one bit"))
        }
        3 | 4 => fax(page, &data, row, out),
        5 => Ok(lzw(&data, out)),
        JPEG => jpeg(page, &data, row, out),
        8 | 32946 => deflate(&data, out),
        32773 => Ok(packbits(&data, out)),
        other => Err(Error::unsupported(format!("TIFF of compression {other}"))),
    }
}

fn lzw(data: &[u8], out: &mut [u8]) -> usize {
    // Before TIFF 6.0 the codes stood the other way round, and grew one later.
    let is_old = matches!(*data, [0, second, ..] if second & 1 == 1);
    let mut decoder = match is_old {
        true => Lzw::new(BitOrder::Lsb, 8),
        false => Lzw::with_tiff_size_switch(BitOrder::Msb, 8),
    };
    let (mut read, mut written) = (0, 0);
    while written < out.len() {
        let step = decoder.decode_bytes(&data[read..], &mut out[written..]);
        read += step.consumed_in;
        written += step.consumed_out;
        if !matches!(step.status, Ok(LzwStatus::Ok)) {
            break;
        }
    }
    written
}

fn deflate(data: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut stream = flate2::Decompress::new(true);
    let status = stream
        .decompress(data, out, flate2::FlushDecompress::Finish)
        .map_err(|error| Error::corrupt(format!("TIFF of deflate that cannot be unpacked: {error}")))?;
    let filled = usize::try_from(stream.total_out()).unwrap_or(usize::MAX).min(out.len());
    let is_read = stream.total_in() >= data.len() as u64;
    // More than the tile has may follow; otherwise its checksum must be there, and right.
    if status != flate2::Status::StreamEnd && filled == out.len() && is_read {
        return Err(Error::corrupt("TIFF of deflate that ends before its checksum"));
    }
    Ok(filled)
}

fn packbits(mut data: &[u8], out: &mut [u8]) -> usize {
    let mut filled = 0;
    while let Some((&head, rest)) = data.split_first() {
        let room = &mut out[filled..];
        data = match head {
            128 => rest,
            0..128 => {
                let Some((bytes, rest)) = rest.split_at_checked(usize::from(head) + 1) else { break };
                let len = bytes.len().min(room.len());
                room[..len].copy_from_slice(&bytes[..len]);
                filled += len;
                rest
            }
            _ => {
                let Some((byte, rest)) = rest.split_first() else { break };
                let len = (257 - usize::from(head)).min(room.len());
                room[..len].fill(*byte);
                filled += len;
                rest
            }
        };
    }
    filled
}

fn fax(page: &Page<'_>, data: &[u8], row: usize, out: &mut [u8]) -> Result<usize> {
    let width = u16::try_from(page.chunk[1]);
    let width = width.map_err(|_| Error::unsupported("TIFF of fax with lines of more than 65535 pixels"))?;
    let height = u16::try_from(out.len() / row).unwrap_or(u16::MAX);
    let mut rows = out.chunks_exact_mut(row);
    // A short line counts when another one follows: the last one may be short because the data ends.
    let (mut filled, mut short) = (0, 0);
    let is_g4 = page.compression == 4;
    let line = |changes: &[u16]| {
        let Some(row) = rows.next() else { return };
        filled += short;
        short = 0;
        match is_g4 || changes.last() == Some(&width) {
            true => filled += row.len(),
            false => short = row.len(),
        }
        row.fill(0);
        for (x, color) in pels(changes, width).enumerate() {
            row[x / 8] |= u8::from(color == Color::Black) << (7 - x % 8);
        }
    };
    match is_g4 {
        true => decode_g4(data.iter().copied(), width, Some(height), line),
        // Each line ends where the next one's mark is; behind the last one it may be missing.
        false => decode_g3(data.iter().copied().chain([0, 1]), line),
    };
    Ok(filled)
}

/// A whole JPEG stream, whose tables may stand once for all strips.
fn jpeg(page: &Page<'_>, data: &[u8], row: usize, out: &mut [u8]) -> Result<usize> {
    let tables = page.jpeg_tables.and_then(|tables| tables.strip_suffix(b"\xff\xd9"));
    let stream: Cow<'_, [u8]> = match (tables, data.strip_prefix(b"\xff\xd8")) {
        (Some(tables), Some(data)) => [tables, data].concat().into(),
        _ => data.into(),
    };
    let channels = if page.planar { 1 } else { page.samples };
    let space = match (channels, page.color) {
        (1, _) => ColorSpace::Luma,
        (3, Meaning::YCbCr) => ColorSpace::RGB,
        // What it takes for YCbCr without being told is left as it is.
        (3, _) => ColorSpace::YCbCr,
        (4, _) => ColorSpace::CMYK,
        _ => return Err(Error::unsupported(format!("TIFF of JPEG with {channels} samples"))),
    };
    let options = DecoderOptions::default().set_strict_mode(true).jpeg_set_out_colorspace(space);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(&stream[..]), options);
    let broken = |error| Error::corrupt(format!("TIFF of JPEG that cannot be decoded: {error}"));
    decoder.decode_headers().map_err(broken)?;
    if decoder.input_colorspace() == Some(ColorSpace::RGB) {
        // Its own header says so.
        decoder.set_options(options.jpeg_set_out_colorspace(ColorSpace::RGB));
    }
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let len = height.saturating_mul(row);
    if page.bits != 8 || width != page.chunk[1] || decoder.output_buffer_size() != Some(len) {
        return Err(Error::corrupt(format!(
            "TIFF of JPEG of {width} x {height} pixels in a tile of another size"
        )));
    }
    let Some(out) = out.get_mut(..len) else {
        return Err(Error::corrupt(format!("TIFF of JPEG of {height} rows, more than the tile has")));
    };
    decoder.decode_into(out).map_err(broken)?;
    Ok(len)
}
