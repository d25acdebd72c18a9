//! Who may take large memory now. Samples in work at once may be far larger than all that waits between
//! segments. So threads and worker processes reserve large blocks here before they take them, and wait for
//! one another.
//!
//! A seat is a thread that works on chunks of maps, or a worker process; chunks are numbered as they are taken. While all seats
//! together hold more than is allowed, whoever asks for more waits, except the chunk with the lowest number, which all others wait for.
//! That one waits too while finished samples fill the budget, until the consumer has taken them or waits for a sample itself.
//! Pipes that see samples in order, and the executor inline, never wait: nobody else could go on for them.
//!
//! The words may lie in memory that processes share. Each seat's are written by who has it, and by the loader once that is dead.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use forebay_core::{BufferMut, Result};
use rustix::thread::futex;
use serde::{Deserialize, Serialize};

use crate::{
    process::{Arena, Board},
    seats::{Head, Seat},
    stopped,
};

/// Blocks from this size on are reserved.
const LARGE: usize = 1 << 20;
/// The most that each thread or worker adds to what may be held at once.
const SHARE: u64 = 64 << 20;

/// Where the words are.
enum LedgerWords {
    Own(Head, Vec<Seat>),
    Shared(Board),
}

/// All who reserve memory together.
pub struct Ledger {
    words: LedgerWords,
    allowed: u64,
    stopped: AtomicBool,
}

/// What a worker process is told of it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct LedgerPlace {
    offset: u64,
    seats: usize,
    allowed: u64,
}

thread_local! {
    /// The seat of this thread, and its number, while it works on a chunk.
    static AT: Cell<Option<(usize, u64)>> = const { Cell::new(None) };
}

impl Ledger {
    /// For `count` threads or workers that share `budget`, with so many seats, in memory of `arena` if there is one.
    ///
    /// They may hold the budget, or 64 MiB for each of them if that is less; up to half of that where there are workers, which are
    /// given copies of what they work on.
    ///
    /// # Errors
    /// When the arena has no room.
    pub fn new(count: usize, seats: usize, budget: u64, arena: Option<&Arena>) -> Result<Arc<Self>> {
        let (words, share) = match arena {
            Some(arena) => (LedgerWords::Shared(arena.board(seats)?), SHARE / 2),
            None => (LedgerWords::Own(Head::default(), (0..seats).map(|_| Seat::default()).collect()), SHARE),
        };
        let allowed = budget.max((count as u64).saturating_mul(budget.min(share)));
        Ok(Arc::new(Self { words, allowed, stopped: AtomicBool::new(false) }))
    }

    /// One that nobody has a seat at, so nobody waits.
    pub fn nobody() -> Arc<Self> {
        let words = LedgerWords::Own(Head::default(), Vec::new());
        Arc::new(Self { words, allowed: u64::MAX, stopped: AtomicBool::new(false) })
    }

    /// Where workers find it, if they can.
    pub fn place(&self) -> Option<LedgerPlace> {
        let LedgerWords::Shared(board) = &self.words else { return None };
        Some(LedgerPlace { offset: board.offset() as u64, seats: board.seats().len(), allowed: self.allowed })
    }

    /// The ledger of the process that made `arena`.
    ///
    /// # Errors
    /// When it is not within the arena.
    pub fn attach(arena: &Arena, place: LedgerPlace) -> Result<Arc<Self>> {
        let words = LedgerWords::Shared(arena.board_at(place.offset, place.seats)?);
        Ok(Arc::new(Self { words, allowed: place.allowed, stopped: AtomicBool::new(false) }))
    }

    fn head(&self) -> &Head {
        match &self.words {
            LedgerWords::Own(head, _) => head,
            LedgerWords::Shared(board) => board.head(),
        }
    }

    fn seats(&self) -> &[Seat] {
        match &self.words {
            LedgerWords::Own(_, seats) => seats,
            LedgerWords::Shared(board) => board.seats(),
        }
    }

    /// The seat of a worker process: threads have the first ones, by their number, and workers the last.
    pub fn seat_of_worker(&self, index: usize) -> usize {
        self.seats().len().wrapping_sub(index + 1)
    }

