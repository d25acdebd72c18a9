//! Targa by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `tga`.
pub struct TgaDecoder;

impl Decoder for TgaDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "tga",
        summary: "Targa, to a uint8 tensor [height, width, 3]",
        extensions: &["tga"],
        media_types: &["image/x-tga"],

        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    /// It has no magic bytes: what its header says must be possible.
    fn probe(&self, head: &[u8], _: &str) -> u8 {
        let possible = matches!(head, [_, 0 | 1, 1 | 2 | 3 | 9 | 10 | 11, ..])
            && head.get(16).is_some_and(|bits| [8, 15, 16, 24, 32].contains(bits));
        if possible { 128 } else { 1 }
    }

    fn decode(&self, bytes: &Buffer, wanted: &Wanted<'_>, cx: &Context<'_>) -> Result<Value> {
        raster::decode(Format::Tga, bytes, wanted, cx)
    }
}
