//! Tests of all queues: one suite for the four, and what only one of them promises.

mod asleep;
mod codec;
mod conformance;
mod models;
mod sharing;
mod worker;

use forebay_core::{Buffer, Chunk, DType, Key, Sample, Schema, Str, Tensor, Value};

use super::*;

/// No bound that a test meets.
const WIDE: Bounds = Bounds { items: 1 << 40, bytes: 1 << 50 };

/// A chunk of samples numbered `from` and on, each with its number in a field.
fn numbered(from: u64, count: u64) -> Chunk {
    let schema = Schema::new(["n", "text"]);
    let mut chunk = Chunk::new();
    for n in from..from + count {
        let key = Key { origin: Str::from_static("numbers"), name: Str::EMPTY, index: n };
        chunk.push(n, key, &schema, [Value::from(n), Value::from(n.to_string())]);
    }
    chunk
}

/// A sample with one tensor of `len` bytes that follow from `seed`.
fn large(seed: u64, len: usize) -> Chunk {
    let mut sample = Sample::new(seed, Key::whole(format!("large-{seed}")));
    sample.set("x", Tensor::try_new(DType::U8, &[len], pattern(seed, len).into()).unwrap());
    one(sample)
}

fn one(mut sample: Sample) -> Chunk {
    let mut chunk = Chunk::new();
    chunk.push_sample(&mut sample);
    chunk
}

fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len).map(|at| (seed as usize * 31 + at * 7 + (at >> 8)) as u8).collect()
}

/// All samples, taken out.
fn samples(mut chunk: Chunk) -> Vec<Sample> {
    std::iter::from_fn(|| chunk.pop()).collect()
}

fn message(chunk: Chunk) -> Message {
    Message::new(*b"head", chunk)
}

/// The bytes of the one tensor of the one sample.
fn tensor_of(mut message: Message) -> Buffer {
    message.chunk.pop().unwrap().get("x").unwrap().as_tensor().unwrap().data().clone()
}
