//! The place of a whole graph within an epoch, as data: taken while it runs, resumed anywhere.
//!
//! Nothing stops for a snapshot and nothing travels through the graph for it. Nodes with state leave checkpoints as they run
//! (`executor/checkpoint_log.rs`); `walk` finds, from the number of samples the consumer has, the checkpoint each node goes on from. So a
//! snapshot says the same whatever executor ran, and resumes on any other.

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

/// Where a run is: seed, epoch, and the place and state of each node. JSON of a few hundred bytes a node, beside what
/// pipes with large buffers save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Snapshot {
    /// The version of this form.
    pub version: u32,
    /// The run's seed.
    pub seed: u64,
    /// The epoch it was taken in.
    pub epoch: u64,
    /// How many samples of the epoch were delivered before.
    pub delivered: u64,
    /// Whether the epoch had ended: then a resume begins the next one.
    pub ended: bool,
    /// Which of the ranks it was taken on.
    #[serde(default)]
    pub rank: u32,
    /// How many ranks shared the data.
    pub world_size: u32,
    /// Where it is in an audit, for a graph with unordered maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<u64>,
    /// The graph's [fingerprint](forebay_graph::Fingerprint).
    pub graph: String,
    /// The plugins that served the graph: version, and the version of their states or the hash of the file.
    pub plugins: BTreeMap<String, PluginMark>,
    /// Node by node, in the graph's order; at the start, when the epoch had ended.
    pub nodes: Vec<NodeMark>,
    /// How often nodes with `on_error=fail_at_end` had failed: the run that goes on ends with an error for that too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// The 64-bit XXH3 in hex digits of this form's JSON without it; none before it is written, and in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<String>,
}

/// Which build of a plugin ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PluginMark {
    /// Its version.
    pub version: String,
    /// The version of what it saves and gives, if it declares one: then any build that declares the same goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<u32>,
    /// The 128-bit XXH3 in hex digits of what its file brings into memory; empty for one that declares the version of its states, and for
    /// one that is linked in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// Where one node goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeMark {
    /// Its name.
    pub name: String,
    /// What it is, as in the one-line form; shortened if it is long.
    pub what: String,
    /// Which outputs it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// Where `what` is shortened: a few hex digits of each option's hash.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The [fingerprint](forebay_graph::Fingerprint) of the node alone.
    pub fingerprint: String,
    /// The pass it is in: 0, unless something starts it over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pass: u64,
    /// How often it started each input over in this pass.
    #[serde(default, skip_serializing_if = "all_zero")]
    pub rewound: Vec<u64>,
    /// How many samples of each input it has had.
    pub taken: Vec<u64>,
    /// How many of the next samples of each input it has had before, and holds: it has them again.
    #[serde(default, skip_serializing_if = "all_zero")]
    pub again: Vec<u64>,
    /// How many samples it has given to each output.
    pub given: Vec<u64>,
    /// How many more it had given when the snapshot was taken; they are made again, and dropped.
    #[serde(default, skip_serializing_if = "all_zero")]
    pub skip: Vec<u64>,
    /// How often it failed and was forgiven.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// What the pipe saved; none for pipes without state, and at the start of a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PipeState>,
    /// For the first of maps that are unordered: in which order they go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<MapOrder>,
    /// The files that its place lies in: 64 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileMark>,
    /// Of a source of files that makes samples again: the uid of the last of them, by which it is seen that they are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Of a source that gives the count of what is drawn from it, and gives it again: what it saved behind that, to see whether all is as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<PipeState>,
}

/// What a pipe saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
#[non_exhaustive]
pub struct PipeState {
    /// The version of its form; the pipe's own count.
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
    /// `Corrupt` for one that was changed or cut short; `Invalid` for one of a version that this program does not read.
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

    /// Reads the bytes that [`to_bytes`](Snapshot::to_bytes) made; a snapshot cut short or changed is refused.
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
