//! One suite that every queue must pass: order, nothing lost, nothing twice, bounds, ends.
//!
//! The queue between processes is tested twice: with both its ends here, so that each step can be watched, and with an
//! echo in a spawned worker in between.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{asleep::start_until_asleep, *};

type Ends = (Box<dyn Sender>, Box<dyn Receiver>);

/// A way to make a queue, and what to keep while it is in use.
struct Kind {
    name: &'static str,
    make: fn(Bounds) -> (Ends, Keep),
    /// Whether the ends may be on two threads, and so wait for each other.
    waits: bool,
    /// Whether the other end of what is sent is the other end of what is received.
    is_direct: bool,
}

type Keep = Option<Worker>;

/// A worker, ended with its test.
struct Worker(std::process::Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const KINDS: &[Kind] = &[
    Kind { name: "local", make: |bounds| (boxed(local(bounds)), None), waits: false, is_direct: true },
    Kind { name: "threads", make: |bounds| (boxed(threads(bounds)), None), waits: true, is_direct: true },
    Kind { name: "process", make: |bounds| (process_ends(bounds), None), waits: true, is_direct: true },
    Kind { name: "worker", make: worker_ends, waits: true, is_direct: false },
    Kind {
        name: "tcp",
        make: |bounds| (network_ends("tcp:127.0.0.1:0", bounds), None),
        waits: true,
        is_direct: true,
    },
    Kind {
        name: "unix",
        make: |bounds| (network_ends(&unix_path(), bounds), None),
        waits: true,
        is_direct: true,
    },
];

fn boxed((sender, receiver): (impl Sender + 'static, impl Receiver + 'static)) -> Ends {
    (Box::new(sender), Box::new(receiver))
}

/// Both ends of one lane, in this process.
fn process_ends(bounds: Bounds) -> Ends {
    let arena = process::Arena::create(64 << 20).unwrap();
    let sizes = process::Sizes { to_worker: 16 << 20, from_worker: 1 << 20, bounds };
    let (here, ends) = process::Connection::open(&arena, sizes).unwrap();
    let there = ends.attach_here().unwrap();
    (Box::new(here.sender), Box::new(there.receiver))
}

fn worker_ends(bounds: Bounds) -> (Ends, Keep) {
    let arena = process::Arena::create(64 << 20).unwrap();
    let (connection, child) = worker::start(&arena, "echo", 16 << 20, bounds);
    ((Box::new(connection.sender), Box::new(connection.receiver)), Some(Worker(child)))
}

fn unix_path() -> String {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let name = format!("forebay-queue-{}-{:?}-{now}", std::process::id(), thread::current().id());
    format!("unix:{}", std::env::temp_dir().join(name).display())
}

fn network_ends(address: &str, bounds: Bounds) -> Ends {
    let listener = network::Listener::bind(address).unwrap();
    let (address, secret) = (listener.address().unwrap(), listener.secret());
    let sender =
        thread::spawn(move || network::sender(network::connect(&address, secret).unwrap(), bounds).unwrap());
    let receiver = network::receiver(listener.accept().unwrap(), 64 << 20).unwrap();
    (Box::new(sender.join().unwrap()), Box::new(receiver))
}

/// Calls `check` with each kind of queue that `suits`.
fn each(suits: impl Fn(&Kind) -> bool, bounds: Bounds, check: impl Fn(&Kind, Ends)) {
    for kind in KINDS.iter().filter(|kind| suits(kind)) {
        let (ends, keep) = (kind.make)(bounds);
        check(kind, ends);
        drop(keep);
    }
}

/// Waits, in a test, for what another thread or process brings about.
fn eventually<T>(kind: &Kind, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "{}: {what} never came", kind.name);
        thread::yield_now();
    }
}

fn next(kind: &Kind, receiver: &mut dyn Receiver) -> Message {
    eventually(kind, "a message", || match receiver.try_recv().unwrap() {
        Received::Message(message) => Some(message),
        Received::Empty => None,
        Received::End => panic!("{}: an end out of turn", kind.name),
    })
}

