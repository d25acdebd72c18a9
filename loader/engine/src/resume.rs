//! A graph as a snapshot walks it.

use std::sync::{Arc, OnceLock};

use forebay_core::{Error, Result, sampling::COUNTS};
use forebay_graph::{Catalog, Class, Graph, Node, PipeSpec, above};
use forebay_registry::Registry;
use forebay_snapshot::{NodeResume, ResumePlan, checkpoint_log::CheckpointLog, handoff_log::HandoffLog};

use crate::plan::{Plan, replaces};

/// The nodes of a checked graph as a snapshot walks them.
/// `dealt` says of each node whether it sees one rank's samples; empty when there are no ranks.
pub(crate) fn resume_plan(
    graph: &Graph,
    registry: &Registry,
    plan: &Plan,
    dealt: &[bool],
) -> Result<ResumePlan> {
    let nodes = graph.nodes();
    let place = |name: &str| nodes.iter().position(|node| node.name == name);
    let kept = kept(graph, registry)?;
    let mut resumes = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let spec = spec(registry, node)?;
        let inputs = node.inputs.iter();
        resumes.push(NodeResume {
            inputs: inputs.filter_map(|input| Some((place(&input.node)?, input.port as usize))).collect(),
            outputs: spec.outputs_of(node) as usize,
            map: spec.is_even(),
            cuts: spec.class == Class::FlatMap,
            counts: node.inputs.is_empty() && node.pipe.ends_with(COUNTS),
            rewinds: spec.order.rewinds,
            dealt: dealt.get(at) == Some(&true),
            kept: kept[at],
            deals: spec.order.shards,
            stacks: spec.stacks(),
            writes: spec.audit.writes,
            replaces: replaces(node),
            checkpoint_log: Arc::new(CheckpointLog::default()),
            handoff_log: None,
        });
    }
    let unordered = plan.segments.iter().filter(|segment| segment.unordered);
    for &first in unordered.filter_map(|segment| segment.nodes.first()) {
        resumes[first].handoff_log = Some(Arc::new(HandoffLog::default()));
    }
    let edge = plan.output()?;
    let segment = &plan.segments[plan.edges[edge].from];
    let port = segment.outputs.iter().position(|&out| out == edge).unwrap_or(0);
    let node = segment.nodes.last().copied().ok_or_else(|| Error::bug("a segment has no nodes"))?;
    Ok(ResumePlan { nodes: resumes, order: graph.order()?, output: (node, port), words: OnceLock::new() })
}

/// For each node whether all that it gives is kept by one behind it.
///
/// # Errors
/// `Invalid` for one that gives another order each time.
fn kept(graph: &Graph, registry: &Registry) -> Result<Vec<bool>> {
    let nodes = graph.nodes();
    let read = graph.edges();
    let keeps = |at: &usize| registry.pipe(&nodes[*at].pipe).is_some_and(|spec| spec.order.keeps);
    let mut kept = vec![false; read.len()];
    for at in (0..read.len()).filter(keeps) {
        for before in above(&read, at).into_iter().filter(|&before| before != at) {
            if nodes[before].is_unordered() {
                return Err(Error::invalid(format!(
                    "`{}` is unordered, and `{}` keeps its samples: each run would keep another order; put it behind",
                    nodes[before].name, nodes[at].name
                )));
            }
            kept[before] = true;
        }
    }
    Ok(kept)
}

/// What a manifest says of a node's pipe.
pub(crate) fn spec<'a>(registry: &'a Registry, node: &Node) -> Result<&'a PipeSpec> {
    registry.pipe(&node.pipe).ok_or_else(|| unknown(node))
}

fn unknown(node: &Node) -> Error {
    Error::invalid(format!("unknown pipe {}", node.pipe))
}
