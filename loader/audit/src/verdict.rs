//! The result of an audit.

use std::fmt;

use serde::Serialize;

/// The most samples that one problem names.
pub(super) const NAMED: usize = 10;

/// The result for one epoch, over all ranks and runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EpochAudit {
    /// The epoch.
    pub epoch: u64,
    /// Whether the epoch could be judged. It cannot if a run resumed a run whose file is missing:
    /// [`unfinished`](Self::unfinished) says what is needed.
    pub judged: bool,
    /// Whether every sample came exactly once: everything is known, and there is no problem.
    pub exactly_once: bool,
    /// Samples given by the last node that makes uids, over all ranks; each counts once.
    pub given: u64,
    /// Samples delivered; those in batches count one by one.
    pub delivered: u64,
    /// Deliveries: batches, if the graph makes batches.
    pub deliveries: u64,
    /// Samples that nodes left out on purpose.
    pub left_out: Vec<LeftOut>,
    /// Why not everything is known: a run did not end, or the file of a rank or an earlier run is missing.
    pub unfinished: Vec<String>,
    /// Samples that came twice, got lost, or came from nowhere.
    pub offences: Vec<Offence>,
}

/// Samples that a node left out on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The node.
    pub node: String,
    /// How many.
    pub samples: u64,
    /// Whether they failed, and `on_error` forgave it.
    pub failed: bool,
}

/// Samples that a node did not pass on one for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Offence {
    /// What happened to the samples.
    pub what: What,
    /// The node where it happened; empty for the end of the graph.
    pub node: String,
    /// The nodes that gave the samples last, in the order of the data.
    pub last_seen: String,
    /// How many samples.
    pub samples: u64,
    /// The first few samples.
    pub named: Vec<Named>,
}

/// What happened to samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum What {
    /// The node gave them more often than they came.
    Twice,
    /// They came, but the node did not give them.
    Missing,
    /// The node gave them, but they never came.
    Unknown,
    /// They came in another order than they were given.
    Order,
    /// The node ended before its input did.
    Early,
    /// They differ between ranks.
    Ranks,
}

/// One of the samples of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Named {
    /// Its uid, in hex digits.
    pub uid: String,
    /// The sample's key, for people.
    pub key: Option<String>,
    /// Where it was delivered: the rank, and the place in that rank's epoch.
    pub delivered: Vec<(u32, u64)>,
    /// Its places among the samples that the node gave.
    pub given: Vec<u64>,
}

impl fmt::Display for EpochAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (self.exactly_once, self.offences.is_empty()) {
            (true, _) => "exactly once",
            _ if !self.judged => "not judged; the files of the runs before are needed too",
            (false, true) => "not finished; none twice and none lost so far",
            (false, false) => "NOT exactly once",
        };
        write!(f, "epoch {}: {verdict}: {} delivered", self.epoch, samples(self.delivered))?;
        if self.deliveries != self.delivered {
            write!(f, " in {} deliveries", self.deliveries)?;
        }
        write!(f, ", {} given", self.given)?;
        for LeftOut { node, samples: count, failed } in &self.left_out {
            let how = if *failed { "failed at" } else { "left out by" };
            write!(f, "\n  {} {how} `{node}`", samples(*count))?;
        }
        for why in &self.unfinished {
            write!(f, "\n  {why}")?;
        }
        self.offences.iter().try_for_each(|offence| write!(f, "\n  {offence}"))
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, node, last_seen, samples: count, named } = self;
        let node = if node.is_empty() { "the consumer".to_owned() } else { format!("`{node}`") };
        let count = samples(*count);
        match what {
            What::Twice => write!(f, "{node} gave {count} more than once")?,
            What::Missing => {
                write!(f, "{count} not delivered: last seen leaving {last_seen}, lost by {node}")?
            }
            What::Unknown => write!(f, "{node} gave {count} that did not come from {last_seen}")?,
            What::Order => write!(f, "{count} came to {node} in another order than {last_seen} gave them")?,
            What::Early => write!(f, "{node} ended before {last_seen} did")?,
            What::Ranks => write!(f, "{node} gave {count} on some rank where others had another")?,
        }
        for one in named {
            write!(f, "\n    uid {}", one.uid)?;
            if let Some(key) = &one.key {
                write!(f, ", {key}")?;
            }
            let list = |text: Vec<String>| text.join(" and ");
            if !one.given.is_empty() {
                write!(f, ", given at {}", list(one.given.iter().map(u64::to_string).collect()))?;
            }
            let place = |&(rank, at): &(u32, u64)| {
                if rank > 0 { format!("{at} of rank {rank}") } else { at.to_string() }
            };
            if !one.delivered.is_empty() {
                write!(f, ", delivered at {}", list(one.delivered.iter().map(place).collect()))?;
            }
        }
        match count_more(self) {
            0 => Ok(()),
            more => write!(f, "\n    and {more} more"),
        }
    }
}

fn count_more(offence: &Offence) -> u64 {
    if offence.named.is_empty() { 0 } else { offence.samples.saturating_sub(offence.named.len() as u64) }
}

fn samples(count: u64) -> String {
    if count == 1 { "1 sample".to_owned() } else { format!("{count} samples") }
}
