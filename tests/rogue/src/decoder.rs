//! `rogue`: decodes fields that end in `.rogue`, or panics over them, or tells where they are.

use std::{
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, Result, Value, Wanted, options};

use crate::gate;

options! {
    /// Options of `rogue`.
    pub struct RogueDecoderOptions {
        /// Added to the length.
        add: u64 = 0, in 0..=1000;
        /// What the sum is multiplied by; 1 gives a whole number.
        factor: f64 = 1.0;
        /// Give how often this one has decoded, instead.
        count: bool = false;
    }
}

/// Gives the length of its bytes, unless they or its options tell it to misbehave.
#[derive(Debug)]
pub struct RogueDecoder {
    options: RogueDecoderOptions,
    calls: AtomicU64,
}

impl Decoder for RogueDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "rogue",
        summary: "The length of the bytes, or what they ask for",
        extensions: &["rogue"],
        ..DecoderInfo::DEFAULT
    };
    type Options = RogueDecoderOptions;

    fn new(options: RogueDecoderOptions) -> Result<Self> {
        Ok(Self { options, calls: AtomicU64::new(0) })
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
        let RogueDecoderOptions { add, factor, count } = self.options;
        if count {
            return Ok(Value::from(self.calls.fetch_add(1, Ordering::Relaxed) + 1));
        }
        match bytes.as_slice() {
            b"panic" => panic!("rogue in decode"),
            b"error" => Err(Error::corrupt("rogue cannot read this")),
            b"abort" => process::abort(),
            [b'@', ..] => Ok(places(bytes)),
            [b'g', b'a', b't', b'e', b':', path @ ..] => {
                gate::pass(&String::from_utf8_lossy(path))?;
                Ok(Value::NULL)
            }
            other if factor == 1.0 => Ok(Value::from(other.len() as u64 + add)),
            other => Ok(Value::from((other.len() as u64 + add) as f64 * factor)),
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
