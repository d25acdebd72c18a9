//! TIFF by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `tiff`.
pub struct TiffDecoder;

impl Decoder for TiffDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "tiff",
        summary: "TIFF, the first page, to a uint8 tensor [height, width, 3]",
        extensions: &["tif", "tiff"],
        media_types: &["image/tiff"],
        magic: &[
            Magic { offset: 0, bytes: b"II*\0" },
            Magic { offset: 0, bytes: b"MM\0*" },
            Magic { offset: 0, bytes: b"II+\0" },
            Magic { offset: 0, bytes: b"MM\0+" },
        ],
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
        raster::decode(Format::Tiff, bytes, wanted, cx)
    }
}
