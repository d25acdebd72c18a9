//! Snapshots: the place of a whole graph within an epoch, as data. A snapshot is taken while the graph runs, and
//! resumes on any executor.
//!
//! Taking a snapshot stops nothing. Nodes with state leave checkpoints as they run (`loader/snapshot/src/checkpoint_log.rs`).
//! From the number of samples that the consumer has, `walk` finds the checkpoint from which each node goes on. So
//! a snapshot is the same on every executor, and resumes on any other.

mod changes;
pub mod checkpoint_log;
mod diff;
mod epochs;
mod files;
pub mod handoff_log;
pub mod looks;
pub mod names;
pub mod order;
pub mod seen;
mod summary;
mod uids;
mod walk;

use std::collections::BTreeMap;

use forebay_core::{Error, Result, State};
use forebay_registry::FoundPlugin;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

pub use self::files::FileMark;
pub use self::{
    changes::{Now, origins},
    summary::{GraphSummary, NodeWords},
    walk::{NodeResume, ResumePlan},
};
use crate::{
    checkpoint_log::{Checkpoint, Progress, StartPoint},
    order::{MapOrder, count},
};

/// The version of the form below: since 2 with a checksum, with the files that a place lies in, and with what nodes read.
const VERSION: u32 = 2;
/// The oldest version that can be read.
const OLDEST: u32 = 1;
/// What the bytes of a snapshot begin with.
const MAGIC: &[u8; 8] = b"FBYSNAP1";

/// The place of a run: seed, epoch, and the place and state of each node. As JSON it has a few hundred bytes a
/// node, and the states of pipes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Snapshot {
    /// The version of this format.
    pub version: u32,
    /// The run's seed.
    pub seed: u64,
    /// The epoch in which it was taken.
    pub epoch: u64,
    /// How many samples of the epoch were delivered before it.
    pub delivered: u64,
    /// Whether the epoch had ended. If so, a resume starts the next epoch.
    pub ended: bool,
    /// Which of the ranks it was taken on.
    #[serde(default)]
    pub rank: u32,
    /// How many ranks shared the data.
    pub world_size: u32,
    /// Its place in an audit, for a graph with unordered maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<u64>,
    /// The graph's [fingerprint](forebay_graph::Fingerprint).
    pub graph: String,
    /// The plugins of the graph: their versions, and the versions of their states or the hashes of their files.
    pub plugins: BTreeMap<String, PluginMark>,
    /// The nodes, in the graph's order. If the epoch had ended, they are at their start.
    pub nodes: Vec<NodeMark>,
    /// How often nodes with `on_error=fail_at_end` had failed. The resumed run ends with an error for these
    /// failures too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// The 64-bit XXH3 in hex digits of this form's JSON without it; none before it is written, and in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<String>,
}

/// The build of a plugin that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PluginMark {
    /// Its version.
    pub version: String,
    /// The version of its states, if it declares one. Any build that declares the same version can resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<u32>,
    /// The 128-bit XXH3, in hex digits, of the parts of its file that are loaded. Empty if the plugin declares the
    /// version of its states, or is linked in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// The place from which one node goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeMark {
    /// Its name.
    pub name: String,
    /// The node in the one-line form; shortened if it is long.
    pub what: String,
    /// The outputs that it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// If `what` is shortened: a few hex digits of each option's hash.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The [fingerprint](forebay_graph::Fingerprint) of the node alone.
    pub fingerprint: String,
    /// The pass; 0 unless a later node started it over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pass: u64,
    /// How often it started each input over in this pass.
    #[serde(default, skip_serializing_if = "all_zero")]
    pub rewound: Vec<u64>,
    /// How many samples of each input it has taken.
    pub taken: Vec<u64>,
    /// How many of the next samples of each input it had taken before, and held. It gets them again.
    #[serde(default, skip_serializing_if = "all_zero")]
    pub again: Vec<u64>,
    /// How many samples it has given to each output.
    pub given: Vec<u64>,
    /// How many more it had given when the snapshot was taken. They are made again, and dropped.
    #[serde(default, skip_serializing_if = "all_zero")]
    pub skip: Vec<u64>,
    /// How many of its failures were forgiven.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// The state of the pipe; `None` for pipes without state, and at the start of a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PipeState>,
    /// For the first of several unordered maps: the order in which they go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<MapOrder>,
    /// The files that its place lies in, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileMark>,
    /// For a source of files that makes samples again: the uid of the last of them. A resume checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// For a source that gives a count to a sampler, and gives it again: the state that it saved after the count.
    /// A resume checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<PipeState>,
}