/// Sends `count` samples in messages of changing sizes, and checks that exactly those come, in that order.
fn order(kind: &Kind, (mut sender, mut receiver): Ends, count: u64) {
    let sizes = |at: u64| 1 + at * 7 % 61;
    let send = move || {
        let mut at = 0;
        while at < count {
            let size = sizes(at).min(count - at);
            sender.send(&mut message(numbered(at, size))).unwrap();
            at += size;
        }
        sender.close().unwrap();
        sender
    };
    let mut receive = || {
        let mut at = 0;
        let mut sample = Sample::default();
        while let Some(mut message) = receiver.recv().unwrap() {
            assert_eq!(message.head, b"head");
            assert_eq!(message.chunk.len() as u64, sizes(at).min(count - at), "{}", kind.name);
            while message.chunk.pop_into(&mut sample) {
                assert_eq!((sample.uid(), sample.key().index), (at, at), "{}", kind.name);
                assert_eq!(sample.get("n").unwrap().as_i64(), Some(at as i64));
                at += 1;
            }
        }
        assert_eq!(at, count, "{}", kind.name);
        assert!(receiver.recv().unwrap().is_none(), "{}: the end stays", kind.name);
    };
    if kind.waits {
        thread::scope(|scope| {
            let sending = scope.spawn(send);
            receive();
            drop(sending.join().unwrap());
        });
    } else {
        drop(send());
        receive();
    }
}

#[test]
fn everything_comes_once_and_in_order() {
    each(|kind| kind.waits, Bounds { items: 1000, bytes: 1 << 20 }, |kind, ends| order(kind, ends, 150_000));
    each(|kind| !kind.waits, WIDE, |kind, ends| order(kind, ends, 150_000));
}

#[test]
fn a_full_queue_says_so_and_gives_the_message_back() {
    each(
        |kind| kind.is_direct,
        Bounds { items: 10, bytes: 1 << 30 },
        |kind, (mut sender, mut receiver)| {
            let mut offered = message(numbered(0, 4));
            assert_eq!(sender.try_send(&mut offered).unwrap(), Offer::Taken, "{}", kind.name);
            assert!(offered.chunk.is_empty() && offered.head.is_empty());
            assert_eq!(sender.try_send(&mut message(numbered(4, 6))).unwrap(), Offer::Taken);
            let mut surplus = message(numbered(10, 3));
            assert_eq!(sender.try_send(&mut surplus).unwrap(), Offer::Full, "{}", kind.name);
            assert_eq!(surplus.head, b"head");
            assert_eq!(samples(std::mem::take(&mut surplus.chunk)), samples(numbered(10, 3)));
            assert_eq!(samples(next(kind, &mut *receiver).chunk), samples(numbered(0, 4)));
            // Room for 4, and no more.
            assert_eq!(sender.try_send(&mut message(numbered(10, 5))).unwrap(), Offer::Full, "{}", kind.name);
            eventually(kind, "room", || {
                (sender.try_send(&mut message(numbered(10, 4))).unwrap() == Offer::Taken).then_some(())
            });
            assert_eq!(samples(next(kind, &mut *receiver).chunk), samples(numbered(4, 6)));
            assert_eq!(samples(next(kind, &mut *receiver).chunk), samples(numbered(10, 4)));
            assert!(matches!(receiver.try_recv(), Ok(Received::Empty)), "{}", kind.name);
        },
    );
}

#[test]
fn bytes_are_bounded_too_and_one_message_always_passes() {
    each(
        |kind| kind.is_direct,
        Bounds { items: 1000, bytes: 250_000 },
        |kind, (mut sender, mut receiver)| {
            for (seed, wanted) in [(0, Offer::Taken), (1, Offer::Taken), (2, Offer::Full)] {
                assert_eq!(
                    sender.try_send(&mut message(large(seed, 100_000))).unwrap(),
                    wanted,
                    "{}",
                    kind.name
                );
            }
            for seed in [0, 1] {
                assert_eq!(tensor_of(next(kind, &mut *receiver)).as_slice(), pattern(seed, 100_000));
            }
            // Larger than the bound: alone it passes.
            eventually(kind, "room", || {
                (sender.try_send(&mut message(large(3, 1_000_000))).unwrap() == Offer::Taken).then_some(())
            });
            assert_eq!(sender.try_send(&mut message(numbered(0, 1))).unwrap(), Offer::Full, "{}", kind.name);
            assert_eq!(tensor_of(next(kind, &mut *receiver)).as_slice(), pattern(3, 1_000_000));
        },
    );
}

