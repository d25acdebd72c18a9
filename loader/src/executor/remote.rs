//! Worker processes: each has a thread here that sends it chunks, two at a time, and takes what comes back.
//!
//! A worker is told which plugins to load and makes the same maps. A chunk's input is kept until its output is here, so when
//! a worker dies what it had is given to the one that takes its place: maps are pure, so nothing changes. The chunk it died
//! over is then worked on sample by sample. One that kills again and again is the culprit: it is an error of the map that ran,
//! which its policy may forgive like any other.

use std::{
    collections::VecDeque,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use forebay_core::{Chunk, Error, ErrorKind, Key, Result};

use super::{
    children::{describe, is_crash},
    parallel::{Lost, Mapped},
    table::Task,
    threads::Shared,
};
use crate::{
    host::Destination,
    queue::{
        Bounds, Message, Offer, Receiver as _, Sender as _,
        process::{Arena, Connection, Loan, Sizes},
    },
    worker::{
        WORKER,
        protocol::{Done, Order, Reply, Setup, pack, unpack},
    },
};

/// Chunks that a worker has at once: one to work on, one to go on with.
const AHEAD: usize = 2;
/// How often workers in a row may end by themselves before any of them began a map, and how often they may be killed.
const FRUITLESS: usize = 5;
const PATIENCE: usize = 100;
/// How often a worker may crash over a sample that it works on alone, and how often it may be killed from outside there.
const CRASHED: usize = 2;
const KILLED: usize = 4;
/// Addresses for what goes to one worker, and for what comes back.
const LANES: (usize, usize) = (256 << 20, 1 << 30);
/// How many workers' lanes there are addresses for, for each that lives: what came from a dead one may be held for long.
const GENERATIONS: usize = 64;
/// Addresses for batches that workers write into.
pub(crate) const BATCHES: usize = 4 << 30;

/// What all workers of a loader have in common.
pub(crate) struct Crew {
    pub(crate) count: usize,
    /// The program, which calls [`serve_if_worker`](crate::serve_if_worker).
    pub(crate) program: PathBuf,
    pub(crate) setup: Setup,
    pub(crate) arena: Arena,
    /// How long a worker may take over one sample.
    pub(crate) timeout: Option<Duration>,
}

impl Crew {
    /// The memory that `count` workers share with their loader; pages are taken as they are used.
    pub(crate) fn arena(count: usize) -> Result<Arena> {
        Arena::create(BATCHES + GENERATIONS * count * (LANES.0 + LANES.1) + (64 << 20))
    }
}

/// A chunk that a worker has, or is to have.
struct Flight {
    task: Task,
    loans: Vec<Loan>,
    sent: bool,
    /// How often a worker died over it.
    deaths: usize,
}

/// What became of a sample that was worked on alone.
#[expect(clippy::large_enum_variant, reason = "moved once, never stored")]
enum Alone {
    Done(Done, Chunk),
    /// It is to be worked on in this process.
    Here,
    /// It killed the worker too often, while this map ran.
    Killed(usize, Error),
}

/// A living worker's connection.
struct Line {
    connection: Connection,
    /// Whether it said that it is ready.
    ready: bool,
}

/// The thread of one worker.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    crew: Arc<Crew>,
    index: usize,
    line: Option<Line>,
    flights: VecDeque<Flight>,
    /// Deaths since a map last began, those by a crash counted as many.
    fruitless: usize,
    /// Whether the worker is to be ended because it took too long.
    overdue: bool,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, crew: Arc<Crew>, index: usize) -> Self {
        Self { shared, crew, index, line: None, flights: VecDeque::new(), fruitless: 0, overdue: false }
    }

    /// Starts the worker and gives it chunks, until the run is stopped; an error is one of the whole run.
    pub(crate) fn serve(mut self) -> Result<()> {
        self.start()?;
        while !self.shared.is_stopped() {
            // One that is not ready takes no chunk, for which all after it would wait.
            let served = match self.hear_ready() {
                Ok(()) if !self.take() => break,
                Ok(()) if self.flights.front().is_some_and(|flight| flight.deaths > 0) => {
                    self.serve_carefully()
                }
                Ok(()) => self.serve_one(),
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                if error.kind() != ErrorKind::Worker {
                    return Err(error);
                }
                self.bury(&error)?;
            }
        }
        Ok(())
    }

    /// Takes chunks, and waits for one if it has none; says whether the run goes on.
    fn take(&mut self) -> bool {
        let wanted = (AHEAD - self.flights.len(), self.flights.is_empty());
        self.shared.take_remote(self.index, wanted, |task| {
            self.flights.push_back(Flight { task, loans: Vec::new(), sent: false, deaths: 0 });
        })
    }

    /// Starts a worker, and tells it what to be.
    fn start(&mut self) -> Result<()> {
        let bounds = Bounds { items: u64::MAX, bytes: u64::MAX }; // Two chunks are the bound.
        let sizes = Sizes { to_worker: LANES.0, from_worker: LANES.1, bounds };
        let (mut connection, ends) = Connection::open(&self.crew.arena, sizes)?;
        let mut command = Command::new(&self.crew.program);
        // In a group of its own: what the terminal sends is for the loader.
        command.env(WORKER, self.index.to_string()).process_group(0);
        let child = ends.spawn(command)?;
        self.shared.adopt(self.index, child);
        let told = connection.sender.send(&mut Message::new(pack(&self.crew.setup)?, Chunk::new()));
        self.line = Some(Line { connection, ready: false });
        match told {
            Err(error) if error.kind() == ErrorKind::Worker => self.bury(&error),
            other => other,
        }
    }

    fn line(&mut self) -> Result<&mut Line> {
        self.line.as_mut().ok_or_else(unconnected)
    }

    /// Sends what is not sent, and takes one reply.
    fn serve_one(&mut self) -> Result<()> {
        for at in 0..self.flights.len() {
            if !self.flights[at].sent {
                match self.send(at) {
                    Err(error) if error.kind() == ErrorKind::Unsupported => return self.serve_here(at),
                    sent => sent?,
                }
            }
        }
        let Some((done, chunk)) = self.hear_done(&mut 0)? else { return self.serve_here(0) };
        let Some(flight) = self.flights.pop_front() else { return Ok(()) };
        let names = names(&flight.task.chunk, &done);
        let busy = spent(&done);
        let mapped = self.read(&flight.task, done, names);
        self.hand_in(flight, chunk, mapped, busy);
        Ok(())
    }

    /// Works on a chunk in this process: something in it can be used by no other.
    fn serve_here(&mut self, at: usize) -> Result<()> {
        let Some(mut flight) = self.flights.remove(at) else { return Ok(()) };
        let mut out = Chunk::new();
        let begin = Instant::now();
        let mapped = flight.task.parallel.run(flight.task.first, &mut flight.task.chunk, &mut out);
        self.hand_in(flight, out, mapped, begin.elapsed());
        Ok(())
    }

    /// Sends a chunk. One beside another is sent only if there is room: the worker may be waiting for room for its reply.
    fn send(&mut self, at: usize) -> Result<()> {
        let flight = &mut self.flights[at];
        let first = flight.task.first;
        if flight.loans.is_empty() {
            flight.loans = lend(&self.crew.arena, &self.shared, &flight.task);
        }
        let order = order(&flight.task, first, &flight.loans, false);
        let mut message = Message::new(pack(&order)?, flight.task.chunk.clone());
        let line = self.line.as_mut().ok_or_else(unconnected)?;
        if at == 0 {
            self.flights[at].sent = true;
            return line.connection.sender.send(&mut message);
        }
        match line.connection.sender.try_send(&mut message)? {
            Offer::Taken => self.flights[at].sent = true,
            Offer::Full => {} // It goes when the one before it is done.
        }
        Ok(())
    }

    /// Works on the foremost chunk sample by sample: a worker died over it.
    fn serve_carefully(&mut self) -> Result<()> {
        let Some(mut flight) = self.flights.pop_front() else { return Ok(()) };
        let mut all = Chunk::new();
        let mut mapped = Mapped { taken: flight.task.chunk.len(), ..Mapped::default() };
        let mut rest = flight.task.chunk.clone();
        let mut busy = Duration::ZERO;
        for at in 0..mapped.taken {
            let mut one = Chunk::new();
            one.take_from(&mut rest, 1);
            let name = one.front().map(|(uid, key)| (uid, key.clone()));
            let first = flight.task.first + at as u64;
            match self.serve_alone(&flight.task, first, &one, &mut flight.deaths)? {
                Alone::Done(done, mut chunk) => {
                    busy += spent(&done);
                    let one = self.read(&flight.task, done, name.into_iter().collect());
                    mapped.add(at, one);
                    all.take_from(&mut chunk, usize::MAX);
                }
                Alone::Here => {
                    let mut chunk = Chunk::new();
                    mapped.add(at, flight.task.parallel.run(first, &mut one, &mut chunk));
                    all.take_from(&mut chunk, usize::MAX);
                }
                Alone::Killed(map, error) => {
                    let culprit = flight.task.parallel.maps().get(map);
                    let (uid, key) = name.unwrap_or_default();
                    let error = error.context("sample", &key);
                    match culprit {
                        Some(culprit) if culprit.on_error.forgives(ErrorKind::Worker, true) => {
                            mapped.lost.push(Lost { map, at, uid, key, error: culprit.blame.on(error) });
                        }
                        Some(culprit) => mapped.failed = Some(culprit.blame.on(error)),
                        None => mapped.failed = Some(error),
                    }
                }
            }
            if mapped.failed.is_some() || self.shared.is_stopped() {
                break;
            }
        }
        self.hand_in(flight, all, mapped, busy);
        Ok(())
    }

    /// Has the worker do one sample; gives the map that killed it too often, and how.
    fn serve_alone(&mut self, task: &Task, first: u64, one: &Chunk, deaths: &mut usize) -> Result<Alone> {
        let mut killed = 0;
        loop {
            let mut map = usize::MAX;
            let mut attempt = || -> Result<Alone> {
                self.hear_ready()?;
                let mut message = Message::new(pack(&order(task, first, &[], true))?, one.clone());
                match self.line()?.connection.sender.send(&mut message) {
                    Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Alone::Here),
                    sent => sent?,
                }
                let done = self.hear_done(&mut map)?;
                Ok(done.map_or(Alone::Here, |(done, chunk)| Alone::Done(done, chunk)))
            };
            let error = match attempt() {
                Err(error) if error.kind() == ErrorKind::Worker => error,
                other => return other,
            };
            let (how, crashed) = self.mourn(&error)?;
            if self.shared.is_stopped() {
                return Err(error);
            }
            self.replace()?;
            *deaths += 1;
            // Before a map began, the sample is not to blame.
            if map != usize::MAX {
                killed += 1;
                if killed >= if crashed { CRASHED } else { KILLED } {
                    let message = format!("{how}, over and over at this sample");
                    return Ok(Alone::Killed(map, Error::new(ErrorKind::Worker, message)));
                }
            }
        }
    }

    /// Waits until the worker has said that it is ready.
    fn hear_ready(&mut self) -> Result<()> {
        if self.line()?.ready {
            return Ok(());
        }
        match self.hear()? {
            (Reply::Ready, _) => {
                self.line()?.ready = true;
                Ok(())
            }
            (Reply::Refused(problem), _) => {
                let program = self.crew.program.display().to_string();
                let error = Error::from(problem).context("worker", program);
                // Not one that another try would mend.
                Err(if error.kind() == ErrorKind::Worker { Error::bug(error.to_string()) } else { error })
            }
            _ => Err(Error::bug("a worker answered before it was asked")),
        }
    }

    /// Waits until a chunk is done, and notes the map that began last; `None` when the samples cannot leave the worker.
    fn hear_done(&mut self, map: &mut usize) -> Result<Option<(Done, Chunk)>> {
        loop {
            self.wait_for_reply()?;
            match self.hear()? {
                (Reply::Done(done), chunk) => {
                    self.fruitless = 0;
                    return Ok(Some((done, chunk)));
                }
                (Reply::Unsendable, _) => return Ok(None),
                (Reply::Begins(at), _) => {
                    self.fruitless = 0;
                    *map = at;
                }
                _ => return Err(Error::bug("a worker gave an answer to another question")),
            }
        }
    }

    /// Waits for a reply no longer than a sample may take; a chunk that takes so long is given out again, sample by sample.
    fn wait_for_reply(&mut self) -> Result<()> {
        let Some(limit) = self.crew.timeout else { return Ok(()) };
        self.overdue = !self.line()?.connection.receiver.wait(limit)?;
        match self.overdue {
            true => Err(Error::new(ErrorKind::Worker, format!("it took longer than {limit:?}"))),
            false => Ok(()),
        }
    }

    fn hear(&mut self) -> Result<(Reply, Chunk)> {
        let message = self.line()?.connection.receiver.recv()?;
        let message = message.ok_or_else(|| Error::new(ErrorKind::Worker, "the worker ended"))?;
        Ok((unpack(&message.head)?, message.chunk))
    }

    /// What became of a chunk, as the worker tells it. `names` are those of the samples it lost.
    fn read(&self, task: &Task, done: Done, names: Vec<(u64, Key)>) -> Mapped {
        for (map, (samples, bytes, nanos)) in task.parallel.maps().iter().zip(&done.work) {
            map.counters.add(*samples, *bytes, Duration::from_nanos(*nanos));
        }
        self.shared.host().note_plugins(done.loaded);
        for (level, line) in done.log {
            self.shared.host().note(level, line);
        }
        if let Some(Destination::Batch(stacker)) =
            task.parallel.maps().last().and_then(|map| map.destination.as_ref())
        {
            stacker.expect(done.asked);
        }
        let lost = done.lost.into_iter().zip(names);
        Mapped {
            taken: task.chunk.len(),
            bytes: done.bytes,
            lost: lost
                .map(|((map, at, problem), (uid, key))| Lost { map, at, uid, key, error: problem.into() })
                .collect(),
            failed: done.failed.map(Into::into),
        }
    }

    /// Gives the table what a worker made of a chunk.
    fn hand_in(&self, flight: Flight, chunk: Chunk, mapped: Mapped, busy: Duration) {
        for loan in flight.loans {
            drop(self.crew.arena.reclaim(loan));
        }
        self.shared.hand_in_remote(flight.task, chunk, mapped, busy);
    }

    /// The worker is dead: starts another, which gets what it had.
    fn bury(&mut self, error: &Error) -> Result<()> {
        let (how, _) = self.mourn(error)?;
        if self.shared.is_stopped() {
            return Ok(());
        }
        self.shared.host().note(2, format!("{how}; another takes its place"));
        if let Some(flight) = self.flights.front_mut() {
            flight.deaths += usize::from(flight.sent);
        }
        self.replace()
    }

    /// How the worker ended, and whether by itself; an error when too many have, and none began a map.
    fn mourn(&mut self, error: &Error) -> Result<(String, bool)> {
        let status = self.shared.wait_for(self.index);
        let overdue = std::mem::take(&mut self.overdue);
        let how = match overdue {
            true => format!("worker {} was ended: {}", self.index, error.message()),
            false => describe(self.index, status, error),
        };
        let crashed = overdue || status.is_some_and(|(_, status)| is_crash(status));
        self.fruitless += if crashed { PATIENCE / FRUITLESS } else { 1 };
        if self.fruitless >= PATIENCE && !self.shared.is_stopped() {
            let message = format!("{how}, and others before it, none of which began to work");
            let program = self.crew.program.display().to_string();
            return Err(Error::new(ErrorKind::Worker, message).context("worker", program));
        }
        Ok((how, crashed))
    }

    /// Starts another worker; what the last one had is to be sent again.
    fn replace(&mut self) -> Result<()> {
        self.line = None;
        for flight in &mut self.flights {
            for loan in flight.loans.drain(..) {
                drop(self.crew.arena.reclaim(loan)); // The borrower is dead.
            }
            flight.sent = false;
        }
        self.start()
    }
}

