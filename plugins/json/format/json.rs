//! JSON documents: what the decoder `json` makes of a file, in the words of the manifest.

use std::{fmt::Write as _, fs, path::Path};

use forebay_bundled::forebay_json;
use forebay_core::{Error, Result, Value, View};
use serde_json::json;

use crate::{sha256, write_text};

/// What the decoder makes of the file.
pub(crate) fn digest(path: &Path) -> Result<serde_json::Value, Error> {
    let value = forebay_json::parse(&fs::read(path)?.into())?;
    let text = |plain_zeros| {
        let mut text = String::new();
        write_bits(&value, plain_zeros, &mut text);
        text
    };
    Ok(json!({ "bits_sha256": sha256(text(false)), "bits_sha256_plain_zeros": sha256(text(true)) }))
}

/// Says what differs. The reference drops the minus of the integer `-0`, which is kept here.
pub(crate) fn compare(expected: &serde_json::Value, found: &serde_json::Value) -> Result<(), String> {
    let wanted = &expected["bits_sha256"];
    if wanted.is_null() || *wanted == found["bits_sha256"] || *wanted == found["bits_sha256_plain_zeros"] {
        return Ok(());
    }
    Err("other values".into())
}

/// Every number as the bits of its float, keys sorted, ASCII: the form whose digest the manifest holds.
pub(crate) fn write_bits(value: &Value, plain_zeros: bool, out: &mut String) {
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
            let fields = fields.fields().map(|(name, value)| (name.as_str(), value));
            write_object(fields.collect(), plain_zeros, out);
        }
        other => panic!("JSON gave {other:?}"),
    }
}

pub(crate) fn write_object(mut fields: Vec<(&str, &Value)>, plain_zeros: bool, out: &mut String) {
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
