//! GIF by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `gif`.
pub struct GifDecoder;

impl Decoder for GifDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "gif",
        summary: "GIF, the first frame, to a uint8 tensor [height, width, 3]",
        extensions: &["gif"],
        media_types: &["image/gif"],
        magic: &[Magic { offset: 0, bytes: b"GIF87a" }, Magic { offset: 0, bytes: b"GIF89a" }],
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
        raster::decode(Format::Gif, bytes, wanted, cx)
    }
}
