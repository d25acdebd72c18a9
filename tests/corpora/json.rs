//! JSON documents: every number as the bits of its float, so that no two programs write it in two ways.

use std::{fmt::Write as _, fs, path::Path};

use forebay_loader::{Error, Value, View};
use serde_json::json;

use crate::words::{sha256, write_text};

/// With the minus of `-0` kept, and dropped: the reference drops that of the integer.
pub(crate) fn digest(path: &Path) -> Result<serde_json::Value, Error> {
    let bytes = fs::read(path)?;
    let minus_zero = bytes.windows(2).any(|pair| pair == b"-0");
    let value = forebay_json::parse(&bytes.into())?;
    let kept = bits(&value, false);
    let dropped = if minus_zero { bits(&value, true) } else { kept.clone() };
    Ok(json!({"bits_sha256": kept, "bits_of_plain_zeros": dropped}))
}

pub(crate) fn compare(expected: &serde_json::Value, found: &serde_json::Value) -> Result<(), String> {
    let wanted = &expected["bits_sha256"];
    let same = [&found["bits_sha256"], &found["bits_of_plain_zeros"]].contains(&wanted);
    if same { Ok(()) } else { Err("other values".to_owned()) }
}

fn bits(value: &Value, plain_zeros: bool) -> String {
    let mut text = String::new();
    write_bits(value, plain_zeros, &mut text);
    sha256(text)
}

fn write_bits(value: &Value, plain_zeros: bool, out: &mut String) {
    let number = |float: f64, out: &mut String| {
        let float = if plain_zeros && float == 0.0 { 0.0 } else { float };
        write!(out, r##"{{"#":"{:016x}"}}"##, float.to_bits()).unwrap();
    };
    match value.view() {
        View::Null => out.push_str("null"),
        View::Bool(value) => write!(out, "{value}").unwrap(),
        View::Int(value) => number(value as f64, out),
        View::UInt(value) => number(value as f64, out),
        View::Float(value) => number(value, out),
        View::Str(text) => write_text(text, out),
        View::List(values) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_bits(value, plain_zeros, out);
            }
            out.push(']');
        }
        View::Struct(fields) => {
            let mut fields: Vec<_> = fields.fields().map(|(name, value)| (name.as_str(), value)).collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_text(name, out);
                out.push(':');
                write_bits(value, plain_zeros, out);
            }
            out.push('}');
        }
        other => panic!("JSON gave {other:?}"),
    }
}
