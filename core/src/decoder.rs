//! The traits for authors of a Decoder or a Store.

use forebay_abi::{Buffer, Value};

use crate::{Context, DecoderInfo, Options, Result, StoreInfo, Wanted};

/// Turns the bytes of one value into a [`Value`]: a picture into a tensor, a document into a struct.
///
/// Stateless; one instance is shared by many threads.
pub trait Decoder: Send + Sync + Sized + 'static {
    /// Name, priority, extensions, media types and magic bytes: enough to choose it before it runs.
    const INFO: DecoderInfo;

    /// The options, made by [`options!`](crate::options!); [`NoOptions`](crate::NoOptions) for none.
    type Options: Options;

    /// Makes the decoder.
    ///
    /// # Errors
    /// `Invalid` if the options contradict each other.
    fn new(options: Self::Options) -> Result<Self>;

    /// How sure the decoder is, from 0 (no) to 255, that bytes that begin with `head` (at most 4 KiB) are its own.
    ///
    /// The extension is a hint and can be wrong. The host asks only if magic bytes or the extension match. The
    /// default trusts them.
    fn probe(&self, _head: &[u8], _extension: &str) -> u8 {
        128
    }

    /// Decodes `bytes`. Take output memory from [`Context::alloc`], and check limits before that.
    ///
    /// # Errors
    /// `Corrupt` with the place, `Unsupported`, `Limit`.
    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value>;
}

/// Lists and reads the paths of its URL schemes. Many threads share it; calls can block.
pub trait Store: Send + Sync + Sized + 'static {
    /// Name and URL schemes.
    const INFO: StoreInfo;

    /// The options, made by [`options!`](crate::options!); [`NoOptions`](crate::NoOptions) for none.
    type Options: Options;

    /// Makes the store, without connecting.
    ///
    /// # Errors
    /// `Invalid` if the options contradict each other.
    fn new(options: Self::Options) -> Result<Self>;

    /// The entries directly below `path`, sorted: the whole path of each, and whether it is a folder.
    ///
    /// # Errors
    /// `Io`, with the path.
    fn list(&self, path: &str) -> Result<Vec<(String, bool)>>;

    /// The size of `path` in bytes; [`ENDLESS`](crate::ENDLESS) if the size is known only at the end and the bytes
    /// can be read only once.
    ///
    /// # Errors
    /// `Io`, with the path.
    fn size(&self, path: &str) -> Result<u64>;

    /// The bytes of `path` from `offset` on, at most `len`; fewer at the end. For a path without a size, the bytes
    /// that have arrived, as soon as there are some; empty at its end.
    ///
    /// # Errors
    /// `Io`, with the path; `Unsupported` for bytes that were read before and cannot be read again.
    fn read_range(&self, path: &str, offset: u64, len: u64) -> Result<Buffer>;

    /// The bytes of `path` in memory, without reading them; `None` if the store has them on another machine.
    ///
    /// # Errors
    /// `Io`, with the path.
    fn map(&self, _path: &str) -> Result<Option<Buffer>> {
        Ok(None)
    }
}
