//! Kinds `tar` and `webdataset`: archives by other programs, packed or not, against what Python's tarfile found in them.

use std::{fs, io::Read, path::Path};

use forebay_bundled::forebay_tar::{Group, Kind, Member, open, read};
use forebay_core::{Blob, Buffer, Error, Str};
use forebay_unpack::{Codec, Unpacked};
use serde_json::{Value as Json, json};

use crate::sha256;

/// Larger files are listed without a hash.
const HASHED: u64 = 64 << 20;

/// What the archive at `path` holds, in the words of the manifest.
pub(crate) fn digest(path: &Path) -> Result<Json, Error> {
    let bytes = Buffer::from(fs::read(path)?);
    let blob = Blob::from(bytes.clone());
    let head = &bytes[..bytes.len().min(Codec::HEAD)];
    let compression = Codec::of(head).map(Codec::name);
    let stream: Box<dyn Read> = match Unpacked::open(&blob)? {
        Some(unpacked) => Box::new(unpacked),
        None => Box::new(&bytes[..]),
    };
    let mut entries = Vec::new();
    for member in read(stream, 1 << 30) {
        entries.push(entry(&member?)?);
    }
    let mut samples = Vec::new();
    // Errors of single samples, such as too large a file, are no errors of the archive: the walk above has those.
    for sample in open(&blob, Str::from("x"), 0, Group::WebDataset)?.flatten() {
        let fields: Vec<_> = sample.schema().names().iter().map(|name| name.as_str().to_owned()).collect();
        samples.push(json!([sample.key().name.as_str(), fields]));
    }
    Ok(json!({ "compression": compression, "entries": entries, "samples": samples}))
}

fn entry(member: &Member) -> Result<Json, Error> {
    let name = text(&member.name);
    let (name, link) = (name.trim_end_matches('/'), format!("-> {}", text(&member.link)));
    Ok(match member.kind {
        Kind::File | Kind::Sparse if member.size > HASHED => {
            json!([name, kind(member.kind), member.size, null])
        }
        Kind::File | Kind::Sparse => {
            json!([name, kind(member.kind), member.size, sha256(member.contents(HASHED)?)])
        }
        Kind::HardLink | Kind::SymLink => json!([name, kind(member.kind), 0, link]),
        _ => json!([name, kind(member.kind), 0, ""]),
    })
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::File => "file".into(),
        Kind::Sparse => "sparse".into(),
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

/// A name as the manifest writes it: bytes that are not UTF-8 as `%XX`.
fn text(name: &[u8]) -> String {
    let parts = name.utf8_chunks().map(|chunk| {
        let odd: String = chunk.invalid().iter().map(|byte| format!("%{byte:02X}")).collect();
        format!("{}{odd}", chunk.valid())
    });
    parts.collect()
}

/// Whether both say the same.
pub(crate) fn compare(expected: &Json, found: &Json) -> Result<(), String> {
    if expected["compression"] != found["compression"] {
        return Err(format!("packed by {}, expected {}", found["compression"], expected["compression"]));
    }
    let lists = (found["entries"].as_array(), expected["entries"].as_array());
    let (Some(entries), Some(wanted)) = lists else { return Err("no entries in the manifest".into()) };
    if entries.len() != wanted.len() {
        return Err(format!("{} members, expected {}", entries.len(), wanted.len()));
    }
    for (entry, wanted) in entries.iter().zip(wanted) {
        let kinds = (entry[1].as_str(), wanted[1].as_str());
        let alike = kinds.0 == kinds.1 || kinds == (Some("file"), Some("contiguous"));
        // Links and others may state a size all the same, which says nothing; links to folders end in a slash or do not.
        let sized = matches!(kinds.0, Some("file" | "sparse"));
        let value = |entry: &Json| entry[3].as_str().map(|text| text.trim_end_matches('/').to_owned());
        if !alike
            || entry[0] != wanted[0]
            || (sized && entry[2] != wanted[2])
            || value(entry) != value(wanted)
        {
            return Err(format!("found {entry}, expected {wanted}"));
        }
    }
    let Some(wanted) = expected["sample_list"].as_array() else { return Ok(()) };
    // The reference takes what has no dot, or nothing before it, for a sample too.
    let is_sample = |sample: &&Json| {
        let stem = sample[0].as_str().unwrap_or_default();
        !stem.is_empty()
            && !stem.ends_with('/')
            && sample[1][0].as_str().is_some_and(|field| !field.is_empty())
    };
    let lower = |sample: &Json| sample.to_string().to_lowercase();
    let wanted: Vec<_> = wanted.iter().filter(is_sample).map(lower).collect();
    let samples: Vec<_> =
        found["samples"].as_array().into_iter().flatten().take(wanted.len()).map(lower).collect();
    if samples == wanted { Ok(()) } else { Err(format!("samples {samples:?}, expected {wanted:?}")) }
}