    /// This thread works on the chunk with this number, which is not 0, at this seat, until what comes back is dropped.
    pub fn sit(&self, at: usize, number: u64) -> Sitting<'_> {
        if let Some(seat) = self.seats().get(at) {
            seat.number.store(number, SeqCst);
            AT.set(Some((at, number)));
        }
        Sitting { ledger: self }
    }

    /// Whoever had this seat is gone, or has given back all it held.
    pub fn leave(&self, seat: usize) {
        let Some(seat) = self.seats().get(seat) else { return };
        seat.held.store(0, SeqCst);
        seat.number.store(0, SeqCst);
        self.tell();
    }

    /// Whoever works on this chunk at this seat has sent what came of it, and may be dead by now: nobody waits for it any more.
    pub fn hand_in(&self, seat: usize, number: u64) {
        let Some(seat) = self.seats().get(seat) else { return };
        // It may have left already, and work on another.
        if seat.number.compare_exchange(number, 0, SeqCst, SeqCst).is_ok() {
            self.tell();
        }
    }

    /// Whether anybody had to wait so far.
    pub fn is_tight(&self) -> bool {
        self.head().tight.load(SeqCst) != 0
    }

    /// Says whether finished samples fill the budget and the consumer does not wait for another.
    pub fn note_sated(&self, sated: bool) {
        if self.head().sated.swap(u32::from(sated), SeqCst) != 0 && !sated {
            self.tell();
        }
    }

    /// Nobody waits any more: it fails instead.
    pub fn stop(&self) {
        self.stopped.store(true, SeqCst);
        self.tell();
    }

    /// Has those look again who wait. Who begins to wait says so before it looks, so none is missed.
    fn tell(&self) {
        let head = self.head();
        if head.waiting.load(SeqCst) > 0 {
            head.version.fetch_add(1, SeqCst);
            // It cannot fail for words that are there.
            let _ = futex::wake(&head.version, futex::Flags::empty(), u32::MAX >> 1);
        }
    }

    /// Reserves a large block for the chunk that this thread works on, and waits until it may be taken; none for small ones, and
    /// on threads without a seat.
    ///
    /// # Errors
    /// When the run is stopped meanwhile.
    pub fn claim(self: &Arc<Self>, len: usize) -> Result<Option<Reservation>> {
        let Some(at) = AT.get().filter(|_| len >= LARGE) else { return Ok(None) };
        let len = len as u64;
        let Some(seat) = self.seats().get(at.0) else { return Ok(None) };
        if !self.reserve(seat, at.1, len) {
            let head = self.head();
            head.waiting.fetch_add(1, SeqCst);
            head.tight.store(1, SeqCst);
            let reserved = loop {
                let seen = head.version.load(SeqCst);
                if self.reserve(seat, at.1, len) {
                    break true;
                }
                if self.stopped.load(SeqCst) {
                    break false;
                }
                // Woken, interrupted or told that the version is another by now, it looks again.
                let _ = futex::wait(&head.version, futex::Flags::empty(), seen, None);
            };
            head.waiting.fetch_sub(1, SeqCst);
            if !reserved {
                return Err(stopped());
            }
        }
        Ok(Some(Reservation { ledger: Arc::clone(self), at, len }))
    }

    /// Reserves so many bytes, unless others must be waited for.
    fn reserve(&self, seat: &Seat, number: u64, len: u64) -> bool {
        // Before it looks, so that of two who look at once one at least sees the other.
        seat.held.fetch_add(len, SeqCst);
        let reserved = self.fits() || self.is_first(number) && self.head().sated.load(SeqCst) == 0;
        if !reserved {
            seat.held.fetch_sub(len, SeqCst);
        }
        reserved
    }

    fn fits(&self) -> bool {
        let held = self.seats().iter().fold(0_u64, |sum, seat| sum.saturating_add(seat.held.load(SeqCst)));
        held <= self.allowed
    }

    fn is_first(&self, number: u64) -> bool {
        self.seats().iter().all(|seat| !(1..number).contains(&seat.number.load(SeqCst)))
    }
}

/// A thread's work on a chunk.
pub struct Sitting<'a> {
    ledger: &'a Ledger,
}

impl Drop for Sitting<'_> {
    fn drop(&mut self) {
        if let Some((seat, _)) = AT.take() {
            self.ledger.leave(seat);
        }
    }
}

/// A block that was reserved. It is given up with the block, if that is dropped by whoever took it; else when the chunk is done.
pub struct Reservation {
    ledger: Arc<Ledger>,
    at: (usize, u64),
    len: u64,
}

