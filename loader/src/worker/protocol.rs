//! What a loader and its workers say to each other: the heads of messages, as JSON. Samples travel beside them.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use forebay_core::{Error, Limits, Result, abi::Fault};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::queue::process::Loan;

/// What a worker is told first: all it needs to make the same pipes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The checked graph, as JSON.
    pub(crate) graph: String,
    /// Where it runs, which says how it is cut into segments.
    pub(crate) executor: String,
    /// The files of the plugins.
    pub(crate) plugins: Vec<Stamp>,
    pub(crate) seed: u64,
    pub(crate) ranks: (u32, u32),
    pub(crate) limits: (u64, u64),
}

/// A plugin's file, and what tells it from any other: on one machine that is as sure as a hash, which would take longer
/// than all else that a worker does to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) file: PathBuf,
    /// Device, inode, size, and when it was last written and changed, in nanoseconds.
    identity: [u64; 5],
}

impl Stamp {
    pub(crate) fn of(file: &Path) -> Result<Self> {
        let data = file.metadata().map_err(|error| Error::from(error).context("file", file.display()))?;
        let nanos = |seconds: i64, nanos: i64| (seconds * 1_000_000_000 + nanos).unsigned_abs();
        let identity = [
            data.dev(),
            data.ino(),
            data.size(),
            nanos(data.mtime(), data.mtime_nsec()),
            nanos(data.ctime(), data.ctime_nsec()),
        ];
        Ok(Self { file: file.to_owned(), identity })
    }
}

/// A chunk of a parallel segment, to be worked on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) segment: usize,
    /// The number of the first sample within the pass.
    pub(crate) first: u64,
    pub(crate) epoch: u64,
    /// The pass of each map.
    pub(crate) passes: Vec<u64>,
    /// Where the output of each sample is to lie: place and length.
    pub(crate) loans: Vec<(u64, u64)>,
    /// Whether the worker says which map begins, since the sample may kill it.
    pub(crate) careful: bool,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It has made its pipes.
    Ready,
    /// It could not.
    Refused(Problem),
    /// This map of the segment begins; only while careful.
    Begins(usize),
    /// A chunk is done; its samples are beside.
    Done(Done),
    /// A chunk is done, and something in it cannot leave the process.
    Unsendable,
}

/// What became of a chunk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) bytes: usize,
    /// Map, place in the chunk, and why.
    pub(crate) lost: Vec<(usize, usize, Problem)>,
    pub(crate) failed: Option<Problem>,
    /// For each map: samples, bytes, nanoseconds.
    pub(crate) work: Vec<(usize, usize, u64)>,
    /// How many bytes the first output had that might have been placed.
    pub(crate) asked: usize,
    /// Lines for the log.
    pub(crate) log: Vec<(u32, String)>,
    /// Plugins, when there are new ones.
    pub(crate) loaded: Vec<String>,
}

/// An error on its way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Problem {
    kind: u32,
    message: String,
    context: Vec<(String, String)>,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let Fault { kind, message, context } = error.into();
        let context = context.into_iter().map(|place| (place.0.into(), place.1.into())).collect();
        Self { kind, message: message.into(), context }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let Problem { kind, message, context } = problem;
        let context = context.into_iter().map(|(name, value)| (name.into(), value.into()).into()).collect();
        Fault { kind, message: message.into(), context }.into()
    }
}

impl Setup {
    pub(crate) fn limits(&self) -> Limits {
        Limits { bytes: self.limits.0, pixels: self.limits.1 }
    }
}

impl Order {
    pub(crate) fn loans(&self) -> impl Iterator<Item = Loan> + '_ {
        self.loans.iter().map(|&(offset, len)| Loan { offset, len })
    }
}

/// A head as bytes.
pub(crate) fn pack(head: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(head).map_err(|error| Error::bug(error.to_string()))
}

/// The head in these bytes.
pub(crate) fn unpack<T: DeserializeOwned>(head: &[u8]) -> Result<T> {
    serde_json::from_slice(head)
        .map_err(|error| Error::corrupt(format!("a message between processes: {error}")))
}
