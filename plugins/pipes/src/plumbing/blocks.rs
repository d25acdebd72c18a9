//! Samples of a stream that are held whole, and found by their number.

use forebay_core::{Chunk, Error, Key, Result, Schema, Value};

use crate::cache::memory::{self, BLOCK};

/// The first samples of a stream, as long as they are no larger than a limit.
#[derive(Debug)]
pub(crate) struct Blocks {
    limit: u64,
    /// In pieces of `BLOCK`: none is moved when more come.
    held: Vec<Chunk>,
    count: u64,
    bytes: u64,
}

impl Blocks {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, held: Vec::new(), count: 0, bytes: 0 }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Moves as many of the foremost samples here, each of which takes so many bytes beside its own.
    ///
    /// # Errors
    /// `Limit`, with the option `limit`, when they are too large; none is moved then.
    pub(crate) fn hold(&mut self, input: &mut Chunk, most: usize, beside: usize) -> Result<()> {
        let before = self.bytes;
        for (at, (.., values)) in input.samples().take(most).enumerate() {
            self.bytes += memory::size(values) + beside as u64;
            if self.bytes > self.limit {
                self.bytes = before;
                let count = self.count + at as u64 + 1;
                let error = format!("{count} samples are more than {} bytes", self.limit);
                return Err(Error::limit(error).context("option", "limit"));
            }
        }
        let mut left = most.min(input.len());
        while left > 0 {
            if self.count.is_multiple_of(BLOCK) {
                self.held.push(Chunk::new());
            }
            let Some(block) = self.held.last_mut() else {
                return Err(Error::bug("no block to hold samples"));
            };
            let count = left.min(BLOCK as usize - block.len());
            block.take_from(input, count);
            self.count += count as u64;
            left -= count;
        }
        Ok(())
    }

    /// The sample with this number.
    pub(crate) fn get(&self, number: u64) -> Option<(u64, &Key, &Schema, &[Value])> {
        let block = usize::try_from(number / BLOCK).ok().and_then(|block| self.held.get(block))?;
        block.get((number % BLOCK) as usize)
    }
}
