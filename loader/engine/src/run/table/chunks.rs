//! The way of chunks through the table: what can run is taken by a thread, brought back, handed on, and given to the consumer.

use std::time::{Duration, Instant};

use forebay_core::{Chunk, Error, Key, Waker};
use forebay_graph::On;

use crate::run::{
    Chain, Parallel,
    item::Item,
    mapped::Mapped,
    ordered::FinishedChunk,
    segment::{Blocked, EdgeQueue, SegmentKind, SegmentState},
    table::{MOST_WAITING, Table},
};

/// What a worker has.
pub(super) struct InHand {
    pub(super) segment: usize,
    /// Of a chunk, its place among the segment's; none for a chain.
    pub(super) number: Option<u64>,
    /// Of a chunk, the place of its first sample in the input.
    pub(super) at: u64,
    pub(super) worker: usize,
    pub(super) since: Instant,
    pub(super) samples: usize,
    pub(super) first: Option<Key>,
}

/// What a worker takes.
#[expect(clippy::large_enum_variant, reason = "moved once, never stored")]
pub(crate) enum Work {
    Serial { segment: usize, chain: Box<Chain>, waker: Waker },
    Task(Task),
}

/// A chunk of a parallel segment.
pub(crate) struct Task {
    pub(crate) segment: usize,
    /// Its place among the segment's chunks.
    pub(crate) number: u64,
    /// Its place among the chunks of all segments, from 1.
    pub(crate) order: u64,
    /// The place of its first sample in the input.
    at: u64,
    /// The number of its first sample within the pass, less those that are known to be lost.
    pub(crate) first: u64,
    pub(crate) parallel: Parallel,
    pub(crate) chunk: Chunk,
    /// Empty; for what comes out.
    pub(crate) out: Chunk,
    pub(crate) begin: Instant,
}

/// How many chunks the first batch of an epoch is cut into, for each worker.
const FIRST_SHARE: usize = 6;

/// What was cut off an input.
struct Cut {
    chunk: Chunk,
    /// How many samples that is; more than it holds, where they were handed on before a resume.
    taken: u64,
    error: Option<Error>,
}

impl Table {
    /// The most downstream work there is for who works there, as the thread or process with this number.
    pub(crate) fn take_work(&mut self, on: On, worker: usize) -> Option<Work> {
        let segment = self.runnable(|segment| segment.on == on && !segment.is_dedicated())?;
        Some(self.take_for(segment, worker))
    }

    /// Takes a segment that can run, for this worker.
    pub(super) fn take_for(&mut self, segment: usize, worker: usize) -> Work {
        let work = self.take(segment);
        let mut hand =
            InHand { segment, number: None, at: 0, worker, since: Instant::now(), samples: 0, first: None };
        if let Work::Task(task) = &work {
            (hand.number, hand.at, hand.samples) = (Some(task.number), task.at, task.chunk.len());
            hand.first = task.chunk.front().map(|(_, key)| key.clone());
        }
        self.in_hand.push(hand);
        work
    }

    /// Notes that work came back: a chunk's number, or none for a chain. Gives the place of its first sample.
    pub(super) fn put_back(&mut self, segment: usize, number: Option<u64>) -> u64 {
        let at = self.in_hand.iter().position(|hand| hand.segment == segment && hand.number == number);
        at.map_or(0, |at| self.in_hand.swap_remove(at).at)
    }

    /// Takes a segment that can run.
    pub(super) fn take(&mut self, at: usize) -> Work {
        let wanted = self.wanted_of(at);
        let segment = &mut self.segments[at];
        segment.note_end_of_wait();
        match &mut segment.kind {
            SegmentKind::Serial { chain, wants, pending, woken, .. } => {
                (*pending, *woken) = (false, false);
                // Invariant: `obstacle` refuses a segment whose chain is away.
                let Some(mut chain) = chain.take() else { unreachable!("a segment was taken twice") };
                chain.want(wanted);
                if let Some(port) = wants.take() {
                    match self.edges[segment.inputs[port]].pop() {
                        Some(Item::Chunk(mut chunk, _)) => {
                            chain.ports[port].chunk.take_from(&mut chunk, usize::MAX);
                            recycle(&mut self.spares, chunk);
                        }
                        Some(Item::Failed(error)) => chain.fail(error),
                        None => chain.ports[port].ended = true,
                    }
                }
                Work::Serial { segment: at, chain, waker: segment.waker.clone() }
            }
            SegmentKind::Parallel { .. } => Work::Task(self.take_chunk(at)),
        }
    }

    /// Takes a chunk of a parallel segment that can run.
    pub(super) fn take_chunk(&mut self, segment: usize) -> Task {
        let left = self.samples_left(self.segments[segment].outputs[0]).max(1);
        let out = self.spares.pop().unwrap_or_default();
        let begin = Instant::now();
        let wanted = self.taken_by(segment);
        // Invariant: who calls this has looked.
        let SegmentKind::Parallel { maps, ordered, chunk_size, taken, running, reorder } =
            &mut self.segments[segment].kind
        else {
            unreachable!("a chunk of a serial segment")
        };
        *running += 1;
        let (number, at) = (reorder.take(), *taken);
        // So that places in coming batches are used.
        let first = at.saturating_sub(ordered.missing());
        // The consumer waits for the first batch of an epoch, so all work on it.
        let (stacked, share) = (maps.stacked(), FIRST_SHARE * self.workers);
        let most = if at < stacked { (stacked as usize / share).max(1) } else { usize::MAX };
        let wanted = usize::try_from(wanted.saturating_sub(at).max(1)).unwrap_or(usize::MAX);
        let most = most.min(left).min(wanted);
        let (parallel, (size, went)) = (maps.clone(), ordered.portion(at, chunk_size.at_most(most)));
        let cut = self.cut(segment, size, went);
        if let SegmentKind::Parallel { taken, reorder, ordered, .. } = &mut self.segments[segment].kind {
            ordered.take(at, &cut.chunk);
            *taken += cut.taken;
            cut.error.into_iter().for_each(|error| reorder.fail(number, at, error));
        }
        self.taken += 1;
        Task { segment, number, order: self.taken, at, first, parallel, chunk: cut.chunk, out, begin }
    }

