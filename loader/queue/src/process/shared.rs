//! The one place that touches shared memory: a map of the arena, words in it that both processes count with, and
//! blocks of bytes.
#![expect(unsafe_code, reason = "shared memory is reached by address")]

use std::{
    ops::Range,
    os::fd::BorrowedFd,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

use forebay_core::{Buffer, BufferMut, Error, LentBytes, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::{
    arena::Lease,
    lane::Lane,
    words::{Control, Slot},
};
use crate::ledger::{Head, Seat};

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
    fn at(&self, range: &Range<usize>) -> NonNull<u8> {
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

/// One process's hold on a block: its place, and the counter to give back.
pub(super) struct Block {
    lane: Arc<Lane>,
    slot: u32,
    range: Range<usize>,
    /// Whether the lane has this noted as a view.
    is_noted: bool,
}

impl Block {
    /// A hold that was counted already; `range` lies within the arena.
    pub(super) fn counted(lane: Arc<Lane>, slot: u32, range: Range<usize>) -> Self {
        Self { lane, slot, range, is_noted: false }
    }

    /// The bytes, to be written: for a block that was just taken and is nobody else's.
    pub(super) fn into_memory(self) -> BufferMut {
        BufferMut::from_owner(self)
    }

    /// The bytes, which nobody writes any more.
    pub(super) fn into_buffer(self) -> Buffer {
        Buffer::from_owner(self)
    }

    /// As [`into_buffer`](Block::into_buffer), for a block that was received: it can be sent back, and written once its sender has let go of it.
    pub(super) fn into_view(mut self) -> Buffer {
        self.lane.note_view(self.slot, &self.range);
        self.is_noted = true;
        Buffer::from_lent(self)
    }

    /// The bytes, to be filled before the block is sent.
    pub(super) fn fill(&mut self, bytes: &[u8]) {
        self.as_mut().copy_from_slice(bytes);
    }

    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Where it begins and ends, as messages say it.
    pub(super) fn ends(&self) -> [u64; 2] {
        [self.range.start as u64, self.range.end as u64]
    }

    /// Leaves the hold to another process, which was told of it.
    pub(super) fn hand_over(self) {
        // The lane's own count is given up; the counter in shared memory stays.
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so the lane is taken out once.
        drop(unsafe { ptr::read(&raw const this.lane) });
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        let place = self.lane.map().at(&self.range);
        // SAFETY: in the map, which the lane keeps; initialised as all mapped memory is; while the hold is counted
        // nobody but a `BufferMut` of this very block writes there, and that goes through `as_mut`.
        unsafe { slice::from_raw_parts(place.as_ptr(), self.range.len()) }
    }
}

// SAFETY: the place is in the map, which the lane keeps. A block that was sent is written by nobody; with one hold left, which is this one, no
// process has another, and only who has a hold can make one.
unsafe impl LentBytes for Block {
    fn place(&self) -> *mut [u8] {
        ptr::slice_from_raw_parts_mut(self.lane.map().at(&self.range).as_ptr(), self.range.len())
    }

    fn is_alone(&self) -> bool {
        self.lane.slots().get(self.slot as usize).is_some_and(Slot::is_held_once)
    }
}

impl AsMut<[u8]> for Block {
    fn as_mut(&mut self) -> &mut [u8] {
        let place = self.lane.map().at(&self.range);
        // SAFETY: as above, and the block was not sent yet: it is reached through this hold alone.
        unsafe { slice::from_raw_parts_mut(place.as_ptr(), self.range.len()) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.is_noted {
            self.lane.forget_view(self.range.start);
        }
        self.lane.empty(self.slot, &self.range);
        self.lane.release(self.slot);
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
