//! A serial segment: a chain of nodes that one thread at a time drives, pulling from the last.

use std::{sync::Arc, time::Instant};

use forebay_core::{
    Chunk, Error, Port, Result, Waker,
    abi::{abi_stable::std_types::ROption, code},
    shim::check,
};

use super::grain::Grain;
use crate::{
    graph::Class,
    handles::PipeHandle,
    host::{Host, NodeContext, Stacker, stopped},
    stats::Counters,
};

/// How many calls in a row may neither take nor give anything before that counts as a bug of the pipe.
const IDLE_CALLS: usize = 100_000;

/// A node, made and ready to run.
pub(crate) struct Link {
    pub(crate) pipe: PipeHandle,
    pub(crate) class: Class,
    pub(crate) cx: NodeContext,
    /// Where a map's output is to lie, if its samples are stacked next.
    pub(crate) stacker: Option<Arc<Stacker>>,
    /// How many samples a map took in this pass.
    pub(crate) taken: u64,
    pub(crate) counters: Arc<Counters>,
    pub(crate) blame: Blame,
    pub(crate) grain: Grain,
    /// What a call came to that gave samples as well: they go first.
    pub(crate) deferred: Option<Call>,
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

/// Why a chain stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// There is something in `outs`.
    Progress,
    /// Nothing more before this input has samples or has ended.
    NeedInput(usize),
    /// Nothing before the waker is called.
    Pending,
    /// Nothing any more in this pass.
    End,
    /// These inputs, which have ended, are to start over.
    Rewind(Vec<usize>),
    /// Failed; nothing any more.
    Failed(Error),
}

/// A chain of nodes with the samples that wait between them.
pub(crate) struct Chain {
    links: Vec<Link>,
    /// The inputs of the first node.
    pub(crate) ports: Vec<Port>,
    /// The input of each later node.
    inner: Vec<Port>,
    /// The outputs of the last node.
    pub(crate) outs: Vec<Chunk>,
    spare: Chunk,
    at: usize,
    idle: usize,
    fresh: bool,
}

impl Chain {
    pub(crate) fn new(links: Vec<Link>, inputs: usize, outputs: usize) -> Self {
        let inner = links.iter().skip(1).map(|_| Port::default()).collect();
        let ports = (0..inputs).map(|_| Port::default()).collect();
        let outs = (0..outputs).map(|_| Chunk::default()).collect();
        let spare = Chunk::default();
        Self { links, ports, inner, outs, spare, at: 0, idle: 0, fresh: true }
    }

    /// Forgets everything that waits and starts an epoch; the pipes are told with the first call.
    pub(crate) fn start(&mut self, epoch: u64) {
        for link in &mut self.links {
            link.cx.start(epoch);
        }
        self.clear();
    }

    /// As [`start`](Chain::start), for another pass within the epoch.
    pub(crate) fn next_pass(&mut self) {
        self.links.iter_mut().for_each(|link| link.cx.next_pass());
        self.clear();
    }

    /// What waits is dropped with the next run, since that may call a waker, which wants the table.
    fn clear(&mut self) {
        self.links.iter_mut().for_each(Link::restart);
        self.fresh = true;
        self.at = self.links.len() - 1;
        self.idle = 0;
    }

    fn reset(&mut self, upto: usize) -> Result<()> {
        for link in &mut self.links[..upto] {
            link.pipe.reset(link.cx.raw()).map_err(|error| link.blame.on(error))?;
        }
        Ok(())
    }

    /// Drives the chain until it has something, or cannot go on.
    pub(crate) fn run(&mut self, waker: &Waker, host: &Host) -> Stop {
        if self.fresh {
            self.fresh = false;
            for port in self.ports.iter_mut().chain(&mut self.inner) {
                port.chunk.clear();
                port.ended = false;
            }
            self.outs.iter_mut().for_each(Chunk::clear);
            if let Err(error) = self.reset(self.links.len()) {
                return Stop::Failed(error);
            }
        }
        let last = self.links.len() - 1;
        loop {
            if host.is_cancelled() {
                return Stop::Failed(stopped()); // For a chain that takes and never gives.
            }
            let at = self.at;
            match self.call(at, waker) {
                Call::Gave if at == last => return Stop::Progress,
                Call::Gave => self.at = at + 1,
                Call::Again => {}
                Call::NeedInput(port) if at == 0 => return Stop::NeedInput(port),
                Call::NeedInput(_) => self.at = at - 1,
                Call::Pending => return Stop::Pending,
                Call::End if at == last => return Stop::End,
                Call::End => {
                    self.inner[at].ended = true;
                    self.at = at + 1;
                }
                Call::Rewind(port) => match self.rewind(at, port) {
                    Ok(inputs) if inputs.is_empty() => {}
                    Ok(inputs) => return Stop::Rewind(inputs),
                    Err(error) => return Stop::Failed(error),
                },
                Call::Failed(error) => return Stop::Failed(error),
            }
        }
    }

    /// Starts the nodes before `at` over, and says which inputs of the chain are to start over too.
    fn rewind(&mut self, at: usize, port: usize) -> Result<Vec<usize>> {
        if at == 0 {
            self.ports[port].ended = false;
            return Ok(vec![port]);
        }
        for link in &mut self.links[..at] {
            link.cx.next_pass();
            link.restart();
        }
        for port in self.ports.iter_mut().chain(&mut self.inner[..at]) {
            port.chunk.clear();
            port.ended = false;
        }
        self.reset(at)?;
        Ok((0..self.ports.len()).collect())
    }

