//! The part of a parallel segment that sees its chunks in order: which goes next, what was lost, and where each map is.

use std::{collections::BTreeMap, sync::Arc};

use forebay_audit::Tap;
use forebay_core::{Chunk, Error, Sample, State, StateExt as _};
use forebay_graph::{Action, OnError};
use forebay_snapshot::{
    checkpoint_log::{Checkpoint, CheckpointLog, Progress, StartPoint},
    order::Span,
    seen::Field,
};

use crate::{
    host::Host,
    run::{
        handoff_order::{HandoffOrder, Turn},
        item::Item,
        link::{Blame, Link, ends_early},
        mapped::{Lost, Mapped},
    },
    stats::Counters,
};

/// A segment's chunks in order, after any thread has worked on them.
///
/// Maps give one sample for each, so how far one is says how far all are, except where samples were lost: there, and
/// nowhere else, they leave checkpoints. A flat map, which is alone, leaves one after each chunk; see `expand`.
pub(crate) struct OrderedOutput {
    pub(super) maps: Vec<MapProgress>,
    /// Whether the only one is a flat map.
    pub(super) expands: bool,
    /// Whether it gives one sample for each that it takes none the less: then it leaves checkpoints where samples were lost, too.
    pub(super) even: bool,
    /// For the last map, if others take the place of its losses.
    stand_in: Option<StandIn>,
    /// How many of the next samples were delivered before a resume, and whether it may end before all came again.
    pub(super) skip: u64,
    lenient: bool,
    /// For a flat map: where its input names files.
    pub(super) field: Box<Field>,
    /// For an unordered segment: whose turn it is.
    handoff_order: Option<Box<HandoffOrder>>,
}

/// What takes the place of lost samples.
#[derive(Default)]
struct StandIn {
    /// The last sample that was not lost, in this pass.
    last: Option<Sample>,
    /// How many stand for one that was lost since.
    run: u64,
}

/// How far one map is.
pub(super) struct MapProgress {
    node: usize,
    pub(super) on_error: OnError,
    pub(super) blame: Blame,
    pub(super) counters: Arc<Counters>,
    pub(super) checkpoint_log: Arc<CheckpointLog>,
    pub(super) place: Progress,
    pub(super) tap: Option<Tap>,
}

impl OrderedOutput {
    pub(super) fn new(links: &[Link], handoff_order: Option<Box<HandoffOrder>>) -> Self {
        let map = |link: &Link| MapProgress {
            node: link.node.at,
            on_error: link.node.on_error,
            blame: link.node.blame.clone(),
            counters: Arc::clone(&link.node.counters),
            checkpoint_log: Arc::clone(&link.node.checkpoint_log),
            place: Progress::start(0, 1, 1),
            tap: link.node.tap.clone(),
        };
        let replaces = links.last().is_some_and(|link| link.node.on_error.action == Action::Replace);
        let stand_in = replaces.then(StandIn::default);
        let expands = links.iter().any(|link| link.node.spec.expands());
        let even = links.iter().all(|link| link.node.spec.is_even());
        Self {
            maps: links.iter().map(map).collect(),
            expands,
            even,
            stand_in,
            skip: 0,
            lenient: false,
            field: Box::default(),
            handoff_order,
        }
    }

    /// Starts an epoch; gives the place in the input that it goes on from.
    pub(super) fn start(&mut self, epoch: u64, origins: &[StartPoint]) -> u64 {
        let first = self.maps.first().map(|map| &origins[map.node]);
        let begin = first.map_or(0, |origin| origin.checkpoint.place.taken[0]);
        // What an unordered segment gave may not have been the first of its input.
        let mut had = self
            .handoff_order
            .as_mut()
            .zip(first)
            .map(|(handoff_order, origin)| handoff_order.start(epoch, origin));
        for map in &mut self.maps {
            map.place = origins[map.node].checkpoint.place.clone();
            map.place.taken[0] = had.take().unwrap_or(map.place.taken[0]);
            map.checkpoint_log.start(epoch, &origins[map.node]);
            map.tap.iter_mut().for_each(Tap::start);
            // Only of maps that lost nothing does the number given say what was taken.
            if self.expands || map.place.taken != map.place.given || map.place.lost > 0 {
                map.checkpoint(0);
            }
        }
        self.stand_in = self.stand_in.take().map(|_| StandIn::default());
        self.skip = self.maps.last().map_or(0, |map| origins[map.node].skip[0]);
        self.lenient = self.maps.iter().any(|map| origins[map.node].lenient);
        if let (Some(map), true) = (self.maps.last(), self.stand_in.is_some() && self.skip > 0) {
            // For a snapshot before those were made again: of them, all but the first stood in for others.
            let (mut place, run) = (map.place.clone(), self.skip - 1);
            (place.taken[0], place.given[0], place.lost) =
                (place.taken[0] + self.skip, place.given[0] + self.skip, place.lost + run);
            map.checkpoint_log.keep(Checkpoint { place, state: Some(State::default().again(0, run)) });
        }
        begin
    }

