//! On the consumer's own thread: each segment runs when something is needed of it.

use std::{
    collections::VecDeque,
    sync::Arc,
    task,
    time::{Duration, Instant},
};

use forebay_core::{Chunk, Error, Result, Sample, Waker};
use forebay_queue::stopped;
use forebay_snapshot::checkpoint_log::StartPoint;

use crate::{
    host::{
        Host,
        home::{Home, is_due},
    },
    plan::Plan,
    run::{
        Body, Chain, ChunkSize, Job, OrderedOutput, Parallel, Run,
        bell::Bell,
        eye::Eye,
        item::Item,
        ordered::{FinishedChunk, ReorderBuffer},
        skew::MostAhead,
    },
    stop::Stop,
};

/// The inline executor. It holds every segment as a serial chain.
pub(crate) struct Inline {
    plan: Plan,
    parts: Vec<InlineSegment>,
    edges: Vec<InlineEdge>,
    output: usize,
    host: Arc<Host>,
    bell: Arc<Bell>,
    waker: Waker,
    ready: Chunk,
    /// Empty chunks, whose memory is used again.
    spares: Vec<Chunk>,
    most_ahead: MostAhead,
    /// How many samples the consumer takes of an epoch.
    wanted: u64,
    /// Whether some pipe takes so many and no more.
    bounded: bool,
    over: bool,
    /// Whether the last `next` gave nothing since nothing had come.
    pending: bool,
    /// Tells of a stall.
    eye: Option<Eye>,
    /// How often something was asked for.
    asked: u32,
}

/// A segment.
enum InlineSegment {
    Chain(Box<Chain>),
    Maps(Box<Maps>),
}

/// A run of maps, one chunk after the other.
struct Maps {
    maps: Parallel,
    ordered: Box<OrderedOutput>,
    chunk_size: ChunkSize,
    /// Samples taken in this pass.
    taken: u64,
    reorder: ReorderBuffer,
    /// What ends it, once all before was read.
    failed: Option<Error>,
    spent: Chunk,
}

#[derive(Default)]
struct InlineEdge {
    /// Each with its bytes, which are counted only where several outputs may be apart.
    chunks: VecDeque<(Chunk, usize)>,
    bytes: usize,
    ended: bool,
    /// Whether nobody will take what comes.
    unread: bool,
}

impl InlineEdge {
    fn push(&mut self, chunk: Chunk, bytes: usize) {
        self.bytes += bytes;
        self.chunks.push_back((chunk, bytes));
    }

    fn pop(&mut self) -> Option<Chunk> {
        let (chunk, bytes) = self.chunks.pop_front()?;
        self.bytes -= bytes;
        Some(chunk)
    }
}

impl Maps {
    fn start(&mut self, epoch: u64, origins: &[StartPoint]) {
        self.maps.start(epoch, origins);
        self.taken = self.ordered.start(epoch, origins);
        self.reorder.clear();
        self.reorder.start_pass();
        self.failed = None;
    }

    /// Starts a pass; gives that of the input.
    fn start_pass(&mut self, pass: u64) -> u64 {
        self.maps.start_pass(pass);
        self.ordered.start_pass(pass);
        self.reorder.clear();
        self.reorder.start_pass();
        (self.taken, self.failed) = (0, None);
        pass
    }

