//! Tar archives: the list of members, with the hashes of what is in them.

use std::{fs, path::Path};

use forebay_loader::Error;
use forebay_tar::{Kind, Member, walk};
use serde_json::{Value, json};

use crate::words::sha256;

/// Sparse members, which are refused by name, stand there without their contents.
pub(crate) fn digest(path: &Path) -> Result<Value, Error> {
    let bytes = fs::read(path)?;
    let mut entries = Vec::new();
    for member in walk(&bytes) {
        match member {
            Ok(member) => entries.push(entry(&member)),
            Err(error) if error.message().starts_with("a sparse file") => {
                entries.push(json!([text(error.get("member").unwrap_or_default().as_bytes()), "sparse"]));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(json!({"compression": null, "entries": entries}))
}

fn entry(member: &Member<'_>) -> Value {
    let value = match member.kind {
        Kind::File => sha256(&member.data),
        Kind::HardLink | Kind::SymLink => format!("-> {}", text(&member.link)),
        _ => String::new(),
    };
    json!([text(&member.name), kind(member.kind), member.data.len(), value])
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::File => "file".into(),
        Kind::HardLink => "hardlink".into(),
        Kind::SymLink => "symlink".into(),
        Kind::CharDevice => "char".into(),
        Kind::BlockDevice => "block".into(),
        Kind::Directory => "dir".into(),
        Kind::Fifo => "fifo".into(),
        Kind::Other(flag) => format!("other:{}", flag as char),
        other => format!("{other:?}"),
    }
}

/// A name as the manifest writes it: bytes that are not UTF-8 as `%XX`, no slash at the end.
fn text(name: &[u8]) -> String {
    let parts = name.utf8_chunks().map(|chunk| {
        let odd: String = chunk.invalid().iter().map(|byte| format!("%{byte:02X}")).collect();
        format!("{}{odd}", chunk.valid())
    });
    parts.collect::<String>().trim_end_matches('/').to_owned()
}

/// Member by member: a contiguous file is a file here, and what is no file has no size.
pub(crate) fn compare(expected: &Value, found: &Value) -> Result<(), String> {
    let list = |digest: &Value| digest["entries"].as_array().cloned();
    let wanted = list(expected).ok_or("the manifest has no list of members")?;
    let found = list(found).ok_or("the digest has no list of members")?;
    if wanted.len() != found.len() {
        return Err(format!("{} members, expected {}", found.len(), wanted.len()));
    }
    let differs = wanted.iter().zip(&found).find(|(wanted, found)| !is_same(wanted, found));
    differs.map_or(Ok(()), |(wanted, found)| Err(format!("found {found}, expected {wanted}")))
}

fn is_same(wanted: &Value, found: &Value) -> bool {
    let kind = if wanted[1] == "contiguous" { "file" } else { wanted[1].as_str().unwrap_or_default() };
    let head = wanted[0] == found[0] && found[1] == kind;
    head && match kind {
        "sparse" => true,
        "file" => wanted[2] == found[2] && wanted[3] == found[3],
        // The manifest drops the slash at the end of names only.
        _ => {
            let link = |entry: &Value| entry[3].as_str().map(|link| link.trim_end_matches('/').to_owned());
            link(wanted) == link(found)
        }
    }
}
