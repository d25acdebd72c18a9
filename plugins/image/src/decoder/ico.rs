//! Windows icons and cursors by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `ico`.
pub struct IcoDecoder;

impl Decoder for IcoDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "ico",
        summary: "Windows icon, its largest picture, to a uint8 tensor [height, width, 3]",
        extensions: &["ico", "cur"],
        media_types: &["image/vnd.microsoft.icon"],
        magic: &[Magic { offset: 0, bytes: b"\0\0\x01\0" }, Magic { offset: 0, bytes: b"\0\0\x02\0" }],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn probe(&self, head: &[u8], _: &str) -> u8 {
        super::by_magic(head, &Self::INFO)
    }

    fn decode(&self, bytes: &Buffer, wanted: &Wanted<'_>, cx: &Context<'_>) -> Result<Value> {
        raster::decode(Format::Ico, bytes, wanted, cx)
    }
}

/// The PNG file that is the largest picture of an icon, if it is one: of these any kind is taken, not just that of the
/// standard.
pub(crate) fn png_inside(bytes: &[u8]) -> Option<&[u8]> {
    let count = usize::from(u16::from_le_bytes(*bytes.get(4..)?.first_chunk()?));
    let entries = bytes.get(6..)?.as_chunks::<16>().0;
    let side = |side: u8| if side == 0 { 256 } else { u32::from(side) };
    let largest = entries
        .iter()
        .take(count)
        .max_by_key(|entry| (side(entry[0]) * side(entry[1]), u16::from_le_bytes([entry[6], entry[7]])))?;
    let number = |at: usize| Some(u32::from_le_bytes(*largest.get(at..)?.first_chunk()?) as usize);
    let png = bytes.get(number(12)?..)?;
    let png = png.get(..number(8)?).unwrap_or(png);
    png.starts_with(b"\x89PNG").then_some(png)
}
