//! How the consumer waits, and is told who it waits for.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Instant,
};

use super::{table::Table, threads::Shared};
use crate::graph::On;

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
        let Some(watch) = &self.watch else { return wait(table) };
        // Again after twice the time, so that a log does not fill with it.
        let Some(due) = watch.after.checked_mul(2_u32.saturating_pow(*told)) else { return wait(table) };
        let rest = due.saturating_sub(begin.elapsed());
        if !rest.is_zero() {
            return self.output.wait_timeout(table, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        *told += 1;
        let mut stall = table.stall(begin.elapsed(), &self.names);
        drop(table);
        for work in stall.at_work.iter_mut().filter(|work| work.on == On::Process) {
            work.process = self.children().id(work.index);
        }
        (watch.tell)(&stall);
        self.lock()
    }
}