impl Reservation {
    /// Memory that keeps its claim.
    pub fn on(self, memory: BufferMut) -> BufferMut {
        BufferMut::from_owner(Claimed { memory, _claim: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Some(seat) = self.ledger.seats().get(self.at.0) else { return };
        // Another thread may be about to leave the seat.
        if AT.get() == Some(self.at) {
            seat.held.fetch_sub(self.len, SeqCst);
            self.ledger.tell();
        }
    }
}

struct Claimed {
    memory: BufferMut,
    _claim: Reservation,
}

impl AsMut<[u8]> for Claimed {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{self, Receiver},
        thread,
    };

    use super::*;

    const MIB: usize = 1 << 20;

    /// What threads say: who, and whether it got its block.
    struct Heard(mpsc::Sender<(usize, bool)>, Receiver<(usize, bool)>);

    impl Heard {
        fn new() -> Self {
            let (say, said) = mpsc::channel();
            Self(say, said)
        }

        /// A thread at a seat that takes a block, says so, and keeps it until what comes back is dropped.
        fn take(&self, ledger: &Arc<Ledger>, seat: usize, len: usize) -> mpsc::Sender<()> {
            let (ledger, say) = (Arc::clone(ledger), self.0.clone());
            let (tell, told) = mpsc::channel();
            thread::spawn(move || {
                let _sitting = ledger.sit(seat, seat as u64 + 1);
                let claim = ledger.claim(len);
                say.send((seat, claim.is_ok())).unwrap();
                let _ = told.recv(); // Until the other end is dropped.
            });
            tell
        }

        fn next(&self) -> (usize, bool) {
            self.1.recv().unwrap()
        }
    }

    /// Waits until so many wait.
    fn await_waiting(ledger: &Ledger, count: u32) {
        while ledger.head().waiting.load(SeqCst) != count {
            thread::yield_now();
        }
    }

    #[test]
    fn large_blocks_wait_for_each_other_and_the_first_never_does() {
        for arena in [None, Some(Arena::create(64 << 20).unwrap())] {
            let ledger = Ledger::new(2, 4, 8 << 20, arena.as_ref()).unwrap();
            let heard = Heard::new();
            let first = heard.take(&ledger, 0, 100 * MIB);
            assert_eq!(heard.next(), (0, true));
            let mut others = [1, 2].map(|seat| Some(heard.take(&ledger, seat, 20 * MIB)));
            await_waiting(&ledger, 2);
            assert!(heard.1.try_recv().is_err());
            // Small ones are free.
            let _sitting = ledger.sit(3, 4);
            assert!(ledger.claim(LARGE - 1).unwrap().is_none());
            drop(first);
            // One of them alone is more than the 16 MiB that are allowed, so the one taken first goes on.
            assert_eq!(heard.next(), (1, true));
            await_waiting(&ledger, 1);
            others[0] = None;
            assert_eq!(heard.next(), (2, true));
        }
    }

    #[test]
    fn the_first_waits_only_while_the_consumer_has_enough() {
        let ledger = Ledger::new(1, 3, MIB as u64, None).unwrap();
        assert!(!ledger.is_tight());
        let heard = Heard::new();
        let first = heard.take(&ledger, 0, 2 * MIB);
        assert_eq!(heard.next(), (0, true));
        let _second = heard.take(&ledger, 1, 2 * MIB);
        await_waiting(&ledger, 1);
        assert!(ledger.is_tight());
        ledger.note_sated(true);
        drop(first);
        assert!(heard.1.try_recv().is_err());
        ledger.note_sated(false);
        assert_eq!(heard.next(), (1, true));
        // What is small goes on none the less.
        ledger.note_sated(true);
        ledger.leave(1);
        let _third = heard.take(&ledger, 2, MIB);
        assert_eq!(heard.next(), (2, true));
    }

    #[test]
    fn nobody_waits_for_a_chunk_that_was_handed_in() {
        let ledger = Ledger::new(1, 2, MIB as u64, None).unwrap();
        let heard = Heard::new();
        let _first = heard.take(&ledger, 0, 2 * MIB);
        assert_eq!(heard.next(), (0, true));
        let _second = heard.take(&ledger, 1, 2 * MIB);
        await_waiting(&ledger, 1);
        ledger.hand_in(0, 7); // Another's.
        assert!(heard.1.try_recv().is_err());
        ledger.hand_in(0, 1);
        assert_eq!(heard.next(), (1, true));
    }

    #[test]
    fn whoever_waits_hears_of_a_stop_and_of_a_death() {
        let ledger = Ledger::new(1, 3, MIB as u64, None).unwrap();
        let heard = Heard::new();
        let _first = heard.take(&ledger, 0, 2 * MIB);
        assert_eq!(heard.next(), (0, true));
        let _second = heard.take(&ledger, 1, 2 * MIB);
        await_waiting(&ledger, 1);
        ledger.leave(0); // It died.
        assert_eq!(heard.next(), (1, true));
        let _third = heard.take(&ledger, 2, 2 * MIB);
        await_waiting(&ledger, 1);
        ledger.stop();
        assert_eq!(heard.next(), (2, false));
    }

    #[test]
    fn what_is_dropped_while_the_chunk_goes_on_is_given_back() {
        let ledger = Ledger::new(1, 2, 4 << 20, None).unwrap();
        let sitting = ledger.sit(0, 1);
        let claim = ledger.claim(3 * MIB).unwrap().unwrap();
        let memory = claim.on(BufferMut::zeroed(3 * MIB));
        let held = || ledger.seats()[0].held.load(SeqCst);
        assert_eq!(held(), 3 << 20);
        drop(memory.freeze());
        assert_eq!(held(), 0);
        let kept = ledger.claim(2 * MIB).unwrap().unwrap();
        drop(sitting);
        assert_eq!(held(), 0);
        drop(kept); // Late, and counted once.
        assert_eq!(held(), 0);
        assert!(ledger.claim(9 * MIB).unwrap().is_none());
    }
}
