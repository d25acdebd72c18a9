//! Windows bitmaps by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `bmp`.
pub struct BmpDecoder;

impl Decoder for BmpDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "bmp",
        summary: "Windows bitmap, to a uint8 tensor [height, width, 3]",
        extensions: &["bmp", "dib"],
        media_types: &["image/bmp"],
        magic: &[Magic { offset: 0, bytes: b"BM" }],
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
        raster::decode(Format::Bmp, bytes, wanted, cx)
    }
}
