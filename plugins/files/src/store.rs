//! The store of local files: what other plugins read through, by path.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use forebay_core::{Buffer, ENDLESS, NoOptions, Result, Store, StoreInfo};

use crate::{
    map::{at, map_file, open},
    nearby,
    stream::{Streams, is_streamed, stream_or},
};

/// Serves `file://` and plain paths; pipes and devices too, which are read once, from front to back.
#[derive(Default)]
pub struct FileStore {
    streams: Streams,
}

impl Store for FileStore {
    const INFO: StoreInfo = StoreInfo { name: "file", summary: "Local files", schemes: &["file"] };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self::default())
    }

    fn list(&self, path: &str) -> Result<Vec<(String, bool)>> {
        let folder = local(path);
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| nearby::told(folder, at(folder, error)))? {
            let path = entry.map_err(|error| at(folder, error))?.path();
            entries.push((path.to_string_lossy().into_owned(), path.is_dir()));
        }
        entries.sort();
        Ok(entries)
    }

    fn size(&self, path: &str) -> Result<u64> {
        let path = local(path);
        let metadata = fs::metadata(path).map_err(|error| at(path, error))?;
        if is_streamed(&metadata) {
            return Ok(ENDLESS);
        }
        // One that says it is empty may be of `/proc`.
        let says_nothing = metadata.is_file() && metadata.len() == 0;
        if says_nothing { map_file(path).map(|bytes| bytes.len() as u64) } else { Ok(metadata.len()) }
    }

    fn read_range(&self, path: &str, offset: u64, len: u64) -> Result<Buffer> {
        let path = local(path);
        let read = |mut file: File| {
            file.seek(SeekFrom::Start(offset))?;
            // Grows with what is there, not with what was asked for.
            let mut bytes = Vec::new();
            file.take(len).read_to_end(&mut bytes)?;
            Ok(Buffer::from(bytes))
        };
        let bytes = open(path).and_then(|file| read(file).map_err(|error| at(path, error)));
        let bytes = bytes.map_err(|error| nearby::told(path, error));
        stream_or(path, bytes, || self.streams.read(path, offset, len))
    }

    fn map(&self, path: &str) -> Result<Option<Buffer>> {
        let path = local(path);
        stream_or(path, map_file(path).map(Some), || Ok(None))
    }
}

/// The path in a URL.
pub(crate) fn local(url: &str) -> &Path {
    Path::new(url.strip_prefix("file://").unwrap_or(url))
}
