//! Where the file of a piece lies, so that whoever works on the piece finds it, perhaps in another process.

use std::{fs, os::unix::fs::MetadataExt as _, time::UNIX_EPOCH};

use forebay_core::{Blob, Buffer, Context, Error, Result, Sample, Str, Value};

/// A file by its path, or its bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    /// A path or URL; how many bytes, and when they were last changed, in nanoseconds (0 where that is not known).
    Path {
        path: Str,
        len: u64,
        modified: u64,
    },
    Bytes(Buffer),
}

impl Origin {
    /// What a sample is about: its field `bytes`, or else the file at `path`. Bytes that are a map of the whole file at
    /// `path` are that file.
    pub(crate) fn of(sample: &Sample, cx: &Context<'_>) -> Result<(Self, Blob)> {
        let blob = Blob::of(sample, cx)?;
        let path = sample.get("path").and_then(Value::as_str);
        let given = sample.get("bytes").and_then(Value::as_bytes).cloned();
        let origin = match (path, given) {
            (Some(path), None) => {
                Self::Path { path: path.into(), len: blob.len(), modified: modified(&blob) }
            }
            (Some(path), Some(bytes)) if is_file(&bytes, path) => {
                Self::Path { path: path.into(), len: blob.len(), modified: modified(&blob) }
            }
            (_, Some(bytes)) => Self::Bytes(bytes),
            (None, None) => return Err(Error::invalid("expected a field `bytes`, or `path`, found neither")),
        };
        Ok((origin, blob))
    }

    /// Opens what the origin names, unless it was changed since.
    pub(crate) fn open(&self, cx: &Context<'_>) -> Result<Blob> {
        let (path, len, modified_then) = match self {
            Self::Bytes(bytes) => return Ok(bytes.clone().into()),
            Self::Path { path, len, modified } => (path, *len, *modified),
        };
        let blob = Blob::open(path, cx)?;
        if blob.len() != len || modified(&blob) != modified_then {
            return Err(Error::invalid("the file was changed while it was read").context("path", path));
        }
        Ok(blob)
    }
}

/// When the file of a map was last changed; 0 where that is not known.
fn modified(blob: &Blob) -> u64 {
    let time =
        || blob.in_memory()?.file()?.0.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok();
    time().map_or(0, |time| time.as_nanos() as u64)
}

/// Whether the bytes are a map of all of the local file at `path`.
fn is_file(bytes: &Buffer, path: &str) -> bool {
    let same = || {
        let (file, start) = bytes.file()?;
        let (one, two) = (file.metadata().ok()?, fs::metadata(path).ok()?);
        let whole = start == 0 && one.len() == bytes.len() as u64;
        Some(whole && (one.dev(), one.ino()) == (two.dev(), two.ino()))
    };
    same().unwrap_or(false)
}