/// The state of a pipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
#[non_exhaustive]
pub struct PipeState {
    /// The version of its format, which the pipe sets.
    pub version: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// What can be done about a snapshot that cannot be read.
const REPLACE: &str = "resume from another snapshot, or start again without one";
/// What can be done about a snapshot of a later version.
const NEWER: &str = "resume with the version of forebay that wrote it, or a later one";

/// What every version of a snapshot has.
#[derive(Deserialize)]
struct Form {
    version: u32,
}

/// What a pipe saved, as it is written: only then, since a snapshot is taken while the consumer waits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    /// As text, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// In hex digits otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn all_zero(numbers: &[u64]) -> bool {
    numbers.iter().all(|&number| number == 0)
}

/// Numbers that are all zero are left out.
fn unless_zero(numbers: Vec<u64>) -> Vec<u64> {
    if all_zero(&numbers) { Vec::new() } else { numbers }
}

impl Snapshot {
    /// Reads the JSON that [`to_json`](Snapshot::to_json) wrote, of this version or the one before.
    ///
    /// # Errors
    /// `Corrupt` if it was changed or cut short; `Invalid` for a version that this program cannot read.
    pub fn from_json(text: &str) -> Result<Self> {
        let corrupt = |error: serde_json::Error| {
            Error::corrupt("the snapshot cannot be read: it is not the JSON of a snapshot, or is incomplete")
                .context("found", error)
                .context("next", REPLACE)
        };
        // Another version may have other parts.
        let Form { version } = serde_json::from_str(text).map_err(corrupt)?;
        if !(OLDEST..=VERSION).contains(&version) {
            let message =
                format!("found a snapshot of version {version}, this program reads {OLDEST} to {VERSION}");
            let next = if version > VERSION { NEWER } else { REPLACE };
            return Err(Error::invalid(message).context("next", next));
        }
        let mut snapshot: Self = serde_json::from_str(text).map_err(corrupt)?;
        let found = snapshot.checksum.take();
        if found.is_none() && version == OLDEST {
            return Ok(Self { version: VERSION, ..snapshot });
        }
        let expected = snapshot.sum();
        if found.as_ref() != Some(&expected) {
            let found = found.unwrap_or_else(|| "none".to_owned());
            return Err(Error::corrupt(
                "the snapshot was changed after it was written: its checksum differs",
            )
            .context("found", found)
            .context("expected", expected)
            .context("next", REPLACE));
        }
        Ok(snapshot)
    }

    /// The snapshot as JSON, with a checksum.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.json(Some(self.sum()))
    }

    /// The checksum: of what is in it, however it is laid out.
    fn sum(&self) -> String {
        format!("{:016x}", xxh3_64(self.json(None).as_bytes()))
    }

    fn json(&self, checksum: Option<String>) -> String {
        let whole = Self { checksum, ..self.clone() };
        // Invariant: strings, numbers and lists of them always have a JSON form.
        serde_json::to_string(&whole).unwrap_or_default()
    }

    /// Reads the bytes that [`to_bytes`](Snapshot::to_bytes) made. A snapshot that was cut short or changed is
    /// refused.
    ///
    /// # Errors
    /// `Corrupt` and `Invalid`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let corrupt = || Error::corrupt("these are not the bytes of a snapshot, or they are incomplete");
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(corrupt)?;
        let (sum, json) = rest.split_first_chunk::<8>().ok_or_else(corrupt)?;
        if u64::from_le_bytes(*sum) != xxh3_64(json) {
            return Err(corrupt());
        }
        Self::from_json(std::str::from_utf8(json).map_err(|_| corrupt())?)
    }

    /// The snapshot as bytes: 8 of name and version, 8 of checksum, and the JSON.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = self.to_json();
        [MAGIC, &xxh3_64(json.as_bytes()).to_le_bytes()[..], json.as_bytes()].concat()
    }
}

