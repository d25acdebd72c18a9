//! One node, made and ready to run: its pipe, and how far it is.

use std::{sync::Arc, time::Instant};

use forebay_audit::Tap;
use forebay_core::{
    Chunk, Error, ErrorKind, Port, Result, State, Step, Waker,
    abi::{abi_stable::std_types::ROption, code},
    shim::check,
};
use forebay_graph::{OnError, PipeSpec};
use forebay_registry::handles::PipeHandle;
use forebay_snapshot::{
    checkpoint_log::{Checkpoint, CheckpointLog, Pace, Progress, StartPoint, pass_of_input},
    looks::Looks,
    names::{Expected, Names},
};

use crate::{
    host::{Destination, Host, NodeContext},
    run::chunk_size::ChunkSize,
    stats::Counters,
};

/// A node that runs.
pub(crate) struct Link {
    pub(crate) node: MadeNode,
    pub(crate) position: NodePosition,
}

/// A node, made and ready to run.
pub(crate) struct MadeNode {
    /// Its place in the graph's list.
    pub(crate) at: usize,
    pub(crate) pipe: PipeHandle,
    /// What its manifest says of the pipe.
    pub(crate) spec: Arc<PipeSpec>,
    /// Whether its pipe is isolated: where it runs in other processes, it is never called in this one instead.
    pub(crate) confined: bool,
    pub(crate) cx: NodeContext,
    /// Where a map's output is to lie, if its samples are stacked next.
    pub(crate) destination: Option<Destination>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) blame: Blame,
    pub(crate) on_error: OnError,
    /// Where it was; for nodes with state.
    pub(crate) checkpoint_log: Arc<CheckpointLog>,
    /// Leaves word of what it takes and gives, in a run that is audited.
    pub(crate) tap: Option<Tap>,
}

/// How far a node is, and what it goes on with.
pub(crate) struct NodePosition {
    pub(crate) place: Progress,
    pub(crate) pace: Pace,
    pub(crate) chunk_size: ChunkSize,
    /// How many of its samples are wanted in this pass, as far as that is known.
    pub(crate) wanted: u64,
    /// What a call came to that gave samples as well: they go first.
    pub(crate) deferred: Option<Result<Step>>,
    /// How many of the next samples for each output were delivered before.
    pub(crate) skip: Vec<u64>,
    /// Whether it may end before all of them came again.
    pub(crate) lenient: bool,
    /// How many samples of each input it had taken at the saved position.
    pub(crate) owed: Vec<u64>,
    /// For a serial flat map: the files that it is given.
    pub(crate) looks: Option<Looks>,
    /// For a source: which samples it gives that are about files.
    pub(crate) names: Option<Names>,
    /// Which sample the last one must be of those that come again.
    pub(crate) expected: Expected,
    /// What its next reset is followed by.
    pub(crate) restore: Option<State>,
    /// What its first reset is followed by, and then by another: it is to see whether it still is what it was.
    pub(crate) was: Option<State>,
}

/// What is added to an error of a node.
#[derive(Clone)]
pub(crate) struct Blame {
    pub(crate) pipe: String,
    pub(crate) plugin: String,
}

impl Blame {
    /// Says in an error which node and plugin it comes from.
    pub(crate) fn on(&self, error: Error) -> Error {
        error.context("pipe", &self.pipe).context("plugin", &self.plugin)
    }
}

/// Says of a value that cannot leave its process what to do about it.
pub(crate) fn unsendable(error: &Error, blame: &Blame) -> Error {
    let message = format!("{}; run the pipe on threads, with on=threads", error.message());
    let places = error.contexts().iter();
    let error =
        places.fold(Error::new(error.kind(), message), |told, (name, value)| told.context(name, value));
    blame.on(error)
}

