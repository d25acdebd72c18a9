//! What a loader and its workers say to each other: the heads of messages, as JSON. Samples travel beside them.

use std::{collections::BTreeMap, time::Duration};

use forebay_core::{Error, Limits, Result, State};
use forebay_graph::PipeSpec;
use forebay_queue::{ledger, process::Loan};
use forebay_registry::{Claim, Stamp, Trust};
use forebay_snapshot::{
    PipeState,
    checkpoint_log::{Checkpoint, Progress, StartPoint},
    seen::Seen,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    host::{LostSample, Note},
    problem::Problem,
    sandbox::Sandbox,
    stop::Stop,
};

/// What a worker is told first: all it needs to make the same pipes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The serial segment that is its own; none for a worker that has maps.
    pub(crate) dedicated: Option<DedicatedSetup>,
    /// What it is kept to.
    pub(crate) sandbox: Option<Sandbox>,
    /// Where it reserves memory, at the seat of its number.
    pub(crate) ledger: Option<ledger::LedgerPlace>,
    /// The checked graph, as JSON.
    pub(crate) graph: String,
    /// Where it runs, which says how it is cut into segments.
    pub(crate) executor: String,
    /// The files of the plugins.
    pub(crate) plugins: Vec<Stamp>,
    /// Those that are linked in, by name and version.
    pub(crate) linked: Vec<(String, String)>,
    /// Those that are loaded in a sandbox only, and this is none.
    pub(crate) withheld: Vec<String>,
    /// Which of them may be loaded.
    pub(crate) trust: Trust,
    /// Priorities of decoders that were set from outside.
    pub(crate) priorities: Vec<(String, Option<u32>)>,
    /// What plugins that were refused claim.
    pub(crate) claims: Vec<Claim>,
    /// The pipes that the loader's program has and no other.
    pub(crate) own: Vec<PipeSpec>,
    pub(crate) seed: u64,
    pub(crate) ranks: (u32, u32),
    pub(crate) limits: (u64, u64),
    /// What nodes read, by place, for those whose pipes ask.
    pub(crate) identities: BTreeMap<usize, String>,
}

/// What a worker is told of the serial segment that is its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DedicatedSetup {
    pub(crate) segment: usize,
    /// Pins the chunk size.
    pub(crate) chunk: Option<usize>,
    /// The most samples that wait on an edge.
    pub(crate) ahead: usize,
    /// How often nodes with state leave checkpoints.
    pub(crate) checkpoints: Duration,
    /// Of each node of the graph whether it sees one rank's samples; empty when there are no ranks.
    pub(crate) dealt: Vec<bool>,
    /// Whether its nodes leave word of what they take and give.
    pub(crate) audited: bool,
}

/// A chunk of a parallel segment, to be worked on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) segment: usize,
    /// Its place among all chunks.
    pub(crate) order: u64,
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

/// What a worker that has a serial segment is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// In this epoch, each of its nodes is to begin at its place.
    Start(u64, Vec<Spot>),
    /// This input has the samples beside, and then, if so said, its end.
    Give(usize, bool),
    /// To run until it has something, or cannot go on.
    Run,
    /// To come back at once.
    Break,
}

/// Where a node begins, or was.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spot {
    place: Progress,
    state: Option<PipeState>,
    /// The state's own.
    again: Vec<u64>,
    skip: Vec<u64>,
    /// How many samples of each input it is to take again.
    owed: Vec<u64>,
    lenient: bool,
    last: Option<u64>,
    was: Option<PipeState>,
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
    /// The samples beside are for this output.
    Gave(usize),
    /// A serial segment came back.
    Back(Box<Back>),
}

/// How a serial segment came back, after all that it gave.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Back {
    pub(crate) stop: Stop,
    /// What its nodes did since the last time.
    pub(crate) news: Vec<News>,
    /// Lines for the log.
    pub(crate) log: Vec<(u32, String)>,
    /// What its nodes noted of samples.
    pub(crate) notes: Vec<(u64, Note)>,
    /// The samples that were set aside.
    pub(crate) lost: Vec<Aside>,
    /// Lines for the audit.
    pub(crate) audit: String,
    /// Plugins, when there are new ones.
    pub(crate) loaded: Vec<String>,
}

/// What one node did.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct News {
    /// Samples, bytes, nanoseconds.
    pub(crate) work: (usize, usize, u64),
    /// Failures that were forgiven.
    pub(crate) lost: u64,
    pub(crate) checkpoints: Vec<Spot>,
    /// The files that it was given.
    pub(crate) files: Vec<Seen>,
    /// Of a source of files, the samples that it gave: the pass, the number of the first, and their uids.
    pub(crate) uids: (u64, u64, Vec<u64>),
}

/// A sample that was set aside.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Aside {
    node: String,
    key: Option<String>,
    uid: Option<u64>,
    error: Problem,
}

/// What became of a chunk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) bytes: usize,
    /// Map, place in the chunk, what a flat map had given, and why.
    pub(crate) lost: Vec<(usize, usize, usize, Problem)>,
    pub(crate) failed: Option<Problem>,
    /// For each map: samples, bytes, nanoseconds.
    pub(crate) work: Vec<(usize, usize, u64)>,
    /// How many bytes the first output had that might have been placed.
    pub(crate) asked: usize,
    /// Lines for the log.
    pub(crate) log: Vec<(u32, String)>,
    /// What its nodes noted of samples.
    pub(crate) notes: Vec<(u64, Note)>,
    /// Plugins, when there are new ones.
    pub(crate) loaded: Vec<String>,
}

impl From<Checkpoint> for Spot {
    fn from(Checkpoint { place, state }: Checkpoint) -> Self {
        let again = state.as_ref().map(|state| state.again.to_vec()).unwrap_or_default();
        let state = state.map(PipeState::from);
        Self {
            place,
            state,
            again,
            skip: Vec::new(),
            owed: Vec::new(),
            lenient: false,
            last: None,
            was: None,
        }
    }
}

impl From<StartPoint> for Spot {
    fn from(origin: StartPoint) -> Self {
        let StartPoint { checkpoint, skip, again: owed, lenient, last, was, .. } = origin;
        Self { skip, owed, lenient, last, was: was.map(PipeState::from), ..checkpoint.into() }
    }
}

impl From<Spot> for Checkpoint {
    fn from(Spot { place, state, again, .. }: Spot) -> Self {
        let state = state.map(|state| State {
            version: state.version,
            bytes: state.bytes.into(),
            again: again.into(),
        });
        Self { place, state }
    }
}

impl From<Spot> for StartPoint {
    fn from(mut spot: Spot) -> Self {
        let [skip, again] = [&mut spot.skip, &mut spot.owed].map(std::mem::take);
        let (lenient, last, was) = (spot.lenient, spot.last, spot.was.take().map(State::from));
        Self { checkpoint: spot.into(), skip, again, lenient, last, was, ..Self::default() }
    }
}

impl From<LostSample> for Aside {
    fn from(LostSample { node, key, uid, error }: LostSample) -> Self {
        Self { node, key, uid, error: error.into() }
    }
}

impl From<Aside> for LostSample {
    fn from(Aside { node, key, uid, error }: Aside) -> Self {
        Self { node, key, uid, error: error.into() }
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
