//! The form of an audit file: a JSON value a line, appended.
//!
//! Uids are in hex digits, one space between; a stacked sample has `=` and those of its samples after its own. A key stands
//! behind the number of characters that it shares with the one before.

use std::fmt::Write as _;

use forebay_core::{Error, Result};
use forebay_graph::{Class, Uids};
use serde::{Deserialize, Serialize};

/// The version of this form.
pub(super) const VERSION: u32 = 1;

/// One line. Numbers of nodes are places in the graph's list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditLine {
    /// A run of an epoch, or of the rest of one, begins; the lines after it are of that run.
    Run(Box<Begin>),
    /// Node, output, pass, place of the first, uids, and keys where the node makes the uids.
    Gave(usize, usize, u64, u64, String, Vec<String>),
    /// Node, input, pass of the node, how often it had started that input over, place of the first, uids.
    Took(usize, usize, u64, u64, u64, String),
    /// Node, pass, a number of this loss, and the uid if it is known: a failure that `on_error` forgave.
    Lost(usize, u64, u64, Option<String>),
    /// A node has given all of a pass.
    Over(usize, u64),
    /// The place of the first, and uids: what the consumer was given.
    Delivered(u64, String),
    /// The consumer was given all of the epoch: so many.
    Ended(u64),
    /// A snapshot with this number was taken. If some node is unordered, a run that resumes after it repeats
    /// what is before this line, and not what comes after it.
    Snapshot(u64),
}

/// How a run of an epoch begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub(crate) version: u32,
    /// The graph's fingerprint.
    pub(crate) graph: String,
    pub(crate) seed: u64,
    pub(crate) rank: u32,
    pub(crate) world_size: u32,
    pub(crate) epoch: u64,
    /// How many were delivered before.
    pub(crate) delivered: u64,
    /// The world size of the snapshot that it goes on from; none at the start of an epoch.
    pub(crate) resumed_of: Option<u32>,
    /// For each node: its pass, and how many it had given to each output.
    pub(crate) from: Vec<(u64, Vec<u64>)>,
    /// The snapshot that it goes on from, if that is in an audit.
    pub(crate) after: Option<u64>,
    /// Nanoseconds since 1970: of two runs that differ the later one counts.
    pub(crate) begun: u64,
    /// The output that leads to the consumer: node and port.
    pub(crate) output: (usize, usize),
    pub(crate) nodes: Vec<AuditedNode>,
}

/// A node, as far as an audit must know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuditedNode {
    pub(crate) name: String,
    pub(crate) role: UidRole,
    /// The node and output that each input reads.
    pub(crate) inputs: Vec<(usize, usize)>,
    pub(crate) outputs: usize,
    pub(crate) rewinds: bool,
    /// Says which samples are in each that it gives.
    pub(crate) stacks: bool,
    /// A sample may be in several of those, in pieces.
    #[serde(default)]
    pub(crate) pieces: bool,
    /// Leaves samples out on purpose.
    pub(crate) drops: bool,
    /// Gives each rank its share.
    pub(crate) deals: bool,
    /// Sees one rank's samples.
    pub(crate) dealt: bool,
    /// Gives in an order of its own in each run.
    pub(crate) unordered: bool,
}

/// What a node does to uids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UidRole {
    /// Gives one for each, in order, whatever runs it: leaves no word but of losses. Of unordered maps that run together the
    /// last one leaves word like any that keeps uids.
    Map,
    /// Gives the uids it takes.
    Keeps,
    /// Gives uids that follow from those it takes.
    Derives,
    /// Gives new ones, and takes all of its input if it gives all.
    Expands,
    /// Gives new ones.
    Makes,
}

impl UidRole {
    /// Whether what a node takes must be known beside what it gives.
    pub(crate) fn takes(self) -> bool {
        matches!(self, Self::Derives | Self::Expands | Self::Makes)
    }

