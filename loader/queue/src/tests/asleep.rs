//! Threads that wait, seen from outside.

use std::{
    sync::mpsc,
    thread::{self, JoinHandle},
};

use rustix::thread::{Pid, gettid};

/// Returns once that thread of this process sleeps, or is gone.
pub(super) fn wait_until_asleep(thread: Pid) {
    let stat = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") R "));
    while runs() {
        thread::yield_now();
    }
}

/// Starts a thread, and returns once it waits or has ended.
pub(super) fn start_until_asleep<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let (tell, told) = mpsc::channel();
    let handle = thread::spawn(move || {
        tell.send(gettid()).unwrap();
        work()
    });
    wait_until_asleep(told.recv().unwrap());
    handle
}