impl Link {
    /// Starts an epoch at `origin`; the pipe is told with the next [`reset`](Link::reset).
    pub(crate) fn start(&mut self, epoch: u64, origin: &StartPoint) {
        let Checkpoint { place, state } = &origin.checkpoint;
        self.node.cx.start(epoch, place.pass);
        self.node.tap.iter_mut().for_each(Tap::start);
        self.node.checkpoint_log.start(epoch, origin);
        if state.is_some() {
            self.node.checkpoint_log.keep(origin.checkpoint.clone()); // For a snapshot before its own first checkpoint.
        }
        self.position.skip.clone_from(&origin.skip);
        self.position.lenient = origin.lenient;
        self.position.owed =
            place.taken.iter().zip(&origin.again).map(|(taken, again)| taken + again).collect();
        self.position.expected = Expected::new(origin.last);
        self.position.place = place.clone();
        self.position.restore.clone_from(state);
        self.position.was.clone_from(&origin.was);
        if self.position.was.is_some() {
            let place = Progress { given: vec![1], ..place.clone() };
            self.node.checkpoint_log.keep(Checkpoint { place, state: origin.was.clone() }); // For a snapshot before it gave its sample again.
        }
        self.clear();
    }

    /// Where it begins, before it began.
    pub(super) fn origin(&self) -> StartPoint {
        let again = self
            .position
            .owed
            .iter()
            .zip(&self.position.place.taken)
            .map(|(owed, taken)| owed.saturating_sub(*taken));
        StartPoint {
            checkpoint: Checkpoint {
                place: self.position.place.clone(),
                state: self.position.restore.clone(),
            },
            skip: self.position.skip.clone(),
            again: again.collect(),
            last: self.position.expected.uid(),
            was: self.position.was.clone(),
            lenient: self.position.lenient,
            ..StartPoint::default()
        }
    }

    /// Starts a pass within the epoch.
    pub(crate) fn start_pass(&mut self, pass: u64) {
        self.node.cx.set_pass(pass);
        self.position.place =
            Progress::start(pass, self.position.place.taken.len(), self.position.place.given.len());
        self.position.skip.fill(0);
        self.position.owed.clear();
        self.position.restore = None;
        self.clear();
    }

    fn clear(&mut self) {
        self.position.deferred = None;
        if let (Some(looks), Some(&taken)) = (&mut self.position.looks, self.position.place.taken.first()) {
            looks.start(taken);
        }
        if let Some(destination) = &self.node.destination {
            destination.clear();
        }
    }

    /// Tells the pipe that an epoch or a pass begins, and where.
    pub(crate) fn reset(&mut self) -> Result<()> {
        if let Some(was) = self.position.was.take().filter(|_| !self.position.lenient) {
            self.position.restore = Some(was);
            self.reset()?;
        }
        self.node.pipe.reset(self.node.cx.raw()).map_err(|error| self.node.blame.on(error))?;
        let Some(state) = self.position.restore.take() else { return Ok(()) };
        let restored = self.node.pipe.restore(self.node.cx.raw(), &state);
        restored.map_err(|error| self.node.blame.on(error.context("while", "going to a saved position")))
    }

    /// The pass in which an input of this node is.
    pub(crate) fn pass_of_input(&self, input: usize) -> u64 {
        match self.node.spec.order.rewinds {
            true => pass_of_input(
                self.position.place.pass,
                self.position.place.rewound.get(input).copied().unwrap_or(0),
            ),
            false => self.position.place.pass,
        }
    }

