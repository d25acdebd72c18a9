//! How many samples of each edge are wanted, as far as that is known: those that a pipe takes which takes so many and no more, and those that the
//! consumer said it will take. Whoever asks for one gets it, whatever was known, so a pipe that does not keep to its word stops nothing.

use forebay_snapshot::checkpoint_log::StartPoint;

use crate::run::{
    segment::{SegmentKind, SegmentState},
    table::Table,
};

impl Table {
    /// The consumer waits for a sample; says whether there may be work by that.
    pub(crate) fn ask(&mut self) -> bool {
        let news = !std::mem::replace(&mut self.asked, true);
        self.note_sated();
        news && self.wanted < u64::MAX
    }

    /// What comes on each edge is counted from here on.
    pub(super) fn count_from(&mut self, origins: &[StartPoint]) {
        for segment in &self.segments {
            let Some(origin) = segment.nodes.last().map(|&node| &origins[node]) else { continue };
            let given =
                origin.checkpoint.place.given.iter().zip(&origin.skip).map(|(given, skip)| given + skip);
            for (&out, given) in segment.outputs.iter().zip(given) {
                self.edges[out].came = given;
            }
        }
    }

    /// Whether all that is wanted of a segment in this pass was made, or is being made.
    pub(super) fn is_sated(&self, segment: &SegmentState) -> bool {
        self.is_bounded() && self.demand(segment).1
    }

    /// How many samples of its output are wanted of a segment in this pass.
    pub(super) fn wanted_of(&self, at: usize) -> u64 {
        match self.segments[at].outputs[..] {
            [out] if self.is_bounded() => self.wanted_on(out),
            _ => u64::MAX,
        }
    }

    /// How many samples of its input a segment takes in this pass.
    pub(super) fn taken_by(&self, at: usize) -> u64 {
        if self.is_bounded() { self.demand(&self.segments[at]).0 } else { u64::MAX }
    }

    fn is_bounded(&self) -> bool {
        self.bounded || self.wanted < u64::MAX
    }

    /// How many samples of its input a segment takes in this pass for those that are wanted of it, and whether it has made all of those.
    fn demand(&self, segment: &SegmentState) -> (u64, bool) {
        let (wanted, came) = match segment.outputs[..] {
            [out] => (self.wanted_on(out), self.edges[out].came),
            _ => (u64::MAX, 0),
        };
        let up = |wanted: u64| segment.takes.iter().rev().fold(wanted, |wanted, takes| takes.from(wanted));
        match &segment.kind {
            SegmentKind::Serial { .. } => (up(wanted), came >= wanted),
            SegmentKind::Parallel { ordered, taken, .. } => {
                // For each that was lost another one is taken.
                let takes = up(wanted.saturating_add(ordered.missing()));
                (takes, *taken >= takes)
            }
        }
    }

    /// How many samples are wanted of what comes on an edge in this pass.
    fn wanted_on(&self, edge: usize) -> u64 {
        let at = &self.edges[edge];
        let (wanted, asked) = match at.plan.to.map(|reader| &self.segments[reader]) {
            None => (self.wanted, self.asked),
            Some(reader) => {
                let (takes, sated) = self.demand(reader);
                let asks = match &reader.kind {
                    SegmentKind::Serial { wants: Some(port), .. } => reader.inputs.get(*port) == Some(&edge),
                    _ => false,
                };
                (takes, asks && !sated)
            }
        };
        if asked && at.items.is_empty() { wanted.max(at.came + 1) } else { wanted }
    }
}
