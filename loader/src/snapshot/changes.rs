//! Whether a snapshot fits a graph, and how they differ.

use std::{collections::BTreeMap, fmt::Write as _};

use forebay_core::{Error, Result, without_secrets};
use serde_json::Value;

use super::{Course, NodeMark, PluginMark, Snapshot};
use crate::{
    executor::Origin,
    graph::{Fingerprint, Graph, Node},
};

/// The most characters of a node that a snapshot quotes.
const SHOWN: usize = 120;

/// What a snapshot says of a graph whatever its place; made once, since a node may have a list of a million paths.
pub(crate) struct Words {
    /// The graph's fingerprint.
    pub(crate) graph: String,
    pub(super) nodes: Vec<NodeWords>,
}

/// What a snapshot says of a node whatever its place.
#[derive(Clone)]
pub(crate) struct NodeWords {
    pub(super) name: String,
    /// For people.
    pub(super) what: String,
    pub(super) fingerprint: String,
}

impl Words {
    pub(super) fn new(graph: &Graph) -> Self {
        let (whole, nodes) = graph.fingerprints();
        let words = |(node, fingerprint): (&Node, Fingerprint)| NodeWords {
            name: node.name.clone(),
            what: shown(node),
            fingerprint: fingerprint.to_string(),
        };
        Self { graph: whole.to_string(), nodes: graph.nodes().iter().zip(nodes).map(words).collect() }
    }
}

