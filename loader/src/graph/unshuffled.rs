//! A graph with nothing in a random order.

use serde_json::Value;

use super::{Catalog, Graph, Kind, Node, OptionSpec, POSITIONAL};

/// What gives the samples of a source in their order.
const IN_ORDER: &str = "sequential_sampler";
/// The option by which pipes that do more than that shuffle.
const OPTION: &str = "shuffle";

impl Graph {
    /// The graph with nothing shuffled, to validate by what one trains on: pipes that shuffle are left out, a sampler that draws at random
    /// gives each sample of its source once, in their order, and switches called `shuffle` are off. This graph stays as it is.
    ///
    /// Whatever else is random stays so: transforms, and what `mix` and `random_split` choose.
    #[must_use]
    pub fn unshuffled(&self, catalog: &dyn Catalog) -> Self {
        let mut graph = self.clone();
        for node in &mut graph.nodes {
            still(node, catalog);
        }
        graph.without(|node| catalog.pipe(&node.pipe).is_some_and(|spec| spec.shuffles && !spec.samples))
    }
}

fn still(node: &mut Node, catalog: &dyn Catalog) {
    let Some(spec) = catalog.pipe(&node.pipe) else { return };
    if spec.samples && spec.shuffles {
        node.pipe = IN_ORDER.to_owned();
        node.options.clear();
        return;
    }
    let is_it = |option: &OptionSpec| option.name == OPTION && option.kind == Kind::Bool;
    if let Some(at) = spec.options.iter().position(is_it) {
        if at == 0 {
            node.options.remove(POSITIONAL);
        }
        node.options.insert(OPTION.to_owned(), Value::Bool(false));
    }
}
