//! One number for what a graph is, the same whatever form it came from.

use std::fmt;

use serde_json::Value;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::{Graph, Input, Node, ON};

/// The identity of a graph: names, pipes, given options and inputs, in the order of its nodes.
///
/// Prints as 32 hex digits. Settings under `run` are no part of it, nor is an option that was not given, nor `on`, which changes no
/// sample. It is the
/// 128-bit XXH3 of the text `[["name","pipe",["input",..],{"option":value,..}],..]` with keys sorted and no space.
/// Take it of a graph from [`Graph::check`], which gives options by position their names and numbers their type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// The number.
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

impl Graph {
    /// The graph's [`Fingerprint`].
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprints().0
    }

    /// The graph's [`Fingerprint`], and that of each node.
    pub(crate) fn fingerprints(&self) -> (Fingerprint, Vec<Fingerprint>) {
        let (mut whole, mut nodes) = (Xxh3::new(), Vec::new());
        whole.update(b"[");
        for (at, node) in self.nodes.iter().enumerate() {
            let text = node.canonical();
            whole.update(if at > 0 { b"," } else { b"" });
            whole.update(&text);
            nodes.push(Fingerprint(xxh3_128(&text)));
        }
        whole.update(b"]");
        (Fingerprint(whole.digest128()), nodes)
    }
}

impl Node {
    /// The [`Fingerprint`] of this node alone: of its part of the graph's text.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(xxh3_128(&self.canonical()))
    }

    fn canonical(&self) -> Vec<u8> {
        let mut text = Vec::from(b"[");
        push(&mut text, &Value::from(self.name.as_str()));
        text.push(b',');
        push(&mut text, &Value::from(self.pipe.as_str()));
        text.push(b',');
        push(&mut text, &self.inputs.iter().map(Input::to_string).collect());
        text.push(b',');
        push_entries(&mut text, self.options.iter().filter(|(name, _)| *name != ON));
        text.push(b']');
        text
    }
}

fn push(text: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Array(items) => {
            text.push(b'[');
            for (at, item) in items.iter().enumerate() {
                text.extend_from_slice(if at > 0 { b"," } else { b"" });
                push(text, item);
            }
            text.push(b']');
        }
        Value::Object(entries) => {
            // The map keeps the written order when some crate of the build asks serde_json for that.
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            push_entries(text, entries.into_iter());
        }
        // Equal to 0.0, so it must not print as -0.0.
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => {
            text.extend_from_slice(b"0.0");
        }
        // Writing to memory cannot fail.
        plain => drop(serde_json::to_writer(text, plain)),
    }
}

fn push_entries<'a>(text: &mut Vec<u8>, entries: impl Iterator<Item = (&'a String, &'a Value)>) {
    text.push(b'{');
    for (at, (key, value)) in entries.enumerate() {
        text.extend_from_slice(if at > 0 { b"," } else { b"" });
        push(text, &Value::from(key.as_str()));
        text.push(b':');
        push(text, value);
    }
    text.push(b'}');
}
