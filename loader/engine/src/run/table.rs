//! The table of segments and edges that workers share; all of it is plain data under one lock.

mod chunks;
mod dedicated;
mod output;
mod stall;
mod wanted;

use std::{collections::VecDeque, sync::Arc, time::Instant};

use forebay_core::{Chunk, Error, Waker};
use forebay_graph::On;
use forebay_snapshot::checkpoint_log::StartPoint;

pub(crate) use self::chunks::{Task, Work};
use self::{
    chunks::{InHand, recycle},
    output::Ahead,
};
use crate::{
    host::Host,
    run::{
        Body, Chain, ChunkSize, Job,
        death::{CrashedSegment, Death},
        item::Item,
        segment::{EdgeQueue, SegmentKind, SegmentState},
        skew::MostAhead,
    },
    stop::Stop,
};

/// The most chunks that wait on one edge.
const MOST_WAITING: usize = 64;

pub(crate) struct Table {
    segments: Vec<SegmentState>,
    edges: Vec<EdgeQueue>,
    output: usize,
    budget: usize,
    /// The most samples that wait on an edge.
    samples: usize,
    most_ahead: MostAhead,
    workers: usize,
    /// How many chunks of a segment are worked on or wait for an earlier one: enough that one slow sample holds up nobody for
    /// long. What they give is bounded in bytes.
    window: usize,
    /// How many chunks of parallel segments were taken.
    taken: u64,
    /// Whether some segment keeps what it reads.
    keeps: bool,
    /// Whether it may be known how many samples of some edge are wanted.
    bounded: bool,
    /// How many samples the consumer takes of an epoch, and whether it waits for one now.
    wanted: u64,
    asked: bool,
    /// Empty chunks, whose memory is used again.
    spares: Vec<Chunk>,
    /// What is to be dropped once the lock is given back: a value's end may call a waker, which wants the lock.
    trash: Vec<Item>,
    host: Arc<Host>,
    /// What is being worked on.
    in_hand: Vec<InHand>,
    ahead: Ahead,
    paused: bool,
    stopped: bool,
    /// Why the run was lost.
    lost: Option<Error>,
    /// Who died with state that was needed, so that the epoch must be started again where the consumer is.
    death: Option<Death>,
    /// The segment that a thread crashed over.
    crashed: Option<CrashedSegment>,
}

impl Table {
    pub(crate) fn new(job: Job, wakers: Vec<Waker>, workers: usize) -> Self {
        let keeps = job.plan.segments.iter().any(|segment| segment.keeps);
        let bounded = job.plan.is_bounded();
        let chunk_size = ChunkSize::new(job.chunk).within(job.ahead);
        let bodies = job.plan.segments.into_iter().zip(job.bodies).zip(wakers);
        let segments =
            bodies.map(|((plan, body), waker)| SegmentState::new(plan, body, waker, chunk_size.clone()));
        let edges = job.plan.edges.into_iter();
        Self {
            segments: segments.collect(),
            edges: edges
                .map(|plan| EdgeQueue { plan, items: VecDeque::new(), bytes: 0, came: 0, ended: false })
                .collect(),
            output: job.output,
            budget: job.budget,
            samples: job.ahead,
            most_ahead: MostAhead::new(job.budget),
            workers,
            window: (4 * workers).max(MOST_WAITING),
            taken: 0,
            keeps,
            bounded,
            wanted: u64::MAX,
            asked: false,
            spares: Vec::new(),
            trash: Vec::new(),
            host: job.host,
            in_hand: Vec::new(),
            ahead: Ahead::default(),
            paused: true,
            stopped: false,
            lost: None,
            death: None,
            crashed: None,
        }
    }