    /// Starts another pass.
    pub(super) fn start_pass(&mut self, pass: u64) {
        self.maps.iter_mut().for_each(|map| map.place = Progress::start(pass, 1, 1));
        self.stand_in = self.stand_in.take().map(|_| StandIn::default());
        self.skip = 0;
        self.handoff_order.iter_mut().for_each(|handoff_order| handoff_order.start_pass(pass));
    }

    /// How many of up to `size` samples from this place on the next chunk may hold, and whether they were handed on before
    /// a resume.
    pub(super) fn portion(&self, place: u64, size: usize) -> (usize, bool) {
        self.handoff_order.as_ref().map_or((size, false), |handoff_order| handoff_order.portion(place, size))
    }

    /// Who says whose turn it is, if that is not by number.
    pub(super) fn handoff_order(&self) -> Option<&HandoffOrder> {
        self.handoff_order.as_deref()
    }

    /// Notes that all was handed on of an input that has ended; gives an error if more was to come by a known order, or if more
    /// samples failed than may.
    pub(super) fn end(&mut self, host: &Host) -> Option<Error> {
        let missing = std::mem::take(&mut self.skip);
        if let Some(map) = self.maps.last().filter(|_| missing > 0) {
            let error = ends_early(map.place.given[0], missing, self.lenient, &map.blame, host);
            if error.is_some() {
                return error;
            }
        }
        if let Some(error) = self.maps.iter().find_map(|map| map.judge(self.expands)) {
            return Some(error);
        }
        if self.handoff_order.is_none() && !self.expands {
            return None;
        }
        let error = self.handoff_order.as_ref().and_then(|handoff_order| handoff_order.unfulfilled());
        if let (Some(map), None) = (self.maps.last(), &error)
            && let Some(tap) = &map.tap
        {
            tap.over(map.place.pass);
        }
        error
    }

    /// How many samples went in and did not come out in this pass, of those seen here.
    pub(super) fn missing(&self) -> u64 {
        self.maps.iter().map(MapProgress::missing).sum()
    }

    /// Takes the chunk whose turn it is, of samples from the place `at` on, and counts what it lost. Gives the error that
    /// ends the segment, after what is in `chunk` then.
    pub(super) fn settle(&mut self, at: u64, done: Mapped, chunk: &mut Chunk, host: &Host) -> Option<Error> {
        if self.expands {
            return self.settle_expanded(done, chunk, host);
        }
        if self.stand_in.is_some() {
            return self.settle_replacing(done, chunk, host);
        }
        let Some(handoff_order) = &mut self.handoff_order else { return self.count(done, chunk, host) };
        if handoff_order.pass_on(Span(at, done.taken as u64)) {
            host.ask_for_trim();
        }
        let given = self.maps.last().map_or(0, |map| map.place.given[0]);
        let error = self.count(done, chunk, host);
        if let Some(map) = self.maps.last()
            && let Some(tap) = map.tap.as_ref().filter(|_| !chunk.is_empty())
        {
            tap.gave(map.place.pass, given, chunk);
        }
        error
    }

