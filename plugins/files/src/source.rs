//! `files`: one sample a file.
//!
//! ```toml
//! [files]
//! examples = ['''forebay head -n 1 "files ['examples/photos/photos-{000000..000002}.tar', 'plugins/json/seeds/*.csv'] open=none"''']
//! ```

use std::{borrow::Cow, io::Read, path::Path, sync::OnceLock};

use forebay_core::{
    Access, Buffer, BufferMut, Context, DataPipe, Error, Indexed, Key, Output, PipeInfo, PipeLayout, Result,
    Sample, Schema, Source, State, StateExt, Str, Texts, Value, options, shown,
};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    listing::{Found, Listing, Place},
    map::{at, map_file, open, read_to_end},
    stream::stream_or,
    url::{self, read_far},
};

options! {
    /// Options of `files`.
    pub struct FilesOptions {
        /// Paths, folders or patterns, one or a list: `*`, `?`, `[..]`, `**`, `{000..099}`, `{a,b}`.
        paths: Texts = required;
        /// How to open a file. `mmap` maps it without a copy, `read` reads it into memory, `none` gives only the
        /// path. For URLs and named pipes `mmap` gives only the path too, so that the next pipe fetches what it
        /// needs.
        open: String = "mmap", one_of ["mmap", "read", "none"];
    }
}

/// Gives a sample for each file that the paths and patterns stand for, with `path` and `bytes`.
pub struct Files {
    open: String,
    /// The schemas of samples without `bytes` and with it.
    schemas: [Schema; 2],
    listing: Listing,
    delivered: u64,
    last: Option<u64>,
    /// All files, once one is asked for by number.
    all: OnceLock<Result<Vec<Found>>>,
}

/// The version of the saved position's form.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
struct Position {
    /// How many files were delivered.
    delivered: u64,
    /// The uid of the last one, to see whether the files are still the same.
    last: Option<u64>,
    place: Place,
}

impl DataPipe for Files {
    const INFO: PipeInfo = PipeInfo {
        name: "files",
        summary: "Files, by path, URL or pattern",
        also: &["list_files", "file_lister", "file_opener"],
        layout: PipeLayout { access: Access::Indexed, ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = FilesOptions;

    fn new(options: FilesOptions) -> Result<Self> {
        if options.paths.is_empty() {
            return Err(Error::invalid("found no path").context("option", "paths"));
        }
        let listing = Listing::new(options.paths)?;
        let schemas = [&["path"][..], &["path", "bytes"]]
            .map(|names| Schema::new(names.iter().map(|name| Str::from_static(name))));
        Ok(Self { open: options.open, schemas, listing, delivered: 0, last: None, all: OnceLock::new() })
    }
}

impl Source for Files {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.rewind();
        Ok(())
    }

    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        let Some(found) = self.advance(Some(cx))? else { return Ok(None) };
        self.open(&found, cx).map(Some)
    }

    fn state(&self) -> Result<State> {
        let (delivered, last, place) = (self.delivered, self.last, self.listing.place());
        State::json(VERSION, &Position { delivered, last, place })
    }

    fn restore(&mut self, state: &State, cx: &Context) -> Result<()> {
        self.pass_over(&state.parse(VERSION)?, Some(cx))
    }
}

impl Indexed for Files {
    fn count(&self, cx: &Context) -> Result<u64> {
        Ok(self.all(cx)?.len() as u64)
    }

    /// A hash of the files' uids, which are made of their paths.
    fn identity(&self, cx: &Context) -> Result<u64> {
        let uids = self.all(cx)?.iter().map(|found| found.uid);
        Ok(uids.fold(0, |hash, uid| xxh3_64_with_seed(&uid.to_le_bytes(), hash)))
    }

    fn get(&self, keys: &[u64], out: &mut Output, cx: &Context) -> Result<()> {
        let all = self.all(cx)?;
        for &key in keys {
            let found = usize::try_from(key).ok().and_then(|key| all.get(key));
            let gone = || Error::invalid(format!("found file number {key}, there are {}", all.len()));
            out.push(&mut self.open(found.ok_or_else(gone)?, cx)?);
        }
        Ok(())
    }
}

impl Files {
    /// All files in their order. One that cannot be listed fails all, since numbers would not be those of another listing.
    fn all(&self, cx: &Context) -> Result<&[Found]> {
        let list = || {
            let mut listing = self.listing.afresh();
            std::iter::from_fn(|| listing.advance(Some(cx))).collect()
        };
        self.all.get_or_init(list).as_deref().map_err(Error::clone)
    }

    /// The sample of a file.
    fn open(&self, found: &Found, cx: &Context) -> Result<Sample> {
        let far = found.path.to_str().filter(|path| url::is_far(path));
        let bytes = match (self.open.as_str(), far) {
            ("read", Some(url)) => Some(read_far(url, cx)?),
            ("mmap", None) => stream_or(&found.path, map_file(&found.path).map(Some), || Ok(None))?,
            ("read", None) => {
                let bytes = read_file(&found.path, cx.limits().bytes, |len| cx.alloc(len));
                Some(stream_or(&found.path, bytes, || read_far(&found.path.to_string_lossy(), cx))?)
            }
            _ => None,
        };
        Ok(self.sample(found, bytes))
    }

    fn rewind(&mut self) {
        self.listing.go_to(Place::default());
        (self.delivered, self.last) = (0, None);
    }

    fn advance(&mut self, cx: Option<&Context>) -> Result<Option<Found>> {
        let found = self.listing.advance(cx).transpose()?;
        if let Some(found) = &found {
            self.delivered += 1;
            self.last = Some(found.uid);
        }
        Ok(found)
    }