    /// Maps some of the samples in `chunk`, of which so many are `wanted` in this pass; `out` is empty, for what comes out. `begins` is told
    /// which, and keeps what it gives until the end.
    fn run<T>(&mut self, chunk: &mut Chunk, wanted: u64, mut out: Chunk, begins: impl FnOnce(&Chunk) -> T) {
        let begin = Instant::now();
        self.spent.clear();
        let left = usize::try_from(wanted.saturating_sub(self.taken).max(1)).unwrap_or(usize::MAX);
        let (size, went) = self.ordered.portion(self.taken, self.chunk_size.size().min(left));
        self.spent.take_from(chunk, size);
        let (at, first) = (self.taken, self.taken.saturating_sub(self.ordered.missing()));
        self.taken += self.spent.len() as u64;
        self.ordered.take(at, &self.spent);
        if went {
            return self.spent.clear();
        }
        let told = begins(&self.spent);
        let mapped = self.maps.run(first, &mut self.spent, &mut out);
        drop(told);
        self.chunk_size.learn(mapped.taken, mapped.bytes, begin.elapsed());
        let item = Item::Chunk(out, mapped.bytes);
        // Invariant: nothing else has the number.
        let number = self.reorder.take();
        let _ = self.reorder.put(number, FinishedChunk { at, item, mapped });
    }

    /// What is handed on next, if its turn has come.
    fn hand_on(&mut self, host: &Host) -> Option<Chunk> {
        let FinishedChunk { at, item, mapped } = self.reorder.pop(self.ordered.handoff_order())?;
        let Item::Chunk(mut chunk, _) = item else { return None };
        self.failed = self.ordered.settle(at, mapped, &mut chunk, host);
        Some(chunk)
    }
}

impl Inline {
    /// # Errors
    /// `Io`, when no thread starts that tells of a stall.
    pub(crate) fn new(mut job: Job) -> Result<Self> {
        let eye = job.watch.take().map(|watch| Eye::new(watch, &job.plan, &job.names, &job.host));
        let eye = eye.transpose()?;
        let part = |body| match body {
            Body::Serial(chain) => InlineSegment::Chain(chain),
            Body::Parallel(maps, ordered) => InlineSegment::Maps(Box::new(Maps {
                maps,
                ordered,
                chunk_size: ChunkSize::new(job.chunk).within(job.ahead),
                taken: 0,
                reorder: ReorderBuffer::default(),
                failed: None,
                spent: Chunk::new(),
            })),
        };
        let parts = job.bodies.into_iter().map(part).collect();
        let bell = Arc::new(Bell::default());
        let waker = Waker::new({
            let bell = Arc::clone(&bell);
            move || bell.ring()
        });
        job.host.on_cancel(waker.clone());
        Ok(Self {
            parts,
            edges: job.plan.edges.iter().map(|_| InlineEdge::default()).collect(),
            bounded: job.plan.is_bounded(),
            plan: job.plan,
            output: job.output,
            host: job.host,
            bell,
            waker,
            ready: Chunk::new(),
            spares: Vec::new(),
            most_ahead: MostAhead::new(job.budget),
            wanted: u64::MAX,
            over: false,
            pending: false,
            eye,
            asked: 0,
        })
    }