#[test]
fn bounds_change_at_run_time() {
    let (narrow, wider) = (Bounds { items: 2, bytes: 1 << 30 }, Bounds { items: 5, bytes: 1 << 30 });
    each(
        |kind| kind.is_direct,
        narrow,
        |kind, (mut sender, mut receiver)| {
            let fill = |sender: &mut dyn Sender, from: u64| {
                (from..)
                    .find(|n| sender.try_send(&mut message(numbered(*n, 1))).unwrap() == Offer::Full)
                    .unwrap()
            };
            assert_eq!(fill(&mut *sender, 0), 2, "{}", kind.name);
            sender.resize(wider);
            assert_eq!(fill(&mut *sender, 2), 5, "{}", kind.name);
            sender.resize(narrow);
            // Four leave before there is room again.
            (0..3).for_each(|_| drop(next(kind, &mut *receiver)));
            assert_eq!(fill(&mut *sender, 5), 5, "{}", kind.name);
            drop(next(kind, &mut *receiver));
            eventually(kind, "room", || {
                (sender.try_send(&mut message(numbered(5, 1))).unwrap() == Offer::Taken).then_some(())
            });
            assert_eq!(fill(&mut *sender, 6), 6, "{}", kind.name);
        },
    );
}

#[test]
fn a_sender_that_waits_goes_on_when_there_is_room() {
    each(
        |kind| kind.waits,
        Bounds { items: 2, bytes: 1 << 30 },
        |kind, (mut sender, mut receiver)| {
            let sending = start_until_asleep(move || {
                for n in 0..20 {
                    sender.send(&mut message(numbered(n, 1))).unwrap();
                }
                sender.close().unwrap();
                sender
            });
            for n in 0..20 {
                assert_eq!(samples(receiver.recv().unwrap().unwrap().chunk)[0].uid(), n, "{}", kind.name);
            }
            assert!(receiver.recv().unwrap().is_none());
            drop(sending.join().unwrap());
        },
    );
}

