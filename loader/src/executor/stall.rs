//! How the consumer waits, and is told who it waits for.

use std::{
    sync::{
        MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use super::{Job, guard::Counts, table::Table, threads::Shared};
use crate::{
    graph::On,
    host::call::{Callee, Seated},
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

impl Shared {
    /// Waits until there may be something for the consumer, who has waited since `begin` and was `told` so often.
    pub(super) fn wait_for_output<'a>(
        &'a self,
        mut table: MutexGuard<'a, Table>,
        begin: Instant,
        told: &mut u32,
    ) -> MutexGuard<'a, Table> {
        if table.ask() {
            self.call_all();
        }
        let wait = |table| self.output.wait(table).unwrap_or_else(PoisonError::into_inner);
        let Some(watch) = &self.lookout.watch else { return wait(table) };
        let Some(rest) = watch.rest(begin, *told) else { return wait(table) };
        if !rest.is_zero() {
            return self.output.wait_timeout(table, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
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
