//! Encodes a chunk as flat bytes and a list of large buffers, and decodes it. Both are checked as untrusted input.
//!
//! Numbers are little-endian. The flat bytes hold the number of samples, then each one: uid, key, schema, and a
//! value for each of the schema's names. A value is a byte that says its kind, and what the kind asks for. Origins and
//! schemas are told apart by number, and written out where the next number is used for the first time.

mod arrow;
mod decode;
mod encode;

pub use self::{decode::Decoder, encode::Encoder};

/// Buffers of at least this length are not copied into the flat bytes.
pub const LARGE: usize = 2048;
/// The most lists and structures inside one another.
const DEPTH: usize = 64;
/// In place of a short buffer's length: the number of a large one follows.
const PART: u32 = u32::MAX;

/// What a value is.
mod kind {
    pub(super) const NULL: u8 = 0;
    pub(super) const SCALAR: u8 = 1;
    pub(super) const STR: u8 = 2;
    pub(super) const BYTES: u8 = 3;
    pub(super) const TENSOR: u8 = 4;
    pub(super) const LIST: u8 = 5;
    pub(super) const STRUCT: u8 = 6;
    pub(super) const ARROW: u8 = 7;
}
