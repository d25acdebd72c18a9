//! A decoder that goes on by as much as the file says, which may be nothing.

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
        let mut at = 4;
        while at < bytes.len() {
            at += usize::from(bytes[3]);
        }
        if at > 1000 { Err(Error::corrupt("too long")) } else { Ok(Buffer::from(bytes.to_vec()).into()) }
    }
}

forebay_core::export_plugin! { decoders: [Faulty] }
