//! A serial segment: a chain of nodes that one thread at a time drives, pulling from the last.

use std::{sync::Arc, time::Duration};

use forebay_core::{Chunk, Error, Port, Result, Step, Waker};
use forebay_queue::stopped;
use forebay_snapshot::checkpoint_log::StartPoint;

use crate::{
    host::Host,
    messages::{News, Spot},
    run::link::{Blame, Link},
    stats::Counters,
    stop::Stop,
    takes::Takes,
};

/// How many calls in a row may neither take nor give anything before that counts as a bug of the pipe.
const IDLE_CALLS: usize = 100_000;

/// A chain of nodes with the samples that wait between them.
pub(crate) struct Chain {
    links: Vec<Link>,
    /// What each takes for those that are wanted of it.
    takes: Vec<Takes>,
    /// The inputs of the first node.
    pub(crate) ports: Vec<Port>,
    /// The input of each later node.
    inner: Vec<Port>,
    /// The outputs of the last node.
    pub(crate) outs: Vec<Chunk>,
    at: usize,
    idle: usize,
    fresh: bool,
}

impl Chain {
    pub(crate) fn new(links: Vec<Link>, takes: Vec<Takes>, inputs: usize, outputs: usize) -> Self {
        let inner = links.iter().skip(1).map(|_| Port::default()).collect();
        let ports = (0..inputs).map(|_| Port::default()).collect();
        let outs = (0..outputs).map(|_| Chunk::default()).collect();
        Self { links, takes, ports, inner, outs, at: 0, idle: 0, fresh: true }
    }

    /// Forgets everything that waits and starts an epoch, each node at its origin; the pipes are told with the first
    /// call.
    pub(crate) fn start(&mut self, epoch: u64, origins: &[StartPoint]) {
        for link in &mut self.links {
            link.start(epoch, &origins[link.node.at]);
        }
        self.clear();
    }

    /// As [`start`](Chain::start), for another pass within the epoch; gives the pass of the inputs.
    pub(crate) fn start_pass(&mut self, pass: u64) -> u64 {
        let pass = Self::pass_up(&mut self.links, pass);
        self.clear();
        pass
    }

    /// Starts a pass of the last of `links` and of those before it; gives the pass of the first one's inputs.
    fn pass_up(links: &mut [Link], mut pass: u64) -> u64 {
        for link in links.iter_mut().rev() {
            link.start_pass(pass);
            pass = link.pass_of_input(0);
        }
        pass
    }

    /// What waits is dropped with the next run, since that may call a waker, which wants the table.
    fn clear(&mut self) {
        self.fresh = true;
        self.at = self.links.len() - 1;
        self.idle = 0;
    }

