//! A decoder that believes a length and takes as much memory.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Value, Wanted};

struct Faulty;

impl Decoder for Faulty {
    const INFO: DecoderInfo = DecoderInfo {
        name: "faulty",
        summary: "A count in four bytes, and as many bytes",
        extensions: &["counted"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
        let (count, rest) = bytes.split_first_chunk().ok_or_else(|| Error::corrupt("no count"))?;
        let mut out = vec![0_u8; u32::from_le_bytes(*count) as usize * 4];
        let len = out.len().min(rest.len());
        out[..len].copy_from_slice(&rest[..len]);
        Ok(Buffer::from(out).into())
    }
}

forebay_core::export_plugin! { decoders: [Faulty] }