impl PluginMark {
    /// What a snapshot says of a plugin.
    ///
    /// # Errors
    /// `Io`, when its file has to be hashed and cannot be read.
    pub fn of(record: &FoundPlugin) -> Result<Self> {
        let manifest = record.manifest();
        let (version, state_version) = (manifest.version.clone(), manifest.state_version);
        let hash = if state_version.is_some() { String::new() } else { record.hash()? };
        Ok(Self { version, state_version, hash })
    }
}

impl NodeMark {
    fn new(node: &NodeWords, origin: StartPoint) -> Self {
        let StartPoint {
            checkpoint: Checkpoint { place, state },
            skip,
            again,
            order,
            files,
            last,
            was,
            lenient: _,
        } = origin;
        let NodeWords { name, what, reads, options, fingerprint } = node.clone();
        Self {
            name,
            what,
            reads,
            options,
            fingerprint,
            pass: place.pass,
            rewound: unless_zero(place.rewound),
            taken: place.taken,
            again: unless_zero(again),
            given: place.given,
            skip: unless_zero(skip),
            lost: place.lost,
            state: state.map(PipeState::from),
            order,
            files,
            last,
            was: was.map(PipeState::from),
        }
    }

    /// Where the node begins, which has so many inputs and outputs.
    fn origin(&self, inputs: usize, outputs: usize, map: bool) -> Result<StartPoint> {
        let order = self.order.as_ref();
        if order.is_some_and(|order| !order.is_sound()) {
            let name = &self.name;
            return Err(Error::invalid(format!(
                "the snapshot has an order of {name} that cannot be followed"
            )));
        }
        let ahead = order.map_or(0, |order| count(&order.ahead));
        let taken = self.taken.first().map(|taken| taken.saturating_add(ahead));
        if map && self.given.first().copied() > taken {
            let name = &self.name;
            return Err(Error::invalid(format!(
                "the snapshot says that the map {name} gave more than it took"
            )));
        }
        let sized = |numbers: &[u64], size: usize| {
            let mut numbers = numbers.to_vec();
            numbers.resize(size, 0);
            numbers
        };
        let place = Progress {
            pass: self.pass,
            rewound: sized(&self.rewound, inputs),
            taken: sized(&self.taken, inputs),
            given: sized(&self.given, outputs),
            lost: self.lost,
        };
        let state = self.state.clone().map(State::from);
        let (skip, again) = (sized(&self.skip, outputs), sized(&self.again, inputs));
        let (order, files) = (self.order.clone(), self.files.clone());
        Ok(StartPoint {
            checkpoint: Checkpoint { place, state },
            skip,
            again,
            order,
            files,
            last: self.last,
            was: self.was.clone().map(State::from),
            lenient: false,
        })
    }
}

impl From<State> for PipeState {
    fn from(state: State) -> Self {
        Self { version: state.version, bytes: state.bytes.into() }
    }
}

impl From<PipeState> for State {
    fn from(state: PipeState) -> Self {
        Self { version: state.version, bytes: state.bytes.into(), ..Self::default() }
    }
}

impl From<PipeState> for Written {
    fn from(state: PipeState) -> Self {
        let version = state.version;
        match String::from_utf8(state.bytes) {
            Ok(text) => Self { version, text: Some(text), hex: None },
            Err(error) => Self { version, text: None, hex: Some(to_hex(error.as_bytes())) },
        }
    }
}

impl TryFrom<Written> for PipeState {
    type Error = &'static str;

    fn try_from(state: Written) -> Result<Self, &'static str> {
        let bytes = match (state.text, state.hex) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(hex)) => from_hex(&hex).ok_or("a state is not in hex digits")?,
            (None, None) => Vec::new(),
        };
        Ok(Self { version: state.version, bytes })
    }
}

fn to_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    // Invariant: two hex digits make a byte.
    Some(digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

/// Puts a snapshot together.
pub fn assemble(
    seed: u64,
    (epoch, delivered, ended): (u64, u64, bool),
    (rank, world_size): (u32, u32),
    words: &GraphSummary,
    plugins: BTreeMap<String, PluginMark>,
    origins: Vec<StartPoint>,
) -> Snapshot {
    Snapshot {
        version: VERSION,
        seed,
        epoch,
        delivered,
        ended,
        rank,
        world_size,
        audit: None,
        graph: words.graph.clone(),
        plugins,
        nodes: words.nodes.iter().zip(origins).map(|(node, origin)| NodeMark::new(node, origin)).collect(),
        failed: 0,
        checksum: None,
    }
}
