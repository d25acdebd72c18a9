//! What the consumer gets: also when the epoch that comes next was begun, while it still takes what is left of the one before.

use std::collections::VecDeque;

use forebay_snapshot::checkpoint_log::StartPoint;

use crate::run::{item::Item, table::Table};

/// What is known of the epoch that comes next.
#[derive(Default)]
pub(super) struct Ahead {
    /// What to begin once all of this epoch is made.
    next: Option<(u64, Vec<StartPoint>)>,
    /// What was begun.
    begun: Option<u64>,
    /// What is left of the epoch that the consumer is in.
    rest: VecDeque<Item>,
    bytes: usize,
}

impl Ahead {
    pub(super) fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes of the budget the rest takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the next of the rest.
    pub(super) fn pop(&mut self) -> Option<Item> {
        let item = self.rest.pop_front()?;
        self.bytes -= item.bytes();
        Some(item)
    }

    /// Forgets all of it; gives what is to be dropped.
    pub(super) fn clear(&mut self) -> VecDeque<Item> {
        std::mem::take(self).rest
    }
}

impl Table {
    /// Tells those who wait for memory whether finished samples fill the budget while nobody waits for another. Once chunks are awaited
    /// that are worked on now, before a start or a stop, nothing may hold those up.
    pub(super) fn note_sated(&self) {
        let ledger = self.host.ledger();
        if ledger.is_tight() {
            let awaited = self.asked || self.paused || self.stopped;
            ledger.note_sated(!awaited && self.held() >= self.budget);
        }
    }

    /// How many bytes wait on all edges.
    pub(super) fn held(&self) -> usize {
        self.edges.iter().map(|edge| edge.bytes).sum::<usize>() + self.ahead.bytes()
    }

    /// Whether the consumer gets something: samples, an error, or the end.
    pub(crate) fn has_output(&self) -> bool {
        self.ahead.is_begun() || self.edges[self.output].can_give()
    }

    /// Whether the consumer will get nothing more.
    pub(crate) fn is_over(&self) -> bool {
        let output = &self.edges[self.output];
        let over = if self.ahead.is_begun() {
            self.ahead.is_empty()
        } else {
            output.items.is_empty() && output.ended
        };
        over || self.stopped
    }

    /// Says what to begin once all of this epoch is made.
    pub(crate) fn prepare(&mut self, epoch: u64, origins: Vec<StartPoint>) {
        if self.ahead.begun != Some(epoch) {
            self.ahead.next = Some((epoch, origins));
            self.go_ahead();
        }
    }

    /// The consumer goes over to this epoch, if it was begun; what it left of the one before is dropped.
    pub(crate) fn go_over(&mut self, epoch: u64) -> bool {
        if self.ahead.begun != Some(epoch) || self.stopped {
            return false;
        }
        self.trash.extend(self.ahead.clear());
        true
    }

    /// Begins the next epoch, if all of this one is made.
    pub(super) fn go_ahead(&mut self) {
        let made = self.edges[self.output].ended
            && self.in_hand.is_empty()
            && self.segments.iter().all(|segment| segment.ended);
        if !made || self.paused || self.stopped {
            return;
        }
        let Some((epoch, origins)) = self.ahead.next.take() else { return };
        let output = &mut self.edges[self.output];
        // Nobody goes on after an error.
        if output.items.iter().any(|item| matches!(item, Item::Failed(_))) {
            return;
        }
        let (rest, bytes) = (std::mem::take(&mut output.items), output.bytes);
        self.host.start();
        self.start(epoch, &origins, self.wanted);
        self.ahead = Ahead { next: None, begun: Some(epoch), rest, bytes };
    }
}
