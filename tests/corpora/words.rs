//! What the digests of several formats are made of.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The hash of these bytes in hexadecimal.
pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// JSON as the manifest hashes it: no spaces, keys sorted, ASCII. For values without floats, which it has as text.
#[expect(dead_code, reason = "for formats with lists of values, which are yet to come")]
pub(crate) fn dump(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_text(text, out),
        Value::Array(values) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_value(value, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_text(name, out);
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
        plain => write!(out, "{plain}").unwrap(),
    }
}

/// Text between quotes, in ASCII.
pub(crate) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' | '\u{7f}' => out.push(letter),
            _ => {
                letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write!(out, "\\u{unit:04x}").unwrap())
            }
        }
    }
    out.push('"');
}

/// Whether every word of `found` stands in `expected` with the same value: how digests compare where nothing else is said.
#[expect(dead_code, reason = "for formats whose digests are exact, which are yet to come")]
pub(crate) fn same(expected: &Value, found: &Value) -> Result<(), String> {
    let words = found.as_object().filter(|words| !words.is_empty()).ok_or("the digest is empty")?;
    let differs = words.iter().find(|(word, value)| expected.get(word.as_str()) != Some(value));
    differs.map_or(Ok(()), |(word, value)| {
        let shown = |value: &Value| value.to_string().chars().take(160).collect::<String>();
        Err(format!(
            "{word} is {}, expected {}",
            shown(value),
            shown(expected.get(word.as_str()).unwrap_or(&Value::Null))
        ))
    })
}