    /// Takes up to `size` samples from the input of a parallel segment, or the error that waits there. Samples that `went`
    /// before are dropped.
    fn cut(&mut self, at: usize, size: usize, went: bool) -> Cut {
        let input = self.segments[at].inputs[0];
        let edge = &mut self.edges[input];
        let mut part = self.spares.pop().unwrap_or_default();
        match edge.pop() {
            Some(Item::Chunk(mut chunk, bytes)) => {
                let whole = chunk.len();
                part.take_from(&mut chunk, size);
                let rest = bytes * chunk.len() / whole.max(1);
                if chunk.is_empty() {
                    recycle(&mut self.spares, chunk);
                } else {
                    edge.bytes += rest;
                    edge.items.push_front(Item::Chunk(chunk, rest));
                }
                let taken = part.len() as u64;
                if went {
                    self.trash.push(Item::Chunk(std::mem::take(&mut part), 0));
                }
                Cut { chunk: part, taken, error: None }
            }
            Some(Item::Failed(error)) => Cut { chunk: part, taken: 0, error: Some(error) },
            None => Cut { chunk: part, taken: 0, error: None },
        }
    }

    /// Takes back a chunk of a parallel segment, and hands on all whose turn it is.
    pub(crate) fn hand_in_task(
        &mut self,
        (at, number): (usize, u64),
        chunk: Chunk,
        mapped: Mapped,
        spent: Chunk,
        busy: Duration,
    ) {
        let place = self.put_back(at, Some(number));
        recycle(&mut self.spares, spent);
        let (ended, out) = (self.segments[at].ended, self.segments[at].outputs[0]);
        if let SegmentKind::Parallel { chunk_size, running, reorder, .. } = &mut self.segments[at].kind {
            *running -= 1;
            chunk_size.learn(mapped.taken, mapped.bytes, busy);
            let bytes = mapped.bytes;
            let item = Item::Chunk(chunk, bytes);
            let put = if ended {
                Err(item)
            } else {
                reorder.put(number, FinishedChunk { at: place, item, mapped })
            };
            match put {
                Ok(()) => self.edges[out].bytes += bytes, // It waits for its turn on the edge.
                Err(item) => self.trash.push(item),
            }
        }
        self.hand_on(at);
        self.settle(at);
        self.note_wait(at);
        self.go_ahead();
        self.note_sated();
    }

    fn hand_on(&mut self, at: usize) {
        let out = self.segments[at].outputs[0];
        loop {
            let SegmentKind::Parallel { ordered, reorder, .. } = &mut self.segments[at].kind else { return };
            let Some(FinishedChunk { at: place, item, mapped }) = reorder.pop(ordered.handoff_order()) else {
                return;
            };
            match item {
                Item::Chunk(mut chunk, bytes) => {
                    self.edges[out].bytes -= bytes;
                    let error = ordered.settle(place, mapped, &mut chunk, &self.host);
                    if !chunk.is_empty() {
                        self.push(out, Item::Chunk(chunk, bytes));
                    }
                    if error.is_some() {
                        return self.end(at, error);
                    }
                }
                Item::Failed(error) => return self.end(at, Some(error)),
            }
        }
    }

    /// Ends a parallel segment whose input has ended and whose chunks were all handed on; or those that are left wait for
    /// some that never come.
    pub(super) fn settle(&mut self, at: usize) {
        let segment = &self.segments[at];
        let input = &self.edges[segment.inputs[0]];
        if !input.items.is_empty() || !input.ended || segment.ended {
            return;
        }
        let SegmentKind::Parallel { running: 0, ordered, reorder, .. } = &mut self.segments[at].kind else {
            return;
        };
        let error = reorder.failed().or_else(|| ordered.end(&self.host));
        self.end(at, error);
    }

    pub(super) fn push(&mut self, edge: usize, item: Item) {
        if self.is_unread(edge) {
            self.trash.push(item);
        } else {
            let edge = &mut self.edges[edge];
            edge.bytes += item.bytes();
            if let Item::Chunk(chunk, _) = &item {
                edge.came += chunk.len() as u64;
            }
            edge.items.push_back(item);
        }
    }

    /// What waits for the consumer.
    pub(crate) fn take_output(&mut self) -> Option<Item> {
        let item = if self.ahead.is_begun() { self.ahead.pop() } else { self.edges[self.output].pop() };
        self.asked &= item.is_none();
        self.note_sated();
        item
    }

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

/// Keeps the memory of an empty chunk, unless enough is kept.
pub(super) fn recycle(spares: &mut Vec<Chunk>, mut chunk: Chunk) {
    const MOST: usize = 32;
    chunk.clear();
    if spares.len() < MOST {
        spares.push(chunk);
    }
}
