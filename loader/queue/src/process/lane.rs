//! One direction of a connection: a part of the arena, and the socket on which its messages are announced.
//!
//! A lane's part begins with a page of control words and the blocks' counters; the rest is blocks. Its memory and its
//! socket live until the last view of a block is dropped, here and in the other process: a socket whose far end hung
//! up says that nobody there can reach the memory any more.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Range,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use forebay_core::{Error, Result};
use rustix::net::SendFlags;

use super::{
    shared::{Map, PAGE},
    shares::Lease,
    words::{Control, Slot},
};

/// One direction's memory and socket, as one process has them.
pub(super) struct Lane {
    map: Arc<Map>,
    range: Range<usize>,
    slots: usize,
    socket: Option<Arc<OwnedFd>>,
    /// Whether the far end is the one that sends.
    receives: bool,
    /// Of the blocks that were received and are still in use here: start, number, end, and how many views there are.
    views: Mutex<BTreeMap<usize, (u32, usize, u32)>>,
    /// Where the memory goes back to, in the process that made the arena.
    lease: Option<Lease>,
}

/// How many free bytes of a lane keep their pages.
pub(super) const KEPT: usize = 16 << 20;

/// How many blocks a lane of so many bytes may have.
fn slots_of(len: usize) -> usize {
    (len / (16 << 10)).clamp(64, 1 << 16)
}

/// The bytes before the first block.
fn head_of(len: usize) -> usize {
    PAGE + (slots_of(len) * size_of::<Slot>()).next_multiple_of(PAGE)
}

impl Lane {
    /// A lane over the leased part of the arena, with its words cleared.
    pub(super) fn create(
        map: &Arc<Map>,
        lease: Lease,
        socket: Option<Arc<OwnedFd>>,
        receives: bool,
    ) -> Result<Arc<Self>> {
        let mut lane = Self::over(map, lease.range(), socket, receives)?;
        lane.lease = Some(lease);
        lane.control().reset();
        Ok(Arc::new(lane))
    }

    /// A lane that the other process made; its far end is taken, once.
    pub(super) fn attach(
        map: &Arc<Map>,
        range: Range<usize>,
        socket: Arc<OwnedFd>,
        receives: bool,
    ) -> Result<Arc<Self>> {
        let lane = Self::over(map, range, Some(socket), receives)?;
        if lane.control().attached.swap(1, Ordering::AcqRel) != 0 {
            return Err(Error::invalid("this end of the connection was taken already"));
        }
        Ok(Arc::new(lane))
    }

    fn over(
        map: &Arc<Map>,
        range: Range<usize>,
        socket: Option<Arc<OwnedFd>>,
        receives: bool,
    ) -> Result<Self> {
        let aligned = range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE);
        let fits = range.start < range.end && range.end <= map.len();
        if !aligned || !fits || head_of(range.len()) + PAGE > range.len() {
            return Err(Error::invalid(format!("{range:?} is no part of an arena of {} bytes", map.len())));
        }
        let slots = slots_of(range.len());
        Ok(Self {
            map: Arc::clone(map),
            range,
            slots,
            socket,
            receives,
            views: Mutex::default(),
            lease: None,
        })
    }

    pub(super) fn map(&self) -> &Arc<Map> {
        &self.map
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Where blocks may lie.
    pub(super) fn blocks(&self) -> Range<usize> {
        self.range.start + head_of(self.range.len())..self.range.end
    }

    pub(super) fn control(&self) -> &Control {
        self.map.control(self.range.start)
    }

    pub(super) fn slots(&self) -> &[Slot] {
        self.map.slots(self.range.start + PAGE, self.slots)
    }

    /// Notes a view of a received block, so that the block can be sent back as it is.
    pub(super) fn note_view(&self, slot: u32, range: &Range<usize>) {
        self.views().entry(range.start).or_insert((slot, range.end, 0)).2 += 1;
    }

    /// Forgets a view that was noted.
    pub(super) fn forget_view(&self, start: usize) {
        if let Entry::Occupied(mut entry) = self.views().entry(start) {
            entry.get_mut().2 -= 1;
            if entry.get().2 == 0 {
                entry.remove();
            }
        }
    }

    /// The received block that `range` lies in, with one more hold on it.
    pub(super) fn hold_view(&self, range: &Range<usize>) -> Option<(u32, Range<usize>)> {
        let views = self.views();
        let (&start, &(slot, end, _)) = views.range(..=range.start).next_back()?;
        let held = range.end <= end && self.slots().get(slot as usize)?.hold();
        held.then_some((slot, start..end))
    }

    /// The lock is held for a few instructions.
    fn views(&self) -> MutexGuard<'_, BTreeMap<usize, (u32, usize, u32)>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up one hold on a block, and wakes the sender in the other process if it waits for memory.
    ///
    /// In the sender's own process nobody is woken: what waits there waits for the receiver alone.
    pub(super) fn release(&self, slot: u32) {
        if self.control().release(self.slots(), slot) && self.receives {
            self.wake_sender();
        }
    }

    /// Gives the pages of a received block back to the system, if its only hold is about to be given up and the sender would not keep
    /// them: the sender may be idle, or busy for long.
    pub(super) fn empty(&self, slot: u32, range: &Range<usize>) {
        let is_last = || self.slots().get(slot as usize).is_some_and(Slot::is_held_once);
        if self.receives && range.len() > KEPT && is_last() {
            self.map.give_up(range);
        }
    }

    /// Wakes the sender if it waits, from the receiving process. Does not wait itself.
    pub(super) fn wake_sender(&self) {
        if self.control().must_wake()
            && let Some(socket) = &self.socket
        {
            // A full socket holds wake-ups that were not looked at yet; a broken one has nobody to wake.
            let _ = rustix::net::send(socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back(self.socket.take());
        }
    }
}
