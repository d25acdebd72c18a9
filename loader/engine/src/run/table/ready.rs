//! Which segment can run.

use forebay_graph::On;

use crate::run::{
    item::Item,
    segment::{Blocked, EdgeQueue, SegmentKind, SegmentState},
    table::{MOST_WAITING, Table},
};

impl Table {
    /// Whether there is work for who works there.
    pub(crate) fn has_work(&self, on: On) -> bool {
        self.runnable(|segment| segment.on == on).is_some()
    }

    /// The most downstream segment that can run, of those that `fit`.
    pub(super) fn runnable(&self, fits: impl Fn(&SegmentState) -> bool) -> Option<usize> {
        if self.paused || self.stopped {
            return None;
        }
        let mut segments = (0..self.segments.len()).rev();
        let ready = segments.find(|&at| fits(&self.segments[at]) && self.obstacle(at).is_ok());
        ready.or_else(|| self.starving().filter(|&at| fits(&self.segments[at])))
    }

    /// A segment with a full output, and another one that is empty, which everything waits for.
    fn starving(&self) -> Option<usize> {
        if self.running() > 0 || self.has_output() || self.segments.iter().any(SegmentState::is_pending) {
            return None;
        }
        // Somebody may not have looked yet.
        if (0..self.segments.len()).any(|at| self.obstacle(at).is_ok()) {
            return None;
        }
        let one_empty = |segment: &SegmentState| {
            segment.outputs.len() > 1 && segment.outputs.iter().any(|&out| self.edges[out].items.is_empty())
        };
        let blocked =
            |&at: &usize| self.obstacle(at) == Err(Some(Blocked::Room)) && one_empty(&self.segments[at]);
        (0..self.segments.len()).rev().find(blocked)
    }

    /// Why a segment cannot run: for lack of input, of room, or (`None`) neither.
    pub(super) fn obstacle(&self, at: usize) -> Result<(), Option<Blocked>> {
        let segment = &self.segments[at];
        if segment.ended {
            return Err(None);
        }
        match &segment.kind {
            SegmentKind::Serial { chain: None, .. } => Err(None),
            SegmentKind::Serial { .. } if segment.is_pending() => Err(Some(Blocked::Input)),
            SegmentKind::Serial { wants: Some(port), .. }
                if !self.edges[segment.inputs[*port]].can_give() =>
            {
                Err(Some(Blocked::Input))
            }
            SegmentKind::Serial { .. } => self.room(segment, false),
            SegmentKind::Parallel { running, reorder, .. } => {
                // If none is worked on, those that are done wait for one that is not yet taken.
                if *running > 0 && running + reorder.len() >= self.window {
                    Err(None)
                } else if self.edges[segment.inputs[0]].items.is_empty() {
                    Err(Some(Blocked::Input))
                } else {
                    self.room(segment, *running > 0)
                }
            }
        }
    }

    /// Whether all that it makes is for segments that have not asked for it.
    fn idles(&self, segment: &SegmentState) -> bool {
        let reader = |&out: &usize| self.edges[out].plan.to.map(|to| &self.segments[to]);
        let idles =
            |reader: Option<&SegmentState>| reader.is_some_and(|reader| reader.idles || self.idles(reader));
        !segment.outputs.is_empty() && segment.outputs.iter().map(reader).all(idles)
    }

    /// How many more samples may wait on this edge, those included that its writer works on.
    pub(super) fn samples_left(&self, edge: usize) -> usize {
        if self.samples == usize::MAX {
            return usize::MAX;
        }
        let EdgeQueue { items, plan, .. } = &self.edges[edge];
        let in_turn = match &self.segments[plan.from].kind {
            SegmentKind::Parallel { reorder, .. } => reorder.samples(),
            SegmentKind::Serial { .. } => 0,
        };
        let in_hand = self.in_hand.iter().filter(|hand| hand.segment == plan.from);
        let in_hand: usize = in_hand.map(|hand| hand.samples).sum();
        let waiting: usize = items.iter().map(Item::samples).sum();
        self.samples.saturating_sub(waiting + in_turn + in_hand)
    }

    /// Whether each output takes one more chunk; `coming` says that one is on its way there.
    ///
    /// An empty one always does. Others do while all edges hold less than the budget, and they and all edges before them less
    /// than their part of it: the first of four edges a quarter. So what is cheap to read does not take the room of what is
    /// made from it.
    fn room(&self, segment: &SegmentState, coming: bool) -> Result<(), Option<Blocked>> {
        if self.keeps && self.idles(segment) || self.is_sated(segment) {
            return Err(Some(Blocked::Room));
        }
        let full = |out: usize| {
            let EdgeQueue { items, .. } = &self.edges[out];
            let held = |edges: &[EdgeQueue]| edges.iter().map(|edge| edge.bytes).sum::<usize>();
            let part = (self.budget / self.edges.len()).saturating_mul(out + 1);
            (coming || !items.is_empty())
                && (items.len() >= MOST_WAITING
                    || self.samples_left(out) == 0
                    || held(&self.edges[..=out]) >= part
                    || self.held() >= self.budget)
        };
        match segment.outputs.iter().any(|&out| full(out)) {
            true => Err(Some(Blocked::Room)),
            false => Ok(()),
        }
    }
}