#[test]
fn where_nobody_could_end_a_wait_it_is_an_error() {
    let (mut sender, mut receiver) = local(Bounds { items: 1, bytes: 1 });
    assert_eq!(receiver.recv().map(drop).unwrap_err().kind(), ErrorKind::Invalid);
    sender.send(&mut message(numbered(0, 1))).unwrap();
    let mut second = message(numbered(1, 1));
    assert_eq!(sender.send(&mut second).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(second.chunk.len(), 1);
}

#[test]
fn a_closed_queue_gives_what_is_left_and_then_its_end() {
    each(
        |_| true,
        WIDE,
        |kind, (mut sender, mut receiver)| {
            sender.send(&mut message(numbered(0, 2))).unwrap();
            sender.send(&mut message(Chunk::new())).unwrap();
            sender.close().unwrap();
            let error = sender.try_send(&mut message(numbered(2, 1))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{}", kind.name);
            if kind.is_direct {
                drop(sender);
            }
            assert_eq!(next(kind, &mut *receiver).chunk.len(), 2);
            let last = next(kind, &mut *receiver);
            assert!(last.head == b"head" && last.chunk.is_empty());
            eventually(kind, "the end", || match receiver.try_recv().unwrap() {
                Received::End => Some(()),
                Received::Empty => None,
                Received::Message(_) => panic!("{}: a message from nowhere", kind.name),
            });
            assert!(receiver.recv().unwrap().is_none(), "{}", kind.name);
        },
    );
}

#[test]
fn a_sender_that_is_dropped_is_an_error_after_what_it_sent() {
    each(
        |kind| kind.is_direct,
        WIDE,
        |kind, (mut sender, mut receiver)| {
            sender.send(&mut message(numbered(0, 2))).unwrap();
            drop(sender);
            assert_eq!(next(kind, &mut *receiver).chunk.len(), 2);
            for _ in 0..2 {
                let error = eventually(kind, "an error", || match receiver.try_recv() {
                    Ok(Received::Empty) => None,
                    Ok(_) => panic!("{}: silence", kind.name),
                    Err(error) => Some(error),
                });
                assert_eq!(error.kind(), ErrorKind::Worker);
                assert!(error.message().contains("dropped"), "{}: {error}", kind.name);
            }
            assert!(receiver.recv().is_err());
        },
    );
}

#[test]
fn a_receiver_that_is_dropped_is_an_error() {
    each(
        |kind| kind.is_direct,
        Bounds { items: 4, bytes: 1 << 30 },
        |kind, (mut sender, receiver)| {
            sender.send(&mut message(numbered(0, 4))).unwrap();
            drop(receiver);
            let error = eventually(kind, "an error", || sender.try_send(&mut message(numbered(4, 1))).err());
            assert_eq!(error.kind(), ErrorKind::Worker, "{}", kind.name);
            assert!(sender.send(&mut message(numbered(4, 1))).is_err());
        },
    );
    // And for one that waits.
    each(
        |kind| kind.waits && kind.is_direct,
        Bounds { items: 1, bytes: 1 },
        |kind, (mut sender, receiver)| {
            let sending = start_until_asleep(move || {
                loop {
                    if let Err(error) = sender.send(&mut message(numbered(0, 1))) {
                        return error;
                    }
                }
            });
            drop(receiver);
            assert_eq!(sending.join().unwrap().kind(), ErrorKind::Worker, "{}", kind.name);
        },
    );
}

#[test]
fn every_kind_of_value_crosses() {
    each(
        |_| true,
        WIDE,
        |kind, (mut sender, mut receiver)| {
            sender.send(&mut message(codec::all_kinds())).unwrap();
            let got = samples(next(kind, &mut *receiver).chunk);
            let wanted = samples(codec::all_kinds());
            assert_eq!(got, wanted, "{}", kind.name);
            let keys =
                |samples: &[Sample]| samples.iter().map(|sample| sample.key().clone()).collect::<Vec<_>>();
            assert_eq!(keys(&got), keys(&wanted));
        },
    );
}

#[test]
fn what_cannot_cross_stays_and_is_named() {
    each(
        |kind| matches!(kind.name, "process" | "tcp" | "unix"),
        WIDE,
        |kind, (mut sender, mut receiver)| {
            let mut bad = message(codec::with_an_opaque_value());
            let error = sender.try_send(&mut bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", kind.name);
            assert_eq!(bad.chunk.len(), 2, "{}", kind.name);
            // The queue goes on.
            sender.send(&mut message(numbered(0, 1))).unwrap();
            assert_eq!(next(kind, &mut *receiver).chunk.len(), 1);
        },
    );
}

#[test]
fn on_one_machine_nothing_is_copied_that_need_not_be() {
    each(
        |kind| matches!(kind.name, "local" | "threads"),
        WIDE,
        |kind, (mut sender, mut receiver)| {
            let mut offered = message(large(0, 100_000));
            let head = offered.head.as_ptr();
            let mut before = None;
            offered.chunk.for_each_mut(|_, _, values| {
                before = values[0].as_tensor().map(|tensor| tensor.data().as_ptr());
            });
            sender.send(&mut offered).unwrap();
            let got = next(kind, &mut *receiver);
            assert_eq!(got.head.as_ptr(), head, "{}", kind.name);
            assert_eq!(Some(tensor_of(got).as_ptr()), before, "{}", kind.name);
        },
    );
}

#[test]
fn strangers_are_sent_away() {
    for address in ["tcp:127.0.0.1:0", &unix_path()] {
        let listener = network::Listener::bind(address).unwrap();
        let (place, secret) = (listener.address().unwrap(), listener.secret());
        let wrong: network::Secret = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let receiver = thread::spawn(move || network::receiver(listener.accept().unwrap(), 1 << 20).unwrap());
        assert_eq!(network::connect(&place, wrong).map(drop).unwrap_err().kind(), ErrorKind::Invalid);
        let mut sender = network::sender(network::connect(&place, secret).unwrap(), WIDE).unwrap();
        let mut receiver = receiver.join().unwrap();
        // There are two ends, and both are taken.
        assert!(network::connect(&place, secret).is_err());
        sender.send(&mut message(numbered(0, 1))).unwrap();
        let waiting = thread::spawn(move || {
            assert_eq!(receiver.recv().unwrap().unwrap().chunk.len(), 1);
            assert!(receiver.recv().unwrap().is_none());
        });
        sender.finish().unwrap();
        waiting.join().unwrap();
    }
    for bad in ["tcp:nowhere", "unix:", "shm:x", ""] {
        assert_eq!(network::Listener::bind(bad).map(drop).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn noise_from_the_network_is_an_error_and_takes_no_memory() {
    use std::{io::Write, os::unix::net::UnixStream};
    let noise = |bytes: &[u8]| {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(&[1]).unwrap();
        let mut receiver = network::receiver(here.into(), 1 << 20).unwrap();
        there.write_all(bytes).unwrap();
        drop(there);
        let error = receiver.recv().map(drop).unwrap_err();
        assert!(receiver.recv().is_err(), "the error stays");
        error
    };
    assert_eq!(noise(&[0xff; 400]).kind(), ErrorKind::Corrupt);
    assert_eq!(noise(b"").kind(), ErrorKind::Worker);
    let mut greedy = [0xff; 40];
    greedy[..8].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(noise(&greedy).kind(), ErrorKind::Limit);
}
