//! What a snapshot costs while the graph runs, how large it is, and how soon a run goes on from one.

use std::{path::Path, time::Instant};

use forebay_loader::{Error, Executor, Registry, Result, Snapshot};

use crate::measure::{median, percentile, verdict};

const ROUNDS: usize = 7;
const EXECUTOR: Executor = Executor::Threads(2);

pub(crate) fn run(folder: &Path) -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let shards = format!("files '{}/*.tar' | untar | select [jpg, cls]", folder.display());
    let photos = format!("{shards} | random_resized_crop 224 | decode | flip | normalize | batch 64");
    let numbers = "range 1000000 | shuffle 10000 | increment | batch 64".to_owned();
    let mut rows = Vec::new();
    let running = [
        ("numbers, shuffle of 10,000", numbers.clone()),
        ("shards, shuffle of 10,000", format!("{shards} | shuffle 10000")),
        ("photos", photos.clone()),
    ];
    for (name, line) in running {
        rows.push(verdict(&format!("snapshot: {name}"), "p99 < 1 ms", &costs(&registry, &line)?));
    }
    let resumed = [
        ("numbers, shuffle of 10,000", numbers),
        ("shards", shards.clone()),
        ("shards, shuffle of 1,000", format!("{shards} | shuffle 1000")),
        ("photos", photos),
    ];
    for (name, line) in resumed {
        rows.push(verdict(&format!("resume at 50 %: {name}"), "< 20 ms", &resumes(&line)?));
    }
    Ok(rows)
}

/// The time of snapshots, one after each of up to some thousand samples.
fn costs(registry: &Registry, line: &str) -> Result<String> {
    let (mut micros, mut bytes, mut first) = (Vec::new(), 0, None);
    let mut loader = crate::loader(line, EXECUTOR, registry)?;
    'all: for number in 0..3 {
        let mut epoch = loader.epoch(number);
        while let Some(sample) = epoch.next() {
            drop(sample?);
            let begin = Instant::now();
            let snapshot = epoch.snapshot()?;
            let spent = begin.elapsed().as_secs_f64() * 1e6;
            if first.is_none() {
                first = Some(spent); // It hashes the files of the plugins.
            } else {
                micros.push(spent);
            }
            if micros.len() % 50 == 1 {
                bytes = bytes.max(snapshot.to_bytes().len());
            }
            if micros.len() == 10_000 {
                break 'all;
            }
        }
    }
    loader.finish()?;
    let (middle, high) = (median(&mut micros), percentile(&mut micros, 0.99));
    Ok(format!(
        "p99 {high:.0} us, median {middle:.0} us, worst {:.0} us of {}; the first {:.0} us; {bytes} bytes",
        percentile(&mut micros, 1.0),
        micros.len(),
        first.unwrap_or(f64::NAN)
    ))
}

/// How long it takes to the first sample in the middle of an epoch, in a loader just built, and at its start; and how much of
/// the first is no work for the next sample, which an uninterrupted run has to do too.
fn resumes(line: &str) -> Result<String> {
    let mut loader = crate::loader(line, EXECUTOR, &crate::registry()?)?;
    let samples = loader.epoch(0).try_fold(0, |count, sample| sample.map(|_| count + 1))?;
    let mut epoch = loader.epoch(0);
    for sample in epoch.by_ref().take(samples / 2) {
        sample?;
    }
    let snapshot = epoch.snapshot()?;
    drop(epoch);
    loader.finish()?;
    let (mut there, mut begins, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        there.push(first(line, Some(&snapshot))?);
        begins.push(first(line, None)?);
        beyond.extend(there.last().zip(begins.last()).map(|(there, begin)| there - begin));
    }
    Ok(format!(
        "{:.1} ms (worst {:.1}); from the start {:.1} ms, which leaves {:.1} ms; of {samples} samples",
        median(&mut there),
        there.last().copied().unwrap_or(f64::NAN),
        median(&mut begins),
        median(&mut beyond),
    ))
}

/// Milliseconds to the first sample. With a registry of its own, as in a process just started: a resume hashes the plugins.
fn first(line: &str, snapshot: Option<&Snapshot>) -> Result<f64> {
    let mut loader = crate::loader(line, EXECUTOR, &crate::registry()?)?;
    let begin = Instant::now();
    let mut epoch = match snapshot {
        Some(snapshot) => loader.resume(snapshot)?,
        None => loader.epoch(0),
    };
    epoch.next().ok_or_else(|| Error::invalid("no sample came"))??;
    let spent = begin.elapsed().as_secs_f64() * 1e3;
    drop(epoch);
    loader.finish()?;
    Ok(spent)
}
