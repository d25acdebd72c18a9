//! The chunks of a parallel segment that were taken and did not go on yet, and which of them goes next.

use std::collections::BTreeMap;

use forebay_core::Error;

use crate::run::{
    handoff_order::{HandoffOrder, Turn},
    item::Item,
    mapped::Mapped,
};

/// Chunks by number, in the order in which they were taken.
#[derive(Default)]
pub(super) struct ReorderBuffer {
    next: u64,
    /// The number of the first of this pass.
    begun: u64,
    /// That number, and how many of this pass went on. In an ordered segment it is whose turn it is.
    due: u64,
    done: BTreeMap<u64, FinishedChunk>,
}

/// A chunk that waits for its turn.
pub(super) struct FinishedChunk {
    /// The place of its first sample in the input.
    pub(super) at: u64,
    pub(super) item: Item,
    pub(super) mapped: Mapped,
}

impl ReorderBuffer {
    /// Begins a pass; chunks taken before belong to none any more.
    pub(super) fn start_pass(&mut self) {
        (self.begun, self.due) = (self.next, self.next);
    }

    /// The number of a chunk that is taken now.
    pub(super) fn take(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.done.len()
    }

    /// How many samples wait.
    pub(super) fn samples(&self) -> usize {
        self.done.values().map(|done| done.item.samples()).sum()
    }

    /// Takes a chunk that is done, or gives it back: it may be of a pass that was given up, or an error holds its number.
    pub(super) fn put(&mut self, number: u64, done: FinishedChunk) -> Result<(), Item> {
        if number < self.begun || self.done.contains_key(&number) {
            return Err(done.item);
        }
        self.done.insert(number, done);
        Ok(())
    }

    /// An error from upstream takes a number like a chunk, so that it stays in its place.
    pub(super) fn fail(&mut self, number: u64, at: u64, error: Error) {
        self.done.insert(number, FinishedChunk { at, item: Item::Failed(error), mapped: Mapped::default() });
    }

    /// The error that waits for chunks taken before it.
    pub(super) fn failed(&self) -> Option<Error> {
        self.done.values().find_map(|done| match &done.item {
            Item::Failed(error) => Some(error.clone()),
            Item::Chunk(..) => None,
        })
    }

    /// Takes what goes on next, if it is there. An error goes after all chunks that were taken before it.
    pub(super) fn pop(&mut self, handoff_order: Option<&HandoffOrder>) -> Option<FinishedChunk> {
        let number = match handoff_order.map(HandoffOrder::turn) {
            None => self.due,
            Some(turn) => {
                let goes = |(number, done): &(&u64, &FinishedChunk)| match (&done.item, turn) {
                    (Item::Failed(_), _) => **number == self.due,
                    (Item::Chunk(..), Turn::Any) => true,
                    // One that holds nothing is in nobody's way.
                    (Item::Chunk(..), Turn::At(place)) => done.at == place || done.mapped.taken == 0,
                };
                *self.done.iter().find(goes)?.0
            }
        };
        let done = self.done.remove(&number)?;
        self.due += 1;
        Some(done)
    }

    /// Takes all that wait.
    pub(super) fn clear(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.done).into_values().map(|done| done.item).collect()
    }
}
