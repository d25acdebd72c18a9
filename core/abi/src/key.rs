//! What a person can open to see where a sample came from.

use std::{fmt, mem};

use abi_stable::StableAbi;

use crate::Str;

/// Where a sample came from: a file or other origin, and a name or a number inside it.
///
/// Prints as `shards/000.tar!/0001` when there is a name, as `range#17` when there is none, and as the
/// origin alone when there is no number either.
#[repr(C)]
#[derive(StableAbi, Clone, PartialEq, Eq, Default)]
pub struct Key {
    /// The file, or what stands for it; shared by all samples from it.
    pub origin: Str,
    /// The name inside the origin; empty when the samples there have none.
    pub name: Str,
    /// The number inside the origin, or [`Key::WHOLE`].
    pub index: u64,
}

impl Key {
    /// The number of a sample that is its whole origin.
    pub const WHOLE: u64 = u64::MAX;

    /// The key of a sample that is its whole origin, such as a file.
    #[must_use]
    pub fn whole(origin: impl Into<Str>) -> Self {
        Self { origin: origin.into(), name: Str::EMPTY, index: Self::WHOLE }
    }

    /// Moves it out, and leaves the default.
    // Part by part: one that is put together in memory has to wait there before it is moved.
    #[must_use]
    #[inline(always)]
    pub fn take(&mut self) -> Self {
        let Self { origin, name, index } = self;
        Self { origin: mem::take(origin), name: mem::take(name), index: mem::take(index) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.origin.is_empty(), self.name.is_empty()) {
            (_, true) if self.index == Self::WHOLE => f.write_str(&self.origin),
            (_, true) => write!(f, "{}#{}", self.origin, self.index),
            (true, false) => f.write_str(&self.name),
            (false, false) => write!(f, "{}!/{}", self.origin, self.name),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
