#![doc = include_str!("../README.md")]

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Value, Wanted};

/// Decodes text such as `48 65 6c 6c 6f` into the bytes that it spells.
pub struct Hex;

impl Decoder for Hex {
    const INFO: DecoderInfo = DecoderInfo {
        name: "hex",
        summary: "Hexadecimal text to bytes",
        extensions: &["hex"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, text: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        let mut out = cx.alloc(text.len() / 2)?;
        let mut digits = 0;
        for (at, &byte) in text.iter().enumerate().filter(|(_, byte)| !byte.is_ascii_whitespace()) {
            let wrong = || Error::corrupt(format!("found byte {byte}, expected a digit")).context("byte", at);
            let digit = char::from(byte).to_digit(16).ok_or_else(wrong)?;
            let last = out.get_mut(digits / 2).ok_or_else(|| Error::corrupt("an odd number of digits"))?;
            *last = if digits % 2 == 0 { digit as u8 } else { *last << 4 | digit as u8 };
            digits += 1;
        }
        if digits % 2 == 1 {
            return Err(Error::corrupt("an odd number of digits"));
        }
        out.truncate(digits / 2);
        Ok(out.freeze().into())
    }
}

forebay_core::export_plugin! { decoders: [Hex] }