    /// Runs segments until something lies on `edge`, or it has ended: the one that writes it, and whatever that needs. False where a pipe
    /// had nothing until this moment.
    fn demand(&mut self, edge: usize, until: Option<Instant>) -> Result<bool> {
        let home = if is_due(self.asked) { self.host.home().and_then(Home::still) } else { None };
        self.asked = self.asked.wrapping_add(1);
        let mut wanted = vec![edge];
        while let Some(&edge) = wanted.last() {
            if self.host.is_cancelled() {
                return Err(stopped());
            }
            if !self.edges[edge].chunks.is_empty() || self.edges[edge].ended {
                wanted.pop();
                if !wanted.is_empty() {
                    self.supply(edge);
                }
                continue;
            }
            let segment = self.plan.edges[edge].from;
            let stop = self.run(segment);
            self.host.keep_home(home.as_ref());
            match stop {
                Stop::Progress => self.spread(segment)?,
                Stop::NeedInput(port) => match self.plan.segments[segment].inputs.get(port) {
                    Some(&input) => wanted.push(input),
                    None => {
                        return Err(Error::bug(format!("a pipe asked for input {port}, which it has not")));
                    }
                },
                Stop::Pending => {
                    self.eye.iter().for_each(|eye| eye.waits(segment));
                    if !self.bell.wait(&self.host, until)? {
                        return Ok(false);
                    }
                }
                Stop::End => self.end(segment),
                Stop::Rewind(ports, pass) => {
                    for port in ports {
                        self.rewind(self.plan.segments[segment].inputs[port], pass);
                    }
                }
                Stop::Failed(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// How many samples of a segment's output are wanted in this pass, and how many of its input for those, as far as that is known.
    fn wanted(&self, segment: usize) -> (u64, u64) {
        let plan = &self.plan.segments[segment];
        let wanted = match plan.outputs[..] {
            [out] => self.plan.edges[out].to.map_or(self.wanted, |reader| self.wanted(reader).1),
            _ => u64::MAX,
        };
        let lost = match &self.parts[segment] {
            InlineSegment::Chain(_) => 0,
            InlineSegment::Maps(maps) => maps.ordered.missing(),
        };
        let takes = plan.takes.iter().rev();
        (wanted, takes.fold(wanted.saturating_add(lost), |wanted, takes| takes.from(wanted)))
    }

    /// Runs a segment until it has something, or cannot go on.
    fn run(&mut self, segment: usize) -> Stop {
        let known = self.bounded || self.wanted < u64::MAX;
        let (given, taken) = if known { self.wanted(segment) } else { (u64::MAX, u64::MAX) };
        let maps = match &mut self.parts[segment] {
            InlineSegment::Chain(chain) => {
                chain.want(given);
                let _seated = self.eye.as_ref().map(|eye| {
                    eye.runs(segment, None);
                    eye.seat()
                });
                return chain.run(&self.waker, &self.host);
            }
            InlineSegment::Maps(maps) => maps,
        };
        if let Some(error) = maps.failed.take() {
            return Stop::Failed(error);
        }
        let plan = &self.plan.segments[segment];
        let mut next = maps.hand_on(&self.host);
        if next.is_none() {
            let input = &mut self.edges[plan.inputs[0]];
            let Some((chunk, _)) = input.chunks.front_mut() else {
                return match input.ended {
                    true => maps.ordered.end(&self.host).map_or(Stop::End, Stop::Failed),
                    false => Stop::NeedInput(0),
                };
            };
            maps.run(chunk, taken, self.spares.pop().unwrap_or_default(), |taken| {
                let eye = self.eye.as_ref()?;
                eye.runs(segment, Some(taken));
                Some(eye.seat())
            });
            if chunk.is_empty() {
                self.spares.extend(input.pop());
            }
            next = maps.hand_on(&self.host);
        }
        let Some(part) = next else { return Stop::Progress };
        if part.is_empty() {
            self.spares.push(part);
        } else {
            self.edges[plan.outputs[0]].push(part, 0);
        }
        Stop::Progress
    }

    /// Moves what a segment gave to its edges.
    fn spread(&mut self, segment: usize) -> Result<()> {
        let InlineSegment::Chain(chain) = &mut self.parts[segment] else { return Ok(()) };
        let outputs = &self.plan.segments[segment].outputs;
        if outputs.len() > 1 && chain.outs.iter().any(|out| !out.is_empty()) {
            let waiting = outputs.iter().map(|&out| (self.edges[out].chunks.len(), self.edges[out].bytes));
            self.most_ahead.check(waiting, || chain.blame_last())?;
        }
        for (chunk, &out) in chain.outs.iter_mut().zip(outputs) {
            let edge = &mut self.edges[out];
            if edge.unread {
                chunk.clear();
            } else if !chunk.is_empty() {
                let bytes = if outputs.len() > 1 { chunk.size() } else { 0 };
                let empty = self.spares.pop().unwrap_or_default();
                edge.push(std::mem::replace(chunk, empty), bytes);
            }
        }
        Ok(())
    }

    /// A segment gives nothing more, so what it reads is left alone, and what whoever worked for it alone reads.
    fn end(&mut self, segment: usize) {
        for &out in &self.plan.segments[segment].outputs {
            self.edges[out].ended = true;
        }
        let mut left = vec![segment];
        while let Some(segment) = left.pop() {
            for &input in &self.plan.segments[segment].inputs {
                let edge = &mut self.edges[input];
                if std::mem::replace(&mut edge.unread, true) {
                    continue;
                }
                while edge.pop().is_some() {}
                let from = self.plan.edges[input].from;
                if self.plan.segments[from].outputs.iter().all(|&out| self.edges[out].unread) {
                    left.push(from);
                }
            }
        }
    }

    /// Gives what lies on an edge to the segment that reads it, or tells that there is no more.
    fn supply(&mut self, edge: usize) {
        let reader = self.plan.edges[edge].to;
        let port = reader.and_then(|reader| {
            let port = self.plan.segments[reader].inputs.iter().position(|&input| input == edge)?;
            match &mut self.parts[reader] {
                InlineSegment::Chain(chain) => chain.ports.get_mut(port),
                InlineSegment::Maps(_) => None, // They take what they need from the edge.
            }
        });
        let Some(port) = port else { return };
        match self.edges[edge].pop() {
            Some(mut chunk) => {
                port.chunk.take_from(&mut chunk, usize::MAX);
                self.spares.push(chunk);
            }
            None => port.ended = true,
        }
    }

    /// Starts everything over that leads to `edge`.
    fn rewind(&mut self, edge: usize, pass: u64) {
        let mut todo = vec![(self.plan.edges[edge].from, pass)];
        while let Some((from, pass)) = todo.pop() {
            let pass = match &mut self.parts[from] {
                InlineSegment::Chain(chain) => chain.start_pass(pass),
                InlineSegment::Maps(maps) => maps.start_pass(pass),
            };
            let segment = &self.plan.segments[from];
            for &out in &segment.outputs {
                self.edges[out] = InlineEdge::default();
            }
            todo.extend(segment.inputs.iter().map(|&input| (self.plan.edges[input].from, pass)));
        }
    }
}

impl Run for Inline {
    fn start(&mut self, epoch: u64, origins: &[StartPoint], wanted: u64) {
        self.wanted = wanted;
        for part in &mut self.parts {
            match part {
                InlineSegment::Chain(chain) => chain.start(epoch, origins),
                InlineSegment::Maps(maps) => maps.start(epoch, origins),
            }
        }
        self.edges.iter_mut().for_each(|edge| *edge = InlineEdge::default());
        self.ready.clear();
        self.over = false;
    }

    fn next(&mut self, until: Option<Instant>) -> Option<Result<Sample>> {
        self.pending = false;
        if let Some(sample) = self.ready.pop() {
            return Some(Ok(sample));
        }
        if self.over {
            return None;
        }
        let demanded = self.demand(self.output, until);
        if matches!(demanded, Ok(false)) {
            self.pending = true; // The wait goes on, for who tells of a stall.
            return None;
        }
        self.eye.iter().for_each(Eye::rests);
        if let Err(error) = demanded {
            self.over = true;
            return Some(Err(error));
        }
        match self.edges[self.output].pop() {
            Some(chunk) => self.spares.push(std::mem::replace(&mut self.ready, chunk)),
            None => self.over = true,
        }
        self.ready.pop().map(Ok)
    }

    fn is_pending(&self) -> bool {
        self.pending
    }

    fn wake(&mut self, waker: Option<task::Waker>) {
        self.bell.tell(waker);
    }

    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    fn threads(&self) -> usize {
        1
    }

    fn finish(&mut self) -> Result<()> {
        self.over = true;
        self.ready.clear();
        self.edges.clear();
        let mut result = Ok(());
        for part in std::mem::take(&mut self.parts) {
            let freed = match part {
                InlineSegment::Chain(chain) => chain.free(),
                InlineSegment::Maps(maps) => maps.maps.free(),
            };
            result = result.and(freed);
        }
        result
    }
}
