//! Bytes in memory or in a store, read piece by piece.

use std::ops::Range;

use forebay_abi::{
    self as abi, Buffer, Sample, Str, Value, View,
    abi_stable::std_types::{ROption, RVec},
};

use crate::{Context, Error, Result, shim::check, shim::services, shown};

/// A store of some plugin, chosen by the host. It is cheap to clone, and safe to call from many threads.
#[derive(Clone)]
pub struct AnyStore(abi::Store);

impl AnyStore {
    /// Takes a store that the host made.
    #[must_use]
    pub fn new(raw: abi::Store) -> Self {
        Self(raw)
    }

    /// The handle as it crosses.
    #[must_use]
    pub fn into_raw(self) -> abi::Store {
        self.0
    }

    /// The entries directly below `path`, sorted: the whole path of each, and whether it is a folder.
    ///
    /// # Errors
    /// Those of the store, and `Panic`, here and below.
    pub fn list(&self, path: &str) -> Result<Vec<(String, bool)>> {
        let mut entries = RVec::new();
        check(services::list(&self.0, path.into(), &mut entries))?;
        Ok(entries.into_iter().map(|entry| (entry.path.into(), entry.folder)).collect())
    }

    /// The size of `path` in bytes.
    ///
    /// # Errors
    /// As above.
    pub fn size(&self, path: &str) -> Result<u64> {
        let mut size = 0;
        check(services::size(&self.0, path.into(), &mut size))?;
        Ok(size)
    }

    /// The bytes of `path` from `offset` on, at most `len`; fewer at the end.
    ///
    /// # Errors
    /// As above.
    pub fn read(&self, path: &str, offset: u64, len: u64) -> Result<Buffer> {
        let mut bytes = Buffer::EMPTY;
        check(services::read(&self.0, path.into(), offset, len, &mut bytes))?;
        Ok(bytes)
    }

    /// The bytes of `path` in memory, without reading them; `None` if the store has them elsewhere.
    ///
    /// # Errors
    /// As above.
    pub fn map(&self, path: &str) -> Result<Option<Buffer>> {
        let mut bytes = ROption::RNone;
        check(services::map(&self.0, path.into(), &mut bytes))?;
        Ok(bytes.into_option())
    }
}

/// The size that [`Store::size`](crate::Store::size) returns for a pipe or a similar stream: it is known only at
/// the end, and the bytes come once.
pub const ENDLESS: u64 = u64::MAX;

/// The bytes of one file or object: in memory, in a map, or in a store that is asked for each piece.
///
/// Formats with an index read through it, so that only the needed pieces of a remote file are fetched. A pipe is a
/// *stream*: only [`ahead`](Blob::ahead) reads it, from front to back.
///
/// ```
/// use forebay_core::{Blob, Buffer};
///
/// let blob = Blob::from(Buffer::from_static(b"PAR1 and so on"));
/// assert_eq!((blob.len(), &*blob.read(0..4)?), (14, &b"PAR1"[..]));
/// assert!(blob.read(10..20).is_err());
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Blob(Place);

/// How much is asked of a stream at once.
const STREAM_WINDOW: u64 = 1 << 20;

#[derive(Clone)]
enum Place {
    Here(Buffer),
    Stored { store: AnyStore, path: Str, len: u64 },
}

impl Blob {
    /// The bytes of a sample: its field `bytes`, or else the file that its field `path` names, as a path or URL.
    ///
    /// # Errors
    /// `Invalid` if it has neither; as [`open`](Blob::open).
    pub fn of(sample: &Sample, cx: &Context<'_>) -> Result<Self> {
        if let Some(View::Bytes(bytes)) = sample.get("bytes").map(Value::view) {
            return Ok(bytes.clone().into());
        }
        match sample.get("path").map(Value::view) {
            Some(View::Str(path)) => Self::open(path, cx),
            Some(View::Bytes(path)) => Err(Error::unsupported(
                "the path is not UTF-8; let `files` or `read` open it, so that the sample has `bytes`",
            )
            .context("path", String::from_utf8_lossy(path))),
            _ => Err(Error::invalid("expected a field `bytes`, or `path` with a path or URL, found neither")),
        }
    }

    /// The file at `path`, a path or URL. A local file is mapped.
    ///
    /// Cost: for a file that cannot be mapped, one call for its size.
    ///
    /// # Errors
    /// `Unsupported` if no plugin serves the URL's scheme; those of the store.
    pub fn open(path: &str, cx: &Context<'_>) -> Result<Self> {
        let store = cx.store(scheme_of(path))?;
        if let Some(bytes) = store.map(path)? {
            return Ok(bytes.into());
        }
        Ok(Self(Place::Stored { len: store.size(path)?, path: path.into(), store }))
    }