    /// Begins an epoch, of which so many samples are `wanted`, each node at its origin; nothing runs now.
    pub(crate) fn start(&mut self, epoch: u64, origins: &[StartPoint], wanted: u64) {
        (self.wanted, self.asked) = (wanted, false);
        self.trash.extend(self.ahead.clear());
        for edge in &mut self.edges {
            self.trash.extend(std::mem::take(&mut edge.items));
            (edge.ended, edge.bytes) = (false, 0);
        }
        for segment in &mut self.segments {
            self.trash.extend(segment.start(epoch, origins));
        }
        self.count_from(origins);
        self.paused = false;
        self.death = None;
        self.note_sated();
    }

    pub(crate) fn pause(&mut self) {
        self.paused = true;
        self.note_sated();
    }

    pub(crate) fn running(&self) -> usize {
        self.in_hand.len()
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.note_sated();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Takes everything that was made; nothing runs now.
    pub(crate) fn take_bodies(&mut self) -> Vec<Body> {
        self.trash.extend(self.ahead.clear());
        for edge in &mut self.edges {
            self.trash.extend(std::mem::take(&mut edge.items));
        }
        for segment in &mut self.segments {
            self.trash.extend(segment.take_done());
        }
        let segments = std::mem::take(&mut self.segments);
        let bodies = segments.into_iter().filter_map(|segment| match segment.kind {
            SegmentKind::Serial { chain, .. } => chain.map(Body::Serial),
            SegmentKind::Parallel { maps, ordered, .. } => Some(Body::Parallel(maps, ordered)),
        });
        bodies.collect()
    }

    /// What is to be dropped without the lock.
    #[must_use]
    pub(crate) fn take_trash(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.trash)
    }

    /// A pipe of this segment may have something now.
    pub(crate) fn wake(&mut self, segment: usize) {
        if let Some(SegmentKind::Serial { woken, .. }) =
            self.segments.get_mut(segment).map(|segment| &mut segment.kind)
        {
            *woken = true;
        }
    }

    /// Whether more chunks wait for worker processes than there are of them, out of `count`, that have none: those that begin, too.
    pub(crate) fn has_chunks_to_spare(&self, count: usize) -> bool {
        let pooled = |segment: &SegmentState| segment.on == On::Process && !segment.is_dedicated();
        let mut busy = vec![false; count];
        for hand in self.in_hand.iter().filter(|hand| pooled(&self.segments[hand.segment])) {
            busy[hand.worker] = true;
        }
        let edges =
            self.segments.iter().filter(|segment| pooled(segment)).flat_map(|segment| &segment.inputs);
        let waiting: usize = edges.map(|&edge| self.edges[edge].items.len()).sum();
        waiting > busy.iter().filter(|busy| !**busy).count()
    }

    /// Takes back a serial segment with what it gave.
    pub(crate) fn hand_in_chain(
        &mut self,
        at: usize,
        mut returned: Box<Chain>,
        stop: Stop,
        given: Vec<(usize, usize, Chunk)>,
    ) {
        self.put_back(at, None);
        let ended = self.segments[at].ended;
        if let SegmentKind::Serial { chain, missed, .. } = &mut self.segments[at].kind
            && (missed.is_some() || ended)
        {
            // What it did belongs to a pass that was given up, or that nobody reads any more.
            self.trash.extend(given.into_iter().map(|(_, bytes, chunk)| Item::Chunk(chunk, bytes)));
            if let Some(pass) = missed.take() {
                returned.start_pass(pass);
            }
            *chain = Some(returned);
            self.note_wait(at);
            self.go_ahead();
            return self.note_sated();
        }
        let outputs = self.segments[at].outputs.clone();
        let apart = if outputs.len() > 1 && !given.is_empty() {
            self.check_apart(&outputs, &returned)
        } else {
            Ok(())
        };
        for (port, bytes, chunk) in given {
            returned.outs[port] = self.spares.pop().unwrap_or_default();
            self.push(outputs[port], Item::Chunk(chunk, bytes));
        }
        let segment = &mut self.segments[at];
        if let SegmentKind::Serial { chain, wants, pending, .. } = &mut segment.kind {
            *chain = Some(returned);
            match apart.map_or_else(Stop::Failed, |()| stop) {
                Stop::Progress => {}
                Stop::NeedInput(port) if port < segment.inputs.len() => {
                    *wants = Some(port);
                    segment.idles = false;
                }
                Stop::NeedInput(port) => {
                    let error = Error::bug(format!("a pipe asked for input {port}, which it has not"));
                    self.end(at, Some(error));
                }
                Stop::Pending => *pending = true,
                Stop::End => self.end(at, None),
                Stop::Failed(error) => self.end(at, Some(error)),
                Stop::Rewind(ports, pass) => {
                    for port in ports {
                        let input = self.segments[at].inputs[port];
                        self.rewind(input, pass);
                    }
                }
            }
        }
        self.note_wait(at);
        self.go_ahead();
        self.note_sated();
    }

