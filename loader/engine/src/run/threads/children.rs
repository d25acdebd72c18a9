//! The processes of the workers, and how they end.

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt as _,
    process::{Child, ExitStatus},
    sync::atomic::Ordering,
};

use forebay_core::Error;
use forebay_guard::signals::signal_text;
use forebay_queue::process::Noted;

/// Whether a process ended by its own doing.
pub(super) fn is_crash(status: ExitStatus) -> bool {
    // SIGKILL, SIGTERM, SIGINT and SIGHUP come from outside.
    !matches!(status.signal(), Some(1 | 2 | 9 | 15))
}

/// How a worker ended, for people.
pub(super) fn describe(index: usize, status: Option<(u32, ExitStatus)>, error: &Error) -> String {
    let Some((pid, status)) = status else { return format!("worker {index} is gone: {}", error.message()) };
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by {}", signal_text(signal)),
        (None, Some(code)) => format!("ended with status {code}"),
        (None, None) => "ended".to_owned(),
    };
    format!("worker {index} (process {pid}) {how}")
}

/// The workers' processes.
#[derive(Default)]
pub(crate) struct Children {
    by_index: BTreeMap<usize, (Child, Noted)>,
    /// No more are wanted.
    over: bool,
}

impl Children {
    /// Takes care of a worker; `noted` is where it says what it is at.
    pub(crate) fn adopt(&mut self, index: usize, mut child: Child, noted: Noted) {
        if self.over {
            let _ = child.kill();
        }
        self.by_index.insert(index, (child, noted));
    }

    pub(crate) fn take(&mut self, index: usize) -> Option<Child> {
        self.by_index.remove(&index).map(|(child, _)| child)
    }

    /// The process of one worker.
    pub(crate) fn id(&self, index: usize) -> Option<u32> {
        self.by_index.get(&index).map(|(child, _)| child.id())
    }

    /// What tells the decoder that a worker is in; 0 for none.
    pub(crate) fn decoder(&self, index: usize) -> u32 {
        self.by_index.get(&index).map_or(0, |(_, noted)| noted.word().load(Ordering::Relaxed))
    }

    pub(crate) fn ids(&self) -> Vec<u32> {
        self.by_index.values().map(|(child, _)| child.id()).collect()
    }

    /// Ends all of them, and those that come.
    pub(crate) fn end(&mut self) {
        self.over = true;
        for (child, _) in self.by_index.values_mut() {
            let _ = child.kill(); // It may be dead.
        }
    }

    /// Waits for all that are left.
    pub(crate) fn reap(&mut self) {
        for (_, (mut child, _)) in std::mem::take(&mut self.by_index) {
            let _ = child.wait();
        }
    }
}
