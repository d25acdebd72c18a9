//! The graphs that every pipe is checked in: the file of each pipe has its own, in the block of toml at its top.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use forebay_tests::root;
use serde::Deserialize;

/// What `PICTURES` stands for: pictures of 4 by 3 pixels, each another.
pub(crate) const PICTURES: &str = "range N | map 'picture=[value % 5, value % 7, value % 250]' \
    | map 'picture=[[picture, [1, 2, 3], [99, 0, 9]], [[9, 8, 7], picture, [5, 5, 5]], [[0, 50, 0], [70, 8, 9], picture], [picture, picture, [7, 7, 7]]]' \
    | collate picture | cast 'picture=u8'";

/// What is said of a pipe; the keys of decoders are the reference's business.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// Graphs, with `N` for the number of samples.
    #[serde(default)]
    cases: Vec<String>,
    /// More of them, which cannot run over an endless input.
    #[serde(default)]
    ending: Vec<Ending>,
    /// More of them, which end by themselves.
    #[serde(default)]
    short: Vec<Short>,
    /// Whether it is known how many samples it gives before it has.
    #[serde(default = "yes")]
    counted: bool,
    #[serde(default, rename = "page")]
    _page: String,
    #[serde(default, rename = "examples")]
    _examples: Vec<String>,
    #[serde(default, rename = "gives")]
    _gives: String,
    #[serde(default, rename = "when")]
    _when: String,
}

/// A case that cannot run over an endless input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ending {
    pub(crate) graph: String,
    /// One with such an input in its place.
    pub(crate) instead: Option<String>,
    #[serde(rename = "why")]
    _why: String,
}

/// A case that ends by itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Short {
    pub(crate) graph: String,
    pub(crate) samples: usize,
}

const fn yes() -> bool {
    true
}

/// What the files say, by the names of pipes and decoders.
static SAID: LazyLock<BTreeMap<String, Said>> = LazyLock::new(|| {
    let mut said = BTreeMap::new();
    for plugin in super::PLUGINS {
        let name = plugin.strip_prefix("forebay-").unwrap();
        read(&root().join("plugins").join(name).join("src"), &mut said);
    }
    said
});

/// A graph for each pipe, with `N` for the number of samples; some pipes in several.
pub(crate) static CASES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let cases = SAID.values().flat_map(|said| {
        let plain = said.cases.iter().map(String::as_str);
        let ending = said.ending.iter().map(|case| case.graph.as_str());
        plain.chain(ending).chain(said.short.iter().map(|case| case.graph.as_str()))
    });
    cases.collect()
});

/// The cases that cannot run over an endless input.
pub(crate) fn ending() -> impl Iterator<Item = &'static Ending> {
    SAID.values().flat_map(|said| &said.ending)
}

/// The cases that end by themselves.
pub(crate) fn short() -> impl Iterator<Item = &'static Short> {
    SAID.values().flat_map(|said| &said.short)
}

/// The pipes of which nobody knows how many samples they give before they have.
pub(crate) fn uncounted() -> impl Iterator<Item = &'static str> {
    SAID.iter().filter(|(_, said)| !said.counted).map(|(name, _)| name.as_str())
}

/// Reads the blocks of the files in a folder.
fn read(folder: &Path, said: &mut BTreeMap<String, Said>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, said);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let comment = text.lines().map_while(|line| line.strip_prefix("//!"));
        let lines = comment.map(|line| line.strip_prefix(' ').unwrap_or(line));
        let block = lines.skip_while(|line| *line != "```toml").skip(1).take_while(|line| *line != "```");
        let tables: BTreeMap<String, Said> = toml::from_str(&block.collect::<Vec<_>>().join("\n"))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for (name, one) in tables {
            assert!(said.insert(name.clone(), one).is_none(), "{}: {name} again", path.display());
        }
    }
}
