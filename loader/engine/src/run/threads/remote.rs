//! Worker processes: each has a thread here that sends it chunks, two at a time, and takes what comes back.
//!
//! A worker is told which plugins to load and makes the same maps. A chunk's input is kept until its output is here, so when
//! a worker dies what it had is given to the one that takes its place: maps are pure, so nothing changes. The chunk it died
//! over is then worked on sample by sample. One that kills again and again is the culprit: it is an error of the map that ran,
//! which its policy may forgive like any other.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use forebay_core::{Chunk, Error, ErrorKind, Key, Result};
use forebay_graph::On;
use forebay_queue::{
    Message, Offer, Sender as _,
    process::{Arena, Loan},
};

use crate::{
    host::Destination,
    messages::{Done, Order, Reply, pack},
    run::{
        mapped::{Lost, Mapped},
        table::{Task, Work},
        threads::{
            SharedRun,
            worker_pool::{Worker, WorkerPool},
        },
    },
};

/// Chunks that a worker has at once: one to work on, one to go on with.
const AHEAD: usize = 2;
/// A chunk of so many bytes waits until the one before it is done.
const LARGE: usize = 8 << 20;
/// How often a worker may crash over a sample that it works on alone, and how often it may be killed from outside there.
const CRASHED: usize = 2;
const KILLED: usize = 4;

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

/// The thread of one worker.
pub(crate) struct Driver {
    worker: Worker,
    flights: VecDeque<Flight>,
}

impl Driver {
    pub(crate) fn new(shared: Arc<SharedRun>, worker_pool: Arc<WorkerPool>, index: usize) -> Self {
        Self { worker: Worker::new(shared, worker_pool, index), flights: VecDeque::new() }
    }

    fn shared(&self) -> &SharedRun {
        &self.worker.shared
    }

    /// Starts the worker and gives it chunks, until the run is stopped; an error is one of the whole run.
    pub(crate) fn serve(mut self) -> Result<()> {
        self.worker.start()?;
        while !self.shared().is_stopped() {
            // One that is not ready takes no chunk, for which all after it would wait.
            let served = match self.worker.hear_ready() {
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
                self.replace_dead(&error)?;
            }
        }
        Ok(())
    }

    /// Takes chunks, and waits for one if it has none; says whether the run goes on.
    fn take(&mut self) -> bool {
        let wanted = (AHEAD - self.flights.len(), self.flights.is_empty());
        let me = (self.worker.index, self.worker.worker_pool.count);
        self.worker.shared.take_remote(me, wanted, |task| {
            self.flights.push_back(Flight { task, loans: Vec::new(), sent: false, deaths: 0 });
        })
    }

