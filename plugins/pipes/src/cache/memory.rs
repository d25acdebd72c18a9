//! Samples in memory.

use std::collections::VecDeque;

use forebay_core::{Context, Result, Sample};

use super::Kept;

/// The last samples of a stream that are together no larger than a limit.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    /// The number of the first, and how many bytes all keep.
    first: u64,
    samples: VecDeque<Sample>,
    bytes: u64,
    total: Option<u64>,
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, first: 0, samples: VecDeque::new(), bytes: 0, total: None }
    }
}

/// How many bytes of memory a sample that is kept takes.
pub(crate) fn size(sample: &Sample) -> u64 {
    (sample.size() + size_of::<Sample>() + size_of_val(sample.values())) as u64
}

impl Kept for Memory {
    fn begin(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn has(&self, at: u64) -> bool {
        (self.first..self.end()).contains(&at)
    }

    fn end(&self) -> u64 {
        self.first + self.samples.len() as u64
    }

    fn get(&mut self, at: u64, sample: &mut Sample, _: &Context) -> bool {
        let kept = at.checked_sub(self.first).and_then(|at| self.samples.get(usize::try_from(at).ok()?));
        kept.inspect(|kept| sample.clone_from(kept)).is_some()
    }

    fn push(&mut self, sample: &Sample, _: &Context) {
        self.bytes += size(sample);
        self.samples.push_back(sample.clone());
        while self.bytes > self.limit
            && let Some(first) = self.samples.pop_front()
        {
            self.bytes -= size(&first);
            self.first += 1;
        }
    }

    fn close(&mut self, _: &Context) {
        self.total = Some(self.end());
    }

    fn total(&self) -> Option<u64> {
        self.total
    }

    fn missing(&self) -> u64 {
        self.first
    }
}
