//! Which parts of an arena are in use, as one process knows it.

use std::{
    collections::BTreeMap,
    ops::Range,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_core::{Buffer, BufferMut};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::FallocateFlags,
};

/// Which parts are in use, as one process knows it.
pub(super) struct Shares {
    /// The memory's descriptor, in the process that made it.
    pub(super) memory: Option<OwnedFd>,
    pub(super) parts: Mutex<ArenaParts>,
    pub(super) loans: Mutex<BTreeMap<usize, Loaned>>,
}

#[derive(Default)]
pub(super) struct ArenaParts {
    /// Unused parts: start and end.
    pub(super) free: BTreeMap<usize, usize>,
    /// ArenaParts that are not in use here, but maybe still in the process at the socket's other end.
    pub(super) limbo: Vec<(Range<usize>, Arc<OwnedFd>)>,
    /// In a process that attached: its lanes.
    pub(super) attached: Vec<Range<usize>>,
}

/// What was lent away, or borrowed.
pub(super) enum Loaned {
    /// Loaned to another process, which has not answered.
    Out(BufferMut),
    /// Written by the other process, and in use.
    Back(Buffer),
    /// Borrowed from the process that made the arena: so many bytes.
    In(usize),
}

/// A part of the arena in use.
pub(super) struct Lease {
    pub(super) shares: Arc<Shares>,
    pub(super) range: Range<usize>,
}

impl Shares {
    pub(super) fn new(memory: Option<OwnedFd>, parts: ArenaParts) -> Self {
        Self { memory, parts: Mutex::new(parts), loans: Mutex::default() }
    }
}

impl ArenaParts {
    /// The first part that is long enough.
    pub(super) fn take(&mut self, len: usize) -> Option<Range<usize>> {
        let (&start, &end) = self.free.iter().find(|(start, end)| **end - **start >= len)?;
        self.free.remove(&start);
        if end - start > len {
            self.free.insert(start + len, end);
        }
        Some(start..start + len)
    }

    pub(super) fn give_back(&mut self, range: Range<usize>, memory: BorrowedFd<'_>) {
        // Where the pages cannot be given back they wait to be used again.
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(memory, hole, range.start as u64, range.len() as u64);
        let (mut start, mut end) = (range.start, range.end);
        if let Some((&before, &its_end)) = self.free.range(..start).next_back()
            && its_end == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(its_end) = self.free.remove(&end) {
            end = its_end;
        }
        self.free.insert(start, end);
    }

    /// Takes back the parts whose other process is gone by now.
    pub(super) fn leave_limbo(&mut self, memory: BorrowedFd<'_>) {
        let (gone, limbo) = std::mem::take(&mut self.limbo).into_iter().partition(|(_, fd)| hung_up(fd));
        self.limbo = limbo;
        let gone: Vec<(Range<usize>, Arc<OwnedFd>)> = gone;
        gone.into_iter().for_each(|(range, _)| self.give_back(range, memory));
    }
}

impl Lease {
    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Gives the part back: at once, or when the process at the other end of `socket` is gone.
    pub(super) fn give_back(self, socket: Option<Arc<OwnedFd>>) {
        let Some(memory) = &self.shares.memory else { return };
        let mut parts = lock(&self.shares.parts);
        match socket {
            Some(socket) if !hung_up(&socket) => parts.limbo.push((self.range, socket)),
            _ => parts.give_back(self.range, memory.as_fd()),
        }
    }
}

/// Whether the other process has let go of the lane: it died, or dropped its end and all views.
pub(super) fn hung_up(socket: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

/// None of these locks is held while other code runs.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