    /// Whether one of the outputs of a chain is too far ahead of the others for more to come.
    fn check_apart(&self, outputs: &[usize], chain: &Chain) -> Result<(), Error> {
        let waiting = outputs.iter().map(|&out| (self.edges[out].items.len(), self.edges[out].bytes));
        self.most_ahead.check(waiting, || chain.blame_last())
    }

    /// Whether nobody will take what comes on this edge.
    fn is_unread(&self, edge: usize) -> bool {
        self.edges[edge].plan.to.is_some_and(|reader| self.segments[reader].ended)
    }

    /// Drops what waits on an edge, and in its writer for its turn there.
    fn drop_items(&mut self, edge: usize) {
        let EdgeQueue { items, bytes, plan, .. } = &mut self.edges[edge];
        *bytes = 0;
        self.trash.extend(std::mem::take(items));
        self.trash.extend(self.segments[plan.from].take_done());
    }

    /// A segment gives nothing more; its error, if any, goes last. Whoever worked for it alone ends too.
    fn end(&mut self, at: usize, error: Option<Error>) {
        self.segments[at].ended = true;
        for out in self.segments[at].outputs.clone() {
            if let Some(error) = &error {
                self.push(out, Item::Failed(error.clone()));
            }
            self.edges[out].ended = true;
            if let Some(reader) = self.edges[out].plan.to {
                self.settle(reader);
            }
        }
        for item in self.segments[at].take_done() {
            self.edges[self.segments[at].outputs[0]].bytes -= item.bytes();
            self.trash.push(item);
        }
        for input in self.segments[at].inputs.clone() {
            self.drop_items(input);
            let from = self.edges[input].plan.from;
            let writer = &self.segments[from];
            if !writer.ended && writer.outputs.iter().all(|&out| self.is_unread(out)) {
                self.end(from, None);
            }
        }
    }

    /// Starts everything over that leads to `edge`; what runs there now is dropped when it comes back.
    fn rewind(&mut self, edge: usize, pass: u64) {
        let mut todo = vec![(self.edges[edge].plan.from, pass)];
        while let Some((from, pass)) = todo.pop() {
            for out in self.segments[from].outputs.clone() {
                self.drop_items(out);
                (self.edges[out].ended, self.edges[out].came) = (false, 0);
            }
            let pass = self.segments[from].start_pass(pass);
            todo.extend(self.segments[from].inputs.iter().map(|&input| (self.edges[input].plan.from, pass)));
        }
    }

    /// The run is lost: tells the consumer.
    pub(crate) fn fail(&mut self, error: Error) {
        self.lost = Some(error);
        self.stop();
    }

    /// Why the run was lost, if it was.
    pub(crate) fn lost(&self) -> Option<Error> {
        self.lost.clone()
    }

    /// Takes a chunk that the consumer has emptied.
    pub(crate) fn recycle(&mut self, chunk: Chunk) {
        recycle(&mut self.spares, chunk);
    }

    fn note_wait(&mut self, at: usize) {
        if let Err(Some(wait)) = self.obstacle(at) {
            self.segments[at].idle.get_or_insert_with(|| (Instant::now(), wait));
        }
    }
}
