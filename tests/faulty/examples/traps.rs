//! A decoder that handles a signal of the process.

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
        // Only the first time it can be set.
        let _ = ctrlc::set_handler(|| ());
        let (_, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| Error::corrupt("no count"))?;
        Ok(Buffer::from(rest.to_vec()).into())
    }
}

forebay_core::export_plugin! { decoders: [Faulty] }
