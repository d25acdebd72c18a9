//! What a graph is checked against: the pipes that exist and the options they take, as their manifests say.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use super::{Node, On, POSITIONAL};

/// The pipes that exist.
pub trait Catalog {
    /// The pipe of this name.
    fn pipe(&self, name: &str) -> Option<&PipeSpec>;

    /// The pipes that others call so.
    fn called(&self, _name: &str) -> Vec<&str> {
        Vec::new()
    }

    /// All names, for the hint after an unknown one.
    fn names(&self) -> Vec<String>;

    /// Where pipes were looked for, for the same error.
    fn looked(&self) -> String;

    /// The options of each decoder of this name, `NAME` or `NAME@PLUGIN`; nothing where there is none.
    fn decoders(&self, _name: &str) -> Vec<&[OptionSpec]> {
        Vec::new()
    }

    /// The names of all decoders, for the hint after an unknown one.
    fn decoder_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Where a node must run, whatever the graph says, since it is isolated.
    fn isolates(&self, _node: &Node) -> Option<On> {
        None
    }
}

/// What a manifest says of one pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipeSpec {
    /// Its name in a graph.
    pub name: String,
    /// What it does to a stream.
    pub class: Class,
    /// One sentence for people.
    #[serde(default)]
    pub summary: String,
    /// What others call it, with a space between.
    #[serde(default)]
    pub also: String,
    /// Its options; the first may be given by position.
    #[serde(default)]
    pub options: Vec<OptionSpec>,
    /// The fewest and the most inputs.
    #[serde(default)]
    pub inputs: (u32, u32),
    /// How many outputs there are.
    #[serde(default = "one")]
    pub outputs: u32,
    /// The option that says how many outputs there are; empty for pipes that always have as many.
    #[serde(default)]
    pub outputs_option: String,
    /// The options that list one value for each input, with a space between.
    #[serde(default)]
    pub per_input: String,
    /// The option that says how many samples are stacked into one; empty for pipes that do not.
    #[serde(default)]
    pub stacks: String,
    /// The option that names a field for the uids of the samples in each that it gives; empty where there is none.
    #[serde(default)]
    pub uids_option: String,
    /// What one of the samples it gives is called, and several, where each is made of several others; empty for samples.
    #[serde(default)]
    pub gives: String,
    /// Which uids the samples have that it gives.
    #[serde(default)]
    pub uids: Uids,
    /// The options by which it leaves samples out, when one is not at its default; `*` for a pipe that always may.
    #[serde(default)]
    pub drops: String,
    /// The option that says how many samples it hands on, the first of its only input, before it ends; empty where there is none.
    #[serde(default)]
    pub takes: String,
    /// Whether it brings its samples out of the run.
    #[serde(default)]
    pub writes: bool,
    /// Of a flat map, whether several samples may be worked on at once.
    #[serde(default)]
    pub parallel: bool,
    /// Whether samples can be asked for by number; of the pipes that a sampler makes of such a source too.
    #[serde(default)]
    pub indexed: bool,
    /// Whether it says which samples of an indexed source come.
    #[serde(default)]
    pub samples: bool,
    /// Whether it gives samples in a random order, or, a map, what is in each.
    #[serde(default)]
    pub shuffles: bool,
    /// The options and values by which what it gives is random, beside its order; `*` for always.
    #[serde(default)]
    pub draws: String,
    /// Whether it keeps what it reads, which is the same in every epoch then.
    #[serde(default)]
    pub keeps: bool,
    /// The option that is set to the identity of what it reads; empty where there is none.
    #[serde(default)]
    pub identity_option: String,
    /// The option that is set to the names of folders, and the one that says where they lie; empty where there are none.
    #[serde(default)]
    pub folders_option: String,
    /// Whether it may start its inputs over.
    #[serde(default)]
    pub rewinds: bool,
    /// Whether it gives each rank its share.
    #[serde(default)]
    pub shards: bool,
    /// Whether it asks for decoders.
    #[serde(default)]
    pub decodes: bool,
    /// Where its work is done best.
    #[serde(default, deserialize_with = "hint")]
    pub on: On,
    /// The files it opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<OpensSpec>,
}

fn one() -> u32 {
    1
}

/// Which files a pipe opens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpensSpec {
    /// Extensions in lower case.
    pub extensions: Vec<String>,
    /// Any of these makes it a candidate; an empty one for every file.
    pub magic: Vec<MagicSpec>,
    /// The pipe that turns its pieces into samples; empty for none.
    pub then: String,
}

/// Bytes that files of one kind have at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MagicSpec {
    /// Where.
    pub offset: usize,
    /// Which, in hexadecimal.
    pub bytes: String,
}

/// Whether a file with this head has these bytes at their offset. Nothing begins with no bytes.
pub fn begins((offset, bytes): &(usize, Vec<u8>), head: &[u8]) -> bool {
    !bytes.is_empty() && head.get(*offset..).is_some_and(|rest| rest.starts_with(bytes))
}

impl MagicSpec {
    /// Whether a file with this head has the bytes where they belong.
    #[must_use]
    pub fn begins(&self, head: &[u8]) -> bool {
        self.decode().is_some_and(|bytes| begins(&(self.offset, bytes), head))
    }

    /// The bytes; none for a malformed text.
    pub fn decode(&self) -> Option<Vec<u8>> {
        let digits = self.bytes.as_bytes().chunks(2);
        digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
    }
}

