//! `read`: the bytes of the file that a field names.
//!
//! ```toml
//! [read]
//! examples = ['''forebay head -n 1 "files 'plugins/image/seeds/rgb.*' open=none | read | decode"''']
//! ```

use std::{
    borrow::Cow,
    mem,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use forebay_core::{
    Buffer, Context, DataPipe, Error, Map, PipeInfo, Result, Sample, Schema, Str, Value, View, options,
};

use crate::{
    map::map_file,
    source::read_file,
    store::local,
    stream::stream_or,
    url::{is_far, read_far},
};

/// The field that `read` adds.
const BYTES: Str = Str::from_static("bytes");

options! {
    /// Options of `read`.
    pub struct ReadOptions {
        /// The field with the path or URL of a file.
        field: String = "path";
        /// How to open a file: `mmap` maps it without a copy, `read` reads it into memory. Both read URLs into
        /// memory.
        open: String = "mmap", one_of ["mmap", "read"];
    }
}

/// Adds the field `bytes`: those of the file whose path another field has. A `bytes` that is there is replaced.
///
/// It has no state, so workers read for themselves where `files` gives paths alone.
#[derive(Debug)]
pub struct Read {
    field: String,
    map: bool,
    /// The last schema, and the one with `bytes`, so that all samples of a stream share it.
    known: Mutex<Option<(Schema, Schema)>>,
}

impl DataPipe for Read {
    const INFO: PipeInfo =
        PipeInfo { name: "read", summary: "The bytes of the file that a field names", ..PipeInfo::DEFAULT };
    type Options = ReadOptions;

    fn new(options: ReadOptions) -> Result<Self> {
        Ok(Self { field: options.field, map: options.open == "mmap", known: Mutex::new(None) })
    }
}

impl Map for Read {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        self.add(sample, |path| match path.to_str().filter(|path| is_far(path)) {
            Some(url) => read_far(url, cx),
            None => {
                let bytes = match self.map {
                    true => map_file(path),
                    false => read_file(path, cx.limits().bytes, |len| cx.alloc(len)),
                };
                stream_or(path, bytes, || read_far(&path.to_string_lossy(), cx))
            }
        })
    }
}

impl Read {
    /// Sets `bytes` to what `open` gives for the file, as the last field unless it was there.
    fn add(&self, sample: &mut Sample, open: impl FnOnce(&Path) -> Result<Buffer>) -> Result<()> {
        let path = self.path(sample).map_err(|error| error.context("field", &self.field))?;
        let bytes = Value::from(open(&path)?);
        if sample.get(&BYTES).is_some() {
            sample.set(&BYTES, bytes);
            return Ok(());
        }
        let wider = self.wider(sample.schema());
        let values: Vec<_> = sample.values_mut().iter_mut().map(mem::take).chain([bytes]).collect();
        sample.replace(wider, values);
        Ok(())
    }

    /// A schema with `bytes` at its end.
    fn wider(&self, schema: &Schema) -> Schema {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((plain, wider)) if plain == schema => wider.clone(),
            _ => {
                let wider = Schema::new(schema.names().iter().cloned().chain([BYTES]));
                *known = Some((schema.clone(), wider.clone()));
                wider
            }
        }
    }

    fn path(&self, sample: &Sample) -> Result<PathBuf> {
        let value = sample.get(&self.field).ok_or_else(|| {
            let names: Vec<_> = sample.schema().names().iter().map(|name| name.as_str()).collect();
            Error::invalid(format!("no such field; found: {}", names.join(", ")))
        })?;
        match value.view() {
            View::Str(text) => Ok(local(text).to_owned()),
            View::Bytes(name) => Ok(from_bytes(name)?.into_owned()),
            _ => Err(Error::invalid(format!("found {value:?}, expected the path of a file"))),
        }
    }
}

/// A path that is no UTF-8, as `files` gives it.
#[cfg(unix)]
fn from_bytes(name: &[u8]) -> Result<Cow<'_, Path>> {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    Ok(Path::new(OsStr::from_bytes(name)).into())
}

