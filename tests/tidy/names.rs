//! That a word has one meaning: no two types of the loader have the same name.

use std::collections::BTreeMap;

use crate::{
    Report, lexer, looked_at,
    repo::{Repo, Source},
};

/// The half of a handle that its clones share may be called so everywhere.
const SHARED_HALF: &str = "Inner";

pub(crate) fn types_of_the_loader_have_names_of_their_own(repo: &Repo) -> Report {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in repo.sources.iter().filter(|source| source.path.starts_with("loader/")) {
        for (name, at) in types(source).filter(|(name, _)| *name != SHARED_HALF) {
            places.entry(name).or_default().push(source.place(at));
        }
    }
    let twice = places.iter().filter(|(_, places)| places.len() > 1);
    let problems = twice
        .map(|(name, places)| format!("{}: another type is called {name}", places.join(" and ")))
        .collect();
    looked_at(places.len(), problems)
}

/// The types that a file declares, outside of tests.
fn types(source: &Source) -> impl Iterator<Item = (&str, usize)> {
    ["struct", "enum", "trait", "union"].into_iter().flat_map(move |word| {
        lexer::words(&source.code, word).filter_map(move |at| {
            let rest = source.code[at + word.len()..].trim_start();
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let is_type = rest.starts_with(char::is_uppercase);
            (is_type && !source.is_test(at)).then_some((&rest[..end], at))
        })
    })
}
