//! What can be said of a graph before it runs, and of the functions in it.

use forebay_loader::{
    Executor, Explanation, Graph, Lint, Plan,
    graph::{Node, ON, On},
};

/// The function that a node calls, as a person would call it, if its pipe is one of this module's.
fn function(node: &Node) -> Option<&str> {
    let name = node.options.get("function").filter(|_| node.pipe.starts_with("py_"))?.as_str()?;
    name.split('@').next()
}

/// What the command says of functions: it has none of them.
pub(crate) fn unheld(graph: &Graph) -> Vec<Lint> {
    let of = |node: &Node| {
        let function = function(node)?;
        let message = format!(
            "it calls the Python function `{function}`, which a saved graph names and does not hold, so the command cannot run it; build \
             the dataset in Python, and call its `explain()` or `loader()`"
        );
        Some(Lint::new(&node.name, message, false))
    };
    graph.nodes().iter().filter_map(of).collect()
}

/// The functions that several threads call, where one at a time has the interpreter's lock.
pub(crate) fn in_turns(graph: &Graph, plan: &Plan, executor: Executor) -> Vec<Lint> {
    let (Executor::Threads(count) | Executor::Processes(count)) = executor else { return Vec::new() };
    let segments = plan.segments.iter().filter(|segment| segment.parallel && segment.on == On::Threads);
    let nodes = segments.flat_map(|segment| &segment.nodes).map(|&at| &graph.nodes()[at]);
    let of = |node: &Node| {
        let function = function(node)?;
        let chosen = node.options.contains_key(ON);
        let help = match chosen {
            true => "leave out `on`, and worker processes call it, unless it releases the lock",
            false => {
                "it cannot be sent to worker processes: define it in a module or install cloudpickle; say on='threads' if it releases the lock"
            }
        };
        let message = format!(
            "{count} threads call `{function}`, and one at a time has the interpreter's lock; {help}"
        );
        Some(Lint::new(&node.name, message, chosen))
    };
    if count < 2 { Vec::new() } else { nodes.filter_map(of).collect() }
}

/// Explains a graph, as a loader would run it; `locked` says whether the interpreter has a lock.
pub(crate) fn explain(
    graph: &Graph,
    registry: &forebay_loader::Registry,
    executor: Option<&str>,
    ranks: Option<(u32, u32)>,
    locked: bool,
) -> forebay_loader::Result<Explanation> {
    let executor = executor.map(str::parse::<Executor>).transpose()?;
    let mut explanation = Explanation::new(graph, registry, executor, ranks)?;
    if locked {
        let turns = in_turns(explanation.graph(), explanation.plan(), explanation.executor());
        explanation.lints.extend(turns);
    }
    Ok(explanation)
}