    /// So many samples of its output are wanted in this pass, and no more before it is asked for them.
    pub(super) fn want(&mut self, mut wanted: u64) {
        for (link, takes) in self.links.iter_mut().zip(&self.takes).rev() {
            link.position.wanted = wanted;
            wanted = takes.from(wanted);
        }
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
            if let Err(error) = self.links.iter_mut().try_for_each(Link::reset) {
                return Stop::Failed(error);
            }
        }
        let last = self.links.len() - 1;
        loop {
            // For a chain that takes and never gives.
            if host.is_cancelled() {
                return Stop::Failed(stopped());
            }
            if host.is_paused() {
                return Stop::Progress;
            }
            let at = self.at;
            match self.call(at, waker, host) {
                None if at == last => return Stop::Progress,
                None => self.at = at + 1,
                Some(Ok(Step::Ready)) => {}
                Some(Ok(Step::NeedInput(port))) if at == 0 => return Stop::NeedInput(port),
                Some(Ok(Step::NeedInput(_))) => self.at = at - 1,
                Some(Ok(Step::Pending)) => return Stop::Pending,
                Some(Ok(Step::End)) if at == last => return Stop::End,
                Some(Ok(Step::End)) => {
                    self.inner[at].ended = true;
                    self.at = at + 1;
                }
                Some(Ok(Step::Rewind(port))) => match self.rewind(at, port) {
                    Ok(None) => {}
                    Ok(Some((inputs, pass))) => return Stop::Rewind(inputs, pass),
                    Err(error) => return Stop::Failed(error),
                },
                Some(Err(error)) => return Stop::Failed(error),
            }
        }
    }

    /// Starts what node `at` reads from over: the nodes before it, and the inputs of the chain that are given back, with
    /// the number of their pass.
    fn rewind(&mut self, at: usize, port: usize) -> Result<Option<(Vec<usize>, u64)>> {
        let (before, link) = self.links.split_at_mut(at);
        let Some(link) = link.first_mut() else { return Ok(None) };
        link.position.place.rewound[port] += 1;
        link.position.place.taken[port] = 0;
        let pass = link.pass_of_input(port);
        if at == 0 {
            self.ports[port].ended = false;
            return Ok(Some((vec![port], pass)));
        }
        let pass = Self::pass_up(before, pass);
        for port in self.ports.iter_mut().chain(&mut self.inner[..at]) {
            port.chunk.clear();
            port.ended = false;
        }
        before.iter_mut().try_for_each(Link::reset)?;
        let inputs: Vec<_> = (0..self.ports.len()).collect();
        Ok(if inputs.is_empty() { None } else { Some((inputs, pass)) })
    }

    /// Calls one node once. None if it gave something: how it left off is told when it is its turn again.
    fn call(&mut self, at: usize, waker: &Waker, host: &Host) -> Option<Result<Step>> {
        let last = self.links.len() - 1;
        let (before, after) = self.inner.split_at_mut(at);
        let ports = before.last_mut().map_or(&mut self.ports[..], std::slice::from_mut);
        let outs = match after.first_mut() {
            Some(port) if at < last => std::slice::from_mut(&mut port.chunk),
            _ => &mut self.outs[..],
        };
        let link = &mut self.links[at];
        if let Some(call) = link.position.deferred.take() {
            return Some(call);
        }
        let waiting = |ports: &[Port]| ports.iter().map(|port| port.chunk.len()).sum::<usize>();
        let had = (waiting(ports), outs.iter().map(Chunk::len).sum::<usize>());
        let (call, moved) = link.call(ports, outs, waker, host);
        if outs.iter().map(Chunk::len).sum::<usize>() > had.1 {
            self.idle = 0;
            // A pipe that has nothing now is simply asked again: its waker may have been called by then.
            link.position.deferred =
                Some(call).filter(|call| !matches!(call, Ok(Step::Ready | Step::Pending)));
            return None;
        }
        let moved = moved || waiting(ports) != had.0;
        self.idle = if moved || !matches!(call, Ok(Step::Ready)) { 0 } else { self.idle + 1 };
        let starved =
            matches!(call, Ok(Step::NeedInput(port)) if ports.get(port).is_none_or(|port| port.ended));
        if self.idle > IDLE_CALLS || starved {
            let error = Error::bug("the pipe takes nothing, gives nothing and does not end");
            return Some(Err(link.node.blame.on(error)));
        }
        Some(call)
    }

    /// Makes the next run fail with an error that came in place of samples.
    pub(crate) fn fail(&mut self, error: Error) {
        if let Some(link) = self.links.first_mut() {
            link.position.deferred = Some(Err(error));
        }
        self.at = 0;
    }

    /// Whether its next run begins an epoch or a pass.
    pub(super) fn begins(&self) -> bool {
        self.fresh
    }

    /// Has its next run begin where the last start said.
    pub(super) fn begin_again(&mut self) {
        self.fresh = true;
    }

    /// The epoch, and where each node begins, for who runs it elsewhere; what waits is dropped. None where that was told.
    pub(super) fn take_start(&mut self) -> Option<(u64, Vec<Spot>)> {
        if !std::mem::take(&mut self.fresh) {
            return None;
        }
        self.ports.iter_mut().for_each(|port| *port = Port::default());
        self.outs.iter_mut().for_each(Chunk::clear);
        let spots = self.links.iter().map(|link| link.origin().into());
        Some((self.links.first()?.node.cx.raw().epoch, spots.collect()))
    }

    /// The error that came in place of samples.
    pub(super) fn take_failure(&mut self) -> Option<Error> {
        self.links.first_mut()?.position.deferred.take()?.err()
    }

    /// Takes what it gave, with the bytes of each chunk.
    pub(super) fn take_given(&mut self, stop: &Stop) -> Vec<(usize, usize, Chunk)> {
        if !matches!(stop, Stop::Progress) {
            return Vec::new();
        }
        let outs = self.outs.iter_mut().enumerate().filter(|(_, out)| !out.is_empty());
        outs.map(|(at, out)| (at, out.size(), std::mem::take(out))).collect()
    }

    /// Its nodes, upstream first.
    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    /// Notes what its nodes did in another process; says whether checkpoints should be forgotten.
    pub(super) fn note_news(&self, news: Vec<News>) -> bool {
        let mut many = false;
        for (link, news) in self.links.iter().zip(news) {
            let News { work: (samples, bytes, nanos), lost, checkpoints, files, uids: (pass, first, uids) } =
                news;
            link.node.counters.add(samples, bytes, Duration::from_nanos(nanos));
            link.node.counters.lost(lost);
            files.into_iter().for_each(|file| link.node.checkpoint_log.add_file(file));
            if !uids.is_empty() {
                link.node.checkpoint_log.note_uids((pass, first), uids.into_iter());
            }
            for checkpoint in checkpoints {
                many |= link.position.pace.note(&link.node.checkpoint_log, checkpoint.into());
            }
        }
        many
    }

    /// Notes the lines that its nodes left for an audit in another process.
    pub(super) fn note_lines(&self, lines: &str) {
        if let Some(tap) = self.links.first().and_then(|link| link.node.tap.as_ref()) {
            tap.write_lines(lines);
        }
    }

    /// What is added to an error that any of its nodes may have caused.
    pub(super) fn blame(&self) -> Blame {
        let mut plugins: Vec<&str> = self.links.iter().map(|link| link.node.blame.plugin.as_str()).collect();
        plugins.dedup();
        let pipes: Vec<&str> = self.links.iter().map(|link| link.node.blame.pipe.as_str()).collect();
        Blame { pipe: pipes.join(" | "), plugin: plugins.join(", ") }
    }

    /// What is added to an error of the last node, the only one that may have several outputs.
    pub(super) fn blame_last(&self) -> Option<Blame> {
        self.links.last().map(|link| link.node.blame.clone())
    }

    /// The counters of the first and of the last node.
    pub(crate) fn ends(&self) -> Option<(Arc<Counters>, Arc<Counters>)> {
        Some((Arc::clone(&self.links.first()?.node.counters), Arc::clone(&self.links.last()?.node.counters)))
    }

    /// Frees the pipes; gives the first error.
    pub(crate) fn free(self) -> Result<()> {
        let mut result = Ok(());
        for link in self.links {
            let freed = link.node.pipe.free().map_err(|error| link.node.blame.on(error));
            result = result.and(freed);
        }
        result
    }
}
