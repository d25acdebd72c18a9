//! What people read, as lines: that the map stays one, and that lines of pages fit into a window.

use crate::repo::Repo;
use crate::{Report, looked_at};

const MAP: &str = "ARCHITECTURE.md";
const MAP_LINES: usize = 180;
const WIDTH: usize = 110;

pub(crate) fn the_map_is_short_and_pages_are_narrow(repo: &Repo) -> Report {
    let (mut pages, mut problems) = (0, Vec::new());
    for (path, text) in repo.pages() {
        pages += 1;
        let lines = text.lines().count();
        if path == MAP && lines > MAP_LINES {
            problems.push(format!("{path}: {lines} lines, at most {MAP_LINES}: explain it in docs/inside"));
        }
        problems.extend(
            wide(text).map(|(at, width)| format!("{path}:{at}: {width} characters, at most {WIDTH}")),
        );
    }
    looked_at(pages, problems)
}

/// The lines that are too wide, by their numbers. Tables, links and blocks of code cannot be wrapped.
fn wide(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let start = line.trim_start();
        in_code ^= start.starts_with("```");
        let is_free = in_code || start.starts_with('|') || is_link(start);
        let width = line.chars().count();
        (!is_free && width > WIDTH).then_some((at + 1, width))
    })
}

/// Whether a line is one link and nothing else: `- [name](target)`, `<target>` or `[name]: target`.
fn is_link(line: &str) -> bool {
    let line = line.trim_start_matches(['-', '*', '!', ' ']);
    let named = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let target = match (named, line.strip_prefix('<')) {
        (Some((_, rest)), _) => rest.strip_prefix(": ").or_else(|| rest.strip_prefix('(')?.strip_suffix(')')),
        (None, rest) => rest.and_then(|rest| rest.strip_suffix('>')),
    };
    target.is_some_and(|target| !target.contains([' ', ')', '>']))
}