    /// Counts what came out of a chunk, and what was lost.
    fn count(&mut self, done: Mapped, chunk: &mut Chunk, host: &Host) -> Option<Error> {
        let (mut passed, mut at) = (0, 0);
        for lost in done.lost {
            let before = lost.at - at; // Those since the one lost before, which all came out.
            passed += before;
            at = lost.at + 1;
            self.pass(before as u64);
            if let Err(error) = self.lose(lost, host, false) {
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
        for map in &mut self.maps {
            map.place.taken[0] += count;
            map.place.given[0] += count;
        }
    }

    /// As [`settle`](OrderedOutput::settle), where what the last map lost is replaced.
    fn settle_replacing(&mut self, done: Mapped, chunk: &mut Chunk, host: &Host) -> Option<Error> {
        let (mut whole, mut at, mut failed) = (Chunk::new(), 0, done.failed);
        for lost in done.lost {
            self.pass_on(chunk, lost.at - at, &mut whole);
            at = lost.at + 1;
            let known = (whole.len() as u64) < self.skip;
            let (is_last, uid, key) = (lost.map + 1 == self.maps.len(), lost.uid, lost.key.clone());
            if let Err(error) = self.lose(lost, host, known) {
                failed = Some(error);
                chunk.clear();
                break;
            }
            if let Some(copy) = self.stand_in.as_ref().and_then(|stand_in| stand_in.last.as_ref())
                && is_last
            {
                whole.push(uid, key, copy.schema(), copy.values().iter().cloned());
            }
        }
        self.pass_on(chunk, usize::MAX, &mut whole);
        while self.skip > 0 && !whole.is_empty() {
            self.skip -= 1;
            whole.advance();
        }
        *chunk = whole;
        failed
    }

    /// Moves samples that all maps passed on.
    fn pass_on(&mut self, chunk: &mut Chunk, count: usize, whole: &mut Chunk) {
        let before = whole.len();
        whole.take_from(chunk, count);
        let passed = whole.len() - before;
        if let Some(stand_in) = self.stand_in.as_mut().filter(|_| passed > 0) {
            (stand_in.last, stand_in.run) = (whole.last(), 0);
        }
        self.pass(passed as u64);
    }

    /// Counts a sample that a map lost, and tells the host unless that was `known` before a resume.
    fn lose(&mut self, lost: Lost, host: &Host, known: bool) -> Result<(), Error> {
        let stand_in = self.stand_in.as_mut().filter(|_| lost.map + 1 == self.maps.len());
        let (before, rest) = self.maps.split_at_mut(lost.map);
        for map in before {
            map.place.taken[0] += 1;
            map.place.given[0] += 1;
        }
        let Some(map) = rest.first_mut() else { return Ok(()) };
        if let Some(reason) = map.on_error.exceeded(map.lost(), map.place.taken[0] + 1) {
            return Err(lost.error.context("on_error", reason));
        }
        let replaced = stand_in.as_ref().is_some_and(|stand_in| stand_in.last.is_some());
        if let Some(tap) = map.tap.as_ref().filter(|_| !replaced) {
            tap.lost(map.place.pass, map.place.taken[0], Some(lost.uid));
        }
        map.place.taken[0] += 1;
        let many = match stand_in {
            None => map.checkpoint(0),
            Some(stand_in) => {
                map.place.lost += 1;
                map.place.given[0] += u64::from(replaced);
                stand_in.run += u64::from(replaced);
                !known && map.checkpoint(stand_in.run) // `start` left one for those that are known.
            }
        };
        if many {
            host.ask_for_trim();
        }
        if known {
            return Ok(());
        }
        map.counters.lost(1);
        host.lose(&map.blame.pipe, map.on_error, Some((lost.uid, &lost.key)), lost.error);
        Ok(())
    }
}

impl MapProgress {
    fn missing(&self) -> u64 {
        self.place.taken[0].saturating_sub(self.place.given[0])
    }

    /// Those that were replaced are counted in the place.
    fn lost(&self) -> u64 {
        if self.on_error.action == Action::Replace { self.place.lost } else { self.missing() }
    }

    /// The error of a pass in which more samples failed than may.
    fn judge(&self, expands: bool) -> Option<Error> {
        let seen = self.place.taken[0].max(self.place.given[0]);
        // A flat map gives any number for each that it takes, so what it lost is counted in the place.
        let lost = if expands { self.place.lost } else { self.lost() };
        self.on_error.error_at_end(lost, seen).map(|error| self.blame.on(error))
    }

    /// Leaves a checkpoint after a loss, the last of a `run` that were replaced; says whether old ones should be forgotten.
    fn checkpoint(&self, run: u64) -> bool {
        self.checkpoint_log
            .keep(Checkpoint { place: self.place.clone(), state: Some(State::default().again(0, run)) })
    }
}

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
