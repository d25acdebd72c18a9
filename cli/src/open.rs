//! What the command line names: plugins and graphs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use forebay_loader::{Error, ErrorKind, Graph, Registry, Search};

use crate::outcome::{Result, Stop};

/// The plugins, those in `first` before all others.
pub(crate) fn any_registry(first: &[PathBuf]) -> Result<Registry> {
    let mut search = Search::from_env().map_err(Stop::Usage)?;
    for place in first.iter().rev() {
        if !place.exists() {
            return Err(Stop::Usage(
                Error::invalid("no such plugin file or folder").context("path", place.display()),
            ));
        }
        search = search.first(place);
    }
    Ok(Registry::new(search)?)
}

/// As [`any_registry`], and a plugin file that was named must be taken.
pub(crate) fn registry(first: &[PathBuf]) -> Result<Registry> {
    let registry = any_registry(first)?;
    for refusal in registry.refusals() {
        // One that gives way to a newer one of its name is as good as taken.
        if first.contains(&refusal.path) && refusal.reason.kind() != ErrorKind::Invalid {
            return Err(Stop::Usage(refusal.reason.clone().context("plugin", refusal.path.display())));
        }
    }
    Ok(registry)
}

/// Whether an argument is a graph: the name of a graph file, or the one-line form.
pub(crate) fn is_graph(text: &str) -> bool {
    let path = Path::new(text);
    let named = path.extension().is_some_and(|extension| extension == "toml");
    named || (!path.exists() && text.contains('|'))
}

/// Reads a graph: a `.toml` or `.json` file, or the one-line form.
pub(crate) fn graph(text: &str) -> Result<Graph> {
    let path = Path::new(text);
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let graph_file = matches!(extension, "toml" | "json") && !text.contains(char::is_whitespace);
    if !graph_file && !path.exists() {
        return Graph::from_line(text).map_err(Stop::Usage);
    }
    let usage = |error: Error| Stop::Usage(error.context("file", path.display()));
    let parse = match extension {
        "toml" => Graph::from_toml,
        "json" => Graph::from_json,
        _ => {
            let message = format!("this is no graph; `forebay head {text}` shows what is in it");
            return Err(usage(Error::invalid(message)));
        }
    };
    let text = fs::read_to_string(path).map_err(|error| usage(error.into()))?;
    parse(&text).map_err(usage)
}
