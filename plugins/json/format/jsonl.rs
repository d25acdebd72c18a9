//! JSON lines: what the rows of a file are, in the words of the manifest.

use std::{fs, path::Path};

use forebay_bundled::forebay_json::{self, Form, Rules};
use forebay_core::{Buffer, Error, Result, Sample};
use serde_json::json;

use super::json::{self, write_bits, write_object};
use crate::sha256;

/// The rows of the file, all of which must be JSON.
pub(crate) fn digest(path: &Path) -> Result<serde_json::Value, Error> {
    let bytes = Buffer::from(fs::read(path)?);
    let form = Form::new(&[], Rules::DEFAULT)?;
    let rows = forebay_json::rows(bytes.clone(), "file".into(), 0, form).collect::<Result<Vec<_>>>()?;
    let text = |plain_zeros| {
        let texts: Vec<_> = rows.iter().map(|row| bits(row, &bytes, plain_zeros)).collect();
        texts.join("\n")
    };
    let (exact, plain) = (sha256(text(false)), sha256(text(true)));
    Ok(json!({ "rows": rows.len(), "bits_sha256": exact, "bits_sha256_plain_zeros": plain }))
}

/// Says what differs. The reference drops the minus of the integer `-0`, which is kept here.
pub(crate) fn compare(expected: &serde_json::Value, found: &serde_json::Value) -> Result<(), String> {
    if expected["rows"] != found["rows"] {
        return Err(format!("{} rows, expected {}", found["rows"], expected["rows"]));
    }
    json::compare(expected, found)
}

fn bits(row: &Sample, bytes: &[u8], plain_zeros: bool) -> String {
    let mut text = String::new();
    // A row that is no object is in the field `value`; an object may have one of that name.
    let is_object = usize::try_from(row.key().index).is_ok_and(|at| bytes.get(at) == Some(&b'{'));
    match row.get("value").filter(|_| !is_object) {
        Some(value) => write_bits(value, plain_zeros, &mut text),
        None => {
            let fields = row.fields().map(|(name, value)| (name.as_str(), value));
            write_object(fields.collect(), plain_zeros, &mut text);
        }
    }
    text
}
