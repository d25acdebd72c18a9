//! Who works on what, for people.

use std::time::Duration;

use crate::{
    run::{segment::SegmentState, table::Table},
    stall::{AtWork, Stall},
};

impl Table {
    /// What is being worked on, and what waits to be woken, for people.
    pub(crate) fn stall(&self, waited: Duration, names: &[String]) -> Stall {
        let names = |segment: &SegmentState| -> Vec<String> {
            segment.nodes.iter().filter_map(|&at| names.get(at).cloned()).collect()
        };
        let at_work = self.in_hand.iter().map(|hand| AtWork {
            nodes: names(&self.segments[hand.segment]),
            on: self.segments[hand.segment].on,
            index: hand.worker,
            process: None,
            since: hand.since.elapsed(),
            samples: hand.samples,
            first: hand.first.as_ref().map(ToString::to_string),
            decoder: None,
        });
        let mut at_work: Vec<_> = at_work.collect();
        at_work.sort_by_key(|work| std::cmp::Reverse(work.since));
        let pending = self.segments.iter().filter(|segment| segment.is_pending());
        Stall { waited, at_work, pending: pending.map(|segment| names(segment).join(" | ")).collect() }
    }
}
