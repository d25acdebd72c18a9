//! What travels on an edge.

use forebay_core::{Chunk, Error};

/// What travels on an edge, in order.
pub(crate) enum Item {
    /// Samples, and how many bytes they keep.
    Chunk(Chunk, usize),
    /// Nothing comes after this.
    Failed(Error),
}

impl Item {
    /// How many samples it has.
    pub(super) fn samples(&self) -> usize {
        match self {
            Self::Chunk(chunk, _) => chunk.len(),
            Self::Failed(_) => 0,
        }
    }

    /// How many bytes of the budget it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Chunk(_, bytes) => *bytes,
            Self::Failed(_) => 0,
        }
    }
}
