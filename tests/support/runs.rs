//! Running graphs, and comparing what came out.

use std::time::Duration;

use forebay_loader::{Digest, Error, Executor, Graph, Loader, Registry, Result, Sample};

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
}

impl Setting {
    /// On the consumer's thread, with chunks that adapt and seed 7.
    pub const INLINE: Self =
        Self { executor: Executor::Inline, chunk: None, budget: None, seed: 7, marks: false };

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

/// A loader for this graph.
///
/// # Errors
/// Those of the builder.
pub fn build(graph: &Graph, registry: &Registry, setting: Setting) -> Result<Loader> {
    let mut builder = Loader::builder(graph.clone()).executor(setting.executor).seed(setting.seed);
    if let Some(chunk) = setting.chunk {
        builder = builder.chunk(chunk);
    }
    if let Some(budget) = setting.budget {
        builder = builder.budget(budget);
    }
    if setting.marks {
        builder = builder.marks(Duration::ZERO);
    }
    builder.build(registry)
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
