//! Every format, as the tests of all formats and the fuzz target want it. Nothing here names one: a plugin describes its formats in the
//! file `format.rs` of its folder, and the build script finds those files.
//!
//! A test asks for [`chosen`]: all formats, or those of the plugin that `FOREBAY_FORMAT` names.
#![expect(
    clippy::unwrap_used,
    reason = "seeds are well-formed, and so are manifests of corpora: a test fails if one is not"
)]

use std::{env, path::Path};

use forebay_core::Error;
use forebay_testkit::Costs;
use serde_json::Value;

mod costs;
mod parse;
mod words;

// What the files `format.rs` use.
pub(crate) use crate::{
    costs::{END, apart, number},
    parse::{BYTES, LIMITS, MOST, PIXELS, buffer, decode, expand, file, pieces},
    words::{same, sha256, write_text},
};

/// The variable that names the only plugin whose formats are tested.
const ONLY: &str = "FOREBAY_FORMAT";

/// What the tests of all formats want of a plugin. Files are named as in its folder `seeds`.
pub struct Format {
    /// Functions that are given any bytes: they may refuse them, and nothing else may happen. The tests run them over damaged seeds, and
    /// a fuzz target over whatever libFuzzer thinks of.
    pub parsers: &'static [Parser],
    /// Every decoder of the plugin, and every pipe of it that reads a file or its pieces. The test of conformance damages the files
    /// everywhere, and resumes at every sample.
    pub readers: &'static [Reader],
    /// Files by other programs, outside of the repository.
    pub corpora: &'static [Corpus],
    /// What `forebay plugins test` is given, which must pass.
    pub kit: Option<Kit>,
}

impl Format {
    /// Nothing.
    pub const NONE: Self = Self { parsers: &[], readers: &[], corpora: &[], kit: None };
}

/// A parser, which takes any bytes.
pub struct Parser {
    /// Its name, and that of its fuzz target.
    pub name: &'static str,
    /// Gives it bytes.
    pub parse: fn(&[u8]),
    /// The extensions of its files.
    pub extensions: &'static [&'static str],
}

/// A parser of this name, for files with these extensions.
const fn parser(name: &'static str, parse: fn(&[u8]), extensions: &'static [&'static str]) -> Parser {
    Parser { name, parse, extensions }
}

/// Pipes behind a sample that has a file's bytes in a field, and files for them.
pub struct Reader {
    /// Its name, which no other has.
    pub name: &'static str,
    /// The field that has the bytes.
    pub field: &'static str,
    /// The pipes.
    pub pipes: &'static [&'static str],
    /// The files.
    pub files: &'static [&'static str],
    /// What damage to a file may cost.
    pub costs: fn(&[u8]) -> Costs,
    /// Whether it refuses whatever it is given.
    pub refuses: bool,
}

impl Reader {
    /// With this promise of what damage may cost: all other samples are delivered.
    const fn costs(self, costs: fn(&[u8]) -> Costs) -> Self {
        Self { costs, ..self }
    }

    /// One that refuses whatever it is given.
    const fn refuses(self) -> Self {
        Self { refuses: true, ..self }
    }
}

/// Pipes that open files, or read what the ones before them give.
const fn opened(
    name: &'static str,
    pipes: &'static [&'static str],
    files: &'static [&'static str],
) -> Reader {
    Reader { name, field: "bytes", pipes, files, costs: costs::nothing, refuses: false }
}

/// The decoder of this name. All modules below have the macro.
macro_rules! decoded {
    ($name:literal, $files:expr) => {
        $crate::Reader {
            field: "data",
            ..$crate::opened(
                $name,
                &[concat!("decode fields=['data'] decoders=['data=", $name, "']")],
                &$files,
            )
        }
    };
}

