//! QOI by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `qoi`.
pub struct QoiDecoder;

impl Decoder for QoiDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "qoi",
        summary: "QOI, to a uint8 tensor [height, width, 3]",
        extensions: &["qoi"],
        media_types: &["image/qoi"],
        magic: &[Magic { offset: 0, bytes: b"qoif" }],
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
        raster::decode(Format::Qoi, bytes, wanted, cx)
    }
}
