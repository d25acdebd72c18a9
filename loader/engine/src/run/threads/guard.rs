//! Segments whose crash on a thread is outlived: who works on them is watched, and the table is told.

use std::{sync::Arc, thread::JoinHandle};

use forebay_core::{Error, ErrorKind, Result};
use forebay_guard::crash::{Crash, Crashes, PATIENCE};
use forebay_guard::signals::signal_text;

use crate::{
    host::home::Home,
    run::{death::CrashedSegment, threads::SharedRun},
};
pub(super) use forebay_guard::crash::{Enlisted, Watched};

/// Who is told of a crash, and where the thread works.
pub(super) type Guards<'a> = (Option<&'a Enlisted>, Option<&'a Home>);

/// How many work where.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    /// Threads that all nodes share.
    pub(crate) threads: usize,
    /// Threads for what waits for files or servers.
    pub(crate) own: usize,
}

/// What is outlived.
pub(super) struct Guard {
    /// Of each segment whether a crash in it is.
    segments: Vec<bool>,
    pub(super) crashes: Arc<Crashes>,
    /// How many of its threads are those that all nodes share; they come first.
    threads: usize,
}

impl Guard {
    /// For these segments, if a crash in any is outlived.
    pub(super) fn new(segments: Vec<bool>, counts: Counts) -> Result<Option<Self>> {
        if !segments.contains(&true) {
            return Ok(None);
        }
        let crashes = Crashes::new(counts.threads + counts.own, PATIENCE)?;
        Ok(Some(Self { segments, crashes, threads: counts.threads }))
    }
}

impl SharedRun {
    /// Who guards the work on a segment, and where it is done.
    pub(super) fn guards<'a>(
        &self,
        segment: usize,
        (enlisted, home): (&'a Option<Enlisted>, &'a Option<Home>),
    ) -> Guards<'a> {
        let enlisted =
            enlisted.as_ref().filter(|_| self.guard.as_ref().is_some_and(|guard| guard.segments[segment]));
        (enlisted, home.as_ref())
    }

    /// Calls `work` on a segment, on a thread whose crash is told if there is a guard.
    pub(super) fn guarded<T>(
        &self,
        (guard, home): Guards<'_>,
        segment: usize,
        work: impl FnOnce() -> T,
    ) -> T {
        let done = match guard {
            Some(enlisted) => enlisted.guard(segment, work),
            None => work(),
        };
        self.host().keep_home(home);
        done
    }

    /// The life of who hears of threads that crash.
    pub(super) fn listen(&self) {
        let Some(guard) = &self.guard else { return };
        while let Some(crash) = guard.crashes.wait() {
            let _watched = guard.crashes.watched();
            self.host().ledger().leave(crash.worker);
            let mut table = self.lock();
            let worker = crash.worker.checked_sub(guard.threads).unwrap_or(crash.worker);
            let given = table.given_to(crash.segment, worker);
            table.fall(crashed(crash, given));
            drop(table);
            self.consumer.call();
        }
    }

    /// Waits until every thread that may crash has ended or crashed, and gives up those that did: they never end.
    pub(super) fn leave_crashed(&self, workers: &mut Vec<JoinHandle<()>>) {
        let Some(guard) = &self.guard else { return };
        guard.crashes.wait_for_all();
        let mut index = 0..;
        workers.retain(|_| !index.next().is_some_and(|worker| guard.crashes.has(worker)));
    }

    /// Whether any thread crashed, told or not.
    pub(super) fn has_crashed(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.crashes.has_any())
    }

    pub(super) fn end_listening(&self) {
        self.guard.iter().for_each(|guard| guard.crashes.end());
    }
}

/// What is told of a thread that crashed over so many samples.
fn crashed(crash: Crash, (samples, first): (usize, Option<forebay_core::Key>)) -> CrashedSegment {
    let error = Error::new(ErrorKind::Worker, format!("it crashed with {}", signal_text(crash.signal)));
    let (mut error, known) = crash.on(error);
    if let Some(first) = first.filter(|_| !known) {
        error = match samples {
            1 => error.context("sample", first),
            _ => error.context("samples", format!("{samples} from {first} on")),
        };
    }
    CrashedSegment { segment: crash.segment, error }
}
