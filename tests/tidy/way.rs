//! The way of a sample on threads, from the consumer's call to a map and back: the files that ARCHITECTURE.md lists, and the calls that
//! lead from one to the next.

use crate::{Report, looked_at, repo::Repo};

/// The most files that a reader has to open, beside that of the pipe.
const MOST: usize = 8;

const NEXT: &str = "loader/src/loader/next.rs";
const THREADS: &str = "loader/engine/src/run/threads.rs";
const SERVE: &str = "loader/engine/src/run/threads/serve.rs";
const CHUNKS: &str = "loader/engine/src/run/table/chunks.rs";
const PARALLEL: &str = "loader/engine/src/run/parallel.rs";
const ORDERED: &str = "loader/engine/src/run/ordered.rs";
const HANDLES: &str = "loader/registry/src/handles.rs";
const SHIM: &str = "core/src/shim/pipes.rs";

/// From which file, by which call, to which function of which file.
pub(crate) const STEPS: [(&str, &str, &str, &str); 8] = [
    (NEXT, "run.next(", "fn next(", THREADS),
    (THREADS, ".take_output(", "fn take_output(", CHUNKS),
    (SERVE, ".take_work(", "fn take_work(", CHUNKS),
    (SERVE, "parallel.run(", "fn run(", PARALLEL),
    (PARALLEL, "pipe.map(", "fn map(", HANDLES),
    (HANDLES, "table.map()(", "fn map<", SHIM),
    (SERVE, ".hand_in_task(", "fn hand_in_task(", CHUNKS),
    (CHUNKS, "ordered.settle(", "fn settle(", ORDERED),
];

pub(crate) fn the_way_of_a_sample_is_short_and_true(repo: &Repo) -> Report {
    if repo.files.is_empty() {
        return looked_at(0, Vec::new());
    }
    let mut problems = Vec::new();
    let mut files: Vec<&str> = STEPS.iter().flat_map(|(from, .., to)| [*from, *to]).collect();
    files.sort_unstable();
    files.dedup();
    if files.len() > MOST {
        problems
            .push(format!("a sample's way leads through {} files, at most {MOST} are wanted", files.len()));
    }
    let holds = |file: &str, text: &str| repo.files.get(file).is_some_and(|found| found.contains(text));
    for (from, call, function, to) in STEPS {
        if !holds(from, call) || !holds(to, function) {
            problems.push(format!("`{call}` in {from} does not lead to `{function}` in {to} any more"));
        }
    }
    // The pipe is any pipe.
    let listed = files.iter().filter(|&&file| !holds("ARCHITECTURE.md", &format!("`{file}`")));
    problems.extend(listed.map(|file| format!("ARCHITECTURE.md does not list {file}")));
    let seen = files.iter().filter(|&&file| repo.files.contains_key(file)).count();
    looked_at(seen, problems)
}
