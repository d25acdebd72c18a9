//! What lies in the files that a node reads, as far as that is known without reading them: how large each is, and when it was changed last.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::Path, time::UNIX_EPOCH};

use forebay_core::{Result, scheme_of};
use forebay_engine::Executor;
use forebay_graph::{Catalog as _, Class, Graph, Node, PipeSpec};
use forebay_registry::Registry;
use serde_json::Value;

use crate::Loader;

/// The option of a source of files that says how it opens them, and the choice by which it only names them, in this field.
const OPEN: &str = "open";
const NONE: &str = "none";
const PATH: &str = "path";

/// Adds to an identity what the files of a node are now; gives what people should know of those that it cannot tell.
///
/// A source that can name its files is asked for them. Of any other node, files that its options name count.
pub(super) fn add_files(node: &Node, registry: &Registry, add: &mut dyn FnMut(&[u8])) -> Option<String> {
    let spec = registry.pipe(&node.pipe)?;
    let source = spec.class == Class::Source;
    let mut texts = Vec::new();
    node.options.values().for_each(|value| texts_in(value, &mut texts));
    let paths = texts.iter().map(|text| Path::new(text.strip_prefix("file://").unwrap_or(text)));
    if source && let Some(url) = texts.iter().find(|text| scheme_of(text) != scheme_of("")) {
        paths.filter(|path| path.is_file()).for_each(|path| add(&stamp(path)));
        let scheme = scheme_of(url);
        return Some(format!(
            "changes of what `{}` reads by {scheme} are not seen: when it changes, change the option `identity`",
            node.name
        ));
    }
    if source && lists(spec) {
        // One that names none says so again when the samples are asked for.
        if let Ok(paths) = list(node, registry) {
            for path in &paths {
                add(path);
                add(&stamp(Path::new(OsStr::from_bytes(path))));
            }
        }
        return None;
    }
    paths.clone().filter(|path| path.is_file()).for_each(|path| add(&stamp(path)));
    let folder = paths.filter(|_| source).find(|path| path.is_dir())?;
    Some(format!(
        "changes of what `{}` reads in {} are not seen: when it changes, change the option `identity`",
        node.name,
        folder.display()
    ))
}

/// Whether a source gives the paths of files alone, if it is told to.
fn lists(spec: &PipeSpec) -> bool {
    spec.options
        .iter()
        .any(|option| option.name == OPEN && option.choices.iter().any(|choice| choice == NONE))
}

/// The paths of all files that a source names, in its order.
fn list(node: &Node, registry: &Registry) -> Result<Vec<Vec<u8>>> {
    let mut node = node.clone();
    node.options.insert(OPEN.to_owned(), NONE.into());
    let graph = Graph::of_node(node);
    let mut loader = Loader::builder(graph).executor(Executor::modest(registry)).build(registry)?;
    let mut paths = Vec::new();
    for sample in loader.epoch(0) {
        let path = sample?.take(PATH);
        let bytes = path
            .as_ref()
            .and_then(|path| path.as_str().map(str::as_bytes).or(path.as_bytes().map(|bytes| &**bytes)));
        paths.extend(bytes.map(<[u8]>::to_vec));
    }
    Ok(paths)
}

/// How large a file is and when it was changed last, in nanoseconds; nothing of one that is not there.
fn stamp(path: &Path) -> Vec<u8> {
    let Ok(metadata) = fs::metadata(path) else { return Vec::new() };
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let changed = changed.map_or(0, |time| time.as_nanos());
    [&metadata.len().to_le_bytes()[..], &changed.to_le_bytes()].concat()
}

/// All texts in the value of an option.
fn texts_in<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, found)),
        Value::Object(members) => members.values().for_each(|item| texts_in(item, found)),
        _ => {}
    }
}
