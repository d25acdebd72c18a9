//! Descriptors: what a plugin declares, as constants that the export macro writes into the library.

use serde::{Deserialize, Serialize};

use crate::PipeInfo;

/// Bytes that files of one kind have at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Magic {
    /// The offset from the start.
    pub offset: u32,
    /// The bytes.
    pub bytes: &'static [u8],
}

/// What a Decoder declares.
#[derive(Debug, Clone, Copy)]
pub struct DecoderInfo {
    /// The name, which also pins it.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// Among decoders that are equally sure, the one with the higher priority wins: 64 marginal, 128 usual, 256
    /// primary.
    pub priority: u32,
    /// Extensions in lower case, without the dot: a hint.
    pub extensions: &'static [&'static str],
    /// Media types: a hint.
    pub media_types: &'static [&'static str],
    /// Each of these makes it a candidate, whatever the extension. Bytes that begin with none of them are refused,
    /// whatever their extension, unless one of these is empty.
    pub magic: &'static [Magic],
}

impl DecoderInfo {
    /// Priority 128 and no hints.
    pub const DEFAULT: Self =
        Self { name: "", summary: "", priority: 128, extensions: &[], media_types: &[], magic: &[] };
}

/// What a Store declares.
#[derive(Debug, Clone, Copy)]
pub struct StoreInfo {
    /// Its name.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// The URL schemes that it serves, without `://`.
    pub schemes: &'static [&'static str],
}

impl StoreInfo {
    /// No schemes.
    pub const DEFAULT: Self = Self { name: "", summary: "", schemes: &[] };
}

/// What a DataPipe does to a stream, which is all the planner looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It has no input.
    Source,
    /// It has no state, changes sample by sample, and is shared by threads.
    Map,
    /// It has no state, and makes a stream of each sample.
    FlatMap,
    /// It has state, and sees samples in order.
    Stream,
}

impl Class {
    /// The name in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Map => "map",
            Self::FlatMap => "flat_map",
            Self::Stream => "stream",
        }
    }
}

/// The kind of value that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionKind {
    /// `bool`, `int`, `uint`, `float`, `str` or `any`.
    pub base: &'static str,
    /// Whether one value, a list of them, or either is taken.
    pub list: List,
    /// Whether null is taken too.
    pub optional: bool,
}

/// Whether an option takes one value, a list, or either.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// One value.
    #[default]
    No,
    /// A list.
    Yes,
    /// One value or a list.
    Either,
}

/// The schema of one option. Defaults and bounds are JSON text.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// The key in a graph.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// The default; `required` when there is none.
    pub default: &'static str,
    /// The least number; empty when there is no bound.
    pub min: &'static str,
    /// The greatest number.
    pub max: &'static str,
    /// The only values, if not empty.
    pub choices: &'static [&'static str],
    /// Documentation, for people.
    pub doc: &'static str,
}

/// A descriptor with the schema of its options.
#[derive(Debug, Clone, Copy)]
pub struct Described<T: 'static> {
    /// The descriptor.
    pub info: T,
    /// Its options; the first may be given by position.
    pub options: &'static [OptionSpec],
}

/// The contents of a manifest.
#[derive(Debug, Clone, Copy)]
pub struct PluginInfo {
    /// The crate's name.
    pub name: &'static str,
    /// The crate's version.
    pub version: &'static str,
    /// The crate's licence.
    pub license: &'static str,
    /// The crate's repository.
    pub repository: &'static str,
    /// The symbol that leads to the plugin's table.
    pub entry: &'static str,
    /// CPU features that the plugin was compiled to need.
    pub cpu: &'static [&'static str],
    /// The version of the states of its pipes. Builds with the same version can resume each other's snapshots.
    /// Without a version, only the same file can.
    pub state_version: Option<u32>,
    /// DataPipes.
    pub pipes: &'static [(Class, Described<PipeInfo>)],
    /// Decoders.
    pub decoders: &'static [Described<DecoderInfo>],
    /// Stores.
    pub stores: &'static [Described<StoreInfo>],
}
