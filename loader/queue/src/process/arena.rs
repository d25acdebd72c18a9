//! One nameless piece of shared memory for all workers of a loader, given out in parts.

use std::{
    collections::BTreeMap,
    ops::Range,
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

use forebay_core::{Buffer, BufferMut, Error, Result};
use rustix::fs::{MemfdFlags, SealFlags};

use super::{
    heap::Heap,
    lane::Lane,
    shared::{Board, Borrowed, Map, PAGE},
    shares::{ArenaParts, Lease, Loaned, Shares, lock},
};
use crate::{seats::Seat, tide::Tide};

/// How many bytes of a heap keep their pages beyond the most that were in use lately.
const SPARE: usize = 32 << 20;

/// Shared memory without a name: gone with the last process that maps it, whatever ends those.
///
/// Its size is only an amount of addresses; pages are taken as they are first written. Clones are the same arena.
#[derive(Clone)]
pub struct Arena {
    map: Arc<Map>,
    shares: Arc<Shares>,
}

/// A place in the arena that the process that owns it lends to another, for one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loan {
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
}

impl Arena {
    /// Makes an arena with `bytes` of addresses.
    ///
    /// # Errors
    /// When the system does not give the memory.
    pub fn create(bytes: usize) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = rustix::fs::memfd_create("forebay", flags).map_err(|error| system(error, "make"))?;
        let len = bytes.max(PAGE).checked_next_multiple_of(PAGE).unwrap_or(usize::MAX & !(PAGE - 1));
        rustix::fs::ftruncate(&memory, len as u64).map_err(|error| system(error, "size"))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&memory, seals).map_err(|error| system(error, "seal"))?;
        let map = Arc::new(Map::new(memory.as_fd(), len)?);
        let parts = ArenaParts { free: BTreeMap::from([(0, len)]), ..ArenaParts::default() };
        Ok(Self { map, shares: Arc::new(Shares::new(Some(memory), parts)) })
    }

    /// Maps an arena that another process made.
    ///
    /// # Errors
    /// When `fd` is no such memory: it must be sealed, so that nobody can take it away under a reader.
    pub fn attach(fd: BorrowedFd<'_>) -> Result<Self> {
        let seals = rustix::fs::fcntl_get_seals(fd).map_err(|error| system(error, "check"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(Error::invalid("the shared memory is not sealed"));
        }
        let size = rustix::fs::fstat(fd).map_err(|error| system(error, "measure"))?.st_size;
        let len = usize::try_from(size).map_err(|_| Error::invalid("the shared memory has no size"))?;
        let map = Arc::new(Map::new(fd, len)?);
        Ok(Self { map, shares: Arc::new(Shares::new(None, ArenaParts::default())) })
    }

    /// The descriptor, to be handed to another process; only the process that made the arena has it.
    ///
    /// # Errors
    /// In a process that attached.
    pub fn fd(&self) -> Result<BorrowedFd<'_>> {
        self.shares.memory.as_ref().map(AsFd::as_fd).ok_or_else(attached)
    }

    /// A heap of this process alone, whose memory can be [lent](Arena::lend). Of what is free in it, as much keeps its pages as was
    /// in use lately; all of it, while that and what is in use are no more than `least` bytes.
    ///
    /// # Errors
    /// When no part of `bytes` is left, and in a process that attached.
    pub fn heap(&self, bytes: usize, least: usize) -> Result<Heap> {
        let lane = Lane::create(&self.map, self.lease(bytes)?, None, false)?;
        Ok(Heap::new(lane, Tide::new(least, SPARE)))
    }

    /// The words of a ledger with so many seats, all zero.
    ///
    /// # Errors
    /// When there is no room, and in a process that attached.
    pub(crate) fn board(&self, seats: usize) -> Result<Board> {
        let lease = self.lease(Board::len(seats))?;
        let at = lease.range().start;
        Ok(Board::new(&self.map, at, seats, Some(lease)))
    }

    /// The words of a ledger that the process which made the arena has there.
    ///
    /// # Errors
    /// When they are not within the arena.
    pub(crate) fn board_at(&self, offset: u64, seats: usize) -> Result<Board> {
        let at = usize::try_from(offset).ok().filter(|at| at.is_multiple_of(PAGE));
        let len = seats.checked_mul(size_of::<Seat>()).map(|_| Board::len(seats));
        let fits =
            |at: &usize| len.and_then(|len| at.checked_add(len)).is_some_and(|end| end <= self.map.len());
        let at = at.filter(fits).ok_or_else(|| Error::corrupt("a ledger is not within the arena"))?;
        Ok(Board::new(&self.map, at, seats, None))
    }

    /// Takes a part of at least `bytes`.
    pub(super) fn lease(&self, bytes: usize) -> Result<Lease> {
        let memory = self.fd()?;
        let wanted = bytes.max(1 << 20).checked_next_multiple_of(PAGE);
        let mut parts = lock(&self.shares.parts);
        parts.leave_limbo(memory);
        let found = wanted.and_then(|wanted| parts.take(wanted));
        let range = found.ok_or_else(|| {
            let len = self.map.len();
            Error::limit(format!("no {bytes} bytes of addresses are left in an arena of {len}"))
        })?;
        drop(parts);
        Ok(Lease { shares: Arc::clone(&self.shares), range })
    }

    /// Notes a lane that the other process gave to this one.
    pub(super) fn note_lane(&self, range: Range<usize>) {
        lock(&self.shares.parts).attached.push(range);
    }

    /// Where `bytes` lie in the arena, if they do.
    #[must_use]
    pub fn place_of(&self, bytes: &[u8]) -> Option<usize> {
        self.map.place_of(bytes)
    }

    pub(super) fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// Lends `memory` to another process until its reply was received, or [`reclaim`](Arena::reclaim)ed.
    ///
    /// # Errors
    /// The same memory, when it is not of this arena or was lent before.
    pub fn lend(&self, memory: BufferMut) -> Result<Loan, BufferMut> {
        let Some(place) = self.map.place_of(&memory) else { return Err(memory) };
        let loan = Loan { offset: place as u64, len: memory.len() as u64 };
        let mut loans = lock(&self.shares.loans);
        if memory.is_empty() || overlaps(&loans, place, memory.len()) {
            return Err(memory);
        }
        loans.insert(place, Loaned::Out(memory));
        Ok(loan)
    }

    /// Ends a loan: gives the memory back if no reply spoke of it.
    ///
    /// The borrower must not write there any more: it has answered, or is dead.
    #[must_use]
    pub fn reclaim(&self, loan: Loan) -> Option<BufferMut> {
        match lock(&self.shares.loans).remove(&usize::try_from(loan.offset).ok()?) {
            Some(Loaned::Out(memory)) => Some(memory),
            _ => None,
        }
    }

    /// The memory that the other process lent, to be written; sent in a reply, it is not copied.
    ///
    /// # Errors
    /// When it is not within the arena, or in use here already, and in the process that made the arena.
    pub fn adopt(&self, loan: Loan) -> Result<BufferMut> {
        if self.shares.memory.is_some() {
            return Err(Error::invalid("memory is lent to other processes only"));
        }
        let place = |offset: u64| usize::try_from(offset).ok().filter(|place| *place <= self.map.len());
        let start = place(loan.offset);
        let end = loan.offset.checked_add(loan.len).and_then(place);
        let (Some(start), Some(end)) = (start, end) else {
            return Err(Error::corrupt(format!(
                "{loan:?} is not within an arena of {} bytes",
                self.map.len()
            )));
        };
        let is_lane =
            lock(&self.shares.parts).attached.iter().any(|lane| lane.start < end && start < lane.end);
        let mut loans = lock(&self.shares.loans);
        if is_lane || overlaps(&loans, start, end - start) {
            return Err(Error::invalid(format!("{loan:?} is in use already")));
        }
        loans.insert(start, Loaned::In(end - start));
        drop(loans);
        let registered = Registered { shares: Arc::clone(&self.shares), start };
        Ok(Borrowed::memory(Arc::clone(&self.map), start..end, registered))
    }

    /// The loan that `bytes` are of, if this process borrowed them.
    pub(super) fn borrowed(&self, bytes: &[u8]) -> Option<Loan> {
        let place = self.map.place_of(bytes)?;
        let loans = lock(&self.shares.loans);
        let (start, Loaned::In(len)) = loans.range(..=place).next_back()? else { return None };
        (place + bytes.len() <= start + len).then_some(Loan { offset: place as u64, len: bytes.len() as u64 })
    }

    /// The bytes that the borrower wrote: a part of what was lent, kept alive by the lender's own memory.
    pub(super) fn returned(&self, loan: Loan) -> Option<Buffer> {
        let place = usize::try_from(loan.offset).ok()?;
        let len = usize::try_from(loan.len).ok()?;
        let mut loans = lock(&self.shares.loans);
        let (start, lent) = loans.range_mut(..=place).next_back()?;
        let whole = match lent {
            Loaned::In(_) => return None,
            Loaned::Back(whole) => whole.clone(),
            Loaned::Out(memory) => {
                let whole = std::mem::replace(memory, BufferMut::zeroed(0)).freeze();
                *lent = Loaned::Back(whole.clone());
                whole
            }
        };
        let from = place - start;
        whole.get(from..from.checked_add(len)?)
    }
}

/// Ends a borrower's entry.
struct Registered {
    shares: Arc<Shares>,
    start: usize,
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.shares.loans).remove(&self.start);
    }
}

fn overlaps(loans: &BTreeMap<usize, Loaned>, start: usize, len: usize) -> bool {
    let length = |lent: &Loaned| match lent {
        Loaned::Out(memory) => memory.len(),
        Loaned::Back(buffer) => buffer.len(),
        Loaned::In(len) => *len,
    };
    let before = loans.range(..start + len).next_back();
    before.is_some_and(|(at, lent)| at + length(lent) > start)
}

fn attached() -> Error {
    Error::invalid("only the process that made the arena divides it")
}

fn system(error: rustix::io::Errno, what: &str) -> Error {
    let error = std::io::Error::from(error);
    Error::from(error).context("shared memory", what)
}
