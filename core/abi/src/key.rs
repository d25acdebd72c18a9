//! What a person can open to see where a sample came from.

use std::fmt;

use abi_stable::StableAbi;

use crate::Str;

/// Where a sample came from: a file or other origin, and a name or a number inside it.
///
/// Prints as `shards/000.tar!/0001` when there is a name, and as `range#17` when there is none.
#[repr(C)]
#[derive(StableAbi, Clone, PartialEq, Eq, Default)]
pub struct Key {
    /// The file, or what stands for it; shared by all samples from it.
    pub origin: Str,
    /// The name inside the origin; empty when the samples there have none.
    pub name: Str,
    /// The number inside the origin.
    pub index: u64,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.origin.is_empty(), self.name.is_empty()) {
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
