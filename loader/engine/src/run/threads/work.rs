//! What a thread does with the work that it took.

use std::sync::MutexGuard;

use forebay_core::Waker;

use crate::run::{
    Chain,
    table::{Table, Task},
    threads::{SharedRun, guard::Guards},
};

impl SharedRun {
    pub(super) fn drive(
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

    pub(super) fn map(&self, task: Task, worker: usize, guard: Guards<'_>) -> MutexGuard<'_, Table> {
        let Task { segment, number, order, first, parallel, mut chunk, mut out, begin, .. } = task;
        let work = || self.guarded(guard, segment, || parallel.run(first, &mut chunk, &mut out));
        let mapped = self.host().at_seat(worker, order, work);
        drop(parallel);
        let mut table = self.lock();
        table.hand_in_task((segment, number), out, mapped, chunk, begin.elapsed());
        table
    }
}
