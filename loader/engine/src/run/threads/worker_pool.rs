//! The worker processes of a loader: what all have in common, and the line to each.

use std::{
    env, io,
    os::{fd::AsFd as _, unix::process::CommandExt as _},
    process::{Command, Stdio},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use forebay_core::{Chunk, Error, ErrorKind, Result};
use forebay_guard::call::Callee;
use forebay_guard::signals::WORKER;
use forebay_queue::{
    Bounds, Message, Receiver as _, Sender as _,
    process::{Arena, Connection, Sizes},
};

use crate::{
    WorkerProgram,
    messages::{Reply, Setup, pack, unpack},
    run::threads::{
        SharedRun,
        children::{describe, is_crash},
        interrupt::Interrupt,
    },
    sandbox::KEPT,
};

/// How long a worker in a sandbox may take over one sample, or over one turn of a serial segment, unless set.
const PATIENT: Duration = Duration::from_secs(60);
/// How often a worker may end by itself in a row before any of them began to work, and how often it may be killed.
const FRUITLESS: usize = 5;
const PATIENCE: usize = 100;
/// Addresses for what goes to one worker, and for what comes back.
const LANES: (usize, usize) = (256 << 20, 1 << 30);
/// How many workers' lanes there are addresses for, for each that lives: what came from a dead one may be held for long.
const GENERATIONS: usize = 64;
/// Addresses for batches that workers write into.
pub(crate) const BATCHES: usize = 4 << 30;

/// What all workers of a loader have in common.
pub(crate) struct WorkerPool {
    /// How many share the maps.
    pub(crate) count: usize,
    /// What those are told.
    pub(crate) setup: Setup,
    /// Those that have a serial segment each, behind the others by number.
    pub(crate) dedicated: Vec<DedicatedWorkerSpec>,
    /// The program, which calls [`serve_if_worker`](crate::serve_if_worker).
    pub(crate) program: WorkerProgram,
    pub(crate) arena: Arena,
    /// How long a worker may take over one sample.
    pub(crate) timeout: Option<Duration>,
}

/// A serial segment that has a worker of its own.
pub(crate) struct DedicatedWorkerSpec {
    pub(crate) segment: usize,
    pub(crate) setup: Setup,
    /// Has the worker's chain come back.
    pub(crate) interrupt: Interrupt,
}

impl WorkerPool {
    /// The memory that `count` workers share with their loader; pages are taken as they are used.
    pub(crate) fn arena(count: usize) -> Result<Arena> {
        Arena::create(BATCHES + GENERATIONS * count * (LANES.0 + LANES.1) + (64 << 20))
    }
}

/// One worker as its thread here sees it: when its process dies, another takes its place.
pub(super) struct Worker {
    pub(super) shared: Arc<SharedRun>,
    pub(super) worker_pool: Arc<WorkerPool>,
    pub(super) index: usize,
    line: Option<Connected>,
    /// Deaths since one last worked, those by a crash counted as many.
    fruitless: usize,
    /// Whether the process is to be ended because it took too long.
    overdue: bool,
    /// The decoder that the last one that died was in.
    pub(super) decoder: Option<Callee>,
}

/// A living process's connection.
struct Connected {
    connection: Connection,
    /// Whether it said that it is ready.
    ready: bool,
}

impl Worker {
    pub(super) fn new(shared: Arc<SharedRun>, worker_pool: Arc<WorkerPool>, index: usize) -> Self {
        Self { shared, worker_pool, index, line: None, fruitless: 0, overdue: false, decoder: None }
    }

    /// Starts a process, and tells it what to be. One that dies at once is found dead by who listens to it.
    pub(super) fn start(&mut self) -> Result<()> {
        let bounds = Bounds { items: u64::MAX, bytes: u64::MAX }; // What is asked at once is the bound.
        let sizes = Sizes { to_worker: LANES.0, from_worker: LANES.1, bounds };
        let (mut connection, ends) = Connection::open(&self.worker_pool.arena, sizes)?;
        let mut command = Command::new(&self.worker_pool.program.path);
        command.args(&self.worker_pool.program.args);
        // In a group of its own: what the terminal sends is for the loader.
        let all = self.worker_pool.count + self.worker_pool.dedicated.len();
        let who = format!("{}/{all}", self.index);
        command.env(WORKER, &who).process_group(0);
        if let Some(home) = self.shared.host().home() {
            command.current_dir(home.path());
        }
        // What a plugin prints there must not lie among what this program prints.
        command.stdout(io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from));
        if self.setup().sandbox.is_some() {
            command.env_clear().envs(KEPT.iter().filter_map(|name| Some((name, env::var_os(name)?))));
            command.env(WORKER, &who);
        }
        command.envs(self.worker_pool.program.envs.iter().map(|(name, value)| (name, value)));
        let child = ends.spawn(command)?;
        self.shared.adopt(self.index, child, connection.noted_there());
        let told = connection.sender.send(&mut Message::new(pack(self.setup())?, Chunk::new()));
        self.line = Some(Connected { connection, ready: false });
        match told {
            Err(error) if error.kind() == ErrorKind::Worker => Ok(()),
            other => other,
        }
    }

    fn setup(&self) -> &Setup {
        let post =
            self.index.checked_sub(self.worker_pool.count).and_then(|at| self.worker_pool.dedicated.get(at));
        post.map_or(&self.worker_pool.setup, |post| &post.setup)
    }

    fn line(&mut self) -> Result<&mut Connected> {
        self.line.as_mut().ok_or_else(|| Error::bug("a worker has no connection"))
    }

    pub(super) fn connection(&mut self) -> Result<&mut Connection> {
        Ok(&mut self.line()?.connection)
    }

    /// Waits until the worker has said that it is ready.
    pub(super) fn hear_ready(&mut self) -> Result<()> {
        if self.line()?.ready {
            return Ok(());
        }
        if let Some(limit) = self.setup().sandbox.as_ref().map(|_| PATIENT)
            && !self.line()?.connection.receiver.wait(limit)?
        {
            return Err(self.overdue(limit));
        }
        match self.hear()? {
            (Reply::Ready, _) => {
                self.line()?.ready = true;
                Ok(())
            }
            (Reply::Refused(problem), _) => {
                let program = self.worker_pool.program.path.display().to_string();
                let error = Error::from(problem).context("worker", program);
                // Not one that another try would mend.
                Err(if error.kind() == ErrorKind::Worker { Error::bug(error.to_string()) } else { error })
            }
            _ => Err(Error::bug("a worker answered before it was asked")),
        }
    }

    /// How long it may take.
    fn limit(&self) -> Option<Duration> {
        self.worker_pool.timeout.or(self.setup().sandbox.as_ref().map(|_| PATIENT))
    }

    /// As [`limit`](Self::limit), for a serial segment: only in a sandbox, since others may wait as long as they like.
    pub(super) fn turn(&self) -> Option<Duration> {
        self.setup().sandbox.as_ref().and_then(|_| self.limit())
    }

    /// Notes that the worker took longer than it may.
    pub(super) fn overdue(&mut self, limit: Duration) -> Error {
        self.overdue = true;
        Error::new(ErrorKind::Worker, format!("it took longer than {limit:?}"))
    }

    /// Waits for a reply no longer than a sample may take; a chunk that takes so long is given out again, sample by sample.
    pub(super) fn wait_for_reply(&mut self) -> Result<()> {
        let Some(limit) = self.limit() else { return Ok(()) };
        match self.line()?.connection.receiver.wait(limit)? {
            true => Ok(()),
            false => Err(self.overdue(limit)),
        }
    }

    pub(super) fn hear(&mut self) -> Result<(Reply, Chunk)> {
        let message = self.line()?.connection.receiver.recv()?;
        let message = message.ok_or_else(|| Error::new(ErrorKind::Worker, "the worker ended"))?;
        Ok((unpack(&message.head)?, message.chunk))
    }

    /// Notes that the worker does something.
    pub(super) fn works(&mut self) {
        self.fruitless = 0;
    }

    /// Says in an error which decoder the last worker that died was in, if it was in one.
    pub(super) fn in_decoder(&self, error: Error) -> Error {
        match &self.decoder {
            Some(decoder) => decoder.on(error),
            None => error,
        }
    }

    /// How the worker ended, and whether by itself; an error when too many have, and none began to work.
    pub(super) fn reap(&mut self, error: &Error) -> Result<(String, bool)> {
        let status = self.shared.wait_for(self.index);
        if self.index < self.worker_pool.count {
            let ledger = self.shared.host().ledger();
            ledger.leave(ledger.seat_of_worker(self.index));
        }
        let noted = self.line.take().map(|line| line.connection.noted_there());
        let id = noted.map_or(0, |noted| noted.word().load(Ordering::Relaxed));
        self.decoder = self.shared.host().decoder_noted(id);
        let overdue = std::mem::take(&mut self.overdue);
        let how = match overdue {
            true => format!("worker {} was ended: {}", self.index, error.message()),
            false => describe(self.index, status, error),
        };
        let crashed = overdue || status.is_some_and(|(_, status)| is_crash(status));
        self.fruitless += if crashed { PATIENCE / FRUITLESS } else { 1 };
        if self.fruitless >= PATIENCE && !self.shared.is_stopped() {
            let message = format!("{how}, as did others before it; none of them began to work");
            let program = self.worker_pool.program.path.display().to_string();
            let error = Error::new(ErrorKind::Worker, message).context("worker", program);
            return Err(
                error.context("expected", "a program that calls serve_if_worker first thing in its main")
            );
        }
        Ok((how, crashed))
    }
}
