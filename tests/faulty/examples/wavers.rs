//! A decoder that gives something else the second time.

use std::sync::atomic::{AtomicI64, Ordering};

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Value, Wanted};

#[derive(Default)]
struct Faulty {
    count: AtomicI64,
}

impl Decoder for Faulty {
    const INFO: DecoderInfo = DecoderInfo {
        name: "faulty",
        summary: "A count in four bytes, and as many bytes",
        extensions: &["counted"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self::default())
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
        bytes.first_chunk::<4>().ok_or_else(|| Error::corrupt("no count"))?;
        Ok(self.count.fetch_add(1, Ordering::Relaxed).into())
    }
}

forebay_core::export_plugin! { decoders: [Faulty] }
