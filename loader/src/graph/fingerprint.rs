//! One number for what a graph is, the same whatever form it came from.

use std::fmt;

use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

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
            whole.update(if at > 0 { b"," } else { b"" });
            nodes.push(node.digest(|part| whole.update(part)));
        }
        whole.update(b"]");
        (Fingerprint(whole.digest128()), nodes)
    }
}

impl Node {
    /// The [`Fingerprint`] of this node alone: of its part of the graph's text.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.digest(|_| ())
    }

    /// As [`fingerprint`](Node::fingerprint); `each` sees the text, part by part.
    fn digest(&self, each: impl FnMut(&[u8])) -> Fingerprint {
        let mut text = Text { part: Vec::with_capacity(2 * PART), hash: Xxh3::new(), each };
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
        text.entries(self.options.iter().filter(|(name, _)| *name != ON));
        text.push("]");
        text.flush();
        Fingerprint(text.hash.digest128())
    }
}

/// How long a part of the text is: it stays in the processor's cache, where that of a list of a million paths would not.
const PART: usize = 1 << 14;

/// A node's text, of which only the last part is held.
struct Text<E> {
    part: Vec<u8>,
    hash: Xxh3,
    each: E,
}

impl<E: FnMut(&[u8])> Text<E> {
    fn push(&mut self, text: &str) {
        self.part.extend_from_slice(text.as_bytes());
    }

    fn flush(&mut self) {
        self.hash.update(&self.part);
        (self.each)(&self.part);
        self.part.clear();
    }

    fn value(&mut self, value: &Value) {
        if self.part.len() >= PART {
            self.flush();
        }
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.push("[");
                for (at, item) in items.iter().enumerate() {
                    self.push(if at > 0 { "," } else { "" });
                    self.value(item);
                }
                self.push("]");
            }
            Value::Object(entries) => {
                // The map keeps the written order when some crate of the build asks serde_json for that.
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                self.entries(entries.into_iter());
            }
            // Equal to 0.0, so it must not print as -0.0.
            Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => self.push("0.0"),
            // Writing to memory cannot fail.
            plain => drop(serde_json::to_writer(&mut self.part, plain)),
        }
    }

    fn string(&mut self, text: &str) {
        // Looking at all of it, without a way out, is what a compiler makes fast.
        let plain = |plain: bool, byte: &u8| plain & (*byte >= 0x20) & (*byte != b'"') & (*byte != b'\\');
        if text.as_bytes().iter().fold(true, plain) {
            self.part.push(b'"');
            self.push(text);
            self.part.push(b'"');
        } else {
            drop(serde_json::to_writer(&mut self.part, text)); // As above.
        }
    }

    fn entries<'a>(&mut self, entries: impl Iterator<Item = (&'a String, &'a Value)>) {
        self.push("{");
        for (at, (key, value)) in entries.enumerate() {
            self.push(if at > 0 { "," } else { "" });
            self.string(key);
            self.push(":");
            self.value(value);
        }
        self.push("}");
    }
}
