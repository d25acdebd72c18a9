//! One pool of threads for the whole graph.
//!
//! All workers share one table of segments and edges behind one lock, which is held only to take and to
//! hand in work: a chunk at a time. A worker takes the most downstream segment that can run, so what is
//! begun gets finished before more is begun, and memory stays bounded:
//! - a serial segment is taken out of the table while it runs, so it runs once at a time, in order;
//! - the chunks of a parallel segment are numbered as they are taken, and handed on in that order,
//!   from a window of chunks that are worked on or wait for an earlier one;
//! - an edge takes more while all hold less than the budget, and it and all before it less than their part of that; an empty
//!   edge always takes one.
//!
//! Nothing here sleeps to wait: idle workers and the consumer wait for a condition that is signalled.

mod children;
mod dedicated;
mod guard;
mod interrupt;
mod remote;
mod serve;
mod stall;
mod worker_pool;

use std::{
    process::{Child, ExitStatus},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    task,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use forebay_core::{Chunk, Result, Sample, Waker};
use forebay_graph::On;
use forebay_queue::process::Noted;
use forebay_queue::stopped;
use forebay_snapshot::checkpoint_log::StartPoint;

pub(crate) use self::{
    guard::Counts,
    interrupt::Interrupt,
    worker_pool::{BATCHES, DedicatedWorkerSpec, WorkerPool},
};
use crate::{
    host::Host,
    run::{
        Body, Job, Run,
        death::{CrashedSegment, Death},
        item::Item,
        table::Table,
        threads::{
            children::Children,
            guard::{Guard, Watched},
            stall::{Consumer, Lookout},
        },
    },
};

/// The executor with threads of its own.
pub(crate) struct Threads {
    shared: Arc<SharedRun>,
    workers: Vec<JoinHandle<()>>,
    ready: Chunk,
    over: bool,
    waited: Duration,
    /// Since when the consumer waits for the sample that comes next, and how often that was told.
    waits: Option<(Instant, u32)>,
    /// How many threads or processes do most of the work.
    count: usize,
    /// What ended the last `next`, if that can be mended by another start.
    death: Option<Death>,
    /// Who hears of threads that crash.
    listener: Option<JoinHandle<()>>,
    /// Whether another run took its place.
    retired: bool,
}

pub(super) struct SharedRun {
    table: Mutex<Table>,
    /// Signalled when there may be work.
    work: Condvar,
    /// Signalled when there may be something for the consumer, or nothing runs any more.
    consumer: Consumer,
    host: Arc<Host>,
    children: Mutex<Children>,
    /// Where work is done: who waits for it waits for one of these.
    places: Vec<On>,
    lookout: Lookout,
    /// None where no crash is outlived.
    guard: Option<Guard>,
}

impl Threads {
    /// Starts threads, and the pool's processes; they wait until an epoch begins.
    pub(crate) fn new(mut job: Job, counts: Counts, worker_pool: Option<WorkerPool>) -> Result<Self> {
        let host = Arc::clone(&job.host);
        let guard = Guard::new(std::mem::take(&mut job.guarded), counts)?;
        let shared = Arc::new_cyclic(|shared: &Weak<SharedRun>| {
            let wakers = (0..job.plan.segments.len()).map(|segment| {
                let shared = shared.clone();
                Waker::new(move || {
                    if let Some(shared) = shared.upgrade() {
                        shared.lock().wake(segment);
                        shared.call_worker();
                    }
                })
            });
            let processes = worker_pool.as_ref().map_or(0, |worker_pool| worker_pool.count);
            let dedicated = worker_pool.as_ref().map_or(&[][..], |worker_pool| &worker_pool.dedicated);
            let places = [
                (On::Threads, counts.threads),
                (On::OwnThread, counts.own),
                (On::Process, processes + dedicated.len()),
            ];
            let places = places.into_iter().filter(|(_, count)| *count > 0).map(|(on, _)| on).collect();
            let lookout = Lookout::new(&mut job, counts);
            let mut table = Table::new(job, wakers.collect(), counts.threads + processes);
            for post in dedicated {
                table.give_to_solo(post.segment, post.interrupt.waker());
            }
            SharedRun {
                table: Mutex::new(table),
                work: Condvar::new(),
                consumer: Consumer::default(),
                host,
                children: Mutex::default(),
                places,
                lookout,
                guard,
            }
        });
        let bell = Arc::downgrade(&shared);
        shared.host.on_cancel(Waker::new(move || {
            if let Some(shared) = bell.upgrade() {
                drop(shared.lock()); // Whoever looked before the stop waits by now.
                shared.consumer.call();
                shared.work.notify_all();
            }
        }));
        let mut threads = Self {
            shared,
            workers: Vec::new(),
            ready: Chunk::new(),
            over: false,
            waited: Duration::ZERO,
            waits: None,
            count: worker_pool
                .as_ref()
                .map(|worker_pool| worker_pool.count)
                .filter(|&count| count > 0)
                .unwrap_or(counts.threads),
            death: None,
            listener: None,
            retired: false,
        };
        threads.spawn(counts)?;
        if let Some(worker_pool) = worker_pool {
            let worker_pool = Arc::new(worker_pool);
            for index in 0..worker_pool.count + worker_pool.dedicated.len() {
                let (shared, worker_pool) = (Arc::clone(&threads.shared), Arc::clone(&worker_pool));
                let name = format!("forebay-p{index}");
                threads.workers.push(
                    thread::Builder::new()
                        .name(name)
                        .spawn(move || shared.drive_process(worker_pool, index))?,
                );
            }
        }
        Ok(threads)
    }

    /// Starts the threads of this process.
    fn spawn(&mut self, counts: Counts) -> Result<()> {
        let places = [(On::Threads, "", counts.threads), (On::OwnThread, "own", counts.own)];
        let places =
            places.into_iter().flat_map(|(on, letter, count)| (0..count).map(move |at| (on, letter, at)));
        for (worker, (on, letter, index)) in places.enumerate() {
            let shared = Arc::clone(&self.shared);
            let named = thread::Builder::new().name(format!("forebay-{letter}{index}"));
            self.workers.push(named.spawn(move || shared.serve(on, index, worker))?);
        }
        if self.shared.guard.is_some() {
            let shared = Arc::clone(&self.shared);
            let named = thread::Builder::new().name("forebay-crash".into());
            self.listener = Some(named.spawn(move || shared.listen())?);
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.shared.lock().stop();
        self.shared.work.notify_all();
        self.shared.children().end();
        if self.listener.is_some() {
            self.shared.leave_crashed(&mut self.workers);
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join(); // A worker's panic was told through the table.
        }
        self.shared.children().reap();
        if let Some(listener) = self.listener.take() {
            self.shared.end_listening();
            let _ = listener.join();
        }
    }
}

impl Run for Threads {
    fn start(&mut self, epoch: u64, origins: &[StartPoint], wanted: u64) {
        self.ready.clear();
        (self.over, self.waits) = (false, None);
        let mut table = self.shared.lock();
        table.pause();
        self.shared.host.pause(true);
        table.interrupt();
        while table.running() > 0
            && table.lost().is_none()
            && table.crashed().is_none()
            && !self.shared.host.is_cancelled()
        {
            table = self.shared.consumer.wait(table, None);
        }
        self.shared.host.pause(false);
        self.shared.host.start();
        // After a stop whoever worked may not have come back.
        if table.lost().is_none() && table.crashed().is_none() && !self.shared.host.is_cancelled() {
            table.start(epoch, origins, wanted);
        }
        let trash = table.take_trash();
        drop(table);
        drop(trash);
        self.shared.work.notify_all();
    }

    fn prepare(&mut self, epoch: u64, origins: Vec<StartPoint>) {
        self.shared.lock().prepare(epoch, origins);
        self.shared.work.notify_all();
    }

    fn go_over(&mut self, epoch: u64) -> bool {
        let mut table = self.shared.lock();
        let begun = table.go_over(epoch);
        let trash = table.take_trash();
        drop(table);
        drop(trash);
        if begun {
            self.ready.clear();
            self.over = false;
            self.shared.work.notify_all(); // There is room now.
        }
        begun
    }

    fn next(&mut self, until: Option<Instant>) -> Option<Result<Sample>> {
        if let Some(sample) = self.ready.pop() {
            return Some(Ok(sample));
        }
        if self.over {
            return None;
        }
        let begin = Instant::now();
        let (since, mut told) = self.waits.take().unwrap_or((begin, 0));
        let mut table = self.shared.lock();
        table.recycle(std::mem::take(&mut self.ready));
        let item = loop {
            if self.shared.host.is_cancelled() {
                self.over = true;
                return Some(Err(stopped()));
            }
            if let Some(error) = table.lost() {
                self.over = true;
                return Some(Err(error));
            }
            match table.take_output() {
                Some(item) => break Some(item),
                None if table.is_over() => break None,
                None if let Some(death) = table.take_death() => {
                    self.over = true;
                    let error = death.error.clone();
                    self.death = Some(death);
                    return Some(Err(error));
                }
                None if until.is_some_and(|until| until <= Instant::now()) => {
                    self.shared.ask(&mut table);
                    self.waited += begin.elapsed();
                    self.waits = Some((since, told));
                    return None;
                }
                None => table = self.shared.wait_for_output(table, (since, until), &mut told),
            }
        };
        drop(table);
        self.shared.call_worker();
        self.waited += begin.elapsed();
        match item {
            Some(Item::Chunk(chunk, _)) => {
                self.ready = chunk;
                self.ready.pop().map(Ok)
            }
            Some(Item::Failed(error)) => {
                self.over = true;
                Some(Err(error))
            }
            None => {
                self.over = true;
                None
            }
        }
    }

    fn is_pending(&self) -> bool {
        self.waits.is_some() && !self.over
    }

    fn wake(&mut self, waker: Option<task::Waker>) {
        self.shared.consumer.tell(waker);
    }

    fn take_death(&mut self) -> Option<Death> {
        self.death.take()
    }

    fn waited(&self) -> Duration {
        self.waited
    }

    fn threads(&self) -> usize {
        self.count
    }

    fn processes(&self) -> Vec<u32> {
        self.shared.children().ids()
    }

    fn crashed(&self) -> Option<CrashedSegment> {
        self.shared.lock().crashed().cloned()
    }

    fn watched(&self) -> Option<Watched> {
        self.shared.guard.as_ref().map(|guard| guard.crashes.watched())
    }

    fn retire(&mut self) -> Result<()> {
        self.shared.host.pause(true);
        let retired = self.finish();
        self.shared.host.pause(false);
        self.retired = true;
        retired
    }

    fn finish(&mut self) -> Result<()> {
        self.over = true;
        self.ready.clear();
        self.stop();
        let mut table = self.shared.lock();
        let crashed = table.crashed().is_some() || self.shared.has_crashed();
        let (bodies, trash) = (table.take_bodies(), table.take_trash());
        drop(table);
        drop(trash);
        let mut result = Ok(());
        for body in bodies {
            let freed = match body {
                Body::Serial(chain) => chain.free(),
                // Whoever crashed keeps its maps.
                Body::Parallel(parallel, _) if crashed && parallel.is_shared() => Ok(()),
                Body::Parallel(parallel, _) => parallel.free(),
            };
            result = result.and(freed);
        }
        result
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.retired {
            return; // The host is another run's.
        }
        self.shared.host.cancel();
        // The pipes too: the last to know of them may be a plugin's own thread, by its waker.
        let _ = self.finish();
    }
}

impl SharedRun {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_work(&self, table: &Table) -> bool {
        self.places.iter().any(|&on| table.has_work(on))
    }

    /// Waits until there may be work.
    pub(super) fn wait_for_work<'a>(&'a self, table: MutexGuard<'a, Table>) -> MutexGuard<'a, Table> {
        self.work.wait(table).unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the consumer if there is something for it, or nothing runs any more.
    pub(super) fn tell_consumer(&self, table: &Table) {
        if table.has_output() || table.running() == 0 || table.has_death() {
            self.consumer.call();
        }
    }

    /// Wakes all who wait for work.
    pub(super) fn call_all(&self) {
        self.work.notify_all();
    }

    /// Wakes one who waits for work that there may be now.
    fn call_worker(&self) {
        match self.places.len() {
            1 => self.work.notify_one(),
            _ => self.work.notify_all(),
        }
    }

    pub(super) fn children(&self) -> MutexGuard<'_, Children> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.host.is_cancelled() || self.lock().is_stopped()
    }

    /// Notes a worker process.
    pub(super) fn adopt(&self, index: usize, child: Child, noted: Noted) {
        self.children().adopt(index, child, noted);
    }

    /// Waits for the end of a worker process that hung up; one that only hung up is ended.
    pub(super) fn wait_for(&self, index: usize) -> Option<(u32, ExitStatus)> {
        let mut child = self.children().take(index)?;
        let pid = child.id();
        // One that is dying keeps the status it dies with.
        let _ = child.kill();
        Some((pid, child.wait().ok()?))
    }
}
