//! PNG by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `png`.
pub struct PngDecoder;

impl Decoder for PngDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "png",
        summary: "PNG of 1 to 16 bits, to a uint8 tensor [height, width, 3]",
        extensions: &["png", "apng"],
        media_types: &["image/png"],
        magic: &[Magic { offset: 0, bytes: b"\x89PNG\r\n\x1a\n" }],
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
        raster::decode(Format::Png, bytes, wanted, cx)
    }
}
