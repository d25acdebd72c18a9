//! A run whose worker processes are killed now and then, beside one that is left alone.

use std::time::Instant;

use forebay_loader::{Digest, Error, Executor, Registry, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::measure::{median, verdict};

const ROUNDS: usize = 3;
const BATCHES: u64 = 200;
const KILLS: u64 = 50;

pub(crate) fn run() -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let (mut quiet, mut killed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (seconds, truth, _) = round(&registry, 0)?;
        quiet.push(seconds);
        let (seconds, digest, kills) = round(&registry, KILLS)?;
        killed.push(seconds);
        if digest != truth || kills != KILLS {
            return Err(Error::invalid(format!("{kills} kills, digest {digest}, wanted {truth}")));
        }
    }
    let (quiet, killed) = (median(&mut quiet), median(&mut killed));
    let got = format!("{:.2} times ({killed:.2} s, {quiet:.2} s without), equal digests", killed / quiet);
    Ok(vec![verdict("20,000 samples, 50 kills, processes:2", "< 2 times", &got)])
}

/// Seconds, the digest, and how many workers were killed, spread over the run.
fn round(registry: &Registry, kills: u64) -> Result<(f64, String, u64)> {
    let mut loader =
        crate::loader("range 20000 | bench_wait 300 | batch 100", Executor::Processes(2), registry)?;
    let mut epoch = loader.epoch(0);
    let (mut digest, mut done, mut batches) = (Digest::default(), 0, 0);
    let begin = Instant::now();
    while let Some(batch) = epoch.next() {
        digest.update(&batch?);
        batches += 1;
        if done < kills && batches * (kills + 1) / BATCHES > done {
            let workers = epoch.worker_processes();
            let at = done as usize % workers.len().max(1);
            let pid = workers.get(at).and_then(|&pid| Pid::from_raw(pid.cast_signed()));
            // One that is being replaced just now is killed at the next batch.
            done += u64::from(pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()));
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    drop(epoch);
    loader.finish()?;
    Ok((seconds, digest.finish(), done))
}
