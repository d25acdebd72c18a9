//! The part of a parallel segment that sees its chunks in order: what was lost, and where each map is.

use std::sync::Arc;

use forebay_core::{Chunk, Error, State};

use super::{
    link::{Blame, Link},
    parallel::{Lost, Mapped},
    trail::{Mark, Origin, Place, Trail},
};
use crate::{graph::OnError, host::Host, stats::Counters};

/// A segment's chunks in order, after any thread has worked on them.
///
/// Maps give one sample for each, so how far one is says how far all are, except where samples were lost: there, and
/// nowhere else, they leave marks.
pub(crate) struct Lane(Vec<Place1>);

/// How far one map is.
struct Place1 {
    node: usize,
    on_error: OnError,
    blame: Blame,
    counters: Arc<Counters>,
    trail: Arc<Trail>,
    place: Place,
}

impl Lane {
    pub(super) fn new(links: &[Link]) -> Self {
        let map = |link: &Link| Place1 {
            node: link.node,
            on_error: link.on_error,
            blame: link.blame.clone(),
            counters: Arc::clone(&link.counters),
            trail: Arc::clone(&link.trail),
            place: Place::start(0, 1, 1),
        };
        Self(links.iter().map(map).collect())
    }

    /// Starts an epoch; gives how many samples were taken before.
    pub(super) fn start(&mut self, origins: &[Origin]) -> u64 {
        for map in &mut self.0 {
            map.place = origins[map.node].mark.place.clone();
            map.trail.clear();
            if map.place.taken != map.place.given {
                map.mark();
            }
        }
        self.0.first().map_or(0, |map| map.place.taken[0])
    }

    /// Starts another pass.
    pub(super) fn start_pass(&mut self, pass: u64) {
        self.0.iter_mut().for_each(|map| map.place = Place::start(pass, 1, 1));
    }

    /// How many samples were lost in this pass, of those seen here.
    pub(super) fn lost(&self) -> u64 {
        self.0.iter().map(Place1::lost).sum()
    }

    /// Takes the next chunk in order and counts what it lost. Gives the error that ends the segment, after what is in
    /// `chunk` then.
    pub(super) fn settle(&mut self, done: Mapped, chunk: &mut Chunk, host: &Host) -> Option<Error> {
        let (mut passed, mut at) = (0, 0);
        for lost in done.lost {
            let before = lost.at - at; // Those since the one lost before, which all came out.
            passed += before;
            at = lost.at + 1;
            self.pass(before as u64);
            if let Err(error) = self.lose(lost, host) {
                let mut whole = Chunk::new();
                whole.take_from(chunk, passed);
                *chunk = whole;
                return Some(error);
            }
        }
        self.pass((chunk.len() - passed) as u64);
        done.failed
    }

    /// Counts samples that all maps passed on.
    fn pass(&mut self, count: u64) {
        for map in &mut self.0 {
            map.place.taken[0] += count;
            map.place.given[0] += count;
        }
    }

    /// Counts a sample that a map lost.
    fn lose(&mut self, lost: Lost, host: &Host) -> Result<(), Error> {
        let (before, rest) = self.0.split_at_mut(lost.map);
        for map in before {
            map.place.taken[0] += 1;
            map.place.given[0] += 1;
        }
        let Some(map) = rest.first_mut() else { return Ok(()) };
        if let Some(reason) = map.on_error.exceeded(map.lost(), map.place.taken[0] + 1) {
            return Err(lost.error.context("on_error", reason));
        }
        map.place.taken[0] += 1;
        map.counters.lost(1);
        if map.mark() {
            host.ask_for_trim();
        }
        host.lose(&map.blame.pipe, map.on_error, Some((lost.uid, &lost.key)), lost.error);
        Ok(())
    }
}

impl Place1 {
    fn lost(&self) -> u64 {
        self.place.taken[0].saturating_sub(self.place.given[0])
    }

    /// Leaves a mark after a loss; says whether old ones should be forgotten.
    fn mark(&self) -> bool {
        self.trail.keep(Mark { place: self.place.clone(), state: Some(State::default()) })
    }
}
