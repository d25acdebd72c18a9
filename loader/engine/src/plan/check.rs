//! What a plan must not do: run something nearer to the program than it may, or in a process that does not have it.

use forebay_core::{Error, Result};
use forebay_graph::{Graph, On};
use forebay_registry::{IsolationLevel, Registry};

use super::Plan;

/// Refuses a plan that the registry's plugins do not allow.
///
/// # Errors
/// `Invalid`, with the node, and what to do.
pub(super) fn check(plan: &Plan, graph: &Graph, registry: &Registry) -> Result<()> {
    own_pipes_stay(registry, graph, plan)?;
    isolation_holds(registry, graph, plan)
}

/// Refuses a plan by which another process would run what it does not have, or decode or read without it.
fn own_pipes_stay(registry: &Registry, graph: &Graph, plan: &Plan) -> Result<()> {
    let away = plan.segments.iter().filter(|segment| segment.on.is_elsewhere());
    for node in away.flat_map(|segment| &segment.nodes).filter_map(|&at| graph.nodes().get(at)) {
        if let Some(plugin) = registry.serves_others() {
            return Err(Error::invalid(format!(
                "{} is linked into this program, but worker processes do not have its decoders and stores: give `{}` on=threads, or make it \
                 a plugin that is found",
                plugin.label(),
                node.name
            ))
            .context("pipe", &node.name));
        }
        if !registry.is_own(&node.pipe) {
            continue;
        }
        let what = match registry.plugin_of(&node.pipe) {
            None => "is a closure of this program".to_owned(),
            Some(plugin) => format!("belongs to {}, which is linked into this program", plugin.label()),
        };
        let pipe = &node.pipe;
        return Err(Error::invalid(format!(
            "`{pipe}` {what}, so worker processes do not have it: give it on=threads, or make it a plugin that is found"
        ))
        .context("pipe", &node.name));
    }
    Ok(())
}

/// Refuses a plan by which a node would run nearer than it may.
///
/// # Errors
/// `Invalid`, with the node, and what to do.
fn isolation_holds(registry: &Registry, graph: &Graph, plan: &Plan) -> Result<()> {
    let here = plan.segments.iter().filter(|segment| !segment.on.is_elsewhere());
    for (segment, node) in here.flat_map(|segment| segment.nodes.iter().map(move |&at| (segment, at))) {
        let Some(node) = graph.nodes().get(node) else { continue };
        let level = match node.on() {
            Some(On::Sandboxed) => IsolationLevel::Sandboxed,
            _ => registry.level_of(node),
        };
        if level.place().is_some() || level > IsolationLevel::InProcess && segment.on == On::Caller {
            let message = format!(
                "`{}` must be isolated ({level}), but the executor inline runs everything on the caller's thread: \
                 expected threads:N or processes:N",
                node.name
            );
            return Err(Error::invalid(message).context("pipe", &node.name));
        }
    }
    Ok(())
}
