//! A plugin that brings a library in C along.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, NoOptions, Result, Value, Wanted};

unsafe extern "C" {
    fn codec_version() -> u32;
    fn codec_sum(bytes: *const u8, len: usize) -> u32;
    fn codec_count() -> u32;
}

/// Gives the library's version, its sum of the bytes, and its count of calls.
pub struct Bundled;

impl Decoder for Bundled {
    const INFO: DecoderInfo = DecoderInfo {
        name: env!("CARGO_CRATE_NAME"),
        summary: "A sum",
        extensions: &["bundled"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
        // SAFETY: the bytes are as many as is said; the functions may be called on any thread.
        let numbers = unsafe { [codec_version(), codec_sum(bytes.as_ptr(), bytes.len()), codec_count()] };
        Ok(Value::list(numbers.map(|number| i64::from(number).into()).into()))
    }
}

forebay_core::export_plugin! { decoders: [Bundled] }