    /// Calls one node once.
    fn call(&mut self, at: usize, waker: &Waker) -> Call {
        let last = self.links.len() - 1;
        let (before, after) = self.inner.split_at_mut(at);
        let ports = before.last_mut().map_or(&mut self.ports[..], std::slice::from_mut);
        let outs = match after.first_mut() {
            Some(port) if at < last => std::slice::from_mut(&mut port.chunk),
            _ => &mut self.outs[..],
        };
        let link = &mut self.links[at];
        if let Some(call) = link.deferred.take() {
            return call;
        }
        let held = |chunks: &[Chunk]| chunks.iter().map(Chunk::len).sum::<usize>();
        let waiting = |ports: &[Port]| ports.iter().map(|port| port.chunk.len()).sum::<usize>();
        let (had, waited) = (held(outs), waiting(ports));
        let begin = Instant::now();
        let call = match link.class {
            Class::Map => link.map(ports, outs, &mut self.spare),
            _ => link.poll(ports, outs, waker),
        };
        let busy = begin.elapsed();
        let samples = held(outs) - had;
        let bytes = if samples > 0 { outs.iter().map(Chunk::size).sum() } else { 0 };
        link.counters.add(samples, bytes, busy);
        link.grain.learn(samples, bytes, busy);
        if samples > 0 {
            self.idle = 0;
            // A pipe that has nothing now is simply asked again: its waker may have been called by then.
            link.deferred = Some(call).filter(|call| !matches!(call, Call::Again | Call::Pending));
            return Call::Gave;
        }
        let moved = waiting(ports) != waited;
        self.idle = if moved || !matches!(call, Call::Again) { 0 } else { self.idle + 1 };
        let starved = matches!(call, Call::NeedInput(port) if ports.get(port).is_none_or(|port| port.ended));
        if self.idle > IDLE_CALLS || starved {
            let error = Error::bug("the pipe neither takes nor gives anything, and does not end");
            return Call::Failed(link.blame.on(error));
        }
        call
    }

    /// Makes the next run fail with an error that came in place of samples.
    pub(crate) fn fail(&mut self, error: Error) {
        if let Some(link) = self.links.first_mut() {
            link.deferred = Some(Call::Failed(error));
        }
        self.at = 0;
    }

    /// How many samples an epoch has, where the chain is one source that knows.
    pub(crate) fn len(&self) -> Option<u64> {
        self.links.first().filter(|_| self.links.len() == 1)?.pipe.len()
    }

    /// The counters of the first and of the last node.
    pub(crate) fn ends(&self) -> Option<(Arc<Counters>, Arc<Counters>)> {
        Some((Arc::clone(&self.links.first()?.counters), Arc::clone(&self.links.last()?.counters)))
    }

    /// Frees the pipes; gives the first error.
    pub(crate) fn free(self) -> Result<()> {
        let mut result = Ok(());
        for link in self.links {
            let freed = link.pipe.free().map_err(|error| link.blame.on(error));
            result = result.and(freed);
        }
        result
    }
}

/// What one call of a node came to.
pub(crate) enum Call {
    Gave,
    Again,
    NeedInput(usize),
    Pending,
    End,
    Rewind(usize),
    Failed(Error),
}

impl Link {
    /// Forgets what belongs to one pass.
    fn restart(&mut self) {
        self.deferred = None;
        self.taken = 0;
        if let Some(stacker) = &self.stacker {
            stacker.clear();
        }
    }

    /// A map: moves what waits, a grain at a time, so that time and memory stay small.
    fn map(&mut self, ports: &mut [Port], outs: &mut [Chunk], spare: &mut Chunk) -> Call {
        let ([port], [out]) = (ports, outs) else {
            return Call::Failed(Error::bug("a map with several ends"));
        };
        if port.chunk.is_empty() {
            return if port.ended { Call::End } else { Call::NeedInput(0) };
        }
        spare.clear();
        spare.take_from(&mut port.chunk, self.grain.size());
        let (first, count) = (self.taken, spare.len());
        self.taken += count as u64;
        let pipe = &self.pipe;
        match self.cx.stacked(self.stacker.as_ref(), first, count, |cx| pipe.map(cx, spare, out)) {
            Ok(()) => Call::Again,
            Err(error) => Call::Failed(self.blame.on(error)),
        }
    }

    fn poll(&mut self, ports: &mut [Port], outs: &mut [Chunk], waker: &Waker) -> Call {
        let room = self.grain.size();
        let pipe = &mut self.pipe;
        let outcome = self.cx.with_waker(waker, |cx| pipe.poll(cx, ports, outs, room));
        let (code, input) = (outcome.code, outcome.detail as usize);
        if matches!(outcome.fault, ROption::RNone) {
            match code {
                code::READY => return Call::Again,
                code::NEED_INPUT if input < ports.len() => return Call::NeedInput(input),
                code::PENDING => return Call::Pending,
                code::END => return Call::End,
                code::REWIND if ports.get(input).is_some_and(|port| port.ended && port.chunk.is_empty()) => {
                    return Call::Rewind(input);
                }
                _ => {}
            }
        }
        let error = check(outcome).err().unwrap_or_else(|| {
            Error::bug(match code {
                code::NEED_INPUT | code::REWIND if input >= ports.len() => {
                    format!("the pipe asked for input {input}, it has {}", ports.len())
                }
                code::REWIND => {
                    format!("the pipe asked for input {input} to start over, which has not ended")
                }
                _ => format!("the pipe gave an answer with the unknown number {code}"),
            })
        });
        Call::Failed(self.blame.on(error))
    }
}
