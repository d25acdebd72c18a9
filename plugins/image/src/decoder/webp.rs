//! WebP by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `webp`.
pub struct WebPDecoder;

impl Decoder for WebPDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "webp",
        summary: "WebP, lossy and lossless, the first frame, to a uint8 tensor [height, width, 3]",
        extensions: &["webp"],
        media_types: &["image/webp"],
        magic: &[Magic { offset: 8, bytes: b"WEBP" }],
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
        raster::decode(Format::WebP, bytes, wanted, cx)
    }
}