    /// Passes over what was delivered before, without opening it.
    fn pass_over(&mut self, position: &Position, cx: Option<&Context>) -> Result<()> {
        self.listing.go_to(position.place);
        self.delivered = position.delivered.saturating_sub(position.place.given);
        self.last = position.last;
        // What could not be found then was told then.
        while self.delivered < position.delivered && !matches!(self.advance(cx), Ok(None)) {}
        if (self.delivered, self.last) == (position.delivered, position.last) {
            return Ok(());
        }
        let (found, wanted) = (self.delivered, position.delivered);
        Err(Error::invalid(format!(
            "the files are not those of the saved position: of the first {wanted}, {found} are there, or others"
        )))
    }

    fn sample(&self, found: &Found, bytes: Option<Buffer>) -> Sample {
        let origin = Str::from(found.path.to_string_lossy().into_owned());
        let path = match found.path.to_str() {
            Some(_) => Value::from(origin.clone()),
            None => Value::from(Buffer::from(found.path.as_os_str().as_encoded_bytes().to_vec())),
        };
        let schema = self.schemas[usize::from(bytes.is_some())].clone();
        let values = [path].into_iter().chain(bytes.map(Value::from)).collect();
        let key = Key::whole(match shown(&origin) {
            Cow::Borrowed(_) => origin,
            Cow::Owned(safe) => safe.into(),
        });
        Sample::with_schema(found.uid, key, schema, values)
    }
}

/// The bytes of a file of at most `limit` bytes, in memory that `alloc` gives.
pub(crate) fn read_file(
    path: &Path,
    limit: u64,
    alloc: impl FnOnce(usize) -> Result<BufferMut>,
) -> Result<Buffer> {
    let mut file = open(path)?;
    let len = file.metadata().map_err(|error| at(path, error))?.len();
    if len == 0 {
        return read_to_end(path, &file, limit);
    }
    let fits = usize::try_from(len).ok().filter(|_| len <= limit);
    let Some(size) = fits else {
        let error = Error::limit(format!("the file has {len} bytes, at most {limit} are read into memory"));
        return Err(error.context("file", path.display()));
    };
    let mut bytes = alloc(size)?;
    file.read_exact(&mut bytes).map_err(|error| at(path, error))?;
    Ok(bytes.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str], open: &str) -> Files {
        let paths = paths.iter().collect();
        Files::new(FilesOptions { paths, open: open.into() }).unwrap()
    }

    #[test]
    fn a_saved_position_goes_on_with_the_next_file() {
        let patterns = ["src/{listing,map}.rs", "Cargo.toml", "src/*.rs", "README.md"];
        let mut whole = files(&patterns, "none");
        whole.rewind();
        let all: Vec<_> = std::iter::from_fn(|| whole.advance(None).unwrap()).collect();
        assert!(all.len() > 8);
        for delivered in 0..=all.len() {
            let mut first = files(&patterns, "none");
            first.rewind();
            for _ in 0..delivered {
                first.advance(None).unwrap();
            }
            let position = first.state().unwrap().parse::<Position>(VERSION).unwrap();
            let mut second = files(&patterns, "none");
            second.rewind();
            second.pass_over(&position, None).unwrap();
            assert_eq!(second.advance(None).unwrap().as_ref(), all.get(delivered));
        }
    }

    #[test]
    fn a_position_among_other_files_is_refused() {
        for given in [10_000, 1] {
            let mut place = Place::default();
            place.given = given;
            let position = Position { delivered: given, last: Some(1), place };
            let mut files = files(&["src/*.rs"], "none");
            files.rewind();
            let error = files.pass_over(&position, None).unwrap_err();
            assert_eq!(error.kind(), forebay_core::ErrorKind::Invalid);
        }
    }

    #[test]
    fn samples_have_the_path_as_key_and_field() {
        let mut files = files(&["src/source.rs"], "mmap");
        files.rewind();
        let found = files.advance(None).unwrap().unwrap();
        let sample = files.sample(&found, Some(Buffer::from_static(b"x")));
        assert_eq!(sample.get("path").and_then(Value::as_str), Some("src/source.rs"));
        assert_eq!(sample.get("bytes").and_then(Value::as_bytes).map(|bytes| bytes.len()), Some(1));
        assert_eq!(&*sample.key().origin, "src/source.rs");
    }

    #[test]
    fn keys_hold_no_secret_of_a_url() {
        let urls = ["https://me:word@host/a.tar?sig=secret", "az://box/a.tar?sig=secret", "s3://b/a?b.tar"];
        let mut files = files(&urls, "none");
        files.rewind();
        for (url, shown) in urls.iter().zip(["https://host/a.tar?…", "az://box/a.tar?…", "s3://b/a?b.tar"])
        {
            let found = Found { path: (*url).into(), uid: 1 };
            let sample = files.sample(&found, None);
            assert_eq!(&*sample.key().origin, shown);
            assert_eq!(sample.get("path").and_then(Value::as_str), Some(*url));
        }
    }

    #[test]
    fn reading_meets_the_limit_before_memory_is_taken() {
        let read = |limit| read_file(Path::new("Cargo.toml"), limit, |len| Ok(BufferMut::zeroed(len)));
        assert!(read(1 << 20).unwrap().starts_with(b"[package]"));
        assert_eq!(read(10).unwrap_err().kind(), forebay_core::ErrorKind::Limit);
        let proc = read_file(Path::new("/proc/self/limits"), 1 << 20, |len| Ok(BufferMut::zeroed(len)));
        assert_eq!(&*proc.unwrap(), std::fs::read("/proc/self/limits").unwrap());
    }
}
