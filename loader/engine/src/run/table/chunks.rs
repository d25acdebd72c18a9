//! The chunks of parallel segments: taken, brought back, and handed on.

use std::time::{Duration, Instant};

use forebay_core::{Chunk, Error};

use crate::run::{
    item::Item,
    mapped::Mapped,
    reorder::FinishedChunk,
    segment::SegmentKind,
    table::{Table, Task, recycle},
};

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
}
