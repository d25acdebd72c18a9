//! On the consumer's own thread: each segment runs when something is needed of it.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use forebay_core::{Chunk, Error, Result, Sample, Waker};

use super::{Body, Chain, Job, Run, chain::Stop};
use crate::{
    host::{Host, stopped},
    plan::Plan,
};

/// The inline executor. It holds every segment as a serial chain.
pub(crate) struct Inline {
    plan: Plan,
    chains: Vec<Chain>,
    edges: Vec<Edge>,
    output: usize,
    host: Arc<Host>,
    bell: Arc<Bell>,
    waker: Waker,
    ready: Chunk,
    /// Empty chunks, whose memory is used again.
    spares: Vec<Chunk>,
    over: bool,
}

#[derive(Default)]
struct Edge {
    chunks: VecDeque<Chunk>,
    ended: bool,
}

/// Wakes the consumer while a pipe has nothing.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for a ring; a stop of the host rings too.
    fn wait(&self, host: &Host) -> Result<()> {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !*rung {
            if host.is_cancelled() {
                return Err(stopped());
            }
            rung = self.changed.wait(rung).unwrap_or_else(PoisonError::into_inner);
        }
        *rung = false;
        Ok(())
    }
}

impl Inline {
    pub(crate) fn new(job: Job) -> Self {
        let chains = job.bodies.into_iter().filter_map(|body| match body {
            Body::Serial(chain) => Some(*chain),
            Body::Parallel(_) => None,
        });
        let bell = Arc::new(Bell::default());
        let waker = Waker::new({
            let bell = Arc::clone(&bell);
            move || bell.ring()
        });
        job.host.on_cancel(waker.clone());
        Self {
            chains: chains.collect(),
            edges: job.plan.edges.iter().map(|_| Edge::default()).collect(),
            plan: job.plan,
            output: job.output,
            host: job.host,
            bell,
            waker,
            ready: Chunk::new(),
            spares: Vec::new(),
            over: false,
        }
    }

    /// Runs the segment that writes `edge` until something lies there, or it has ended.
    fn demand(&mut self, edge: usize) -> Result<()> {
        let segment = self.plan.edges[edge].from;
        while self.edges[edge].chunks.is_empty() && !self.edges[edge].ended {
            if self.host.is_cancelled() {
                return Err(stopped());
            }
            match self.chains[segment].run(&self.waker, &self.host) {
                Stop::Progress => self.spread(segment),
                Stop::NeedInput(port) => self.supply(segment, port)?,
                Stop::Pending => self.bell.wait(&self.host)?,
                Stop::End => {
                    for &out in &self.plan.segments[segment].outputs {
                        self.edges[out].ended = true;
                    }
                }
                Stop::Rewind(ports) => {
                    for port in ports {
                        self.rewind(self.plan.segments[segment].inputs[port]);
                    }
                }
                Stop::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Moves what a segment gave to its edges.
    fn spread(&mut self, segment: usize) {
        for (at, &out) in self.plan.segments[segment].outputs.iter().enumerate() {
            let chunk = &mut self.chains[segment].outs[at];
            if !chunk.is_empty() {
                let empty = self.spares.pop().unwrap_or_default();
                self.edges[out].chunks.push_back(std::mem::replace(chunk, empty));
            }
        }
    }

    /// Gets samples for an input of a segment, or tells it that there are no more.
    fn supply(&mut self, segment: usize, port: usize) -> Result<()> {
        let edge = *self.plan.segments[segment]
            .inputs
            .get(port)
            .ok_or_else(|| Error::bug(format!("a pipe asked for input {port}, which it has not")))?;
        self.demand(edge)?;
        let port = &mut self.chains[segment].ports[port];
        match self.edges[edge].chunks.pop_front() {
            Some(mut chunk) => {
                port.chunk.take_from(&mut chunk, usize::MAX);
                self.spares.push(chunk);
            }
            None => port.ended = true,
        }
        Ok(())
    }

    /// Starts everything over that leads to `edge`.
    fn rewind(&mut self, edge: usize) {
        let segment = self.plan.edges[edge].from;
        self.chains[segment].next_pass();
        for out in self.plan.segments[segment].outputs.clone() {
            self.edges[out] = Edge::default();
        }
        for input in self.plan.segments[segment].inputs.clone() {
            self.rewind(input);
        }
    }
}

impl Run for Inline {
    fn start(&mut self, epoch: u64) {
        self.chains.iter_mut().for_each(|chain| chain.start(epoch));
        self.edges.iter_mut().for_each(|edge| *edge = Edge::default());
        self.ready.clear();
        self.over = false;
    }

    fn next(&mut self) -> Result<Option<Sample>> {
        if let Some(sample) = self.ready.pop() {
            return Ok(Some(sample));
        }
        if self.over {
            return Ok(None);
        }
        self.demand(self.output).inspect_err(|_| self.over = true)?;
        match self.edges[self.output].chunks.pop_front() {
            Some(chunk) => self.spares.push(std::mem::replace(&mut self.ready, chunk)),
            None => self.over = true,
        }
        Ok(self.ready.pop())
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
        for chain in std::mem::take(&mut self.chains) {
            let freed = chain.free();
            result = result.and(freed);
        }
        result
    }
}
