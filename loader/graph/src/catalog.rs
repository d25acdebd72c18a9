//! The catalog that a graph is checked against: the pipes and their options, as manifests describe them.

mod wire;

use forebay_core::{
    Access, Class, Condition, Drops, List, On, PipeAudit, PipeInfo, PipeLayout, PipeOrder, PipePlacement,
    Randomness,
};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use self::wire::Wire;
use super::{Node, POSITIONAL};

/// The pipes that exist.
pub trait Catalog {
    /// The pipe of this name.
    fn pipe(&self, name: &str) -> Option<&PipeSpec>;

    /// The pipes that have this name in other libraries.
    fn called(&self, _name: &str) -> Vec<&str> {
        Vec::new()
    }

    /// All names, for the hint after an unknown pipe.
    fn names(&self) -> Vec<String>;

    /// Where pipes were searched for, for the same error.
    fn looked(&self) -> String;

    /// The options of each decoder of this name, `NAME` or `NAME@PLUGIN`; empty if there is none.
    fn decoders(&self, _name: &str) -> Vec<&[OptionSpec]> {
        Vec::new()
    }

    /// The names of all decoders, for the hint after an unknown one.
    fn decoder_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Where a node must run because its plugin is isolated; the graph cannot change that.
    fn isolates(&self, _node: &Node) -> Option<On> {
        None
    }
}

/// What a manifest says of one pipe: what its plugin declares as a [`PipeInfo`], with its class and its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct PipeSpec {
    /// Its name in a graph.
    pub name: String,
    /// What it does to a stream.
    pub class: Class,
    /// One sentence for people.
    pub summary: String,
    /// Names that other libraries use for it.
    pub also: Vec<String>,
    /// Its options; the first may be given by position.
    pub options: Vec<OptionSpec>,
    /// Its inputs and outputs.
    pub layout: PipeLayout,
    /// Which samples it gives, and in which order.
    pub order: PipeOrder,
    /// What an audit must know of it.
    pub audit: PipeAudit,
    /// Where it may run.
    pub placement: PipePlacement,
    /// The files it opens.
    pub opens: Option<OpensSpec>,
}

/// Which files a pipe opens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpensSpec {
    /// Extensions in lower case.
    pub extensions: Vec<String>,
    /// Each of these makes it a candidate; an empty one matches every file.
    pub magic: Vec<MagicSpec>,
    /// The pipe that turns its pieces into samples; empty for none.
    pub then: String,
}

/// Bytes at a fixed place of all files of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MagicSpec {
    /// The offset of the bytes.
    pub offset: usize,
    /// The bytes, in hexadecimal.
    pub bytes: String,
}

/// Whether a file with this head has these bytes at their offset. Nothing begins with no bytes.
pub fn begins((offset, bytes): &(usize, Vec<u8>), head: &[u8]) -> bool {
    !bytes.is_empty() && head.get(*offset..).is_some_and(|rest| rest.starts_with(bytes))
}

impl MagicSpec {
    /// Whether a file with this head has the bytes at the offset.
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
        self.order.shuffles && self.class != Class::Map
    }

    /// A map without options.
    pub fn map(name: &str, summary: &str) -> Self {
        let PipeInfo { layout, order, audit, placement, .. } = PipeInfo::DEFAULT;
        Self {
            name: name.to_owned(),
            class: Class::Map,
            summary: summary.to_owned(),
            also: Vec::new(),
            options: Vec::new(),
            layout,
            order,
            audit,
            placement,
            opens: None,
        }
    }

    /// Whether it can work on several chunks at once: a map, or a flat map that says so.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.class == Class::Map || self.expands()
    }

    /// Whether it is a flat map that can work on several chunks at once.
    #[must_use]
    pub fn expands(&self) -> bool {
        self.class == Class::FlatMap && self.placement.parallel
    }

    /// Whether it gives one sample for each that it takes, and has no state: a map, or a pipe that reads drawn
    /// samples.
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.class == Class::Map || self.expands() && self.is_indexed()
    }

    /// Whether `node`, which runs this pipe, can leave samples out on purpose.
    #[must_use]
    pub fn may_drop(&self, node: &Node) -> bool {
        let told = |name: &str| {
            let option = self.options.iter().find(|option| option.name == name);
            option.is_some_and(|option| {
                let given = node.options.get(&option.name);
                option.required || given.is_some_and(|given| *given != option.default)
            })
        };
        match self.audit.drops {
            Drops::Never => false,
            Drops::Always => true,
            Drops::With(options) => options.iter().any(|name| told(name)),
        }
    }

    /// Whether the output of `node`, which runs this pipe, is random, even if only in its order.
    #[must_use]
    pub fn is_random(&self, node: &Node) -> bool {
        let value = |name: &str| {
            let option = self.options.iter().find(|option| option.name == name)?;
            Some(self.given(node, name).unwrap_or(&option.default))
        };
        let holds = |condition: &Condition| match *condition {
            Condition::Contains(name, text) => {
                value(name).is_some_and(|value| value.to_string().contains(text))
            }
            Condition::Is(name, wanted) => {
                let wanted = wanted.parse().unwrap_or_else(|_| Value::from(wanted));
                value(name) == Some(&wanted)
            }
        };
        let draws = match self.order.draws {
            Randomness::Never => false,
            Randomness::Always => true,
            Randomness::If(conditions) => conditions.iter().any(holds),
        };
        self.order.shuffles || draws
    }

    /// Whether its samples can be asked for by number.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.layout.access == Access::Indexed
    }

    /// Whether it says which samples of an indexed source come.
    #[must_use]
    pub fn is_sampler(&self) -> bool {
        self.layout.access == Access::Sampler
    }

    /// Whether it stacks consecutive samples.
    #[must_use]
    pub fn stacks(&self) -> bool {
        self.layout.stacks.is_some()
    }

    /// What `node` gives an option, by name or by position.
    pub(super) fn given<'a>(&self, node: &'a Node, option: &str) -> Option<&'a Value> {
        let first = self.options.first().is_some_and(|first| first.name == option);
        node.options.get(option).or_else(|| node.options.get(POSITIONAL).filter(|_| first))
    }

    /// How many outputs `node` has, which runs this pipe. An option can set the number.
    #[must_use]
    pub fn outputs_of(&self, node: &Node) -> u32 {
        let Some(at) =
            self.options.iter().position(|option| Some(option.name.as_str()) == self.layout.outputs_option)
        else {
            return self.layout.outputs;
        };
        let option = &self.options[at];
        let count = self.given(node, &option.name).unwrap_or(&option.default).as_u64();
        count.and_then(|count| u32::try_from(count).ok()).unwrap_or(self.layout.outputs)
    }
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
    /// Whether null is a value; in a graph, null means that the option is not given.
    #[serde(default)]
    pub optional: bool,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// The default.
    #[serde(default)]
    pub default: Value,
    /// The least number.
    #[serde(default)]
    pub min: Option<Number>,
    /// The greatest number.
    #[serde(default)]
    pub max: Option<Number>,
    /// If not empty, the only texts that it takes.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Documentation, for people.
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
    /// Any value; the pipe checks it.
    Any,
}
