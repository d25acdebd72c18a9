//! What people read: that the map stays one, and that lines of pages fit into a window.

use crate::repo::Repo;
use crate::{Report, looked_at};

const MAP: &str = "ARCHITECTURE.md";
const MAP_LINES: usize = 180;
const WIDTH: usize = 110;

pub(crate) fn the_map_is_short_and_pages_are_narrow(repo: &Repo) -> Report {
    let is_page = |path: &str| path == MAP || (path.starts_with("docs/") && path.ends_with(".md"));
    let (mut pages, mut problems) = (0, Vec::new());
    for (path, text) in repo.files.iter().filter(|(path, _)| is_page(path)) {
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

/// The lines that are too wide, by their numbers. Tables and blocks of code cannot be wrapped.
fn wide(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let start = line.trim_start();
        in_code ^= start.starts_with("```");
        let width = line.chars().count();
        (!in_code && !start.starts_with('|') && width > WIDTH).then_some((at + 1, width))
    })
}
