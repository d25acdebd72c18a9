//! A worker that has a serial segment to itself: runs its chain when it is told to, and waits where its pipes wait.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use forebay_core::{Chunk, Error, ErrorKind, Result, Waker};
use forebay_guard::maps;
use forebay_queue::{
    Message, Receiver as _, Sender as _,
    process::{Connection, ProcessReceiver, ProcessSender},
};
use forebay_snapshot::checkpoint_log::StartPoint;

use crate::{
    host::Host,
    messages::{Back, News, Reply, Request, Spot, pack, unpack},
    run::{Bell, Chain, unsendable},
    stop::Stop,
    worker::{WorkerPipes, heard},
};

/// Runs the chain of `worker` until its loader is gone.
pub(super) fn serve(mut worker: WorkerPipes, connection: Connection) -> Result<()> {
    let chain = worker.chain.take().ok_or_else(|| Error::bug("the worker has no serial segment"))?;
    let bell = Arc::new(Bell::default());
    let Connection { sender, receiver, .. } = connection;
    let (give, requests) = mpsc::channel();
    let (host, ear) = (Arc::clone(&worker.prepared.host), Arc::clone(&bell));
    thread::Builder::new().name("forebay-ear".into()).spawn(move || {
        if let Err(error) = listen(receiver, &host, &ear, &give) {
            let _ = give.send(Err(error)); // It fails when the process ends.
        }
    })?;
    let mut dedicated = ServedChain { worker, chain, bell, sender };
    for request in requests {
        let (request, chunk) = request?;
        match dedicated.work(request, chunk) {
            Err(error) if error.kind() == ErrorKind::Worker => return Ok(()), // The loader is gone.
            worked => worked?,
        }
    }
    Ok(())
}

/// Hands on what the loader says, at once even while the chain runs, until the loader is gone.
fn listen(
    mut receiver: ProcessReceiver,
    host: &Host,
    bell: &Bell,
    give: &mpsc::Sender<Result<(Request, Chunk)>>,
) -> Result<()> {
    while let Some(Message { head, chunk }) = heard(receiver.recv())? {
        match unpack(&head)? {
            Request::Break => {
                host.pause(true);
                bell.ring();
            }
            request => {
                if matches!(request, Request::Run) {
                    host.pause(false); // What came after the last run had come back.
                }
                let _ = give.send(Ok((request, chunk))); // As above.
            }
        }
    }
    Ok(())
}

/// The chain, and who hears of it.
struct ServedChain {
    worker: WorkerPipes,
    chain: Box<Chain>,
    /// Rung by pipes that waited, and to come back.
    bell: Arc<Bell>,
    sender: ProcessSender,
}

impl ServedChain {
    fn work(&mut self, request: Request, mut chunk: Chunk) -> Result<()> {
        match request {
            Request::Start(epoch, spots) => {
                let mut origins = vec![StartPoint::default(); self.worker.prepared.graph.nodes().len()];
                for (link, spot) in self.chain.links().iter().zip(spots) {
                    origins[link.node.at] = spot.into();
                }
                self.chain.start(epoch, &origins);
                // The loader has those that it begins at.
                self.chain.links().iter().for_each(|link| drop(link.node.checkpoint_log.take()));
            }
            Request::Give(port, ended) => {
                let input = self.chain.ports.get_mut(port);
                let input = input.ok_or_else(|| Error::bug(format!("there is no input {port}")))?;
                input.chunk.take_from(&mut chunk, usize::MAX);
                input.ended |= ended;
            }
            Request::Run => self.run()?,
            Request::Break => {} // It was heard on its way here.
        }
        Ok(())
    }

    /// Runs the chain, and tells what came of it.
    fn run(&mut self) -> Result<()> {
        let before: Vec<_> = self.chain.links().iter().map(|link| work(&link.node.counters)).collect();
        let mut stop = self.run_or_wait()?;
        if let Some(error) = maps::error_after(0) {
            // Any of it may be made of zeros, and remembered.
            self.chain.outs.iter_mut().for_each(|out| *out = Chunk::new());
            stop = Stop::Failed(error);
        }
        for port in 0..self.chain.outs.len() {
            let chunk = std::mem::take(&mut self.chain.outs[port]);
            if chunk.is_empty() {
                continue;
            }
            match self.sender.send(&mut Message::new(pack(&Reply::Gave(port))?, chunk)) {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    let last = self.chain.links().last().map(|link| &link.node.blame);
                    stop = Stop::Failed(last.map_or_else(|| error.clone(), |last| unsendable(&error, last)));
                }
                Err(error) if maps::count() > 0 && error.kind() != ErrorKind::Worker => {
                    stop = Stop::Failed(error);
                }
                sent => sent?,
            }
        }
        let is_cut = maps::count() > 0;
        let news = self.chain.links().iter().zip(before).map(|(link, (before, lost))| {
            let now = work(&link.node.counters);
            News {
                work: (now.0.0 - before.0, now.0.1 - before.1, now.0.2 - before.2),
                lost: now.1 - lost,
                checkpoints: link
                    .node
                    .checkpoint_log
                    .take()
                    .into_iter()
                    .filter(|_| !is_cut)
                    .map(Spot::from)
                    .collect(),
                files: link.node.checkpoint_log.take_files(),
                uids: link.node.checkpoint_log.take_uids(),
            }
        });
        let host = &self.worker.prepared.host;
        let back = Back {
            stop,
            news: news.collect(),
            log: host.take_log(),
            notes: host.take_notes(),
            lost: host.take_lost().into_iter().map(Into::into).collect(),
            audit: self.worker.prepared.audit.as_ref().map(|audit| audit.take_lines()).unwrap_or_default(),
            loaded: self.worker.newly_loaded(),
        };
        self.sender.send(&mut Message::new(pack(&Reply::Back(Box::new(back)))?, Chunk::new()))
    }

    /// Runs the chain until it has something, cannot go on, or is to come back. One that waits is waited for here.
    fn run_or_wait(&mut self) -> Result<Stop> {
        let bell = Arc::clone(&self.bell);
        let waker = Waker::new(move || bell.ring());
        let host = &self.worker.prepared.host;
        loop {
            let stop = self.chain.run(&waker, host);
            host.keep_home(host.home());
            match stop {
                Stop::Pending if !host.is_paused() => drop(self.bell.wait(host, None)?),
                // It comes back before it is woken.
                Stop::Pending => return Ok(Stop::Progress),
                stop => return Ok(stop),
            }
        }
    }
}

/// Samples, bytes and nanoseconds; and failures that were forgiven.
fn work(counters: &crate::stats::Counters) -> ((usize, usize, u64), u64) {
    (counters.work(), counters.losses())
}
