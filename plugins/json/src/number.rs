//! `number`: an integer in digits, such as a class.
//!
//! ```toml
//! [number]
//! gives = "an int64"
//! when = "labels, as WebDataset writes them"
//! ```

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Value, Wanted};

/// The most bytes shown of what is no number.
const SHOWN: usize = 24;

/// Decodes an integer in digits to int64.
#[derive(Debug)]
pub struct Number;

impl Decoder for Number {
    const INFO: DecoderInfo = DecoderInfo {
        name: "number",
        summary: "An integer in digits to int64",
        extensions: &["cls", "cls2", "class", "count", "index", "inx", "id"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
        parse_number(bytes).map(Value::from)
    }
}

/// Reads a decimal integer, with a sign or without, and white space around it.
///
/// ```
/// assert_eq!(forebay_json::parse_number(b"281\n")?, 281);
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` for anything else, and for a number beyond 64 bits.
pub fn parse_number(bytes: &[u8]) -> Result<i64> {
    let digits = bytes.trim_ascii();
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        let shown = digits.get(..SHOWN).unwrap_or(digits).escape_ascii();
        Error::corrupt(format!("found `{shown}`, expected an integer of 64 bits"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_integers() {
        let cases: [(&[u8], i64); 5] =
            [(b"0", 0), (b" 17\r\n", 17), (b"-3", -3), (b"+007", 7), (b"-9223372036854775808", i64::MIN)];
        for (bytes, expected) in cases {
            assert_eq!(parse_number(bytes).unwrap(), expected);
        }
    }

    #[test]
    fn refuses_the_rest() {
        let long = [b'1'; 4000];
        for bytes in
            [&b""[..], b"\n", b"1.5", b"1 2", b"0x1", b"1_000", b"9223372036854775808", b"\xff", &long]
        {
            let error = parse_number(bytes).unwrap_err();
            assert_eq!(error.kind(), forebay_core::ErrorKind::Corrupt);
            assert!(error.message().len() < 200);
        }
    }
}
