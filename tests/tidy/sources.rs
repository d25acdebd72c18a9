//! What a Rust file may hold.

use std::collections::BTreeSet;

use crate::lexer;
use crate::repo::{Repo, Source};
use crate::{Report, looked_at};

const LINES: usize = 500;
const TABLE_LINES: usize = 1000;
const TABLE_MARK: &str = "// tidy: table";
const FUNCTION_LINES: usize = 80;

/// Where unsafe may stand, and why. A path that ends in `/` is a folder; one without `.rs` is a module, the file and its folder.
const UNSAFE: [(&str, &str); 23] = [
    ("core/abi/src/", "the frozen page"),
    ("core/src/export.rs", "what export_plugin! writes"),
    ("core/src/shim", "a plugin's side of the calls, for export_plugin!"),
    ("loader/engine/src/host", "the services that plugins call"),
    ("loader/guard/src/", "records of calls, handlers of signals"),
    ("loader/queue/src/process/block.rs", "blocks of shared memory"),
    ("loader/queue/src/process/shared.rs", "shared memory"),
    ("loader/registry/src/", "opens libraries, and calls what they made"),
    ("plugins/files/src/map.rs", "maps files"),
    ("plugins/image/src/jpeg/simd.rs", "SIMD kernels"),
    ("plugins/image/src/simd.rs", "SIMD kernels"),
    ("python/src/array.rs", "buffers and capsules of DLPack"),
    ("python/src/capsules.rs", "capsules of DLPack that others made"),
    ("python/src/columns.rs", "capsules of Arrow"),
    ("python/src/convert.rs", "buffers that others made"),
    ("python/src/stock.rs", "memory of torch's that batches are made in"),
    ("python/src/tables.rs", "capsules of Arrow's streams and tables"),
    ("tests/compat/allocator.rs", "an allocator of a plugin"),
    ("tests/compat/bundling.rs", "calls a library in C that a plugin brings along"),
    ("tests/compat/host.rs", "a host in little: calls what a plugin made"),
    ("tests/faulty/examples/shows.rs", "shows a symbol, which is its fault"),
    ("tests/memory.rs", "an allocator that counts"),
    ("tests/rogue/src/crash.rs", "closes descriptors of others"),
];

/// Names of formats that the loader may say, and why.
const LOADER_MAY_SAY: [(&str, &str, &str); 12] = [
    ("loader/graph/src/", "json", "graph files are TOML or JSON"),
    ("loader/graph/src/", "text", "a kind of option"),
    ("loader/graph/src/policy.rs", "skip", "what becomes of a sample that fails"),
    ("loader/registry/src/c_plugin/tables.rs", "decode", "a function of a table of C"),
    // A path that is given alone becomes the graph that somebody would write by hand.
    ("loader/src/open.rs", "file", "the store of paths without a scheme"),
    ("loader/src/open.rs", "files", "names the files"),
    ("loader/src/open.rs", "read", "reads those far away"),
    ("loader/src/open.rs", "label", "tells the class by the folder"),
    ("loader/src/open.rs", "group", "files of one name are a sample"),
    ("loader/src/open.rs", "decode", "what no pipe opens is decoded"),
    ("loader/src/open.rs", "concat", "one branch after the other"),
    ("loader/src/open.rs", "rename", "a picture is an image"),
];

pub(crate) fn unsafe_is_where_the_design_has_it(repo: &Repo) -> Report {
    let mut problems = Vec::new();
    for source in &repo.sources {
        let is_allowed = UNSAFE.iter().any(|(path, _)| source.path.starts_with(path));
        let places = lexer::words(&source.code, "unsafe").filter(|_| !is_allowed);
        problems.extend(places.map(|at| format!("{}: no unsafe here", source.place(at))));
    }
    looked_at(repo.sources.len(), problems)
}

pub(crate) fn the_loader_names_no_format_and_no_pipe(repo: &Repo) -> Report {
    let plugins = repo.sources.iter().filter(|source| source.path.starts_with("plugins/"));
    let names: BTreeSet<_> = plugins.flat_map(descriptor_names).collect();
    let loader = || repo.sources.iter().filter(|source| source.path.starts_with("loader/"));
    let mut problems = Vec::new();
    for source in loader() {
        let may_say = |name: &str| {
            LOADER_MAY_SAY.iter().any(|(path, said, _)| source.path.starts_with(path) && *said == name)
        };
        for literal in source.literals.iter().filter(|literal| names.contains(literal.text.as_str())) {
            // A label in an error, such as the "file" of `.context("file", path)`, chooses nothing.
            let is_label = source.code[..literal.at].ends_with(".context(");
            if !is_label && !may_say(&literal.text) && !source.is_test(literal.at) {
                problems.push(format!("{}: the loader names {:?}", source.place(literal.at), literal.text));
            }
        }
    }
    looked_at(names.len().min(loader().count()), problems)
}

/// The names and file extensions in a plugin file's descriptors: `name: "jpeg"`, `extensions: &["jpg", "jpeg"]`.
fn descriptor_names(source: &Source) -> impl Iterator<Item = &str> {
    source.literals.iter().filter(|literal| !source.is_test(literal.at)).filter_map(|literal| {
        let before = source.code[..literal.at].trim_end();
        let list = before.rfind("extensions: &[").filter(|start| !before[*start..].contains(']'));
        (before.ends_with("name:") || list.is_some()).then_some(literal.text.as_str())
    })
}

/// What nobody runs is no test: a child process is a part of the test that starts it, and figures are a bench's.
pub(crate) fn no_test_is_ignored(repo: &Repo) -> Report {
    let mark = concat!("#[", "ignore");
    let ignored = repo.sources.iter().flat_map(|source| {
        source.code.match_indices(mark).map(|(at, _)| format!("{}: a test is ignored", source.place(at)))
    });
    looked_at(repo.sources.len(), ignored.collect())
}

pub(crate) fn every_file_says_what_lives_in_it(repo: &Repo) -> Report {
    let says = |source: &&Source| {
        source.text.starts_with("//!") || source.text.starts_with("#![doc = include_str!(\"../README.md\")]")
    };
    let silent = repo.sources.iter().filter(|source| !says(source));
    let problems = silent.map(|source| format!("{}:1: must start with a `//!` line", source.path)).collect();
    looked_at(repo.sources.len(), problems)
}

pub(crate) fn files_are_short(repo: &Repo) -> Report {
    let mut problems = Vec::new();
    for source in &repo.sources {
        let lines = source.text.lines().count();
        let most = if source.text.contains(TABLE_MARK) && !source.path.starts_with("tests/tidy/") {
            TABLE_LINES
        } else {
            LINES
        };
        if lines > most {
            problems.push(format!("{}: {lines} lines, at most {most}", source.path));
        }
    }
    looked_at(repo.sources.len(), problems)
}

pub(crate) fn functions_fit_on_a_screen(repo: &Repo) -> Report {
    let (mut functions, mut problems) = (0, Vec::new());
    for source in &repo.sources {
        for at in lexer::words(&source.code, "fn") {
            let item = &source.code[at..lexer::end_of_item(&source.code, at)];
            let is_named =
                item[2..].trim_start().starts_with(|first: char| first == '_' || first.is_alphabetic());
            let lines = item.lines().count();
            functions += usize::from(is_named);
            if is_named && lines > FUNCTION_LINES {
                problems.push(format!(
                    "{}: a function of {lines} lines, at most {FUNCTION_LINES}",
                    source.place(at)
                ));
            }
        }
    }
    looked_at(functions, problems)
}
