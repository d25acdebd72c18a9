//! A serial segment in a process of its own: a thread here hands it what its chain takes, and takes what it gives.
//!
//! The chain in the table stands for the one in the worker: it holds what waits to be sent and what came, and where each node
//! begins. A worker is asked one thing at a time, and answers when its chain has something or cannot go on; only a word to come
//! back at once may follow. So no two ends ever wait for each other's room.
//!
//! Nothing is kept for a worker that dies. What it held is lost, and the epoch goes on where the consumer is, as after a
//! snapshot: each node from its last checkpoint before that.

use std::{os::fd::AsFd as _, sync::Arc, time::Instant};

use forebay_core::{Chunk, Error, ErrorKind, Key, Result};
use forebay_queue::{Message, Sender as _};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::{
    messages::{Back, Reply, Request, pack},
    run::{
        Chain,
        death::Death,
        link::unsendable,
        table::Table,
        threads::{
            SharedRun,
            interrupt::Interrupt,
            worker_pool::{DedicatedWorkerSpec, Worker, WorkerPool},
        },
    },
    stop::Stop,
};

/// The thread of a worker that has a serial segment.
pub(super) struct DedicatedWorker {
    worker: Worker,
    segment: usize,
    interrupt: Interrupt,
    /// What the worker was given last.
    last: Option<Key>,
}

impl DedicatedWorker {
    pub(super) fn new(shared: Arc<SharedRun>, worker_pool: Arc<WorkerPool>, at: usize) -> Self {
        let DedicatedWorkerSpec { segment, interrupt, .. } = &worker_pool.dedicated[at];
        let (segment, interrupt) = (*segment, interrupt.clone());
        let index = worker_pool.count + at;
        Self { worker: Worker::new(shared, worker_pool, index), segment, interrupt, last: None }
    }

    /// Starts the worker and runs the segment in it, until the run is stopped; an error is one of the whole run.
    pub(super) fn serve(mut self) -> Result<()> {
        self.worker.start()?;
        let shared = Arc::clone(&self.worker.shared);
        while let Some(mut chain) = shared.take_solo(self.segment, self.worker.index) {
            let begins = chain.begins();
            match self.run(&mut chain) {
                Ok(stop) => {
                    let given = chain.take_given(&stop);
                    shared.hand_in_solo(|table| table.hand_in_chain(self.segment, chain, stop, given));
                }
                Err(error) if error.kind() == ErrorKind::Worker => {
                    let death = self.replace_dead(&chain, &error)?;
                    if begins {
                        chain.begin_again(); // Nothing was lost.
                    }
                    shared.hand_in_solo(|table| match begins {
                        true => table.hand_in_chain(self.segment, chain, Stop::Progress, Vec::new()),
                        false => table.hand_in_dead(self.segment, chain, death),
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Has the worker run the chain until it has something, or cannot go on.
    fn run(&mut self, chain: &mut Chain) -> Result<Stop> {
        if let Some(error) = chain.take_failure() {
            return Ok(Stop::Failed(error));
        }
        self.worker.hear_ready()?;
        if let Some((epoch, origins)) = chain.take_start() {
            self.last = None;
            self.send(&Request::Start(epoch, origins), Chunk::new())?;
        }
        for port in 0..chain.ports.len() {
            let input = &mut chain.ports[port];
            let (chunk, ended) = (std::mem::take(&mut input.chunk), std::mem::take(&mut input.ended));
            if chunk.is_empty() && !ended {
                continue;
            }
            self.last = chunk.names().last().map(|(_, key)| key.clone()).or(self.last.take());
            match self.send(&Request::Give(port, ended), chunk) {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    return Ok(Stop::Failed(unsendable(&error, &chain.blame())));
                }
                sent => sent?,
            }
        }
        self.send(&Request::Run, Chunk::new())?;
        loop {
            self.wait()?;
            match self.worker.hear()? {
                (Reply::Gave(port), mut chunk) if port < chain.outs.len() => {
                    chain.outs[port].take_from(&mut chunk, usize::MAX);
                }
                (Reply::Back(back), _) => {
                    self.worker.works();
                    return Ok(self.read(chain, *back));
                }
                _ => return Err(Error::bug("a worker gave an answer to another question")),
            }
        }
    }

    fn send(&mut self, request: &Request, chunk: Chunk) -> Result<()> {
        self.worker.connection()?.sender.send(&mut Message::new(pack(request)?, chunk))
    }

    /// Waits until the worker says something or is gone, or has taken longer than it may. Interrupted, it tells the worker to come back, and waits for that.
    fn wait(&mut self) -> Result<()> {
        let (limit, begun) = (self.worker.turn(), Instant::now());
        loop {
            let receiver = &self.worker.connection()?.receiver;
            let mut fds = [receiver.as_fd(), self.interrupt.0.as_fd()]
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let turn = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
            let turn =
                turn.map(Timespec::try_from).transpose().map_err(|_| Error::bug("a time out of range"))?;
            match poll(&mut fds, turn.as_ref()) {
                Ok(0) if let Some(limit) = limit => return Err(self.worker.overdue(limit)),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
            let [heard, called] = fds.map(|fd| !fd.revents().is_empty());
            if heard {
                return Ok(());
            }
            if called {
                self.interrupt.forget();
                self.send(&Request::Break, Chunk::new())?;
            }
        }
    }

    /// What became of the chain, as the worker tells it.
    fn read(&self, chain: &mut Chain, back: Back) -> Stop {
        let host = self.worker.shared.host();
        host.note_plugins(back.loaded);
        back.log.into_iter().for_each(|(level, line)| host.note(level, line));
        back.notes.into_iter().for_each(|(node, note)| host.count(node, note));
        back.lost.into_iter().for_each(|lost| host.add_lost(lost.into()));
        chain.note_lines(&back.audit); // Before the checkpoints behind them.
        if chain.note_news(back.news) {
            host.ask_for_trim();
        }
        back.stop
    }

    /// The worker is dead: starts another, and says what it was.
    fn replace_dead(&mut self, chain: &Chain, error: &Error) -> Result<Death> {
        let (how, crashed) = self.worker.reap(error).map_err(|error| chain.blame().on(error))?;
        let last = self.last.take();
        let mut error = Error::new(ErrorKind::Worker, &how);
        if let Some(last) = last {
            error = error.context("last sample", last);
        }
        let error = self.worker.in_decoder(error);
        let error = chain.blame().on(error);
        if !self.worker.shared.is_stopped() {
            let note =
                format!("{how}; another takes its place, and the epoch goes on from its last checkpoints");
            self.worker.shared.host().note(2, note);
            self.worker.start()?;
        }
        Ok(Death { error, crashed })
    }
}

impl SharedRun {
    /// Waits until this segment can run, which a worker of its own does; none once the run is stopped.
    fn take_solo(&self, segment: usize, worker: usize) -> Option<Box<Chain>> {
        let mut table = self.lock();
        loop {
            if table.is_stopped() || self.host().is_cancelled() {
                return None;
            }
            if let Some(chain) = table.take_solo(segment, worker) {
                drop(table);
                self.call_all(); // There is room now where it took something.
                return Some(chain);
            }
            table = self.wait_for_work(table);
        }
    }

    /// Gives back a chain, as `hand_in` does.
    fn hand_in_solo(&self, hand_in: impl FnOnce(&mut Table)) {
        let mut table = self.lock();
        hand_in(&mut table);
        let trash = table.take_trash();
        self.tell_consumer(&table);
        drop(table);
        drop(trash);
        self.call_all();
    }
}
