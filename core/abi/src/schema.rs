//! The names of a sample's fields, shared by all samples that have them.

use std::{fmt, ptr};

use abi_stable::{StableAbi, std_types::RVec};

use crate::{
    Str,
    shared::{Owner, keep, let_go, share},
};

/// An ordered list of field names, shared and immutable.
///
/// A stream makes its schema once; comparing two of the same stream compares addresses.
#[repr(C)]
#[derive(StableAbi)]
pub struct Schema {
    names: *const RVec<Str>,
    owner: *const Owner,
}

// SAFETY: the names are immutable, and the owner counts atomically.
unsafe impl Send for Schema {}
// SAFETY: as above.
unsafe impl Sync for Schema {}

impl Schema {
    /// The schema with these names, in this order.
    pub fn new<N: Into<Str>>(names: impl IntoIterator<Item = N>) -> Self {
        let names: RVec<Str> = names.into_iter().map(Into::into).collect();
        let (owner, names) = share(names);
        Self { names, owner }
    }

    /// The schema without fields.
    #[must_use]
    pub const fn empty() -> Self {
        Self { names: ptr::null(), owner: ptr::null() }
    }

    /// The same schema with a count of references of its own, so that threads that each hold and drop it often do not wait
    /// for each other's counting.
    #[must_use]
    pub fn recounted(&self) -> Self {
        let names = self.names;
        let (owner, _) = share(self.clone());
        Self { names, owner }
    }

    /// The names, in order.
    #[must_use]
    #[inline]
    pub fn names(&self) -> &[Str] {
        // SAFETY: either null or the vector that `owner` keeps alive.
        unsafe { self.names.as_ref() }.map_or(&[], |names| names.as_slice())
    }

    /// How many fields there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.names().len()
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.names().is_empty()
    }

    /// The place of the field called `name`.
    #[must_use]
    #[inline]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names().iter().position(|field| field.as_str() == name)
    }

    /// Whether both are the very same list, which is quicker than comparing names.
    #[must_use]
    #[inline]
    pub fn is(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl Clone for Schema {
    #[inline]
    fn clone(&self) -> Self {
        keep(self.owner);
        Self { ..*self }
    }
}

impl Drop for Schema {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: every handle owns one reference, and this one ends here.
        unsafe { let_go(self.owner) }
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self::empty()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.is(other) || self.names() == other.names()
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