    /// Calls the pipe once: takes from `ports`, adds to `outs`.
    pub(crate) fn call(
        &mut self,
        ports: &mut [Port],
        outs: &mut [Chunk],
        waker: &Waker,
        host: &Host,
    ) -> (Result<Step>, bool) {
        // Who asks gets one more, whatever was thought to be wanted.
        let wanted = self
            .position
            .wanted
            .saturating_sub(self.position.place.given.first().copied().unwrap_or(0))
            .max(1);
        let room = self.position.chunk_size.size().min(usize::try_from(wanted).unwrap_or(usize::MAX));
        let mut took = 0;
        if let (Some(looks), Some(&taken)) = (&mut self.position.looks, self.position.place.taken.first()) {
            looks.look(taken, ports);
        }
        for (taken, port) in self.position.place.taken.iter_mut().zip(&*ports) {
            let waits = port.chunk.len() as u64;
            *taken += waits; // Less what is left, below.
            took += waits;
        }
        for (given, out) in self.position.place.given.iter_mut().zip(&*outs) {
            *given = given.wrapping_sub(out.len() as u64);
        }
        let had = held(outs);
        let first = self.position.place.given.first().map_or(0, |given| given.wrapping_add(had as u64));
        let before = self.node.tap.as_ref().map(|tap| tap.before(ports, outs));
        let begin = Instant::now();
        let call = self.poll(ports, outs, room, waker);
        let now = Instant::now();
        let samples = held(outs) - had;
        let mut moved = samples > 0;
        for (taken, port) in self.position.place.taken.iter_mut().zip(&*ports) {
            let left = port.chunk.len() as u64;
            *taken -= left;
            took -= left;
        }
        if let (Some(looks), Some(&taken)) = (&mut self.position.looks, self.position.place.taken.first()) {
            looks.note(self.position.place.pass, taken, &self.node.checkpoint_log, host.registry());
        }
        self.node.counters.took(took);
        for (given, out) in self.position.place.given.iter_mut().zip(&*outs) {
            *given = given.wrapping_add(out.len() as u64);
        }
        let bytes = if samples > 0 { outs.iter().map(Chunk::size).sum() } else { 0 };
        self.node.counters.add(samples, bytes, now - begin);
        self.position.chunk_size.learn(samples, bytes, now - begin);
        let call = self.excuse(call, ports, host);
        let call = self.forgive(call, host);
        if let (Some(tap), Some(before)) = (&self.node.tap, before) {
            tap.after(&before, &self.position.place, ports, outs, matches!(call, Ok(Step::End)));
        }
        let ends = self.position.names.is_some() && matches!(call, Ok(Step::End));
        if self.position.pace.is_due(now, &self.position.place)
            || self.node.spec.stacks() && samples > 0
            || ends
        {
            self.checkpoint(&call, host);
        }
        if let (Some(names), Some(out)) = (&mut self.position.names, outs.first()) {
            names.note(&self.node.checkpoint_log, (self.position.place.pass, first), out, had);
        }
        moved |= self.drop_delivered(outs);
        (self.end_behind_skipped(call, host), moved)
    }

    /// What it comes to that a node ends before all came again that was delivered before a resume.
    fn end_behind_skipped(&mut self, call: Result<Step>, host: &Host) -> Result<Step> {
        if let Some(message) = self.position.expected.take_difference() {
            if !self.position.lenient {
                let error = Error::invalid(message)
                    .context("next", "resume on the same data, or start again without the snapshot");
                return Err(self.node.blame.on(error));
            }
            host.note(2, format!("node {}: {message}", self.node.blame.pipe));
        }
        let missing = self.position.skip.iter().copied().max().unwrap_or(0);
        if missing == 0 || !matches!(call, Ok(Step::End)) {
            return call;
        }
        let given = self.position.place.given.iter().copied().max().unwrap_or(0);
        self.position.skip.fill(0);
        match ends_early(given, missing, self.position.lenient, &self.node.blame, host) {
            Some(error) => Err(error),
            None => call,
        }
    }

    /// Turns the error of a pipe whose input ended before all came again that it held into another try, where that may be.
    fn excuse(&mut self, call: Result<Step>, ports: &[Port], host: &Host) -> Result<Step> {
        let error = match call {
            Err(error) if self.position.lenient && error.kind() == ErrorKind::Invalid => error,
            other => return other,
        };
        let taken = self.position.place.taken.iter().zip(&self.position.owed).zip(ports);
        let ended = |((taken, owed), port): ((&u64, &u64), &Port)| {
            taken < owed && port.ended && port.chunk.is_empty()
        };
        if !taken.into_iter().any(ended) {
            return Err(error);
        }
        self.position.owed.clear();
        host.note(2, format!("node {}: {}; what it held is left out", self.node.blame.pipe, error.message()));
        Ok(Step::Ready)
    }

    /// Turns an error that the node's policy forgives into another try.
    fn forgive(&mut self, call: Result<Step>, host: &Host) -> Result<Step> {
        let error = match call {
            Err(error) if self.node.on_error.forgives(error.kind(), false) => error,
            Ok(Step::End) => return self.judge().map_or(Ok(Step::End), Err),
            other => return other,
        };
        let seen =
            self.position.place.taken.iter().chain(&self.position.place.given).copied().max().unwrap_or(0);
        if let Some(reason) = self.node.on_error.exceeded(self.position.place.lost, seen + 1) {
            return Err(error.context("on_error", reason));
        }
        self.position.place.lost += 1;
        if let Some(tap) = &self.node.tap {
            tap.lost(self.position.place.pass, self.position.place.lost, None);
        }
        self.node.counters.lost(1);
        host.lose(&self.node.blame.pipe, self.node.on_error, None, error);
        Ok(Step::Ready)
    }

