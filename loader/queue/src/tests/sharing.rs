//! What only the queue between processes promises: memory used in place, death noticed, nothing left behind.

use super::{
    super::process::*,
    asleep::{start_until_asleep, wait_until_asleep},
    worker::start,
    *,
};

const LANE: usize = 8 << 20;

fn arena() -> Arena {
    Arena::create(256 << 20).unwrap()
}

fn lies_in_the_arena(arena: &Arena, bytes: &[u8]) -> bool {
    arena.place_of(bytes).is_some()
}

/// The samples of an echo, and the messages' heads.
fn echo(connection: &mut Connection, chunk: Chunk) -> Message {
    connection.sender.send(&mut message(chunk)).unwrap();
    connection.receiver.recv().unwrap().unwrap()
}

#[test]
fn a_workers_output_is_used_where_it_was_written() {
    let arena = arena();
    let (mut connection, mut child) = start(&arena, "in place", LANE, WIDE);
    let mut seed = 0;
    let mut places = std::collections::BTreeSet::new();
    while let Some(message) = connection.receiver.recv().unwrap() {
        let bytes = tensor_of(message);
        assert!(lies_in_the_arena(&arena, &bytes));
        places.insert(bytes.as_ptr() as usize);
        assert_eq!(bytes.as_slice(), pattern(seed, 200_000));
        seed += 1;
    }
    assert_eq!(seed, 50);
    assert!(places.len() < 50, "no block was used twice");
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_a_worker_has_let_go_may_be_written() {
    let arena = arena();
    let (mut connection, mut child) = start(&arena, "in place", LANE, WIDE);
    let mut last = None;
    while let Some(message) = connection.receiver.recv().unwrap() {
        last = Some(tensor_of(message));
    }
    assert!(child.wait().unwrap().success());
    let (bytes, place) = last.map(|bytes| (bytes.clone(), bytes.as_ptr())).unwrap();
    let other = bytes.clone();
    assert!(!bytes.is_unshared());
    drop(other);
    let mut bytes = bytes.try_into_mut().unwrap();
    assert_eq!((bytes.as_ptr(), bytes.len()), (place, 200_000));
    bytes[0] = !bytes[0];
}

#[test]
fn what_a_view_shows_outlives_the_worker_and_its_connection() {
    let arena = Arena::create(2 * LANE).unwrap();
    let (mut connection, mut child) = start(&arena, "flood", LANE, WIDE);
    let kept: Vec<Buffer> =
        (0..20).map(|_| tensor_of(connection.receiver.recv().unwrap().unwrap())).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(connection);
    // One lane can be given out again, the other only with the last view.
    let other = arena.heap(LANE, 0).unwrap();
    assert!(arena.heap(LANE, 0).is_err());
    for (seed, bytes) in kept.iter().enumerate() {
        assert_eq!(bytes.as_slice(), pattern(seed as u64, 100_000));
    }
    drop(kept);
    assert!(arena.heap(LANE, 0).is_ok());
    drop(other);
}

#[test]
fn a_killed_worker_is_an_error() {
    let arena = arena();
    for attempt in 0..10 {
        let (mut connection, mut child) = start(&arena, "flood", LANE, WIDE);
        for seed in 0..attempt * 5 {
            let bytes = tensor_of(connection.receiver.recv().unwrap().unwrap());
            assert_eq!(bytes.as_slice(), pattern(seed, 100_000));
        }
        child.kill().unwrap();
        let error = loop {
            match connection.receiver.recv() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("death looks like an end"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Worker);
        assert!(error.message().contains("died"), "{error}");
        assert!(connection.receiver.recv().is_err(), "the error stays");
        child.wait().unwrap();
    }
}

#[test]
fn a_sender_that_waits_learns_of_its_receivers_death() {
    let arena = arena();
    let (mut connection, mut child) = start(&arena, "deaf", LANE, Bounds { items: 4, bytes: 1 << 30 });
    let error = loop {
        if let Err(error) = connection.sender.send(&mut message(numbered(0, 1))) {
            break error;
        }
    };
    assert_eq!((error.kind(), error.message()), (ErrorKind::Worker, "the receiver was dropped"));
    child.kill().unwrap();
    child.wait().unwrap();

    // Stopped, it takes nothing; killed, it never will.
    let (mut connection, mut child) = start(&arena, "echo", LANE, Bounds { items: 4, bytes: 1 << 30 });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let sending = rustix::thread::gettid();
    let killer = std::thread::spawn(move || {
        wait_until_asleep(sending);
        child.kill().unwrap();
        child.wait().unwrap();
    });
    let error = loop {
        if let Err(error) = connection.sender.send(&mut message(numbered(0, 1))) {
            break error;
        }
    };
    killer.join().unwrap();
    assert!(error.message().contains("died"), "{error}");
}

#[test]
fn a_sender_that_waits_for_its_socket_learns_that_the_receiver_left() {
    let arena = arena();
    let sizes = Sizes { to_worker: LANE, from_worker: 1 << 20, bounds: WIDE };
    let (mut here, ends) = Connection::open(&arena, sizes).unwrap();
    let mut there = ends.attach_here().unwrap();
    here.sender.send(&mut message(large(0, 100_000))).unwrap();
    // A view keeps the lane and its socket.
    let view = tensor_of(there.receiver.recv().unwrap().unwrap());
    let sending = start_until_asleep(move || {
        loop {
            if let Err(error) = here.sender.send(&mut message(numbered(0, 1))) {
                return error;
            }
        }
    });
    drop(there);
    assert_eq!(sending.join().unwrap().message(), "the receiver was dropped");
    assert_eq!(view.as_slice(), pattern(0, 100_000));
}

#[test]
fn how_a_worker_left_is_told_apart() {
    let arena = arena();
    for (job, wanted) in [("drop", "dropped"), ("panic", "panicked")] {
        let (mut connection, mut child) = start(&arena, job, LANE, WIDE);
        let error = connection.receiver.recv().map(drop).unwrap_err();
        assert!(error.message().contains(wanted), "{error}");
        assert!(child.wait().unwrap().success());
    }
    let (mut connection, mut child) = start(&arena, "close", LANE, WIDE);
    assert!(connection.receiver.recv().unwrap().is_none());
    assert!(connection.receiver.recv().unwrap().is_none(), "the end stays");
    assert!(matches!(connection.receiver.try_recv(), Ok(Received::End)));
    child.wait().unwrap();
}

#[test]
fn a_receiver_that_keeps_everything_still_gets_more() {
    let arena = arena();
    let (mut connection, mut child) = start(&arena, "flood", 2 << 20, WIDE);
    // Ten times what the lane can hold, and nothing is let go.
    let kept: Vec<Buffer> =
        (0..200).map(|_| tensor_of(connection.receiver.recv().unwrap().unwrap())).collect();
    for (seed, bytes) in kept.iter().enumerate() {
        assert_eq!(bytes.as_slice(), pattern(seed as u64, 100_000), "message {seed}");
    }
    let shared = kept.iter().filter(|bytes| lies_in_the_arena(&arena, bytes)).count();
    assert!((10..=21).contains(&shared), "{shared} in shared memory");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_message_larger_than_its_lane_crosses() {
    let arena = arena();
    let (mut connection, mut child) = start(&arena, "echo", 1 << 20, WIDE);
    let mut chunk = large(1, 3 << 20);
    chunk.take_from(&mut numbered(0, 30_000), usize::MAX);
    let wanted = samples(echo(&mut connection, large(1, 3 << 20)).chunk);
    assert_eq!(wanted, samples(large(1, 3 << 20)));
    let got = echo(&mut connection, chunk);
    assert_eq!(got.head, b"head");
    let got = samples(got.chunk);
    assert_eq!(got.len(), 30_001);
    assert_eq!(got[0], wanted[0]);
    assert_eq!(got[1..], samples(numbered(0, 30_000)));
    connection.sender.close().unwrap();
    assert!(connection.receiver.recv().unwrap().is_none());
    child.wait().unwrap();
}

#[test]
fn what_a_worker_hands_on_comes_back_without_a_copy() {
    let arena = arena();
    let (mut connection, mut child) = start(&arena, "echo", LANE, WIDE);
    let mut memory = connection.heap.alloc(100_000).unwrap();
    memory.copy_from_slice(&pattern(5, 100_000));
    let sent = memory.freeze();
    let tensor = Tensor::try_new(DType::U8, &[90_000], sent.slice(10_000..)).unwrap();
    let mut sample = Sample::new(0, Key::default());
    sample.set("x", tensor);
    let got = tensor_of(echo(&mut connection, one(sample)));
    assert_eq!(got.as_ptr(), sent[10_000..].as_ptr());
    drop(sent);
    assert_eq!(got.as_slice(), &pattern(5, 100_000)[10_000..]);
    connection.sender.close().unwrap();
    assert!(connection.receiver.recv().unwrap().is_none());
    child.wait().unwrap();
    assert!(connection.heap.used() > 0);
    drop(got);
    assert_eq!(connection.heap.used(), 0);
}

#[test]
fn a_lent_slot_comes_back_as_the_lenders_own_memory() {
    let arena = arena();
    let (mut connection, mut child) = start(&arena, "borrow", LANE, WIDE);
    let heap = arena.heap(LANE, 0).unwrap();
    let mut batch = heap.alloc(4 * 50_000).unwrap();
    let slots: Vec<_> = (0..4).map(|_| batch.split_off_front(50_000)).collect();
    let loans: Vec<Loan> = slots.into_iter().map(|slot| arena.lend(slot).unwrap()).collect();
    let mut parts = Vec::new();
    for (seed, loan) in loans.iter().enumerate() {
        let head: Vec<u8> =
            [loan.offset, loan.len, seed as u64].iter().flat_map(|word| word.to_le_bytes()).collect();
        connection.sender.send(&mut Message::new(head, Chunk::new())).unwrap();
        parts.push(tensor_of(connection.receiver.recv().unwrap().unwrap()));
        assert!(arena.reclaim(*loan).is_none(), "it was used");
    }
    let whole = Buffer::join(&parts).expect("side by side in one allocation");
    for seed in 0..4 {
        assert_eq!(whole[seed * 50_000..][..50_000], pattern(seed as u64, 50_000));
    }
    drop((whole, parts, batch));
    assert_eq!(heap.used(), 0);
    connection.sender.close().unwrap();
    assert!(connection.receiver.recv().unwrap().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_loan_that_was_not_used_comes_back() {
    let arena = arena();
    let heap = arena.heap(LANE, 0).unwrap();
    let memory = heap.alloc(4096).unwrap();
    let place = memory.as_ptr();
    let loan = arena.lend(memory).unwrap();
    let memory = arena.reclaim(loan).unwrap();
    assert_eq!(memory.as_ptr(), place);
    assert!(arena.reclaim(loan).is_none());
    assert!(arena.lend(forebay_core::BufferMut::zeroed(4096)).is_err(), "ordinary memory is not lent");
}

#[test]
fn connections_leave_nothing_behind() {
    let arena = Arena::create(64 << 20).unwrap();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    // Other tests open some at the same time, but not as many.
    for _ in 0..30 {
        let (mut connection, mut child) = start(&arena, "echo", LANE, WIDE);
        assert_eq!(samples(echo(&mut connection, numbered(0, 3)).chunk), samples(numbered(0, 3)));
        drop(connection);
        child.wait().unwrap();
    }
    assert!(open() < before + 60, "{} descriptors, {before} before", open());
    // All of it can be given out at once.
    let whole = arena.heap(64 << 20, 0);
    assert!(whole.is_ok());
}

#[test]
fn what_was_not_spawned_as_a_worker_is_told_so() {
    let error = Connection::from_parent().map(drop).unwrap_err();
    assert!(error.message().contains("not a worker's connection"), "{error}");
}
