//! Figures of the queue between processes, beside their floors: `cargo test --release -- --ignored --nocapture queue`.
#![expect(clippy::print_stdout, reason = "figures are for whoever asks for them")]

use std::time::Instant;

use super::{super::process::*, worker::start, *};

const TENSOR: usize = 602_112;
const TENSORS: u64 = 20_000;
const SMALL: u64 = 2_000_000;

/// The worker's side.
pub(super) fn work(job: &str, sender: &mut ProcessSender, heap: &Heap) {
    match job {
        "bench tensors" => {
            let schema = Schema::new(["x"]);
            for n in 0..TENSORS {
                let mut memory =
                    heap.alloc(TENSOR).unwrap_or_else(|| forebay_core::BufferMut::zeroed(TENSOR));
                memory.fill(n as u8);
                let tensor = Tensor::try_new(DType::U8, &[TENSOR], memory.freeze()).unwrap();
                let mut chunk = Chunk::new();
                chunk.push(n, Key::default(), &schema, [tensor.into()]);
                sender.send(&mut Message::new([], chunk)).unwrap();
            }
        }
        _ => {
            let per: u64 = job.rsplit(' ').next().unwrap().parse().unwrap();
            for n in 0..SMALL / 10 / per {
                sender.send(&mut Message::new([], numbered(n * per, per))).unwrap();
            }
        }
    }
    sender.close().unwrap();
}

/// One word of each cache line.
fn sum(bytes: &[u8]) -> u64 {
    let lines = bytes.as_chunks::<64>().0.iter();
    lines
        .map(|line| line.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)))
        .fold(0, u64::wrapping_add)
}

#[test]
#[ignore = "takes seconds, and is for an idle machine"]
fn speed_of_tensors() {
    let arena = Arena::create(1 << 30).unwrap();
    for held in [2, 4, 8, 16] {
        let bounds = Bounds { items: held, bytes: 1 << 30 };
        let (mut connection, mut child) = start(&arena, "bench tensors", 64 << 20, bounds);
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

#[test]
#[ignore = "takes seconds, and is for an idle machine"]
fn speed_of_small_messages() {
    let arena = Arena::create(1 << 30).unwrap();
    for per in [1, 8, 64, 512] {
        let bounds = Bounds { items: 4096, bytes: 1 << 30 };
        let (mut connection, mut child) = start(&arena, &format!("bench small {per}"), 64 << 20, bounds);
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
