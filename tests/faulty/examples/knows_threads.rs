//! A decoder whose values tell which thread made them.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    thread,
};

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
        bytes.first_chunk::<4>().ok_or_else(|| Error::corrupt("no count"))?;
        // As scratch memory of each thread does that is not cleared.
        let mut hasher = DefaultHasher::new();
        thread::current().id().hash(&mut hasher);
        Ok(hasher.finish().cast_signed().into())
    }
}

forebay_core::export_plugin! { decoders: [Faulty] }
