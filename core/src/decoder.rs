//! What the author of a Decoder or a Store implements.

use forebay_abi::{Buffer, Value};

use crate::{Context, DecoderInfo, Options, Result, StoreInfo, Wanted};

/// Turns the bytes of one value into a [`Value`]: a picture into a tensor, a document into a struct.
///
/// Stateless; one instance is shared by many threads.
pub trait Decoder: Send + Sync + Sized + 'static {
    /// Name, priority, extensions, media types and magic bytes: enough to choose it without running it.
    const INFO: DecoderInfo;

    /// The options, made by [`options!`](crate::options!); [`NoOptions`](crate::NoOptions) for none.
    type Options: Options;

    /// Makes the decoder.
    ///
    /// # Errors
    /// `Invalid`, when the options do not go together.
    fn new(options: Self::Options) -> Result<Self>;

    /// How sure it is, from 0 (no) to 255, that bytes that begin with `head` (at most 4 KiB) are its own.
    ///
    /// The extension is a hint and may be wrong. Asked only when a magic or the extension matched;
    /// the default trusts them.
    fn probe(&self, _head: &[u8], _extension: &str) -> u8 {
        128
    }

    /// Decodes `bytes`. Output memory comes from [`Context::alloc`], limits are checked before it is asked for.
    ///
    /// # Errors
    /// `Corrupt` with the place, `Unsupported`, `Limit`.
    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value>;
}

/// Where bytes are: lists and reads paths of its URL schemes. Shared by many threads; may block.
pub trait Store: Send + Sync + Sized + 'static {
    /// Name and URL schemes.
    const INFO: StoreInfo;

    /// The options, made by [`options!`](crate::options!); [`NoOptions`](crate::NoOptions) for none.
    type Options: Options;

    /// Makes the store, without connecting.
    ///
    /// # Errors
    /// `Invalid`, when the options do not go together.
    fn new(options: Self::Options) -> Result<Self>;

    /// What is directly under `path`, sorted: whole paths, and whether each is a folder.
    ///
    /// # Errors
    /// `Io`, naming the path.
    fn list(&self, path: &str) -> Result<Vec<(String, bool)>>;

    /// How many bytes `path` has; [`ENDLESS`](crate::ENDLESS) where only its end tells, and it can be read just once.
    ///
    /// # Errors
    /// `Io`, naming the path.
    fn size(&self, path: &str) -> Result<u64>;

    /// The bytes of `path` from `offset` on, at most `len`; fewer at the end. Of what has no size those that have come, once some have;
    /// none at its end.
    ///
    /// # Errors
    /// `Io`, naming the path; `Unsupported` for what was read before and cannot be again.
    fn read_range(&self, path: &str, offset: u64, len: u64) -> Result<Buffer>;

    /// The bytes of `path` where they lie, without reading them; `None` from a store that has them on another machine.
    ///
    /// # Errors
    /// `Io`, naming the path.
    fn map(&self, _path: &str) -> Result<Option<Buffer>> {
        Ok(None)
    }
}