impl PipeSpec {
    /// Whether samples come out of it in a random order.
    pub fn reorders(&self) -> bool {
        self.shuffles && self.class != Class::Map
    }

    /// A map without options.
    pub fn map(name: &str, summary: &str) -> Self {
        Self {
            name: name.to_owned(),
            class: Class::Map,
            summary: summary.to_owned(),
            also: String::new(),
            options: Vec::new(),
            inputs: (1, 1),
            outputs: 1,
            outputs_option: String::new(),
            per_input: String::new(),
            stacks: String::new(),
            uids_option: String::new(),
            gives: String::new(),
            uids: Uids::default(),
            drops: String::new(),
            takes: String::new(),
            writes: false,
            parallel: false,
            indexed: false,
            samples: false,
            shuffles: false,
            draws: String::new(),
            keeps: false,
            identity_option: String::new(),
            folders_option: String::new(),
            rewinds: false,
            shards: false,
            decodes: false,
            opens: None,
            on: On::default(),
        }
    }
}

/// A hint may be one that only later loaders know of.
fn hint<'de, D: Deserializer<'de>>(from: D) -> Result<On, D::Error> {
    Ok(String::deserialize(from)?.parse().unwrap_or_default())
}

impl PipeSpec {
    /// What one of the samples it gives is called, and several, where each is made of several others.
    #[must_use]
    pub fn unit(&self) -> Option<(&str, &str)> {
        self.gives.split_once(' ')
    }

    /// Whether several of its chunks may be worked on at once: a map, or a flat map that says so.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.class == Class::Map || self.expands()
    }

    /// Whether it is a flat map of which several chunks may be worked on at once.
    #[must_use]
    pub fn expands(&self) -> bool {
        self.class == Class::FlatMap && self.parallel
    }

    /// Whether it gives one sample for each that it takes, and has no state: a map, or what gets samples that were drawn.
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.class == Class::Map || self.expands() && self.indexed
    }

    /// Whether `node`, which runs this pipe, may leave samples out on purpose.
    #[must_use]
    pub fn may_drop(&self, node: &Node) -> bool {
        let mut options =
            self.options.iter().filter(|option| self.drops.split(' ').any(|drops| option.name == drops));
        let told = options.any(|option| {
            let given = node.options.get(&option.name);
            option.required || given.is_some_and(|given| *given != option.default)
        });
        told || self.drops == "*"
    }

    /// Whether what `node` gives, which runs this pipe, is random, be it the order alone.
    #[must_use]
    pub fn is_random(&self, node: &Node) -> bool {
        let value = |name: &str| {
            let option = self.options.iter().find(|option| option.name == name)?;
            Some(self.given(node, name).unwrap_or(&option.default))
        };
        let holds = |condition: &str| match (condition.split_once('='), condition.split_once('~')) {
            (_, Some((name, text))) => value(name).is_some_and(|value| value.to_string().contains(text)),
            (Some((name, wanted)), _) => {
                let wanted = wanted.parse().unwrap_or_else(|_| Value::from(wanted));
                value(name) == Some(&wanted)
            }
            _ => condition == "*",
        };
        self.shuffles || self.draws.split_whitespace().any(holds)
    }

    /// What `node` gives an option, by name or by position.
    pub(super) fn given<'a>(&self, node: &'a Node, option: &str) -> Option<&'a Value> {
        let first = self.options.first().is_some_and(|first| first.name == option);
        node.options.get(option).or_else(|| node.options.get(POSITIONAL).filter(|_| first))
    }

    /// How many outputs `node` has, which runs this pipe: an option may say so.
    #[must_use]
    pub fn outputs_of(&self, node: &Node) -> u32 {
        let Some(at) = self.options.iter().position(|option| option.name == self.outputs_option) else {
            return self.outputs;
        };
        let option = &self.options[at];
        let count = self.given(node, &option.name).unwrap_or(&option.default).as_u64();
        count.and_then(|count| u32::try_from(count).ok()).unwrap_or(self.outputs)
    }
}

/// Which uids the samples of a stream have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Uids {
    /// Those they came with.
    #[default]
    Kept,
    /// Made of those they came with, by rules that are known.
    Derived,
    /// New ones.
    Made,
}

/// What a pipe does to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Class {
    /// No input.
    Source,
    /// Stateless, sample by sample.
    Map,
    /// Stateless, one sample to a stream.
    FlatMap,
    /// Stateful, in order.
    Stream,
    /// No output.
    Sink,
}

/// The schema of one option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptionSpec {
    /// The key in a graph.
    pub name: String,
    /// What one value is.
    pub kind: Kind,
    /// Whether it takes one value, a list of them, or either.
    #[serde(default)]
    pub list: List,
    /// Whether null means something; in a graph that is the option not given.
    #[serde(default)]
    pub optional: bool,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// What it is when not given.
    #[serde(default)]
    pub default: Value,
    /// The least number.
    #[serde(default)]
    pub min: Option<Number>,
    /// The greatest number.
    #[serde(default)]
    pub max: Option<Number>,
    /// The only texts taken, if any are listed.
    #[serde(default)]
    pub choices: Vec<String>,
    /// For people.
    #[serde(default)]
    pub doc: String,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A whole number from 0.
    Uint,
    /// A number.
    Float,
    /// Text.
    Str,
    /// Anything; the pipe knows.
    Any,
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
