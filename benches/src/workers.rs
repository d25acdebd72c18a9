//! What one worker process gives the consumer through the whole engine: large tensors, and small samples.

use std::{hint::black_box, time::Instant};

use forebay_loader::{Error, Executor, Registry, Result, Value};

use crate::measure::{cpu_of_all, median, verdict};

const ROUNDS: usize = 5;
const TENSOR: usize = 600_000;
const TENSORS: u64 = 20_000;
/// Samples before the clock starts: the worker has started, and memory was touched once.
const WARM: u64 = 500;
const SMALL: u64 = 500_000;
/// How far apart the words are that the consumer reads.
const PAGE: usize = 4096;
const LINE: usize = 64;

pub(crate) fn run() -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let line = format!("range {TENSORS} | bench_fill {TENSOR}");
    let mut rows = vec![floor()];
    for executor in [Executor::Threads(1), Executor::Processes(1)] {
        // The peers' figures are of one value a page; who trains reads all.
        for (touched, every, wanted) in [("each page", PAGE, ">= 10 GB/s"), ("each line", LINE, "no bar")] {
            let (mut rates, mut cpus) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let (seconds, cpu) = time(&registry, &line, executor, TENSORS, every)?;
                rates.push(TENSOR as f64 / seconds / 1e9);
                cpus.push(cpu * 1e6);
            }
            let got = format!("{:.1} GB/s, {:.0} us of CPU each", median(&mut rates), median(&mut cpus));
            rows.push(verdict(&format!("600 KB tensors, {executor}, {touched} read"), wanted, &got));
        }
    }
    let line = format!("range {SMALL} | increment");
    for executor in [Executor::Threads(1), Executor::Processes(1)] {
        let (mut walls, mut cpus) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (seconds, cpu) = time(&registry, &line, executor, SMALL, LINE)?;
            walls.push(seconds * 1e6);
            cpus.push(cpu * 1e6);
        }
        let got = format!("{:.2} us, {:.2} us of CPU", median(&mut walls), median(&mut cpus));
        rows.push(verdict(&format!("small samples, {executor}"), "<= 3 us", &got));
    }
    Ok(rows)
}

/// Wall and CPU seconds a sample, in this process and its workers, once it runs.
fn time(
    registry: &Registry,
    line: &str,
    executor: Executor,
    samples: u64,
    every: usize,
) -> Result<(f64, f64)> {
    let mut loader = crate::loader(line, executor, registry)?;
    let mut epoch = loader.epoch(0);
    let (mut count, mut total) = (0, 0_u64);
    let (mut since, mut before) = (Instant::now(), 0.0);
    while let Some(sample) = epoch.next() {
        if let Some(tensor) = sample?.get("tensor").and_then(Value::as_tensor) {
            total = total.wrapping_add(sum(tensor.data(), every));
        }
        count += 1;
        if count == WARM {
            (since, before) = (Instant::now(), cpu_of_all(&epoch));
        }
    }
    let (wall, cpu) = (since.elapsed().as_secs_f64(), cpu_of_all(&epoch) - before);
    black_box(total);
    if count != samples {
        return Err(Error::invalid(format!("{count} samples came, not {samples}")));
    }
    drop(epoch);
    loader.finish()?;
    let timed = (samples - WARM) as f64;
    Ok((wall / timed, cpu / timed))
}

/// A word of every so many bytes.
fn sum(bytes: &[u8], every: usize) -> u64 {
    let words = bytes.chunks(every).filter_map(|part| part.first_chunk());
    words.map(|word| u64::from_le_bytes(*word)).fold(0, u64::wrapping_add)
}

/// What filling tensors, and reading them, takes on one thread each, with memory that is there.
fn floor() -> String {
    let mut memory = vec![vec![1_u8; TENSOR]; 16];
    let (mut fill, mut read) = (0.0, 0.0);
    for round in 0..2000 {
        let tensor = &mut memory[round % 16];
        let begin = Instant::now();
        black_box(&mut *tensor).fill(round as u8);
        let filled = Instant::now();
        black_box(sum(black_box(tensor), LINE));
        fill += (filled - begin).as_secs_f64();
        read += filled.elapsed().as_secs_f64();
    }
    let rate = |seconds: f64| 2000.0 * TENSOR as f64 / seconds / 1e9;
    format!("floor: filling alone {:.1} GB/s, reading alone {:.1} GB/s", rate(fill), rate(read))
}
