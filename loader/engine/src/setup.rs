//! What workers are told, so that they make the same pipes.

use forebay_core::{PipeLayout, Result};
use forebay_graph::{COMMON, Catalog as _, Node, PipeSpec};

use crate::{
    Executor,
    messages::{DedicatedSetup, Setup},
    prepared::Prepared,
    sandbox::Sandbox,
};

/// What workers are told of a checked graph: those that have maps, or one that has a serial segment to itself.
pub(crate) fn setup(prepared: &Prepared, dedicated: Option<DedicatedSetup>) -> Result<Setup> {
    let Prepared { graph, registry, plan, settings, .. } = prepared;
    let plugins: Vec<_> = registry.plugins().iter().filter_map(|record| record.stamp().cloned()).collect();
    let sandboxed = plan.is_sandboxed(dedicated.as_ref().map(|dedicated| dedicated.segment));
    let files = plugins.iter().map(forebay_registry::Stamp::file);
    let sandbox = sandboxed.then(|| Sandbox::new(graph, files, settings.sandbox_memory));
    let own = |node: &Node, spec: &PipeSpec| match &dedicated {
        None => spec.is_parallel(),
        Some(DedicatedSetup { segment, .. }) => {
            plan.segments[*segment].nodes.iter().any(|&at| graph.nodes()[at].name == node.name)
        }
    };
    // Of other nodes they look at what cuts the graph, and need no list of a million paths.
    let needed = |node: &Node, option: &str| {
        let spec = registry.pipe(&node.pipe);
        let cuts = |spec: &PipeSpec| {
            let PipeLayout { outputs_option, stacks, .. } = spec.layout;
            outputs_option == Some(option) || stacks == Some(option)
        };
        COMMON.contains(&option) || spec.is_some_and(|spec| own(node, spec) || cuts(spec))
    };
    Ok(Setup {
        dedicated: dedicated.clone(),
        ledger: None,
        withheld: if sandboxed { Vec::new() } else { registry.sandboxed() },
        sandbox: sandbox.transpose()?,
        graph: graph.with_options(needed).to_json()?,
        // How many there are says nothing about how a graph is cut.
        executor: if matches!(settings.executor, Executor::Processes(_)) {
            "processes:1"
        } else {
            "threads:1"
        }
        .to_owned(),
        plugins,
        linked: registry.linked_in_workers(),
        trust: registry.trust().clone(),
        priorities: registry.ranks().to_vec(),
        claims: registry.claims().to_vec(),
        own: registry.own_pipes(graph),
        seed: settings.seed,
        ranks: settings.ranks,
        limits: (settings.limits.bytes, settings.limits.pixels),
        identities: settings.identities.clone(),
    })
}
