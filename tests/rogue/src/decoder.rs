//! `rogue`: decodes fields that end in `.rogue`, or panics over them, or tells where they are.

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
            [b'@', ..] => Ok(places(bytes)),
            other => Ok(Value::from(other.len() as u64)),
        }
    }
}

/// The bytes and where they lie, then as many of the plugin's own and where those lie.
fn places(bytes: &Buffer) -> Value {
    let place = |bytes: &[u8]| Value::from(bytes.as_ptr().addr() as u64);
    let own = vec![b'!'; bytes.len()];
    let own_place = place(&own);
    Value::list(vec![bytes.clone().into(), place(bytes), Buffer::from(own).into(), own_place])
}
