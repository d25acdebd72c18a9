//! Options that list folders. The loader sets them before a run, so that the graph, its fingerprint, workers and
//! snapshots contain them.

use forebay_core::{Error, ErrorKind, FoldersOption, Result, scheme_of};
use forebay_graph::{Catalog as _, Graph, Node, PipeSpec};
use forebay_registry::Registry;
use serde_json::Value;

/// The checked graph with every missing option filled in that lists the folders below the folder of another
/// option.
///
/// [`LoaderBuilder::build`](crate::LoaderBuilder::build) does this itself. Call it to see what `build` will find.
///
/// Cost: lists each such folder once.
///
/// # Errors
/// `Io` if a folder cannot be listed; `Invalid` if there is no folder in it.
pub fn with_folders(graph: Graph, registry: &Registry) -> Result<Graph> {
    graph.with_each(|node| {
        let Some((option, folder)) = registry.pipe(&node.pipe).and_then(|spec| missing(node, spec)) else {
            return Ok(());
        };
        let found = folders(folder, registry)
            .map_err(|error| node.locate(error.context("option", option).context("folder", folder)))?;
        node.options.insert(option.to_owned(), found.into());
        Ok(())
    })
}

/// The option that is to be set, and the folder whose folders it lists.
fn missing<'a>(node: &'a Node, spec: &'a PipeSpec) -> Option<(&'a str, &'a str)> {
    let FoldersOption { names: option, root } = spec.layout.folders_option?;
    let root = node.options.get(root)?.as_str()?;
    (!node.options.contains_key(option)).then_some((option, root))
}

/// The names of the folders directly below this one, sorted.
fn folders(root: &str, registry: &Registry) -> Result<Vec<Value>> {
    let store = registry.store(scheme_of(root)).map_err(|error| match error.kind() {
        ErrorKind::Unsupported => Error::invalid(format!(
            "cannot list the folders in it: {}; give their names in the option",
            error.message()
        )),
        _ => error,
    })?;
    let mut names: Vec<String> = Vec::new();
    for (path, folder) in store.list(root)? {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if folder && !name.is_empty() && !name.starts_with('.') {
            names.push(name.to_owned());
        }
    }
    names.sort();
    if names.is_empty() {
        return Err(Error::invalid("found no folder in it, expected one for each name"));
    }
    Ok(names.into_iter().map(Value::from).collect())
}
