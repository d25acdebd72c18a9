//! What became of a chunk that maps worked on.

use forebay_core::{Error, Key};

/// What became of one chunk: everything that was not lost is in the chunk that was to be filled.
#[derive(Default)]
pub(crate) struct Mapped {
    /// How many samples went in.
    pub(crate) taken: usize,
    /// How many bytes those that came out keep.
    pub(crate) bytes: usize,
    /// The samples that were lost, in their order.
    pub(crate) lost: Vec<Lost>,
    /// What ended it, after all others.
    pub(crate) failed: Option<Error>,
}

impl Mapped {
    /// Adds what became of the sample at this place, which was worked on alone, behind so many that were `given`.
    pub(crate) fn add(&mut self, at: usize, given: usize, one: Self) {
        self.bytes += one.bytes;
        self.lost.extend(one.lost.into_iter().map(|lost| Lost { at, given: given + lost.given, ..lost }));
        self.failed = one.failed;
    }
}

/// A sample that a map failed on, or a flat map somewhere in its stream.
pub(crate) struct Lost {
    /// Which map of the segment.
    pub(crate) map: usize,
    /// Which of the chunk's samples.
    pub(crate) at: usize,
    /// How many samples of the chunk a flat map gave before it failed; 0 for maps.
    pub(crate) given: usize,
    pub(crate) uid: u64,
    pub(crate) key: Key,
    pub(crate) error: Error,
}
