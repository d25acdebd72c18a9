//! Samples of which every eighth takes twenty times as long: what handing them out as workers come free saves, beside dealing
//! them out in turn.

use std::{thread, time::Instant};

use forebay_loader::{Error, Executor, Registry, Result};

use crate::measure::{median, verdict};

const ROUNDS: usize = 3;
const SAMPLES: usize = 4000;
const WORKERS: usize = 4;
const GRAPH: &str = "range 4000 | bench_wait 200 skew=20";

pub(crate) fn run() -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let executors = [Executor::Threads(WORKERS), Executor::Processes(WORKERS)];
    let mut seconds = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        seconds[0].push(dealt(&registry)?);
        for (seconds, executor) in seconds[1..].iter_mut().zip(executors) {
            seconds.push(shared(&registry, executor)?);
        }
    }
    let [dealt, rest @ ..] = seconds.map(|mut seconds| median(&mut seconds));
    let row = |(executor, shared): (Executor, f64)| {
        let got = format!("{:.2} times as fast ({shared:.2} s, dealt out {dealt:.2} s)", dealt / shared);
        verdict(&format!("skewed samples, {executor}"), ">= 1.5 times", &got)
    };
    Ok(executors.into_iter().zip(rest).map(row).collect())
}

/// Seconds of the slowest of four threads that each have a fourth of the samples.
fn dealt(registry: &Registry) -> Result<f64> {
    let begin = Instant::now();
    let given = thread::scope(|scope| {
        let of = |rank: u32| {
            scope.spawn(move || {
                let builder = crate::of_graph(crate::graph(GRAPH)?, Executor::Inline)?;
                let mut loader = builder.ranks(rank, WORKERS as u32).build(registry)?;
                loader.epoch(0).try_fold(0, |count, sample| sample.map(|_| count + 1))
            })
        };
        let threads: Vec<_> = (0..WORKERS as u32).map(of).collect();
        let counts = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::invalid("a thread of the bench panicked")))
        });
        counts.sum::<Result<usize>>()
    })?;
    seconds(begin, given)
}

fn shared(registry: &Registry, executor: Executor) -> Result<f64> {
    let mut loader = crate::loader(GRAPH, executor, registry)?;
    let begin = Instant::now();
    let given = loader.epoch(0).try_fold(0, |count, sample| sample.map(|_| count + 1))?;
    seconds(begin, given)
}

fn seconds(begin: Instant, given: usize) -> Result<f64> {
    match given {
        SAMPLES => Ok(begin.elapsed().as_secs_f64()),
        other => Err(Error::invalid(format!("{other} samples came, not {SAMPLES}"))),
    }
}
