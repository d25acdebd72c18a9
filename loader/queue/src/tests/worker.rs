//! The process at the other end: this very test program, started again to run one job.

use std::process::{Child, Command, Stdio};

use super::{super::process::*, *};

/// Names the job; a process without it is no worker.
const JOB: &str = "FOREBAY_TEST_JOB";

/// Starts a worker that runs `job`, over lanes of `lane` bytes.
pub(super) fn start(arena: &Arena, job: &str, lane: usize, bounds: Bounds) -> (Connection, Child) {
    let sizes = Sizes { to_worker: lane, from_worker: lane, bounds };
    let (connection, ends) = Connection::open(arena, sizes).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let this = format!("{}::the_worker", module_path!().split_once("::").unwrap().1);
    command.args(["--exact", &this, "--nocapture"]).env(JOB, job).stdout(Stdio::null());
    let child = ends.spawn(command).unwrap();
    (connection, child)
}

/// No test: what a worker runs.
#[test]
fn the_worker() {
    let Ok(job) = std::env::var(JOB) else { return };
    let connection = Connection::from_parent().unwrap();
    assert!(Connection::from_parent().is_err(), "the ends can be taken once");
    let is_empty = std::io::Read::read(&mut std::io::stdin(), &mut [0]).unwrap() == 0;
    let shown = std::fs::read_link("/proc/self/fd/0");
    assert!(is_empty && shown.is_ok_and(|file| file.as_os_str() == "/dev/null"));
    run(&job, connection);
}

fn run(job: &str, connection: Connection) {
    let Connection { mut sender, mut receiver, heap, arena } = connection;
    match job {
        "echo" => {
            while let Ok(Some(mut message)) = receiver.recv() {
                if sender.send(&mut message).is_err() {
                    return;
                }
            }
            let _ = sender.close();
        }
        "close" => sender.close().unwrap(),
        "drop" => drop(sender),
        "panic" => {
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _sender = sender;
                panic!("meant");
            }));
            assert!(panicked.is_err());
        }
        "deaf" => {
            drop(receiver);
            std::thread::park();
        }
        "flood" => {
            let mut at = 0;
            while sender.send(&mut message(large(at, 100_000))).is_ok() {
                at += 1;
            }
        }
        "in place" => {
            for seed in 0..50 {
                let mut memory = heap.alloc(200_000).expect("room in the heap");
                memory.copy_from_slice(&pattern(seed, 200_000));
                let mut sample = Sample::new(seed, Key::default());
                sample.set("x", Tensor::try_new(DType::U8, &[200_000], memory.freeze()).unwrap());
                sender.send(&mut message(one(sample))).unwrap();
            }
            sender.close().unwrap();
        }
        "borrow" => borrow(&mut sender, &mut receiver, &heap, &arena),
        _ => panic!("no job is called {job}"),
    }
}

/// Writes what it is asked for into memory that was lent: the head holds the place of a batch's slot.
fn borrow(sender: &mut ProcessSender, receiver: &mut ProcessReceiver, heap: &Heap, arena: &Arena) {
    while let Some(task) = receiver.recv().unwrap() {
        let mut numbers = task.head.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let (offset, len, seed) = (numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap());
        let mut memory = arena.adopt(Loan { offset, len }).unwrap();
        assert!(arena.adopt(Loan { offset, len }).is_err(), "borrowed twice");
        memory.copy_from_slice(&pattern(seed, len as usize));
        let mut sample = Sample::new(seed, Key::default());
        sample.set("x", Tensor::try_new(DType::U8, &[len as usize], memory.freeze()).unwrap());
        sender.send(&mut Message::new(task.head, one(sample))).unwrap();
    }
    assert!(arena.adopt(Loan { offset: u64::MAX, len: 2 }).is_err());
    let own = arena.place_of(&heap.alloc(4096).unwrap()).unwrap() as u64;
    assert!(arena.adopt(Loan { offset: own, len: 64 }).is_err(), "this process's own lane");
    sender.close().unwrap();
}
