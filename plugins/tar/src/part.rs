//! One member of a sample.

use std::{borrow::Cow, ops::Range};

use forebay_core::{Buffer, Error, names::field_name};

/// A member of a sample: where its name lies in the names that were collected, and its contents.
pub(crate) struct Part {
    /// The name is a key, a dot and the field.
    pub(crate) name: Range<usize>,
    /// Where the name lies in the shard; nowhere, when it was read beside it or put together.
    pub(crate) place: Option<usize>,
    pub(crate) key_len: usize,
    pub(crate) data: Buffer,
    pub(crate) offset: u64,
    pub(crate) failed: Option<Error>,
}

impl Part {
    pub(crate) fn key<'a>(&self, names: &'a [u8]) -> &'a [u8] {
        names.get(self.name.start..self.name.start + self.key_len).unwrap_or_default()
    }

    /// The field as it is written.
    pub(crate) fn raw_field<'a>(&self, names: &'a [u8]) -> &'a [u8] {
        names.get(self.name.start + self.key_len + 1..self.name.end).unwrap_or_default()
    }

    pub(crate) fn field<'a>(&self, names: &'a [u8]) -> Cow<'a, str> {
        field_name(self.raw_field(names))
    }

    pub(crate) fn name<'a>(&self, names: &'a [u8]) -> Cow<'a, str> {
        String::from_utf8_lossy(names.get(self.name.clone()).unwrap_or_default())
    }
}
