//! The protocols of two queues, run through every order of events that two or three threads can have (loom).
//!
//! The files under test are included once more here, with loom's words and locks in place of the standard ones.

use super::{Bounds, Load};

mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use loom::sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, Ordering, fence},
    };
}

#[path = "../gate.rs"]
#[expect(
    clippy::duplicate_mod,
    dead_code,
    reason = "the same file with loom's words, of which not all is called"
)]
mod gate;
#[path = "../process/words.rs"]
#[expect(
    clippy::duplicate_mod,
    dead_code,
    reason = "the same file with loom's words, of which not all is called"
)]
mod words;

use loom::{sync::Arc, thread};

use self::{
    gate::{Admission, Gate},
    sync::{AtomicU32, Ordering},
    words::{Control, Slot},
};

const ONE: Load = Load { items: 1, bytes: 10 };

#[test]
fn the_gate_lets_everything_in_once_and_never_too_much() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(Bounds { items: 9, bytes: 10 }));
        // What is in the queue, as a channel would have it.
        let inside = Arc::new(AtomicU32::new(0));
        let sender = {
            let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
            thread::spawn(move || {
                for _ in 0..2 {
                    assert_eq!(gate.enter(ONE), Admission::Open);
                    assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "two in a queue for one");
                }
            })
        };
        for _ in 0..2 {
            while inside.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            inside.fetch_sub(1, Ordering::AcqRel);
            gate.leave(ONE);
        }
        sender.join().unwrap();
        assert_eq!(gate.try_enter(ONE), Admission::Open);
        assert_eq!(gate.try_enter(ONE), Admission::Full);
    });
}

#[test]
fn whoever_waits_at_the_gate_learns_that_the_receiver_left_or_the_bounds_grew() {
    for grows in [false, true] {
        loom::model(move || {
            let gate = Arc::new(Gate::new(Bounds { items: 1, bytes: 10 }));
            assert_eq!(gate.try_enter(ONE), Admission::Open);
            let other = Arc::clone(&gate);
            let receiver = thread::spawn(move || {
                if grows {
                    other.resize(Bounds { items: 2, bytes: 20 });
                } else {
                    other.receiver_leaves();
                }
            });
            assert_eq!(gate.enter(ONE), if grows { Admission::Open } else { Admission::ReceiverGone });
            receiver.join().unwrap();
        });
    }
}

/// A lane's words, and the wake-ups that its socket would carry.
#[derive(Default)]
struct Lane {
    control: Control,
    slots: [Slot; 2],
    socket: loom::sync::Mutex<u32>,
    came: loom::sync::Condvar,
}

impl Lane {
    fn wake(&self) {
        if self.control.must_wake() {
            *self.socket.lock().unwrap() += 1;
            self.came.notify_one();
        }
    }

    /// As the sender waits: a wake-up that never comes is a deadlock, which loom finds.
    fn wait_until(&self, ready: impl Fn() -> bool) {
        while !ready() {
            self.control.announce_wait();
            if !ready() {
                let mut socket = self.socket.lock().unwrap();
                while *socket == 0 {
                    socket = self.came.wait(socket).unwrap();
                }
                *socket = 0;
            }
            self.control.end_wait();
        }
    }

    fn freed(&self) -> Vec<u32> {
        let mut freed = Vec::new();
        self.control.take_freed(&self.slots, |slot| freed.push(slot));
        freed
    }
}

#[test]
fn a_sender_that_waits_is_woken() {
    // All orders in which at most this often a thread is interrupted; all orders at all take minutes.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let lane = Arc::new(Lane::default());
        lane.slots[0].start();
        let other = Arc::clone(&lane);
        let receiver = thread::spawn(move || {
            other.control.take(1, 10);
            other.wake();
            if other.control.release(&other.slots, 0) {
                other.wake();
            }
        });
        lane.wait_until(|| lane.control.taken() == (1, 10));
        lane.wait_until(|| lane.control.has_freed());
        assert_eq!(lane.freed(), [0]);
        receiver.join().unwrap();
    });
}

#[test]
fn the_last_hold_frees_a_block_once() {
    loom::model(|| {
        let lane = Arc::new(Lane::default());
        // The sender's own, one that was sent, and a second block.
        lane.slots[0].start();
        assert!(lane.slots[0].hold());
        lane.slots[1].start();
        let give_up = |slot: u32| {
            let lane = Arc::clone(&lane);
            thread::spawn(move || u32::from(lane.control.release(&lane.slots, slot)))
        };
        let others = [give_up(0), give_up(1)];
        let last = u32::from(lane.control.release(&lane.slots, 0));
        let mut freed = lane.freed();
        let told: u32 = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(told + last, 2, "each block has one last hold");
        freed.extend(lane.freed());
        freed.sort_unstable();
        assert_eq!(freed, [0, 1]);
        assert!(!lane.slots[0].hold(), "nobody holds it, so nobody can hold it again");
    });
}

#[test]
fn what_happened_before_a_release_is_seen_by_whoever_takes_the_block_again() {
    loom::model(|| {
        let lane = Arc::new(Lane::default());
        // Stands for the receiver's reads: ordered as they are, but a word, so that a wrong order shows.
        let read = Arc::new(AtomicU32::new(0));
        lane.slots[0].start();
        assert!(lane.slots[0].hold());
        let (other, its_read) = (Arc::clone(&lane), Arc::clone(&read));
        let receiver = thread::spawn(move || {
            its_read.store(1, Ordering::Relaxed);
            other.control.release(&other.slots, 0);
        });
        lane.control.release(&lane.slots, 0);
        if lane.freed() == [0] {
            assert_eq!(read.load(Ordering::Relaxed), 1);
        }
        receiver.join().unwrap();
    });
}