    /// The number of bytes; [`ENDLESS`] for a stream.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Place::Here(bytes) => bytes.len() as u64,
            Place::Stored { len, .. } => *len,
        }
    }

    /// Whether it is a pipe or a similar stream, which has no known length and gives its bytes once, from front to
    /// back.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.len() == ENDLESS
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in `range`: shared if they are in memory or in a map, else fetched in one call.
    ///
    /// # Errors
    /// `Corrupt` if the range exceeds the bytes, or if the store has fewer than it said; `Unsupported` for a
    /// stream; those of the store.
    pub fn read(&self, range: Range<u64>) -> Result<Buffer> {
        let len = self.len();
        if let (ENDLESS, Place::Stored { path, .. }) = (len, &self.0) {
            let error = "found a pipe, which is read once from front to back, expected a file; save it to a file first";
            return Err(Error::unsupported(error).context("path", shown(path)));
        }
        let short = |len: u64| {
            let Range { start, end } = &range;
            Err(Error::corrupt(format!("expected bytes {start} to {end}, but there are {len}")))
        };
        if range.start > range.end || range.end > len {
            return short(len);
        }
        match &self.0 {
            Place::Here(bytes) => {
                // Both ends lie within a buffer in memory, so neither is beyond its range of numbers.
                let part = bytes.get(range.start as usize..range.end as usize);
                part.map_or_else(|| short(len), Ok)
            }
            Place::Stored { .. } if range.is_empty() => Ok(Buffer::EMPTY),
            Place::Stored { store, path, .. } => {
                let bytes = store.read(path, range.start, range.end - range.start)?;
                match bytes.len() as u64 {
                    got if got == range.end - range.start => Ok(bytes),
                    got => short(range.start + got).map_err(|error| error.context("path", shown(path))),
                }
            }
        }
    }

    /// The bytes from `at` on, at most `most`; fewer at the end. For a stream, the bytes that have arrived, as
    /// soon as there are some; empty at its end.
    ///
    /// # Errors
    /// Those of the store; for a stream also `Unsupported`, for bytes that were read before.
    pub fn ahead(&self, at: u64, most: u64) -> Result<Buffer> {
        match &self.0 {
            Place::Stored { store, path, len: ENDLESS } => store.read(path, at, most),
            _ => {
                let len = self.len();
                self.read(at.min(len)..at.saturating_add(most).min(len))
            }
        }
    }

    /// All bytes, if there are at most `limit`.
    ///
    /// # Errors
    /// `Limit` if there are more; as [`read`](Blob::read) and [`ahead`](Blob::ahead).
    pub fn whole(&self, limit: u64) -> Result<Buffer> {
        let len = self.len();
        if !self.is_stream() {
            let more = || Error::limit(format!("{len} bytes, at most {limit} are taken into memory"));
            return if len > limit && self.in_memory().is_none() { Err(more()) } else { self.read(0..len) };
        }
        let mut all = Vec::new();
        loop {
            let more = self.ahead(all.len() as u64, STREAM_WINDOW)?;
            if more.is_empty() {
                return Ok(all.into());
            }
            if more.len() as u64 > limit.saturating_sub(all.len() as u64) {
                return Err(Error::limit(format!(
                    "a pipe gives more than {limit} bytes, which is the most that is taken into memory"
                )));
            }
            all.extend_from_slice(&more);
        }
    }

    /// All bytes, if they are in memory or in a map.
    #[must_use]
    pub fn in_memory(&self) -> Option<&Buffer> {
        match &self.0 {
            Place::Here(bytes) => Some(bytes),
            Place::Stored { .. } => None,
        }
    }
}

impl From<Buffer> for Blob {
    fn from(bytes: Buffer) -> Self {
        Self(Place::Here(bytes))
    }
}

/// The scheme of the store for `path`: the scheme of a URL, else `file`.
///
/// ```
/// use forebay_core::scheme_of;
///
/// assert_eq!([scheme_of("s3://bucket/a.tar"), scheme_of("a.tar"), scheme_of("a dir://a.tar")], ["s3", "file", "file"]);
/// ```
#[must_use]
pub fn scheme_of(path: &str) -> &str {
    // RFC 3986, section 3.1, but for its first letter.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let scheme = path.split_once("://").map(|(scheme, _)| scheme);
    scheme.filter(|scheme| !scheme.is_empty() && scheme.bytes().all(plain)).unwrap_or("file")
}
