//! What a plugin says of itself, as constants that the export macro writes into the library.

use serde::{Deserialize, Serialize};

use crate::PipeInfo;

/// Bytes that files of one kind have at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Magic {
    /// Where, from the start.
    pub offset: u32,
    /// Which.
    pub bytes: &'static [u8],
}

/// What a Decoder says of itself.
#[derive(Debug, Clone, Copy)]
pub struct DecoderInfo {
    /// The name that pins it.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// Among decoders that are equally sure the higher one wins: 64 marginal, 128 usual, 256 primary.
    pub priority: u32,
    /// Extensions in lower case, without the dot: a hint.
    pub extensions: &'static [&'static str],
    /// Media types: a hint.
    pub media_types: &'static [&'static str],
    /// Any of these makes it a candidate, whatever the extension. Bytes that begin with none are not its own, whatever their extension;
    /// an empty one says that they may be.
    pub magic: &'static [Magic],
}

impl DecoderInfo {
    /// Priority 128 and no hints.
    pub const DEFAULT: Self =
        Self { name: "", summary: "", priority: 128, extensions: &[], media_types: &[], magic: &[] };
}

/// What a Store says of itself.
#[derive(Debug, Clone, Copy)]
pub struct StoreInfo {
    /// Its name.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// URL schemes it serves, without `://`.
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
    /// No input.
    Source,
    /// Stateless, sample by sample, shared by threads.
    Map,
    /// Stateless, one sample to a stream.
    FlatMap,
    /// Stateful, in order.
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

/// What kind of value an option takes.
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
    /// For people.
    pub doc: &'static str,
}

/// A thing with its options' schema.
#[derive(Debug, Clone, Copy)]
pub struct Described<T: 'static> {
    /// What it says of itself.
    pub info: T,
    /// Its options; the first may be given by position.
    pub options: &'static [OptionSpec],
}

/// All that a manifest says.
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
    /// The version of what its pipes save and give: builds that say the same number go on from each other's snapshots. Without one
    /// only the same file does.
    pub state_version: Option<u32>,
    /// DataPipes.
    pub pipes: &'static [(Class, Described<PipeInfo>)],
    /// Decoders.
    pub decoders: &'static [Described<DecoderInfo>],
    /// Stores.
    pub stores: &'static [Described<StoreInfo>],
}