/// A path that is no UTF-8, as `files` gives it.
#[cfg(not(unix))]
fn from_bytes(name: &[u8]) -> Result<Cow<'_, Path>> {
    let name = std::str::from_utf8(name).map_err(|error| Error::invalid(error.to_string()))?;
    Ok(Path::new(name).into())
}

#[cfg(test)]
mod tests {
    use forebay_core::{BufferMut, ErrorKind, Key, Options};

    use super::*;

    fn read(options: &str) -> Read {
        Read::new(ReadOptions::parse(options).unwrap()).unwrap()
    }

    fn sample(field: &str, path: impl Into<Value>) -> Sample {
        let mut sample = Sample::new(7, Key::whole("here"));
        sample.set("label", 3_i64);
        sample.set(field, path);
        sample
    }

    fn copied(path: &Path) -> Result<Buffer> {
        read_file(path, 1 << 20, |len| Ok(BufferMut::zeroed(len)))
    }

    fn names(sample: &Sample) -> Vec<&str> {
        sample.schema().names().iter().map(|name| name.as_str()).collect()
    }

    #[test]
    fn adds_the_bytes_of_the_file() {
        for path in ["Cargo.toml", "file://Cargo.toml"] {
            for open in [map_file, copied] {
                let mut sample = sample("path", path);
                read("{}").add(&mut sample, open).unwrap();
                assert_eq!(names(&sample), ["label", "path", "bytes"]);
                let bytes = sample.get("bytes").and_then(Value::as_bytes).unwrap();
                assert!(bytes.starts_with(b"[package]"));
                assert_eq!((sample.uid(), sample.get("path").and_then(Value::as_str)), (7, Some(path)));
            }
        }
    }

    #[test]
    fn all_samples_share_their_new_schema() {
        let pipe = read("{}");
        let (mut one, mut two) = (sample("path", "Cargo.toml"), sample("path", "README.md"));
        pipe.add(&mut one, map_file).unwrap();
        pipe.add(&mut two, map_file).unwrap();
        assert!(one.schema().is(two.schema()));
        pipe.add(&mut two, |_| Ok(Buffer::from_static(b"again"))).unwrap();
        assert_eq!(names(&two), names(&one));
        assert_eq!(two.get("bytes").and_then(Value::as_bytes).unwrap()[..], *b"again");
    }

    #[test]
    fn another_field_may_name_the_file_and_names_may_be_bytes() {
        let name = Value::from(Buffer::from_static(b"Cargo.toml"));
        let mut sample = sample("mask", name);
        read(r#"{"field": "mask"}"#).add(&mut sample, map_file).unwrap();
        assert_eq!(names(&sample), ["label", "mask", "bytes"]);
        assert!(ReadOptions::parse(r#"{"open": "none"}"#).is_err());
    }

    #[test]
    fn errors_name_the_file_or_the_field() {
        let error = read("{}").add(&mut sample("path", "src/none.rs"), map_file).unwrap_err();
        assert_eq!((error.kind(), error.get("file")), (ErrorKind::Io, Some("src/none.rs")));
        let error = read("{}").add(&mut sample("path", "src"), copied).unwrap_err();
        assert_eq!((error.kind(), error.get("file")), (ErrorKind::Invalid, Some("src")));
        let mut broken = sample("path", 7_i64);
        let before = broken.clone();
        let error = read("{}").add(&mut broken, map_file).unwrap_err();
        assert_eq!(
            (error.message(), error.get("field")),
            ("found Int(7), expected the path of a file", Some("path"))
        );
        assert_eq!(broken, before);
        let error = read(r#"{"field": "mask"}"#).add(&mut sample("path", "x"), map_file).unwrap_err();
        assert_eq!(
            (error.message(), error.get("field")),
            ("no such field; found: label, path", Some("mask"))
        );
    }
}
