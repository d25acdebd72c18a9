//! The lives of the threads: each takes work, does it and hands it in.

use std::sync::{Arc, MutexGuard};

use forebay_core::{Error, Waker};
use forebay_graph::On;

use crate::{
    host::home::Home,
    run::{
        Chain,
        table::{Table, Task, Work},
        threads::{
            SharedRun, dedicated::DedicatedWorker, guard::Guards, remote::Driver, worker_pool::WorkerPool,
        },
    },
};

impl SharedRun {
    /// A worker's life: take work, do it, hand it in.
    pub(super) fn serve(&self, on: On, index: usize, worker: usize) {
        let _seated = self.lookout.seat(worker);
        let home = Home::parted();
        let enlisted = self.guard.as_ref().map(|guard| guard.crashes.enlist(worker));
        let mut table = self.lock();
        loop {
            if table.is_stopped() || self.host.is_cancelled() {
                break;
            }
            let trash = table.take_trash();
            if !trash.is_empty() {
                drop(table);
                drop(trash);
                table = self.lock();
                continue;
            }
            let Some(work) = table.take_work(on, index) else {
                table = self.wait_for_work(table);
                continue;
            };
            let more = self.has_work(&table);
            drop(table);
            if more {
                self.call_worker();
            }
            let alarm = Alarm(self);
            table = match work {
                Work::Serial { segment, chain, waker } => {
                    self.drive(segment, chain, &waker, self.guards(segment, (&enlisted, &home)))
                }
                Work::Task(task) => {
                    let guard = self.guards(task.segment, (&enlisted, &home));
                    self.map(task, worker, guard)
                }
            };
            std::mem::forget(alarm);
            self.tell_consumer(&table);
            if self.places.len() > 1 && self.places.iter().any(|&place| place != on && table.has_work(place))
            {
                self.work.notify_all();
            }
        }
        drop(table);
        self.consumer.call();
    }

    /// Runs a chain that this thread took.
    fn drive(
        &self,
        segment: usize,
        mut chain: Box<Chain>,
        waker: &Waker,
        guard: Guards<'_>,
    ) -> MutexGuard<'_, Table> {
        let stop = self.guarded(guard, segment, || chain.run(waker, self.host()));
        let given = chain.take_given(&stop);
        let mut table = self.lock();
        table.hand_in_chain(segment, chain, stop, given);
        table
    }

    /// Maps a chunk that this thread took.
    fn map(&self, task: Task, worker: usize, guard: Guards<'_>) -> MutexGuard<'_, Table> {
        let Task { segment, number, order, first, parallel, mut chunk, mut out, begin, .. } = task;
        let work = || self.guarded(guard, segment, || parallel.run(first, &mut chunk, &mut out));
        let mapped = self.host().at_seat(worker, order, work);
        drop(parallel);
        let mut table = self.lock();
        table.hand_in_task((segment, number), out, mapped, chunk, begin.elapsed());
        table
    }

    /// The life of a thread that looks after a worker process.
    pub(super) fn drive_process(self: Arc<Self>, worker_pool: Arc<WorkerPool>, index: usize) {
        let alarm = Alarm(&self);
        let served = match index.checked_sub(worker_pool.count) {
            Some(dedicated) => DedicatedWorker::new(Arc::clone(&self), worker_pool, dedicated).serve(),
            None => Driver::new(Arc::clone(&self), worker_pool, index).serve(),
        };
        std::mem::forget(alarm);
        if let Err(error) = served {
            self.lock().fail(error);
            self.consumer.call();
            self.work.notify_all();
        }
    }
}

/// Tells the consumer when a worker's own code panics, which would leave it waiting for ever.
struct Alarm<'a>(&'a SharedRun);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.lock().fail(Error::bug("a worker of the loader panicked"));
        self.0.consumer.call();
    }
}