    pub(super) fn new(class: Class, uids: Uids, rewinds: bool) -> Self {
        match (class, uids) {
            (Class::Map, _) => Self::Map,
            (Class::Source, _) | (_, Uids::Made) => Self::Makes,
            (Class::FlatMap, _) => Self::Expands,
            (_, Uids::Derived) => Self::Derives,
            // What is taken in several passes can only be told apart so.
            _ if rewinds => Self::Derives,
            _ => Self::Keeps,
        }
    }
}

/// A sample that some node gave: its uid, and those of its samples if it is stacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenSample {
    pub(super) uid: u64,
    pub(super) members: Vec<u64>,
}

/// Uids as text.
pub(super) fn write_uids(uids: impl IntoIterator<Item = u64>) -> String {
    write_items(uids.into_iter().map(|uid| GivenSample { uid, members: Vec::new() }))
}

/// Samples as text.
pub(super) fn write_items(items: impl IntoIterator<Item = GivenSample>) -> String {
    let mut text = String::new();
    for GivenSample { uid, members } in items {
        if !text.is_empty() {
            text.push(' ');
        }
        let _ = write!(text, "{uid:x}"); // Writing to a String cannot fail.
        for (at, member) in members.iter().enumerate() {
            let _ = write!(text, "{}{member:x}", if at == 0 { '=' } else { ',' });
        }
    }
    text
}

/// Reads what [`write_items`] wrote.
pub(super) fn read_items(text: &str) -> Result<Vec<GivenSample>> {
    let item = |word: &str| {
        let (uid, members) = word.split_once('=').unwrap_or((word, ""));
        let members = members.split(',').filter(|member| !member.is_empty()).map(number);
        Ok(GivenSample { uid: number(uid)?, members: members.collect::<Result<_>>()? })
    };
    text.split(' ').filter(|word| !word.is_empty()).map(item).collect()
}

fn number(text: &str) -> Result<u64> {
    let found = u64::from_str_radix(text, 16);
    found.map_err(|_| Error::corrupt(format!("found `{text}`, expected a uid in hex digits")))
}

/// Keys as text, each behind what it shares with the one before.
pub(super) fn write_keys<'a>(keys: impl Iterator<Item = &'a forebay_core::Key>) -> Vec<String> {
    let mut before = String::new();
    let mut texts = Vec::new();
    for key in keys {
        let key = key.to_string();
        let same = key.chars().zip(before.chars()).take_while(|(one, other)| one == other);
        let (count, bytes) =
            same.fold((0, 0), |(count, bytes), (one, _)| (count + 1, bytes + one.len_utf8()));
        texts.push(format!("{count} {}", key.get(bytes..).unwrap_or_default()));
        before = key;
    }
    texts
}

/// Reads what [`write_keys`] wrote.
pub(super) fn read_keys(texts: &[String]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for text in texts {
        let (count, rest) = text.split_once(' ').unwrap_or(("0", text));
        let before = keys.last().map(String::as_str).unwrap_or_default();
        let shared = before.chars().take(count.parse().unwrap_or(0));
        keys.push(shared.chain(rest.chars()).collect());
    }
    keys
}

#[cfg(test)]
mod tests {
    use forebay_core::Key;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let item = |uid, members: &[u64]| GivenSample { uid, members: members.to_vec() };
        let items = vec![item(0, &[]), item(u64::MAX, &[1, 2, 3]), item(9, &[9])];
        assert_eq!(write_items(items.clone()), "0 ffffffffffffffff=1,2,3 9=9");
        assert_eq!(read_items(&write_items(items.clone())).unwrap(), items);
        assert!(read_items("x").is_err() && read_items("").unwrap().is_empty());
        let key = |origin: &str, index| Key { origin: origin.into(), index, ..Key::default() };
        let keys = [key("a/ä1", 10), key("a/ä1", 11), key("a/ü", 0), Key::whole("b c")];
        let texts = write_keys(keys.iter());
        assert_eq!(texts, ["0 a/ä1#10", "6 1", "2 ü#0", "0 b c"]);
        assert_eq!(read_keys(&texts), keys.map(|key| key.to_string()));
    }
}
