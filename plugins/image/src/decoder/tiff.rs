//! TIFF: what can be shown as RGB of 8 bits, and everything else as it is.
//!
//! ```toml
//! [tiff]
//! gives = "a uint8 tensor `[height, width, 3]`; floats and numbers with a sign as a tensor `[height, width, samples]` of their own type"
//! when = "scans and scientific pictures, the first page"
//! ```

use forebay_core::{
    Buffer, Context, DType, Decoder, DecoderInfo, Magic, NoOptions, Result, Tensor, TensorExt, Value, Wanted,
};

use crate::pixels::output;
use crate::tiff::Tiff;

/// The decoder `tiff`.
pub struct TiffDecoder;

impl Decoder for TiffDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "tiff",
        summary: "TIFF, the first page, to a uint8 tensor [height, width, 3], or the samples as they are",
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
        let tiff = Tiff::open(bytes, cx.limits().pixels)?;
        let dtype = tiff.dtype();
        let as_it_is = if wanted.dtype == DType::ANY { !tiff.has_range() } else { wanted.dtype == dtype };
        if !as_it_is || dtype == DType::U8 {
            return super::picture(tiff.size(), wanted, cx, |out| tiff.read(out));
        }
        let mut out = output(tiff.shape(), dtype, cx)?;
        tiff.read_samples(&mut out)?;
        Ok(Tensor::new(dtype, &tiff.shape(), out.freeze())?.into())
    }
}
