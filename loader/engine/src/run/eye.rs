//! Watches the consumer's own thread where that runs the pipes itself: a thread beside it tells of a stall.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use forebay_core::{Chunk, Key, Result};
use forebay_graph::On;
use forebay_guard::call::{Callee, Seated};

use crate::{
    host::Host,
    plan::Plan,
    stall::{AtWork, Stall, Watch},
};

/// What is watched, and the thread that does.
pub(super) struct Eye {
    seen: Arc<WatchedRun>,
    watchman: Option<JoinHandle<()>>,
}

/// What the watchman looks at.
struct WatchedRun {
    wait: Mutex<ConsumerWait>,
    over: Condvar,
    /// What tells the decoder that the consumer's thread is in.
    seat: AtomicU32,
}

/// The consumer's wait for a sample.
#[derive(Default)]
struct ConsumerWait {
    /// None where it does not wait.
    since: Option<Instant>,
    /// How many waits there were.
    number: u64,
    /// What runs.
    at: Option<RunningSegment>,
    /// The segment that waits to be woken.
    pending: Option<usize>,
    over: bool,
}

/// A segment that runs.
struct RunningSegment {
    segment: usize,
    since: Instant,
    samples: usize,
    first: Option<Key>,
}

/// What a stall is told with.
struct Teller {
    watch: Watch,
    /// The names of the nodes of each segment.
    names: Vec<Vec<String>>,
    host: Arc<Host>,
}

impl Eye {
    /// Starts the watchman.
    pub(super) fn new(watch: Watch, plan: &Plan, names: &[String], host: &Arc<Host>) -> Result<Self> {
        let of = |nodes: &[usize]| nodes.iter().filter_map(|&at| names.get(at).cloned()).collect();
        let names = plan.segments.iter().map(|segment| of(&segment.nodes)).collect();
        let teller = Teller { watch, names, host: Arc::clone(host) };
        let seen =
            Arc::new(WatchedRun { wait: Mutex::default(), over: Condvar::new(), seat: AtomicU32::new(0) });
        let its = Arc::clone(&seen);
        let named = thread::Builder::new().name("forebay-stall".into());
        let watchman = named.spawn(move || its.watch(&teller))?;
        Ok(Self { seen, watchman: Some(watchman) })
    }

    /// This thread is watched until what comes back is dropped.
    pub(super) fn seat(&self) -> Seated<'_> {
        Seated::new(&self.seen.seat)
    }

    /// A segment runs from here on; maps of these samples.
    pub(super) fn runs(&self, segment: usize, samples: Option<&Chunk>) {
        let now = Instant::now();
        let first = samples.and_then(Chunk::front).map(|(_, key)| key.clone());
        let mut wait = self.seen.lock();
        if wait.since.is_none() {
            (wait.since, wait.number) = (Some(now), wait.number + 1);
        }
        wait.pending = None;
        wait.at = Some(RunningSegment { segment, since: now, samples: samples.map_or(0, Chunk::len), first });
    }

    /// The segment waits to be woken.
    pub(super) fn waits(&self, segment: usize) {
        let mut wait = self.seen.lock();
        (wait.at, wait.pending) = (None, Some(segment));
    }

    /// The consumer has what it wanted.
    pub(super) fn rests(&self) {
        let mut wait = self.seen.lock();
        (wait.since, wait.at, wait.pending) = (None, None, None);
    }
}

impl Drop for Eye {
    fn drop(&mut self) {
        self.seen.lock().over = true;
        self.seen.over.notify_all();
        if let Some(watchman) = self.watchman.take() {
            let _ = watchman.join(); // A panic of whoever was told is told by the panic.
        }
    }
}

impl WatchedRun {
    fn lock(&self) -> MutexGuard<'_, ConsumerWait> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watchman's life. It looks as often as a wait may begin to be told: nobody wakes it, for that would cost each sample.
    fn watch(&self, teller: &Teller) {
        let (mut number, mut told) = (0, 0);
        let mut wait = self.lock();
        while !wait.over {
            if wait.number != number {
                (number, told) = (wait.number, 0);
            }
            let rest = wait.since.map(|since| teller.watch.rest(since, told));
            let rest = match rest {
                Some(Some(Duration::ZERO)) => {
                    told += 1;
                    let stall = teller.stall(&wait, self.seat.load(Ordering::Relaxed));
                    drop(wait);
                    (teller.watch.tell)(&stall);
                    wait = self.lock();
                    continue;
                }
                Some(Some(rest)) => rest,
                Some(None) | None => teller.watch.after,
            };
            wait = self.over.wait_timeout(wait, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Teller {
    fn stall(&self, wait: &ConsumerWait, decoder: u32) -> Stall {
        let at_work = wait.at.iter().map(|at| AtWork {
            nodes: self.names[at.segment].clone(),
            on: On::Caller,
            index: 0,
            process: None,
            since: at.since.elapsed(),
            samples: at.samples,
            first: at.first.as_ref().map(ToString::to_string),
            decoder: self.host.decoder_noted(decoder).as_ref().map(Callee::to_string),
        });
        Stall {
            waited: wait.since.map_or(Duration::ZERO, |since| since.elapsed()),
            at_work: at_work.collect(),
            pending: wait.pending.iter().map(|&segment| self.names[segment].join(" | ")).collect(),
        }
    }
}
