//! A graph with nothing in a random order.

use forebay_core::sampling::SHUFFLE;
use serde_json::Value;

use super::{Catalog, Graph, Kind, Node, OptionSpec, POSITIONAL};

impl Graph {
    /// The graph without shuffling, to validate with the graph that you train on. Pipes that shuffle and samplers
    /// that draw at random are left out, and [switches](SHUFFLE) of other pipes are off. So each sample of a
    /// source comes once, in the source's order. `self` must be a graph as written, not a checked one; it stays as
    /// it is.
    ///
    /// All other randomness stays: transforms, and the choices of `mix` and `random_split`.
    #[must_use]
    pub fn unshuffled(&self, catalog: &dyn Catalog) -> Self {
        let mut graph = self.clone();
        for node in &mut graph.nodes {
            still(node, catalog);
        }
        graph.without(|node| catalog.pipe(&node.pipe).is_some_and(|spec| spec.order.shuffles))
    }
}

fn still(node: &mut Node, catalog: &dyn Catalog) {
    let Some(spec) = catalog.pipe(&node.pipe) else { return };
    let is_it = |option: &OptionSpec| option.name == SHUFFLE && option.kind == Kind::Bool;
    if let Some(at) = spec.options.iter().position(is_it) {
        if at == 0 {
            node.options.remove(POSITIONAL);
        }
        node.options.insert(SHUFFLE.to_owned(), Value::Bool(false));
    }
}
