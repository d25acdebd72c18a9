//! A number that threads wait for, without a descriptor: a plugin that closes those of others cannot break it.
#![expect(unsafe_code, reason = "the system call that waits for a word and wakes who does")]

use std::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// Counts up from anywhere, also from the handler of a signal, and down by who waits for it.
#[derive(Default)]
pub(crate) struct Counter(AtomicU32);

impl Counter {
    /// Adds one, and wakes who waits. It takes no lock and no memory.
    pub(crate) fn up(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the word lives as long as this; the call only wakes.
        unsafe {
            libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
        }
    }

    /// Waits until there is one to take, and takes it.
    pub(crate) fn down(&self) {
        while !self.take() {
            self.wait(ptr::null());
        }
    }

    /// As [`down`](Self::down), for at most so long; says whether there was one.
    pub(crate) fn down_within(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        loop {
            if self.take() {
                return true;
            }
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            let seconds = libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX);
            let left = libc::timespec { tv_sec: seconds, tv_nsec: left.subsec_nanos().into() };
            self.wait(&raw const left);
        }
    }

    fn take(&self) -> bool {
        let less = |count: u32| count.checked_sub(1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
    }

    /// Waits while it is zero; it may come back too early.
    fn wait(&self, limit: *const libc::timespec) {
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word lives as long as this; the limit is null or there.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), wait, 0, limit) };
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn whoever_waits_is_woken_as_often_as_it_counts() {
        let counter = Arc::new(Counter::default());
        let other = Arc::clone(&counter);
        let waits = thread::spawn(move || (0..3).for_each(|_| other.down()));
        (0..3).for_each(|_| counter.up());
        waits.join().unwrap();
        assert!(!counter.down_within(Duration::from_millis(1)));
        counter.up();
        assert!(counter.down_within(Duration::MAX));
    }
}
