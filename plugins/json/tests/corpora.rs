//! Real and hostile documents, and what reference readers make of them: see `corpora/README.md` beside the repo.
#![expect(clippy::unwrap_used, reason = "the manifest is well-formed, and strings take everything")]

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use forebay_core::{ErrorKind, Value, View};
use sha2::{Digest, Sha256};

fn corpora() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = std::env::var_os("FOREBAY_CORPORA").map_or(beside, PathBuf::from);
    folder.join("manifest.jsonl").exists().then_some(folder)
}

/// Every number as the bits of its float, keys sorted, ASCII: the form whose digest the manifest holds.
///
/// The reference drops the minus of the integer `-0`, which is kept here: with `plain_zeros` all zeros are plain.
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

fn write_text(text: &str, out: &mut String) {
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
            ' '..='~' => out.push(letter),
            _ => {
                letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write!(out, "\\u{unit:04x}").unwrap())
            }
        }
    }
    out.push('"');
}

fn digest(value: &Value, plain_zeros: bool) -> String {
    let mut text = String::new();
    write_bits(value, plain_zeros, &mut text);
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// What is wrong with our reading of one entry.
fn fault(entry: &serde_json::Value, bytes: Vec<u8>) -> Option<String> {
    let minus_zero = bytes.windows(2).any(|pair| pair == b"-0");
    match (entry["expect"].as_str(), forebay_json::parse(&bytes.into())) {
        (Some("valid"), Ok(value)) => {
            let wanted = entry["digest"]["bits_sha256"].as_str()?;
            let same = wanted == digest(&value, false) || minus_zero && wanted == digest(&value, true);
            (!same).then(|| "other values".into())
        }
        // Half of a surrogate pair is no text; the reference can hold one.
        (Some("valid"), Err(error)) if error.message().contains("surrogate") => None,
        (Some("valid"), Err(error)) => Some(error.to_string()),
        (Some("reject"), Ok(_)) => Some("was taken".into()),
        (_, Err(error)) if error.kind() != ErrorKind::Corrupt => match error.kind() {
            ErrorKind::Limit | ErrorKind::Unsupported => None,
            _ => Some(format!("wrong kind: {error}")),
        },
        _ => None,
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
fn agrees_with_the_reference_readers() {
    let Some(corpora) = corpora() else {
        eprintln!("SKIPPED: no corpora in ../shared/corpora nor in FOREBAY_CORPORA");
        return;
    };
    let mut read = 0;
    let mut faults = Vec::new();
    for line in fs::read_to_string(corpora.join("manifest.jsonl")).unwrap().lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let path = entry["path"].as_str().unwrap();
        if entry["kind"] != "json" || path.ends_with(".gz") {
            continue;
        }
        let Ok(bytes) = fs::read(corpora.join("files").join(path)) else { continue };
        read += 1;
        faults.extend(fault(&entry, bytes).map(|fault| format!("{path}: {fault}")));
    }
    assert!(read > 300, "only {read} documents found");
    assert!(faults.is_empty(), "{} of {read}:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn broken_documents_never_panic() {
    let document = br#"{"a": [1, -2.5e-3, "x\u00e9\ud83d\ude00"], "b": {"c": null, "a": true, "a": "\\"}} "#;
    for cut in 0..document.len() {
        let _ = forebay_json::parse(&document[..cut].to_vec().into());
        for byte in [0, b'"', b'{', b'}', b'[', b',', b'\\', b'9', b'-', 0x80, 0xff] {
            let mut changed = document.to_vec();
            changed[cut] = byte;
            if let Err(error) = forebay_json::parse(&changed.into()) {
                let at: usize = error.get("byte").unwrap().parse().unwrap();
                assert!(at <= document.len());
            }
        }
    }
}