    /// Sends what is not sent, and takes one reply.
    fn serve_one(&mut self) -> Result<()> {
        for at in 0..self.flights.len() {
            // What is large is copied for the worker when it is about to work on it, and not before.
            if !self.flights[at].sent && (at == 0 || self.flights[at].task.chunk.size() < LARGE) {
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
        let Some(flight) = self.flights.remove(at) else { return Ok(()) };
        let mut out = Chunk::new();
        let begin = Instant::now();
        let mapped = run_here(&flight.task, flight.task.first, &mut flight.task.chunk.clone(), &mut out);
        self.hand_in(flight, out, mapped, begin.elapsed());
        Ok(())
    }

    /// Sends a chunk. One beside another is sent only if there is room: the worker may be waiting for room for its reply.
    fn send(&mut self, at: usize) -> Result<()> {
        let flight = &mut self.flights[at];
        let first = flight.task.first;
        if flight.loans.is_empty() {
            flight.loans = lend(&self.worker.worker_pool.arena, &self.worker.shared, &flight.task);
        }
        let order = order(&flight.task, first, &flight.loans, false);
        let mut message = Message::new(pack(&order)?, flight.task.chunk.clone());
        let sender = &mut self.worker.connection()?.sender;
        if at == 0 {
            self.flights[at].sent = true;
            return sender.send(&mut message);
        }
        match sender.try_send(&mut message)? {
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
            let given = all.len();
            one.take_from(&mut rest, 1);
            let name = one.front().map(|(uid, key)| (uid, key.clone()));
            let first = flight.task.first + at as u64;
            match self.serve_alone(&flight.task, first, &one, &mut flight.deaths)? {
                Alone::Done(done, mut chunk) => {
                    busy += spent(&done);
                    let names = name.into_iter().cycle().take(done.lost.len()).collect();
                    let one = self.read(&flight.task, done, names);
                    mapped.add(at, given, one);
                    all.take_from(&mut chunk, usize::MAX);
                }
                Alone::Here => {
                    let mut chunk = Chunk::new();
                    mapped.add(at, given, run_here(&flight.task, first, &mut one, &mut chunk));
                    all.take_from(&mut chunk, usize::MAX);
                }
                Alone::Killed(map, error) => {
                    let culprit = flight.task.parallel.maps().get(map);
                    let (uid, key) = name.unwrap_or_default();
                    let error = self.worker.in_decoder(error.of_sample(&key));
                    match culprit {
                        Some(culprit) if culprit.on_error.forgives(ErrorKind::Worker, true) => {
                            let error = culprit.blame.on(error);
                            mapped.lost.push(Lost { map, at, given, uid, key, error });
                        }
                        Some(culprit) => mapped.failed = Some(culprit.blame.on(error)),
                        None => mapped.failed = Some(error),
                    }
                }
            }
            if mapped.failed.is_some() || self.shared().is_stopped() {
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
                self.worker.hear_ready()?;
                let mut message = Message::new(pack(&order(task, first, &[], true))?, one.clone());
                match self.worker.connection()?.sender.send(&mut message) {
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
            let (how, crashed) = self.worker.reap(&error)?;
            if self.shared().is_stopped() {
                return Err(error);
            }
            self.replace()?;
            *deaths += 1;
            // Before a map began, the sample is not to blame.
            if map != usize::MAX {
                killed += 1;
                if killed >= if crashed { CRASHED } else { KILLED } {
                    let message = format!("{how}, again and again at this sample");
                    return Ok(Alone::Killed(map, Error::new(ErrorKind::Worker, message)));
                }
            }
        }
    }

    /// Waits until a chunk is done, and notes the map that began last; `None` when the samples cannot leave the worker.
    fn hear_done(&mut self, map: &mut usize) -> Result<Option<(Done, Chunk)>> {
        loop {
            self.worker.wait_for_reply()?;
            match self.worker.hear()? {
                (Reply::Done(done), chunk) => {
                    self.worker.works();
                    return Ok(Some((done, chunk)));
                }
                (Reply::Unsendable, _) => return Ok(None),
                (Reply::Begins(at), _) => {
                    self.worker.works();
                    *map = at;
                }
                _ => return Err(Error::bug("a worker gave an answer to another question")),
            }
        }
    }

    /// What became of a chunk, as the worker tells it. `names` are those of the samples it lost.
    fn read(&self, task: &Task, done: Done, names: Vec<(u64, Key)>) -> Mapped {
        for (map, (samples, bytes, nanos)) in task.parallel.maps().iter().zip(&done.work) {
            map.counters.add(*samples, *bytes, Duration::from_nanos(*nanos));
        }
        self.shared().host().note_plugins(done.loaded);
        for (level, line) in done.log {
            self.shared().host().note(level, line);
        }
        done.notes.into_iter().for_each(|(node, note)| self.shared().host().count(node, note));
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
                .map(|((map, at, given, problem), (uid, key))| Lost {
                    map,
                    at,
                    given,
                    uid,
                    key,
                    error: problem.into(),
                })
                .collect(),
            failed: done.failed.map(Into::into),
        }
    }

    /// Gives the table what a worker made of a chunk.
    fn hand_in(&self, flight: Flight, chunk: Chunk, mapped: Mapped, busy: Duration) {
        let ledger = self.shared().host().ledger();
        ledger.hand_in(ledger.seat_of_worker(self.worker.index), flight.task.order);
        for loan in flight.loans {
            drop(self.worker.worker_pool.arena.reclaim(loan));
        }
        self.worker.shared.hand_in_remote(flight.task, chunk, mapped, busy);
    }

    /// The worker is dead: starts another, which gets what it had.
    fn replace_dead(&mut self, error: &Error) -> Result<()> {
        let (how, _) = self.worker.reap(error)?;
        if self.shared().is_stopped() {
            return Ok(());
        }
        self.shared().host().note(2, format!("{how}; another takes its place"));
        if let Some(flight) = self.flights.front_mut() {
            flight.deaths += usize::from(flight.sent);
        }
        self.replace()
    }

    /// Starts another worker; what the last one had is to be sent again.
    fn replace(&mut self) -> Result<()> {
        for flight in &mut self.flights {
            for loan in flight.loans.drain(..) {
                drop(self.worker.worker_pool.arena.reclaim(loan)); // The borrower is dead.
            }
            flight.sent = false;
        }
        self.worker.start()
    }
}

impl SharedRun {
    /// Gives up to `most` chunks for this worker process, out of `count`, to `each`; waits for the first, if it `must`. One to go on
    /// with it gets only if all others can have one to work on. Says whether the run goes on.
    fn take_remote(
        &self,
        (worker, count): (usize, usize),
        (most, must): (usize, bool),
        mut each: impl FnMut(Task),
    ) -> bool {
        let mut table = self.lock();
        let mut taken = 0;
        loop {
            if table.is_stopped() || self.host().is_cancelled() {
                return false;
            }
            while taken < most
                && (must && taken == 0 || table.has_chunks_to_spare(count))
                && let Some(Work::Task(task)) = table.take_work(On::Process, worker)
            {
                taken += 1;
                each(task);
            }
            if taken > 0 || !must {
                drop(table);
                if taken > 0 {
                    self.call_all(); // There is room now where it lay.
                }
                return true;
            }
            table = self.wait_for_work(table);
        }
    }

    /// Takes what a worker process made of a chunk.
    fn hand_in_remote(&self, task: Task, chunk: Chunk, mapped: Mapped, busy: Duration) {
        let Task { segment, number, parallel, chunk: spent, .. } = task;
        drop(parallel);
        let mut table = self.lock();
        table.hand_in_task((segment, number), chunk, mapped, spent, busy);
        let trash = table.take_trash();
        self.tell_consumer(&table);
        drop(table);
        drop(trash);
        self.call_all();
    }
}

/// The time that sets the size of the next chunks: less than was spent, since each takes a way there and back. So a chunk
/// takes about 8 ms; a quarter of that cost a tenth more CPU a photograph.
fn spent(done: &Done) -> Duration {
    Duration::from_nanos(done.work.iter().map(|(_, _, nanos)| nanos).sum()) / 16
}

/// Works on samples in this process, since something in them can be used by no other; not by pipes that are isolated.
fn run_here(task: &Task, first: u64, input: &mut Chunk, out: &mut Chunk) -> Mapped {
    let Some(blame) = task.parallel.confined() else { return task.parallel.run(first, input, out) };
    let error =
        Error::unsupported("the value cannot be sent to another process, but the pipe is isolated in one");
    Mapped { taken: input.len(), failed: Some(blame.on(error)), ..Mapped::default() }
}

/// The names of the samples that were lost.
fn names(chunk: &Chunk, done: &Done) -> Vec<(u64, Key)> {
    let name = |at: usize| chunk.names().nth(at).map(|(uid, key)| (uid, key.clone()));
    done.lost.iter().map(|(_, at, ..)| name(*at).unwrap_or_default()).collect()
}

fn order(task: &Task, first: u64, loans: &[Loan], careful: bool) -> Order {
    let (epoch, passes) = task.parallel.passes();
    let loans = loans.iter().map(|loan| (loan.offset, loan.len)).collect();
    Order { segment: task.segment, order: task.order, first, epoch, passes, loans, careful }
}

/// Lends the worker the places of its output in coming batches, where it is known how long they are.
fn lend(arena: &Arena, shared: &SharedRun, task: &Task) -> Vec<Loan> {
    let maps = task.parallel.maps();
    let Some(Destination::Batch(stacker)) = maps.last().and_then(|map| map.destination.as_ref()) else {
        return Vec::new();
    };
    let slots = stacker.expected_slots(task.first, task.chunk.len(), shared.host().pool());
    slots.into_iter().map_while(|slot| arena.lend(slot).ok()).collect()
}
