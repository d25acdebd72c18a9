//! Serial segments that have a worker of their own.

use forebay_core::{Key, Waker};

use crate::stop::Stop;

use crate::run::{
    Chain, CrashedSegment,
    death::Death,
    segment::SegmentKind,
    table::{Table, Work},
};

impl Table {
    /// Has the chain of this segment come back by `interrupt`, while it is away.
    pub(crate) fn give_to_solo(&mut self, segment: usize, interrupt: Waker) {
        self.segments[segment].interrupt = Some(interrupt);
    }

    /// Takes this segment, if it can run, for the worker that it has to itself.
    pub(crate) fn take_solo(&mut self, segment: usize, worker: usize) -> Option<Box<Chain>> {
        let at = self.runnable(|other| std::ptr::eq(other, &raw const self.segments[segment]))?;
        match self.take_for(at, worker) {
            Work::Serial { chain, .. } => Some(chain),
            Work::Task(_) => None, // Invariant: it is serial.
        }
    }

    /// Takes back a chain whose worker died, and its state with it. What waits for the consumer is still delivered, and
    /// nothing else runs before the next start.
    pub(crate) fn hand_in_dead(&mut self, at: usize, returned: Box<Chain>, death: Death) {
        let segment = &self.segments[at];
        let given_up = segment.ended || matches!(segment.kind, SegmentKind::Serial { missed: Some(_), .. });
        self.hand_in_chain(at, returned, Stop::Progress, Vec::new());
        if !given_up {
            self.pause();
            self.death.get_or_insert(death);
        }
    }

    /// A thread crashed over this segment, and keeps all that it had. What waits for the consumer is still delivered, and nothing else runs
    /// before the segment runs elsewhere.
    pub(crate) fn fall(&mut self, crashed: CrashedSegment) {
        self.pause();
        self.death.get_or_insert_with(|| Death { error: crashed.error.clone(), crashed: true });
        self.crashed.get_or_insert(crashed);
    }

    /// The segment that a thread crashed over, which is lost with it.
    pub(crate) fn crashed(&self) -> Option<&CrashedSegment> {
        self.crashed.as_ref()
    }

    /// What a worker was given: of how many samples which was the first.
    pub(crate) fn given_to(&self, segment: usize, worker: usize) -> (usize, Option<Key>) {
        let hand = self.in_hand.iter().find(|hand| hand.segment == segment && hand.worker == worker);
        hand.map_or((0, None), |hand| (hand.samples, hand.first.clone()))
    }

    /// Whether the epoch cannot go on, as it is.
    pub(crate) fn has_death(&self) -> bool {
        self.death.is_some()
    }

    /// Why the epoch cannot go on, once.
    pub(crate) fn take_death(&mut self) -> Option<Death> {
        self.death.take()
    }

    /// Has all chains come back that are in other processes.
    pub(crate) fn interrupt(&self) {
        let away = self.in_hand.iter().map(|hand| &self.segments[hand.segment]);
        away.filter_map(|segment| segment.interrupt.as_ref()).for_each(Waker::wake);
    }
}
