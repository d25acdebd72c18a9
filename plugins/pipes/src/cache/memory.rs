//! Samples in memory.

use std::collections::VecDeque;

use forebay_core::{Context, Result, Sample, Value, abi::Chunk};

use super::{Kept, Parts};

/// How many samples lie in one piece of memory: so many are kept without asking for memory for each.
pub(crate) const BLOCK: u64 = 512;

/// The last samples of a stream that are together no larger than a limit.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    /// The numbers of the first and of the next, and how many bytes all keep.
    first: u64,
    end: u64,
    bytes: u64,
    /// Those whose numbers begin with the same multiple of `BLOCK` are together, without those that were let go.
    blocks: VecDeque<Chunk>,
    total: Option<u64>,
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, first: 0, end: 0, bytes: 0, blocks: VecDeque::new(), total: None }
    }

    /// Lets the first sample go; says whether there was one.
    fn forget(&mut self) -> bool {
        let Some(block) = self.blocks.front_mut() else { return false };
        if let Some(sample) = block.pop() {
            self.bytes -= size(sample.values());
            self.first += 1;
        }
        if self.first.is_multiple_of(BLOCK) || self.first == self.end {
            self.blocks.pop_front();
        }
        true
    }
}

/// How many bytes of memory a sample with these values takes that is kept.
pub(crate) fn size(values: &[Value]) -> u64 {
    let values_own = values.iter().map(Value::size).sum::<usize>();
    (values_own + size_of::<Sample>() + size_of_val(values)) as u64
}

impl Kept for Memory {
    fn begin(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn has(&self, at: u64) -> bool {
        (self.first..self.end).contains(&at)
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn get(&mut self, at: u64, _: &Context) -> Option<Parts<'_>> {
        let before = self.first / BLOCK;
        // Of the first block those before `first` are gone.
        let start = self.first.max(at - at % BLOCK);
        let block = usize::try_from(at / BLOCK - before).ok()?;
        self.blocks.get(block)?.get((at - start) as usize)
    }

    fn push(&mut self, (uid, key, schema, values): Parts, _: &Context) {
        self.bytes += size(values);
        if self.blocks.is_empty() || self.end.is_multiple_of(BLOCK) {
            self.blocks.push_back(Chunk::new());
        }
        if let Some(block) = self.blocks.back_mut() {
            block.push(uid, key.clone(), schema, values.iter().cloned());
            self.end += 1;
        }
        while self.bytes > self.limit && self.forget() {}
    }

    fn close(&mut self, _: &Context) {
        self.total = Some(self.end);
    }

    fn total(&self) -> Option<u64> {
        self.total
    }

    fn missing(&self) -> u64 {
        self.first
    }
}
