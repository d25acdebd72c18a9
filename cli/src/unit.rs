//! What a run delivers: samples, or batches, files and the like, each made of several.

use forebay_loader::{
    Registry, Sample, Stats, Value, View,
    graph::{Catalog as _, Class, Graph, Node, Noun, Uids},
};

use crate::print::counted;

/// What one thing that is delivered is.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// What one is called, and several; none for samples.
    names: Option<(String, String)>,
    /// The node whose input are the samples in them, where they do not show how many they have.
    taker: Option<String>,
}

impl Unit {
    /// What the last pipe of a graph gives, maps aside.
    pub(crate) fn of(graph: &Graph, registry: &Registry) -> Self {
        let read =
            |name: &str| graph.nodes().iter().flat_map(|node| &node.inputs).any(|input| input.node == name);
        let mut at: Option<&Node> = graph.nodes().iter().find(|node| !read(&node.name));
        while let Some(node) = at {
            let Some(spec) = registry.pipe(&node.pipe) else { break };
            // A plugin that was built before it could say so: whatever stacks gives batches.
            let stacks = spec.stacks() || spec.audit.uids_option.is_some();
            if let Some(Noun { one, many }) = spec.layout.gives.or(stacks.then_some(Noun::BATCH)) {
                // Such a pipe may split a sample over several.
                let splits = spec.audit.uids_option.is_some() && spec.audit.uids == Uids::Made;
                let taker = splits.then(|| node.name.clone());
                return Self { names: Some((one.to_owned(), many.to_owned())), taker };
            }
            if spec.class != Class::Map {
                break;
            }
            at = node.inputs.first().and_then(|input| graph.node(&input.node));
        }
        Self::default()
    }

    /// Whether samples are delivered one by one.
    pub(crate) fn is_sample(&self) -> bool {
        self.names.is_none()
    }

    /// What one is called.
    pub(crate) fn name(&self) -> &str {
        self.names.as_ref().map_or("sample", |(one, _)| one)
    }

    /// So many of them, in words.
    pub(crate) fn counted(&self, count: u64) -> String {
        match &self.names {
            Some((one, many)) => counted(count, one, many),
            None => counted(count, "sample", "samples"),
        }
    }

    /// How many samples one holds, as far as it shows.
    pub(crate) fn samples_in(&self, delivered: &Sample) -> u64 {
        if self.is_sample() || self.taker.is_some() { 1 } else { rows(delivered) }
    }

    /// How many samples all that was delivered holds: those that `seen` were counted in each.
    pub(crate) fn samples(&self, seen: u64, stats: &Stats) -> u64 {
        let taker = |name: &String| stats.nodes.iter().find(|node| node.node == *name);
        self.taker.as_ref().and_then(taker).map_or(seen, |node| node.taken.saturating_sub(node.lost))
    }
}

/// The samples in a batch or file: as a field `samples` says, or the length of the first field that has one.
fn rows(batch: &Sample) -> u64 {
    if let Some(samples) = batch.get("samples").and_then(Value::as_i64) {
        return samples.max(0) as u64;
    }
    let length = |value: &Value| match value.view() {
        View::Tensor(tensor) => tensor.shape().first().and_then(|&rows| u64::try_from(rows).ok()),
        View::List(values) => Some(values.len() as u64),
        _ => None,
    };
    let mut rows = batch.fields().filter_map(|(_, value)| match value.view() {
        // Rows of other lengths lie end to end: one offset more than there are rows.
        View::Struct(fields) => {
            fields.get("offsets").and_then(length).map(|offsets| offsets.saturating_sub(1))
        }
        _ => length(value),
    });
    rows.next().unwrap_or(1)
}
