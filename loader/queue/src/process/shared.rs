//! Shared memory: a map of the arena, words in it that both processes count with, and what is lent.
#![expect(unsafe_code, reason = "shared memory is reached by address")]

use std::{
    ops::Range,
    os::fd::BorrowedFd,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

use forebay_core::{BufferMut, Error, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::{
    shares::Lease,
    words::{Control, Slot},
};
use crate::seats::{Head, Seat};

/// The size of a page, and of what a lane begins with.
pub(super) const PAGE: usize = 4096;

/// A whole arena, mapped to be read and written until this is dropped.
///
/// Other processes have the same bytes. The protocol of `words` keeps Rust's promises between them. A block
/// belongs to the sender's process until it is sent: only that process writes it, and only through the one
/// `BufferMut`. From then on nobody writes it before all holds but one are given up. The workers are this
/// crate's own code. A plugin that writes where it may not breaks a worker's process as it would break this
/// one.
pub(super) struct Map {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the map is memory like any other; who may write which part of it is said above.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Maps `len` bytes of `fd`, which is sealed so that it never becomes shorter.
    pub(super) fn new(fd: BorrowedFd<'_>, len: usize) -> Result<Self> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
        // SAFETY: the system chooses a place where nothing is mapped.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, prot, flags, fd, 0) };
        let base = base
            .map_err(|error| Error::from(std::io::Error::from(error)).context("mapping", "shared memory"))?;
        // SAFETY: the range was just mapped; the advice changes no bytes. Without it pages are only smaller.
        let _ = unsafe { rustix::mm::madvise(base, len, Advice::LinuxHugepage) };
        let base = NonNull::new(base.cast()).ok_or_else(|| Error::bug("the system mapped memory at 0"))?;
        Ok(Self { base, len })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where `bytes` lie in the arena, if they do.
    pub(super) fn place_of(&self, bytes: &[u8]) -> Option<usize> {
        let place = (bytes.as_ptr() as usize).checked_sub(self.base.as_ptr() as usize)?;
        (place.checked_add(bytes.len())? <= self.len).then_some(place)
    }

    /// The address of a range that was checked to lie within the arena.
    pub(super) fn at(&self, range: &Range<usize>) -> NonNull<u8> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        // SAFETY: the assertion.
        unsafe { self.base.add(range.start) }
    }

    /// Gives the whole pages within `range` back to the system: they read as zeros, and are taken again when they are written.
    /// Nobody has a block there.
    pub(super) fn give_up(&self, range: &Range<usize>) {
        let pages = range.start.next_multiple_of(PAGE)..range.end / PAGE * PAGE;
        if pages.is_empty() {
            return;
        }
        let place = self.at(&pages);
        // SAFETY: in the map, and of no block, so no reference points there. Where the system cannot do it, the pages stay.
        let _ = unsafe { rustix::mm::madvise(place.as_ptr().cast(), pages.len(), Advice::LinuxRemove) };
    }

    /// The control words of the lane that begins at `at`.
    pub(super) fn control(&self, at: usize) -> &Control {
        assert!(at.is_multiple_of(PAGE), "a lane begins at a page");
        let place = self.at(&(at..at + size_of::<Control>()));
        // SAFETY: in the map, aligned to a page, and nothing but atomics, for which all bytes are valid. Lanes keep
        // these bytes for the words alone.
        unsafe { place.cast::<Control>().as_ref() }
    }

    /// The words of a ledger at `at`, with so many seats.
    fn ledger(&self, at: usize, seats: usize) -> (&Head, &[Seat]) {
        assert!(at.is_multiple_of(PAGE), "a ledger begins at a page");
        let place = self.at(&(at..at + Board::len(seats)));
        // SAFETY: in the map, aligned to a page, and nothing but atomics, for which all bytes are valid. These bytes are the
        // ledger's alone.
        unsafe {
            let head = place.cast::<Head>();
            (head.as_ref(), slice::from_raw_parts(head.add(1).cast::<Seat>().as_ptr(), seats))
        }
    }

    /// The `count` counters of the lane whose control words lie one page before `at`.
    pub(super) fn slots(&self, at: usize, count: usize) -> &[Slot] {
        assert!(at.is_multiple_of(PAGE), "counters begin at a page");
        let place = self.at(&(at..at + count * size_of::<Slot>()));
        // SAFETY: as in `control`.
        unsafe { slice::from_raw_parts(place.cast::<Slot>().as_ptr(), count) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the map was made by `new`, and everything that points into it keeps it alive.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// The words of a ledger in shared memory.
pub(crate) struct Board {
    map: Arc<Map>,
    at: usize,
    seats: usize,
    /// In the process that made it.
    _lease: Option<Lease>,
}

impl Board {
    /// So many bytes it takes.
    pub(super) fn len(seats: usize) -> usize {
        size_of::<Head>() + seats * size_of::<Seat>()
    }

    /// One at a page of the map; `seats` of them lie within.
    pub(super) fn new(map: &Arc<Map>, at: usize, seats: usize, lease: Option<Lease>) -> Self {
        Self { map: Arc::clone(map), at, seats, _lease: lease }
    }

    /// Where it begins.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    pub(crate) fn head(&self) -> &Head {
        self.map.ledger(self.at, self.seats).0
    }

    pub(crate) fn seats(&self) -> &[Seat] {
        self.map.ledger(self.at, self.seats).1
    }
}

/// Memory that another process lent to this one; the loan's registration ends with it.
pub(super) struct Borrowed<R> {
    map: Arc<Map>,
    range: Range<usize>,
    _registered: R,
}

impl<R: Send + Sync + 'static> Borrowed<R> {
    /// The lent bytes, to be written. `registered` stands for the sole use of `range` in this process.
    pub(super) fn memory(map: Arc<Map>, range: Range<usize>, registered: R) -> BufferMut {
        BufferMut::from_owner(Self { map, range, _registered: registered })
    }
}

impl<R> AsMut<[u8]> for Borrowed<R> {
    fn as_mut(&mut self) -> &mut [u8] {
        let place = self.map.at(&self.range);
        // SAFETY: in the map; the lender holds the only `BufferMut` and does not touch it before the reply, and the
        // registration says that nobody else here has it.
        unsafe { slice::from_raw_parts_mut(place.as_ptr(), self.range.len()) }
    }
}