    /// The error of a pass in which more samples failed than may.
    fn judge(&self) -> Option<Error> {
        let place = &self.position.place;
        let seen = place.taken.iter().chain(&place.given).copied().max().unwrap_or(0);
        // What a source failed on it neither took nor gave.
        let seen = if place.taken.is_empty() { seen + place.lost } else { seen };
        self.node.on_error.error_at_end(place.lost, seen).map(|error| self.node.blame.on(error))
    }

    /// Drops what it gave again after a resume.
    fn drop_delivered(&mut self, outs: &mut [Chunk]) -> bool {
        let mut dropped = false;
        for (skip, out) in self.position.skip.iter_mut().zip(outs).filter(|(skip, _)| **skip > 0) {
            // Everything in `out` is to be dropped, until nothing is any more.
            while *skip > 0 && !out.is_empty() {
                if *skip == 1 {
                    self.position.expected.compare(out);
                }
                out.advance();
                *skip -= 1;
                dropped = true;
            }
        }
        dropped
    }

    /// Notes where the node is, unless this is no moment for it.
    fn checkpoint(&mut self, call: &Result<Step>, host: &Host) {
        if matches!(call, Err(_) | Ok(Step::Rewind(_))) {
            return;
        }
        let (pipe, node) = (&self.node.pipe, &self.node.blame.pipe);
        let mut holds = false;
        let save = || match pipe.state() {
            Ok(state) => {
                holds = state.again.iter().any(|&count| count > 0);
                Some(state)
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => None,
            Err(error) => {
                host.note(2, format!("the position of {node} cannot be saved: {error}"));
                None
            }
        };
        if self.position.pace.checkpoint(&self.node.checkpoint_log, &self.position.place, save) {
            host.ask_for_trim();
        }
        if holds && !self.node.spec.order.shards {
            self.position.pace.relax();
        }
    }

    fn poll(&mut self, ports: &mut [Port], outs: &mut [Chunk], room: usize, waker: &Waker) -> Result<Step> {
        let pipe = &mut self.node.pipe;
        let outcome = self.node.cx.with_waker(waker, |cx| pipe.poll(cx, ports, outs, room));
        let (code, input) = (outcome.code, outcome.detail as usize);
        if matches!(outcome.fault, ROption::RNone) {
            match code {
                code::READY => return Ok(Step::Ready),
                code::NEED_INPUT if input < ports.len() => return Ok(Step::NeedInput(input)),
                code::PENDING => return Ok(Step::Pending),
                code::END => return Ok(Step::End),
                code::REWIND
                    if self.node.spec.order.rewinds
                        && ports.get(input).is_some_and(|port| port.ended && port.chunk.is_empty()) =>
                {
                    return Ok(Step::Rewind(input));
                }
                _ => {}
            }
        }
        let error = check(outcome).err().unwrap_or_else(|| self.bad_answer(code, input, ports.len()));
        Err(self.node.blame.on(error))
    }

    /// Why an answer of a pipe makes no sense.
    fn bad_answer(&self, code: u32, input: usize, inputs: usize) -> Error {
        Error::bug(match code {
            code::NEED_INPUT | code::REWIND if input >= inputs => {
                format!("the pipe asked for input {input}, it has {inputs}")
            }
            code::REWIND if !self.node.spec.order.rewinds => {
                "the pipe asked for its input to start over, but does not declare `rewinds`".to_owned()
            }
            code::REWIND => {
                format!("the pipe asked for input {input} to start over, which has not ended")
            }
            _ => format!("the pipe gave an answer with the unknown number {code}"),
        })
    }
}

/// The error of a node that ends `missing` samples before the saved position, or what is noted of one that may.
pub(super) fn ends_early(
    given: u64,
    missing: u64,
    lenient: bool,
    blame: &Blame,
    host: &Host,
) -> Option<Error> {
    let wanted = given.saturating_add(missing);
    let message = format!("the saved position is after {wanted} samples, but the data ends after {given}");
    if lenient {
        host.note(2, format!("node {}: {message}", blame.pipe));
        return None;
    }
    let error = Error::invalid(message).context("expected", "the data of the snapshot");
    Some(blame.on(error.context("next", "resume on that data, or start again without the snapshot")))
}

fn held(chunks: &[Chunk]) -> usize {
    chunks.iter().map(Chunk::len).sum()
}
