//! Running graphs, and comparing what came out.

use std::{env::consts::EXE_SUFFIX, path::PathBuf, thread, time::Duration};

use forebay_loader::{Digest, Error, Executor, Graph, Loader, LoaderBuilder, Registry, Result, Rng, Sample};
use rustix::process::{Pid, Signal, kill_process};

/// How a graph is run.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Where.
    pub executor: Executor,
    /// With chunks of this size, or of sizes that adapt.
    pub chunk: Option<usize>,
    /// With at most so many bytes between segments, or the usual number.
    pub budget: Option<u64>,
    /// The seed.
    pub seed: u64,
    /// Whether nodes leave a mark after every call, or as usual.
    pub marks: bool,
    /// How many epochs the loader is told will be read.
    pub epochs: u64,
}

impl Setting {
    /// On the consumer's thread, with chunks that adapt and seed 7.
    pub const INLINE: Self =
        Self { executor: Executor::Inline, chunk: None, budget: None, seed: 7, marks: false, epochs: 1 };

    /// On so many threads, with chunks that adapt and seed 7.
    #[must_use]
    pub const fn threads(count: usize) -> Self {
        Self { executor: Executor::Threads(count), ..Self::INLINE }
    }

    /// With another seed.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// Every executor.
pub const ALL: [Executor; 5] = [
    Executor::Inline,
    Executor::Threads(1),
    Executor::Threads(2),
    Executor::Threads(4),
    Executor::Threads(8),
];

/// What an epoch gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How many samples.
    pub samples: usize,
    /// Over all values in order.
    pub digest: String,
}

/// A graph in one line.
///
/// # Panics
/// When it cannot be read.
#[must_use]
#[track_caller]
pub fn line(text: &str) -> Graph {
    Graph::from_line(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The program of worker processes: cargo puts it into the folder above the tests'.
#[must_use]
pub fn worker() -> PathBuf {
    crate::plugins().parent().unwrap().join(format!("forebay-test-worker{EXE_SUFFIX}"))
}

/// How a loader for this graph is made.
#[must_use]
pub fn builder(graph: &Graph, setting: Setting) -> LoaderBuilder {
    let mut builder = Loader::builder(graph.clone())
        .executor(setting.executor)
        .seed(setting.seed)
        .epochs(setting.epochs)
        .worker(worker());
    if let Some(chunk) = setting.chunk {
        builder = builder.chunk(chunk);
    }
    if let Some(budget) = setting.budget {
        builder = builder.budget(budget);
    }
    if setting.marks { builder.checkpoint_every(Duration::ZERO) } else { builder }
}

/// A loader for this graph.
///
/// # Errors
/// Those of the builder.
pub fn build(graph: &Graph, registry: &Registry, setting: Setting) -> Result<Loader> {
    builder(graph, setting).build(registry)
}

/// Reads one epoch to its end.
///
/// # Errors
/// The run's own.
pub fn run(loader: &mut Loader, epoch: u64) -> Result<Run> {
    let mut digest = Digest::default();
    let mut samples = 0;
    for sample in loader.epoch(epoch) {
        digest.update(&sample?);
        samples += 1;
    }
    Ok(Run { samples, digest: digest.finish() })
}

/// A sample's uid and the digest of its values, as text.
#[must_use]
pub fn digest(sample: &Sample) -> String {
    let mut digest = Digest::default();
    digest.update(sample);
    format!("{} {}", sample.uid(), digest.finish())
}

/// The digest of each sample, and the error that ended them.
pub fn read(samples: impl Iterator<Item = Result<Sample>>) -> (Vec<String>, Option<Error>) {
    let (mut digests, mut failed) = (Vec::new(), None);
    for sample in samples {
        match sample {
            Ok(sample) => digests.push(digest(&sample)),
            Err(error) => failed = Some(error),
        }
    }
    (digests, failed)
}

/// What an epoch gave, and the error that ended it. `each` is called after each sample, with how many there were.
pub fn outcome(
    loader: &mut Loader,
    epoch: u64,
    mut each: impl FnMut(&Loader, usize),
) -> (Run, Option<Error>) {
    let (mut digest, mut samples, mut failed) = (Digest::default(), 0, None);
    let mut epoch = loader.epoch(epoch);
    while let Some(sample) = epoch.next() {
        match sample {
            Ok(sample) => {
                digest.update(&sample);
                samples += 1;
                each(&epoch, samples);
            }
            Err(error) => failed = Some(error),
        }
    }
    (Run { samples, digest: digest.finish() }, failed)
}

/// Waits until all worker processes of a loader are there: each is started by a thread of its own.
pub fn await_workers(loader: &Loader, count: usize) {
    while loader.worker_processes().len() < count {
        thread::yield_now();
    }
}

/// Ends any of the loader's worker processes, if there are some, with any of the signals that a crash or a user may send.
/// Says whether there was one.
pub fn kill_any(loader: &Loader, rng: &mut Rng) -> bool {
    let all = loader.worker_processes();
    let signal = [Signal::KILL, Signal::SEGV, Signal::ABORT, Signal::TERM][rng.below(4) as usize];
    let chosen = all.get(rng.below(all.len().max(1) as u64) as usize);
    let pid = chosen.and_then(|pid| Pid::from_raw(pid.cast_signed()));
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// The uids of one epoch, in order.
///
/// # Errors
/// The run's own.
pub fn uids(loader: &mut Loader, epoch: u64) -> Result<Vec<u64>> {
    loader.epoch(epoch).map(|sample| sample.map(|sample: Sample| sample.uid())).collect()
}

/// The error of a graph that must fail, in building, running, or at its end; and the samples before it.
///
/// # Panics
/// When nothing fails.
#[must_use]
#[track_caller]
pub fn error_of(graph: &Graph, registry: &Registry, setting: Setting) -> (Error, usize) {
    let mut loader = match build(graph, registry, setting) {
        Ok(loader) => loader,
        Err(error) => return (error, 0),
    };
    let mut samples = 0;
    for sample in loader.epoch(0) {
        match sample {
            Ok(_) => samples += 1,
            Err(error) => return (error, samples),
        }
    }
    match loader.finish() {
        Err(error) => (error, samples),
        Ok(()) => panic!("{graph} gave {samples} samples and no error"),
    }
}