/// The time that sets the size of the next chunks: less than was spent, since each takes a way there and back. So a chunk
/// takes about 8 ms; a quarter of that cost a tenth more CPU a photograph.
fn spent(done: &Done) -> Duration {
    Duration::from_nanos(done.work.iter().map(|(_, _, nanos)| nanos).sum()) / 16
}

fn unconnected() -> Error {
    Error::bug("a worker has no connection")
}

/// The names of the samples that were lost.
fn names(chunk: &Chunk, done: &Done) -> Vec<(u64, Key)> {
    let name = |at: usize| chunk.names().nth(at).map(|(uid, key)| (uid, key.clone()));
    done.lost.iter().map(|(_, at, _)| name(*at).unwrap_or_default()).collect()
}

fn order(task: &Task, first: u64, loans: &[Loan], careful: bool) -> Order {
    let (epoch, passes) = task.parallel.passes();
    let loans = loans.iter().map(|loan| (loan.offset, loan.len)).collect();
    Order { segment: task.segment, first, epoch, passes, loans, careful }
}

/// Lends the worker the places of its output in coming batches, where it is known how long they are.
fn lend(arena: &Arena, shared: &Shared, task: &Task) -> Vec<Loan> {
    let maps = task.parallel.maps();
    let Some(Destination::Batch(stacker)) = maps.last().and_then(|map| map.destination.as_ref()) else {
        return Vec::new();
    };
    let slots = stacker.expected_slots(task.first, task.chunk.len(), shared.host().pool());
    slots.into_iter().map_while(|slot| arena.lend(slot).ok()).collect()
}
