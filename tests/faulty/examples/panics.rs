//! A decoder that looks for its count where there may be none.

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
        let count = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        let rest = bytes.get(4..4 + count).ok_or_else(|| Error::corrupt("too short"))?;
        Ok(Buffer::from(rest.to_vec()).into())
    }
}

forebay_core::export_plugin! { decoders: [Faulty] }
