//! How ranks share the data: each rank runs the graph, and a pipe that shards gives it its share. Pipes that write
//! stand behind that pipe.

use std::collections::BTreeMap;

use forebay_core::{Error, Result};

use crate::{Catalog, Graph, Input, Node, PipeSpec, above};

impl Graph {
    /// The checked graph as ranks that share the data run it: with a pipe that shards, if it has none. That
    /// pipe stands after the last pipe with state, so that all ranks agree on the order of the samples. It
    /// stands before the maps and batches, so that no rank works for another. A pipe that writes always
    /// stands behind it, so that each sample is written by one rank.
    ///
    /// # Errors
    /// `Invalid` if no plugin has such a pipe, or if ranks would share an order that differs from rank to
    /// rank. Also if a pipe writes before samples are assigned to ranks.
    pub fn for_ranks(self, catalog: &dyn Catalog) -> Result<Self> {
        let mut graph = deal(self, catalog)?;
        graph.isolate(catalog);
        dealt(&graph, catalog)?;
        Ok(graph)
    }
}

fn deal(graph: Graph, catalog: &dyn Catalog) -> Result<Graph> {
    if graph.nodes().iter().any(|node| spec(catalog, node).is_some_and(|spec| spec.order.shards)) {
        return Ok(graph);
    }
    let names = catalog.names();
    let pipe = names
        .into_iter()
        .find(|name| catalog.pipe(name).is_some_and(|spec| spec.order.shards && !spec.is_sampler()));
    let pipe = pipe.ok_or_else(|| {
        let looked = catalog.looked();
        Error::invalid("no plugin has a pipe that gives ranks their share").context("plugins", looked)
    })?;
    let mut name = pipe.clone();
    for count in 2.. {
        if graph.node(&name).is_none() {
            break;
        }
        name = format!("{pipe}-{count}");
    }
    let (input, reader) = place(&graph, catalog)?;
    let node = Node { name, pipe, options: BTreeMap::new(), inputs: vec![input] };
    Ok(graph.with_node_before(node, reader.as_deref()))
}

/// The output after which samples are assigned to ranks, and the node that reads it.
fn place(graph: &Graph, catalog: &dyn Catalog) -> Result<(Input, Option<String>)> {
    let reader_of = |output: &Input| graph.nodes().iter().find(|node| node.inputs.contains(output));
    let mut outputs = graph.nodes().iter().flat_map(|node| {
        let count = spec(catalog, node).map_or(1, |spec| spec.outputs_of(node));
        (0..count).map(|port| Input { node: node.name.clone(), port })
    });
    let (nodes, read) = (graph.nodes(), graph.edges());
    let writes = |at: usize| spec(catalog, &nodes[at]).is_some_and(|spec| spec.audit.writes);
    let writes_above = |name: &str| {
        let at = nodes.iter().position(|node| node.name == name);
        at.is_some_and(|at| above(&read, at).into_iter().any(writes))
    };
    let mut at = outputs.rfind(|output| reader_of(output).is_none());
    let mut reader = None;
    while let Some(output) = &at {
        let node = graph.node(&output.node).ok_or_else(|| Error::bug("an input names no node"))?;
        let passes = spec(catalog, node).is_some_and(|spec| spec.is_even() || spec.stacks());
        let passes = passes || writes_above(&node.name);
        match &node.inputs[..] {
            [input] if passes => {
                reader = Some(node.name.clone());
                at = Some(input.clone());
            }
            _ => return Ok((output.clone(), reader)),
        }
    }
    Err(Error::invalid("the graph has no output to read"))
}

fn spec<'a>(catalog: &'a dyn Catalog, node: &Node) -> Option<&'a PipeSpec> {
    catalog.pipe(&node.pipe)
}

/// For each node whether it sees only the samples of one rank: those that shard, and all that read from them.
///
/// # Errors
/// `Invalid`, if a node is unordered or writes before samples are assigned to ranks.
pub fn dealt(graph: &Graph, catalog: &dyn Catalog) -> Result<Vec<bool>> {
    let nodes = graph.nodes();
    let mut dealt = vec![false; nodes.len()];
    for at in graph.order()? {
        let from_dealt = nodes[at].inputs.iter().any(|input| {
            nodes.iter().position(|node| node.name == input.node).is_some_and(|from| dealt[from])
        });
        dealt[at] = from_dealt || spec(catalog, &nodes[at]).is_some_and(|spec| spec.order.shards);
        if nodes[at].is_unordered() && !dealt[at] {
            return Err(Error::invalid(format!(
                "`{}` is unordered, and samples are assigned to ranks after it: each rank would see another order\n\
                 put the pipe that shards before it",
                nodes[at].name
            )));
        }
        if !dealt[at] && spec(catalog, &nodes[at]).is_some_and(|spec| spec.audit.writes) {
            return Err(Error::invalid(format!(
                "`{}` writes samples before they are assigned to ranks: every rank would write all\n\
                 put the pipe that shards before it",
                nodes[at].name
            )));
        }
    }
    Ok(dealt)
}
