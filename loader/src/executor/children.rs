//! The processes of the workers, and how they end.

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt as _,
    process::{Child, ExitStatus},
};

use forebay_core::Error;

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

/// The number of a signal, and what it means.
pub(crate) fn signal_text(signal: i32) -> String {
    let name = match signal {
        4 => " (SIGILL, an illegal instruction)",
        6 => " (SIGABRT, it aborted)",
        7 => " (SIGBUS, such as a file cut short)",
        8 => " (SIGFPE, bad arithmetic)",
        9 => " (SIGKILL, such as for lack of memory)",
        11 => " (SIGSEGV, bad memory)",
        15 => " (SIGTERM)",
        31 => " (SIGSYS, a forbidden system call)",
        _ => "",
    };
    format!("signal {signal}{name}")
}

/// The workers' processes.
#[derive(Default)]
pub(crate) struct Children {
    by_index: BTreeMap<usize, Child>,
    /// No more are wanted.
    over: bool,
}

impl Children {
    pub(crate) fn adopt(&mut self, index: usize, mut child: Child) {
        if self.over {
            let _ = child.kill();
        }
        self.by_index.insert(index, child);
    }

    pub(crate) fn take(&mut self, index: usize) -> Option<Child> {
        self.by_index.remove(&index)
    }

    /// The process of one worker.
    pub(crate) fn id(&self, index: usize) -> Option<u32> {
        self.by_index.get(&index).map(Child::id)
    }

    pub(crate) fn ids(&self) -> Vec<u32> {
        self.by_index.values().map(Child::id).collect()
    }

    /// Ends all of them, and those that come.
    pub(crate) fn end(&mut self) {
        self.over = true;
        for child in self.by_index.values_mut() {
            let _ = child.kill(); // It may be dead.
        }
    }

    /// Waits for all that are left.
    pub(crate) fn reap(&mut self) {
        for (_, mut child) in std::mem::take(&mut self.by_index) {
            let _ = child.wait();
        }
    }
}