/// Files by other programs, and how they are read here.
pub struct Corpus {
    /// Its name in the manifest of the corpora.
    pub name: &'static str,
    /// What the plugin makes of the file, in the words of the manifest's `digest`: those that it has words for.
    pub digest: fn(&Path) -> Result<Value, Error>,
    /// Whether that is what was expected: the manifest's `digest`, with its `tolerance` beside it.
    pub compare: fn(expected: &Value, found: &Value) -> Result<(), String>,
    /// The share of the valid files that must match.
    pub least: f64,
    /// Extensions of files that are read like all others, and not counted.
    pub aside: &'static [&'static str],
    /// What is known of files that do not match: TOML with the tables `missed` and `disputed`, reasons by path.
    pub known: &'static str,
}

impl Corpus {
    /// Files of which this share must match exactly what the reference found.
    const fn new(name: &'static str, digest: fn(&Path) -> Result<Value, Error>, least: f64) -> Self {
        Self { name, digest, compare: same, least, aside: &[], known: "" }
    }

    /// Compared otherwise.
    const fn compare(self, compare: fn(&Value, &Value) -> Result<(), String>) -> Self {
        Self { compare, ..self }
    }

    /// Files with these extensions are not counted.
    const fn aside(self, aside: &'static [&'static str]) -> Self {
        Self { aside, ..self }
    }

    /// What is known of files that do not match.
    const fn known(self, known: &'static str) -> Self {
        Self { known, ..self }
    }
}

/// What `forebay plugins test` is given.
pub struct Kit {
    /// Files for its decoders and its pipes.
    pub data: &'static [&'static str],
    /// Graphs to run too. `SEEDS` stands for the plugin's folder of seeds, `FOLDER` for one to write to.
    pub graphs: &'static [&'static str],
    /// What is not checked.
    pub skip: &'static [&'static str],
    /// How many files the graphs write.
    pub writes: usize,
}

impl Kit {
    /// Its files, and nothing else.
    const fn of(data: &'static [&'static str]) -> Self {
        Self { data, graphs: &[], skip: &[], writes: 0 }
    }
}

include!(concat!(env!("OUT_DIR"), "/formats.rs"));

/// The formats to test, by the folders of their plugins: all, or those of the one that `FOREBAY_FORMAT` names.
///
/// # Panics
/// When no plugin of that name has formats.
#[must_use]
pub fn chosen() -> Vec<(&'static str, &'static Format)> {
    let only = env::var(ONLY).ok();
    let is_chosen = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let found: Vec<_> = FORMATS.iter().copied().filter(|(name, _)| is_chosen(name)).collect();
    assert!(!found.is_empty(), "{ONLY} is {only:?}: no folder of plugins/ with a format.rs is called so");
    found
}

/// The parsers to test.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn parsers() -> Vec<&'static Parser> {
    some("parser", chosen().into_iter().flat_map(|(_, format)| format.parsers).collect())
}

/// The readers to test.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn readers() -> Vec<&'static Reader> {
    some("reader", chosen().into_iter().flat_map(|(_, format)| format.readers).collect())
}

/// The corpora to test.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn corpora() -> Vec<&'static Corpus> {
    some("corpus", chosen().into_iter().flat_map(|(_, format)| format.corpora).collect())
}

fn some<T>(what: &str, found: Vec<T>) -> Vec<T> {
    assert!(!found.is_empty(), "nothing to test: the format.rs of these plugins have no {what}");
    found
}

/// The parser of this name, found by the compiler, so that a fuzz target has nothing of the others in it.
///
/// # Panics
/// When no format has one, which ends the compilation.
#[must_use]
pub const fn parser_called(name: &str) -> fn(&[u8]) {
    let mut at = 0;
    while at < FORMATS.len() {
        let parsers = FORMATS[at].1.parsers;
        let mut one = 0;
        while one < parsers.len() {
            if is_same(parsers[one].name.as_bytes(), name.as_bytes()) {
                return parsers[one].parse;
            }
            one += 1;
        }
        at += 1;
    }
    panic!("no parser has the name that FOREBAY_PARSER gives")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
