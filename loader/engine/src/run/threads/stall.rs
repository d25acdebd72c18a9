//! How the consumer waits, and is told who it waits for.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::Waker,
    time::{Duration, Instant},
};

use forebay_graph::On;
use forebay_guard::call::{Callee, Seated};

use crate::{
    run::{
        Job,
        table::Table,
        threads::{SharedRun, guard::Counts},
    },
    stall::Watch,
};

/// Who is told of a wait, and what is told.
pub(super) struct Lookout {
    watch: Option<Watch>,
    /// The names of the nodes.
    names: Vec<String>,
    /// Of each thread what tells the decoder that it is in, those that all nodes share first.
    seats: Vec<AtomicU32>,
    threads: usize,
}

impl Lookout {
    pub(super) fn new(job: &mut Job, Counts { threads, own }: Counts) -> Self {
        let seats = (0..threads + own).map(|_| AtomicU32::new(0)).collect();
        Self { watch: job.watch.take(), names: std::mem::take(&mut job.names), seats, threads }
    }

    /// This thread is the `worker`th, until what comes back is dropped.
    pub(super) fn seat(&self, worker: usize) -> Option<Seated<'_>> {
        self.seats.get(worker).map(Seated::new)
    }
}

/// The consumer, while it waits on its thread or has something to be woken by.
#[derive(Default)]
pub(super) struct Consumer {
    called: Condvar,
    waker: Mutex<Option<Waker>>,
    has_waker: AtomicBool,
}

impl Consumer {
    /// There may be something for it.
    pub(super) fn call(&self) {
        self.called.notify_all();
        if self.has_waker.load(Ordering::Acquire) {
            let mut own = self.waker();
            self.has_waker.store(false, Ordering::Release);
            let waker = own.take();
            drop(own);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Has `waker` called once, when the consumer is called next.
    pub(super) fn tell(&self, waker: Option<Waker>) {
        let mut own = self.waker();
        self.has_waker.store(waker.is_some(), Ordering::Release);
        *own = waker;
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits to be called, no longer than this if that is given.
    pub(super) fn wait<'a>(
        &self,
        table: MutexGuard<'a, Table>,
        rest: Option<Duration>,
    ) -> MutexGuard<'a, Table> {
        match rest {
            Some(rest) => self.called.wait_timeout(table, rest).unwrap_or_else(PoisonError::into_inner).0,
            None => self.called.wait(table).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl SharedRun {
    /// The consumer wants a sample, and there is none.
    pub(super) fn ask(&self, table: &mut Table) {
        if table.ask() {
            self.call_all();
        }
    }

    /// Waits until there may be something for the consumer, who has waited since `begin` and was `told` so often; not beyond `until`.
    pub(super) fn wait_for_output<'a>(
        &'a self,
        mut table: MutexGuard<'a, Table>,
        (begin, until): (Instant, Option<Instant>),
        told: &mut u32,
    ) -> MutexGuard<'a, Table> {
        self.ask(&mut table);
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let rest = self.lookout.watch.as_ref().and_then(|watch| watch.rest(begin, *told));
        let (Some(watch), Some(Duration::ZERO)) = (&self.lookout.watch, rest) else {
            let soonest = rest.into_iter().chain(left).min();
            return self.consumer.wait(table, soonest);
        };
        *told += 1;
        let mut stall = table.stall(begin.elapsed(), &self.lookout.names);
        drop(table);
        for work in &mut stall.at_work {
            let index = work.index;
            let seat = |at: usize| self.lookout.seats.get(at).map_or(0, |seat| seat.load(Ordering::Relaxed));
            let decoder = match work.on {
                On::Process | On::Sandboxed => {
                    let children = self.children();
                    work.process = children.id(index);
                    children.decoder(index)
                }
                On::OwnThread => seat(self.lookout.threads + index),
                _ => seat(index),
            };
            work.decoder = self.host().decoder_noted(decoder).as_ref().map(Callee::to_string);
        }
        (watch.tell)(&stall);
        self.lock()
    }
}
