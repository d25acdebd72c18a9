//! What a snapshot says of a graph, and how another differs from it.

use std::collections::{BTreeMap, BTreeSet};

use forebay_core::without_secrets;
use forebay_graph::{Fingerprint, Graph, Node};
use serde_json::Value;

use crate::NodeMark;

/// The most characters of a node that a snapshot quotes.
const SHOWN: usize = 120;

/// What a snapshot says of a graph whatever its place; made once, since a node may have a list of a million paths.
pub struct GraphSummary {
    /// The graph's fingerprint.
    pub graph: String,
    pub(super) nodes: Vec<NodeWords>,
}

/// What a snapshot says of a node whatever its place.
#[derive(Clone)]
pub struct NodeWords {
    pub(super) name: String,
    /// For people.
    pub(super) what: String,
    /// Which outputs it reads.
    pub(super) reads: Vec<String>,
    /// Where `what` is shortened: a few digits of the hash of each option.
    pub(super) options: BTreeMap<String, String>,
    pub(super) fingerprint: String,
}

impl GraphSummary {
    pub(super) fn new(graph: &Graph) -> Self {
        let (whole, nodes) = graph.fingerprints();
        let words = |(node, fingerprint): (&Node, Fingerprint)| {
            let (what, whole) = shown(node);
            NodeWords {
                name: node.name.clone(),
                what,
                reads: node.inputs.iter().map(ToString::to_string).collect(),
                options: if whole { BTreeMap::new() } else { node.option_hashes() },
                fingerprint: fingerprint.to_string(),
            }
        };
        Self { graph: whole.to_string(), nodes: graph.nodes().iter().zip(nodes).map(words).collect() }
    }
}

impl NodeWords {
    /// How this node differs from the one of a snapshot.
    pub(super) fn difference(&self, before: &NodeMark) -> String {
        let mut parts = Vec::new();
        if before.what != self.what {
            parts.push(format!("was `{}`, is `{}`", before.what, self.what));
        } else {
            parts.push(format!("is `{}` as before", self.what));
        }
        if !before.reads.is_empty() && before.reads != self.reads {
            parts.push(format!("read `{}`, reads `{}`", before.reads.join(", "), self.reads.join(", ")));
        }
        if !before.options.is_empty() && !self.options.is_empty() {
            let names: BTreeSet<_> = before.options.keys().chain(self.options.keys()).collect();
            let differ = names.into_iter().filter(|&name| before.options.get(name) != self.options.get(name));
            parts.extend(differ.map(|name| format!("option `{name}` has another value")));
        }
        if parts.len() == 1 && before.what == self.what {
            parts.push("and something differs that this older snapshot does not store".to_owned());
        }
        parts.join("; ")
    }
}

/// The node in one line, and of a long list no more than could be seen; and whether that is all of it.
fn shown(node: &Node) -> (String, bool) {
    let mut whole = true;
    let mut cut = |value: &Value| match value {
        Value::Array(items) => {
            whole &= items.len() <= SHOWN;
            items.iter().take(SHOWN).cloned().collect()
        }
        other => other.clone(),
    };
    let mut line = node.clone();
    line.options.values_mut().for_each(|value| *value = cut(value));
    let line = line.to_string();
    // Before it is cut, since half of a URL does not show where its secrets end.
    let line = without_secrets(&line);
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => (format!("{}…", &line[..end]), false),
        None => (line.into_owned(), whole),
    }
}
