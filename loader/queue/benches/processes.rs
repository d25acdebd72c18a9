//! Figures of the queue between processes, on an idle machine: `cargo bench -p forebay-queue`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "figures are for whoever asks for them")]

use std::{
    env,
    process::{Child, Command, Stdio},
    time::Instant,
};

use forebay_core::{Buffer, BufferMut, Chunk, DType, Key, Schema, Tensor};
use forebay_queue::{
    Bounds, Message, Receiver as _, Sender as _,
    process::{Arena, Connection, Heap, ProcessSender, Sizes},
};

/// Names the job; a process without it starts the workers.
const JOB: &str = "FOREBAY_TEST_BENCH";
/// The bytes of an image of 224 by 224 pixels, as floats.
const TENSOR: usize = 602_112;
const TENSORS: u64 = 20_000;
const SMALL: u64 = 200_000;

fn main() {
    match env::var(JOB) {
        Ok(job) => work(&job, Connection::from_parent().unwrap()),
        // `cargo test --benches` only asks whether this runs.
        Err(_) if env::args().any(|arg| arg == "--test") => {}
        Err(_) => {
            speed_of_tensors();
            speed_of_small_messages();
        }
    }
}

/// Starts a worker that runs `job`.
fn start(arena: &Arena, job: &str, bounds: Bounds) -> (Connection, Child) {
    let sizes = Sizes { to_worker: 64 << 20, from_worker: 64 << 20, bounds };
    let (connection, ends) = Connection::open(arena, sizes).unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(JOB, job).stdout(Stdio::null());
    let child = ends.spawn(command).unwrap();
    (connection, child)
}

/// The worker's side.
fn work(job: &str, connection: Connection) {
    let Connection { mut sender, heap, .. } = connection;
    match job.strip_prefix("small ") {
        Some(per) => small(per.parse().unwrap(), &mut sender),
        None => tensors(&mut sender, &heap),
    }
    sender.close().unwrap();
}

fn tensors(sender: &mut ProcessSender, heap: &Heap) {
    let schema = Schema::new(["x"]);
    for n in 0..TENSORS {
        let mut memory = heap.alloc(TENSOR).unwrap_or_else(|| BufferMut::zeroed(TENSOR));
        memory.fill(n as u8);
        let tensor = Tensor::try_new(DType::U8, &[TENSOR], memory.freeze()).unwrap();
        let mut chunk = Chunk::new();
        chunk.push(n, Key::default(), &schema, [tensor.into()]);
        sender.send(&mut Message::new([], chunk)).unwrap();
    }
}

fn small(per: u64, sender: &mut ProcessSender) {
    let schema = Schema::new(["n", "digits"]);
    for first in (0..SMALL / per).map(|message| message * per) {
        let mut chunk = Chunk::new();
        for n in first..first + per {
            chunk.push(n, Key::default(), &schema, [n.into(), n.to_string().into()]);
        }
        sender.send(&mut Message::new([], chunk)).unwrap();
    }
}

/// One word of each cache line.
fn sum(bytes: &[u8]) -> u64 {
    let lines = bytes.as_chunks::<64>().0.iter();
    lines
        .map(|line| line.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)))
        .fold(0, u64::wrapping_add)
}

fn tensor_of(mut message: Message) -> Buffer {
    message.chunk.pop().unwrap().get("x").unwrap().as_tensor().unwrap().data().clone()
}

fn speed_of_tensors() {
    let arena = Arena::create(1 << 30).unwrap();
    for held in [2, 4, 8, 16] {
        let bounds = Bounds { items: held, bytes: 1 << 30 };
        let (mut connection, mut child) = start(&arena, "tensors", bounds);
        let (mut count, mut total, mut since) = (0_u64, 0_u64, Instant::now());
        while let Some(message) = connection.receiver.recv().unwrap() {
            total = total.wrapping_add(sum(&tensor_of(message)));
            count += 1;
            if count == 100 {
                since = Instant::now();
            }
        }
        let seconds = since.elapsed().as_secs_f64() / (count - 100) as f64;
        println!(
            "600 KB tensors, {held} held: {:.1} GB/s, {:.1} us each (sum {total:x})",
            TENSOR as f64 / seconds / 1e9,
            seconds * 1e6
        );
        child.wait().unwrap();
    }
}

fn speed_of_small_messages() {
    let arena = Arena::create(1 << 30).unwrap();
    for per in [1, 8, 64, 512] {
        let bounds = Bounds { items: 4096, bytes: 1 << 30 };
        let (mut connection, mut child) = start(&arena, &format!("small {per}"), bounds);
        let (mut count, mut since) = (0, Instant::now());
        while let Some(message) = connection.receiver.recv().unwrap() {
            if count == 0 {
                since = Instant::now();
            }
            count += message.chunk.len();
        }
        let micros = since.elapsed().as_secs_f64() * 1e6 / count as f64;
        println!("small samples, {per} to a message: {micros:.2} us each");
        child.wait().unwrap();
    }
}
