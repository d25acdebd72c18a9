//! One hash of everything that a run delivered, in order.
//!
//! XXH3-128 (seed 0) over a stream of bytes, all integers little-endian. For each sample: the number
//! of fields (u32), then for each field in order the length of its name (u32), the name, and the value.
//! A value is its tag (u32, see `forebay_abi::tag`), then
//! - a number: its type as code (u8), bits (u8), lanes (u16), then its bits (u64);
//! - text and bytes: length (u64), bytes;
//! - a tensor: type as above, number of axes (u32), each axis (i64), then its bytes in row-major order;
//! - a list: length (u64), values; a struct: as a sample's fields;
//! - Arrow columns: format and name like text, then length and offset (u64). Then the number of buffers (u32)
//!   and each like bytes, a missing one as none. Then the number of children (u32), those, and the
//!   dictionary, if there is one;
//! - null: nothing more. Opaque values count with their tag alone.
//!
//! Keys, uids and the sizes of chunks are left out.

use forebay_core::{ArrowParts, DType, Sample, Str, Value, View};
use xxhash_rust::xxh3::Xxh3Default;

/// Computes the digest of samples.
#[derive(Clone, Default)]
pub struct Digest {
    hash: Xxh3Default,
}

impl Digest {
    /// Adds one sample.
    pub fn update(&mut self, sample: &Sample) {
        self.fields(sample.schema().len(), sample.fields());
    }

    /// The digest of all samples so far, as 32 hexadecimal digits.
    #[must_use]
    pub fn finish(&self) -> String {
        format!("{:032x}", self.hash.digest128())
    }

    fn fields<'a>(&mut self, count: usize, fields: impl Iterator<Item = (&'a Str, &'a Value)>) {
        self.word(count);
        for (name, value) in fields {
            self.word(name.len());
            self.hash.update(name.as_bytes());
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        self.hash.update(&value.tag().to_le_bytes());
        match value.view() {
            View::Str(text) => self.bytes(text.as_bytes()),
            View::Bytes(bytes) => self.bytes(bytes),
            View::Tensor(tensor) => {
                self.dtype(tensor.dtype());
                self.word(tensor.shape().len());
                tensor.shape().iter().for_each(|axis| self.hash.update(&axis.to_le_bytes()));
                self.hash.update(tensor.data());
            }
            View::List(values) => {
                self.hash.update(&(values.len() as u64).to_le_bytes());
                values.iter().for_each(|value| self.value(value));
            }
            View::Struct(fields) => self.fields(fields.schema().len(), fields.fields()),
            View::Bool(_) | View::Int(_) | View::UInt(_) | View::Float(_) => {
                self.dtype(value.dtype().unwrap_or(DType::ANY));
                self.hash.update(&value.bits().to_le_bytes());
            }
            View::Arrow(_) => {
                // Columns that break the format's rules count with their tag alone.
                if let Ok(parts) = value.arrow() {
                    self.columns(&parts);
                }
            }
            _ => {}
        }
    }

    fn columns(&mut self, parts: &ArrowParts) {
        self.bytes(parts.format.as_bytes());
        self.bytes(parts.name.as_bytes());
        self.hash.update(&(parts.length as u64).to_le_bytes());
        self.hash.update(&(parts.offset as u64).to_le_bytes());
        self.word(parts.buffers.len());
        parts.buffers.iter().for_each(|buffer| self.bytes(buffer.as_deref().unwrap_or_default()));
        self.word(parts.children.len());
        parts.children.iter().for_each(|child| self.columns(child));
        parts.dictionary.iter().for_each(|values| self.columns(values));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.hash.update(&(bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }

    fn word(&mut self, number: usize) {
        self.hash.update(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn dtype(&mut self, dtype: DType) {
        self.hash.update(&[dtype.code, dtype.bits]);
        self.hash.update(&dtype.lanes.to_le_bytes());
    }
}
