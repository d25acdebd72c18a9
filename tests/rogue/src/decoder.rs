//! `rogue`: decodes fields that end in `.rogue`, or panics over them.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Value, Wanted};

/// Gives the length of its bytes, unless they tell it to misbehave.
#[derive(Debug)]
pub struct RogueDecoder;

impl Decoder for RogueDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "rogue",
        summary: "The length of the bytes, or what they ask for",
        extensions: &["rogue"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
        match bytes.as_slice() {
            b"panic" => panic!("rogue in decode"),
            b"error" => Err(Error::corrupt("rogue cannot read this")),
            other => Ok(Value::from(other.len() as u64)),
        }
    }
}
