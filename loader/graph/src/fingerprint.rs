//! One hash that identifies a graph, whatever form it came from.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::{Graph, Input, Node, ON, canonical::Text};

/// The identity of a graph: names, pipes, given options and inputs, in the order of its nodes.
///
/// It prints as 32 hex digits. Settings under `run` are no part of it, nor are options that were not given, nor
/// `on`, which changes no sample. It is the 128-bit XXH3 of the text
/// `[["name","pipe",["input",..],{"option":value,..}],..]` with keys sorted and no spaces. Compute it for a graph
/// from [`Graph::check`], which gives positional options their names and numbers their type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// The hash as a number.
    #[must_use]
    pub fn value(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What identifies the node of this name in its graph. Its random numbers and the uids that it makes depend on it.
#[must_use]
pub fn node_hash(name: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(name.as_bytes())
}

impl Graph {
    /// The graph's [`Fingerprint`].
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprints().0
    }

    /// The graph's [`Fingerprint`], and that of each node.
    pub fn fingerprints(&self) -> (Fingerprint, Vec<Fingerprint>) {
        let (mut whole, mut nodes) = (Xxh3::new(), Vec::new());
        whole.update(b"[");
        for (at, node) in self.nodes.iter().enumerate() {
            whole.update(if at > 0 { b"," } else { b"" });
            nodes.push(node.digest(|part| whole.update(part)));
        }
        whole.update(b"]");
        (Fingerprint(whole.digest128()), nodes)
    }
}

impl Node {
    /// The [`Fingerprint`] of this node alone, from its part of the graph's text.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.digest(|_| ())
    }

    /// Eight hex digits for each option that counts, which tell which ones differ.
    pub fn option_hashes(&self) -> BTreeMap<String, String> {
        let options = self.options.iter().filter(|(name, _)| *name != ON);
        let hash = |value: &Value| {
            let mut hash = Xxh3::new();
            let mut text = Text::new(|part: &str| hash.update(part.as_bytes()));
            text.value(value);
            text.flush();
            drop(text);
            format!("{:08x}", hash.digest() >> 32)
        };
        options.map(|(name, value)| (name.clone(), hash(value))).collect()
    }

    /// As [`fingerprint`](Node::fingerprint); `each` sees the text, part by part.
    fn digest(&self, mut each: impl FnMut(&[u8])) -> Fingerprint {
        let mut hash = Xxh3::new();
        let mut text = Text::new(|part: &str| {
            hash.update(part.as_bytes());
            each(part.as_bytes());
        });
        text.push("[");
        text.string(&self.name);
        text.push(",");
        text.string(&self.pipe);
        text.push(",[");
        for (at, input) in self.inputs.iter().enumerate() {
            text.push(if at > 0 { "," } else { "" });
            text.string(&Input::to_string(input));
        }
        text.push("],");
        let options = self.options.iter().map(|(name, value)| (name.as_str(), value));
        text.entries(options.filter(|(name, _)| *name != ON));
        text.push("]");
        text.flush();
        Fingerprint(hash.digest128())
    }
}