/// The node in one line, and of a long list no more than could be seen.
fn shown(node: &Node) -> String {
    let cut = |value: &Value| match value {
        Value::Array(items) => items.iter().take(SHOWN).cloned().collect(),
        other => other.clone(),
    };
    let line = Node {
        name: node.name.clone(),
        pipe: node.pipe.clone(),
        options: node.options.iter().map(|(option, value)| (option.clone(), cut(value))).collect(),
        inputs: node.inputs.clone(),
    }
    .to_string();
    // Before it is cut, since half of a URL does not show where its secrets end.
    let line = without_secrets(&line);
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

/// Where each node of `graph` begins, to go on after `snapshot`. `allowed` names the nodes and plugins that may differ.
pub(crate) fn origins(
    snapshot: &Snapshot,
    graph: &Graph,
    course: &Course,
    (plugins, allowed): (&BTreeMap<String, PluginMark>, &[String]),
) -> Result<Vec<Origin>> {
    let is_allowed = |name: &str| allowed.iter().any(|allowed| allowed == name);
    let mut differences = Vec::new();
    for (name, before) in &snapshot.plugins {
        let Some(now) = plugins.get(name) else {
            if !is_allowed(name) {
                differences.push(format!("plugin {name}: was {}, is gone", before.version));
            }
            continue;
        };
        if now != before && !is_allowed(name) {
            let (was, is) = (&before.version, &now.version);
            differences.push(match was == is {
                true => format!("plugin {name} {is}: its file was built anew"),
                false => format!("plugin {name}: was {was}, is {is}"),
            });
        }
    }
    let saved: BTreeMap<&str, &NodeMark> =
        snapshot.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let mut origins = Vec::new();
    for (node, stop) in course.words(graph).nodes.iter().zip(&course.stops) {
        let NodeWords { name, what, fingerprint } = node;
        match saved.get(name.as_str()) {
            None => differences.push(format!("node {name}: new, is `{what}`")),
            Some(before) => {
                if before.fingerprint != *fingerprint && !is_allowed(name) {
                    differences.push(format!("node {name}: was `{}`, is `{what}`", before.what));
                }
                if stop.map && !stop.replaces && before.skip.iter().any(|&count| count > 0) {
                    differences.push(format!(
                        "node {name}: was `{}`, which made samples again that this map would give twice",
                        before.what
                    ));
                }
                if stop.arrivals.is_some() != before.order.is_some() {
                    differences.push(format!(
                        "node {name}: was `{}`, is `{what}`: what goes on in order cannot become unordered, nor the reverse",
                        before.what
                    ));
                }
                origins.push(before.origin(stop.inputs.len(), stop.outputs, stop.map)?);
            }
        }
    }
    let gone = snapshot.nodes.iter().filter(|node| graph.node(&node.name).is_none());
    differences.extend(gone.map(|node| format!("node {}: was `{}`, is gone", node.name, node.what)));
    if differences.is_empty() {
        return Ok(origins);
    }
    let mut message = String::from("the snapshot is of another graph, or of other plugins:");
    for difference in differences {
        let _ = write!(message, "\n  {difference}"); // Writing to a String cannot fail.
    }
    message.push_str("\na node or a plugin that is still there may be allowed to differ, by name");
    Err(Error::invalid(message))
}

/// Whether `rank` of `world_size` can go on after a snapshot of another: behind what deals samples out, every node must have
/// given as many as any other rank's would have, and hold none.
pub(crate) fn check_ranks(
    snapshot: &Snapshot,
    graph: &Graph,
    course: &Course,
    (rank, world_size): (u32, u32),
) -> Result<()> {
    let (was, of) = (snapshot.rank, snapshot.world_size);
    if (was, of) == (rank, world_size) {
        return Ok(());
    }
    let refuse = |why: String| {
        Err(Error::invalid(format!(
            "the snapshot is of rank {was} of {of}, the loader is rank {rank} of {world_size}: {why}"
        )))
    };
    if !course.stops.iter().any(|stop| stop.dealt) {
        return refuse("nothing deals samples out".to_owned());
    }
    for (node, stop) in graph.nodes().iter().zip(&course.stops).filter(|(_, stop)| stop.dealt) {
        let Some(mark) = snapshot.nodes.iter().find(|mark| mark.name == node.name) else { continue };
        let holds = mark.again.iter().any(|&count| count > 0) && !stop.deals;
        let even = match stop.map {
            true => mark.taken == mark.given,
            false => (stop.deals || stop.stacks) && mark.lost == 0,
        };
        if stop.writes {
            let name = &node.name;
            return refuse(format!(
                "`{name}` has written other samples on each rank; go on with the ranks that began"
            ));
        }
        if !even {
            let name = &node.name;
            return refuse(format!(
                "after so many samples `{name}` has taken another number on each rank; deal them out after it"
            ));
        }
        if stop.arrivals.is_some() {
            return refuse(format!(
                "`{}` is unordered and gave its samples in another order on each rank",
                node.name
            ));
        }
        if stop.replaces && mark.taken != [0] {
            return refuse(format!(
                "what stands in for a sample that `{}` fails on is the one before on the same rank; \
                 put on_error=replace before they are dealt out",
                node.name
            ));
        }
        if holds || mark.skip.iter().any(|&count| count > 0) {
            return refuse(format!(
                "`{}` holds samples that were dealt to one rank; deal them out after it",
                node.name
            ));
        }
    }
    Ok(())
}

impl Snapshot {
    /// How two snapshots differ, line by line; nothing for two of one place.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |what: &str, one: String, two: String| {
            if one != two {
                lines.push(format!("{what}: {one} / {two}"));
            }
        };
        line("seed", self.seed.to_string(), other.seed.to_string());
        line("epoch", self.epoch.to_string(), other.epoch.to_string());
        line("delivered", self.delivered.to_string(), other.delivered.to_string());
        line("ended", self.ended.to_string(), other.ended.to_string());
        line("rank", self.rank.to_string(), other.rank.to_string());
        line("world size", self.world_size.to_string(), other.world_size.to_string());
        for (name, one) in &self.plugins {
            let two = other.plugins.get(name);
            line(
                &format!("plugin {name}"),
                format!("{one:?}"),
                two.map_or("none".into(), |two| format!("{two:?}")),
            );
        }
        let names = |snapshot: &Self| snapshot.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
        let mut all = names(self);
        all.extend(names(other).into_iter().filter(|name| !self.nodes.iter().any(|node| node.name == *name)));
        for name in all {
            let of = |snapshot: &Self| {
                let node = snapshot.nodes.iter().find(|node| node.name == name);
                node.map_or("none".to_owned(), NodeMark::summary)
            };
            line(&format!("node {name}"), of(self), of(other));
        }
        lines
    }
}

impl NodeMark {
    /// The node's place in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let list = |numbers: &[u64]| {
            let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
            numbers.join("+")
        };
        let mut text = format!("`{}`", self.what);
        let mut part = |name: &str, numbers: &[u64], always: bool| {
            if always && !numbers.is_empty() || numbers.iter().any(|&number| number > 0) {
                let _ = write!(text, ", {name} {}", list(numbers)); // Writing to a String cannot fail.
            }
        };
        part("pass", &[self.pass], false);
        part("rewound", &self.rewound, false);
        part("taken", &self.taken, true);
        part("given", &self.given, true);
        part("then skips", &self.skip, false);
        if let Some(state) = self.state.as_ref().filter(|state| !state.bytes.is_empty()) {
            let size = state.bytes.len();
            let _ = match std::str::from_utf8(&state.bytes) {
                Ok(short) if size <= 80 => write!(text, ", state {short}"),
                _ => write!(text, ", state of {size} bytes"),
            };
        }
        text
    }
}
