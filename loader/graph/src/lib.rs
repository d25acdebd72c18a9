//! A graph as plain data, in every form that a person or a program writes.
//!
//! A [`Graph`] is a list of nodes. Each has a unique name, the name of a pipe, the pipe's options and the
//! nodes it reads from. The same graph comes from TOML, from JSON, from the one-line form and from a
//! [`Builder`], and prints back in each. Equal graphs are equal data and have one [`Fingerprint`], whatever
//! form they came from. Nothing here knows a format or a pipe. A [`Catalog`] knows which pipes exist and
//! which options they take; only [`Graph::check`] needs it.
//!
//! # TOML and JSON
//!
//! ```toml
//! [run]                        # how to run it: no part of what the graph is
//! seed = 7
//!
//! [[node]]
//! pipe = "files"               # `name` defaults to the pipe's, made unique by -2, -3
//! paths = "shards/*.tar"       # options stand beside; reserved: name, pipe, inputs; every pipe has on_error and on, every map unordered,
//!                              # and one that decodes `options = {NAME = {option = value}}` for decoders, by their names
//!
//! [[node]]
//! pipe = "untar"               # `inputs` defaults to the node before
//! ```
//!
//! JSON has the same structure: `{"run": {..}, "node": [{"pipe": "files", ..}]}`. An option that is `null` is an
//! option not given. `inputs = ["a", "b.1"]` names nodes, with an output port for pipes that have several.
//!
//! # The one-line form
//!
//! `files 'shards/*.tar' | untar | shuffle 5000 | batch 64 drop_last=true`: the first option by position, the rest by
//! name. `|` reads from the node before; `;` stands between nodes that do not, and `<..>` then names the inputs:
//! `files @x 'a/*' ; files @y 'b/*' ; zip <x, y> | batch 2`.
//!
//! ```text
//! graph  = node { ( "|" | ";" ) node } ;
//! node   = pipe [ "@" name ] [ "<" [ input { "," input } ] ">" ] [ value ] { option "=" value } ;
//! input  = name [ "." port ] ;                               (* no "<" after "|" *)
//! value  = word | string | "[" [ value { "," value } [ "," ] ] "]" | "{" [ entry { "," entry } [ "," ] ] "}" ;
//! entry  = ( option | string ) "=" value ;
//! word   = "true" | "false" | "null" | number | characters other than space | ; ' " = [ ] { } , < >, no @ first ;
//! string = "'" characters "'" | '"' characters '"' ;         (* \\ \' \" \n \r \t \0 \u{1F600} in both *)
//! pipe   = letter or digit or "_", then also - . / : ;
//! name   = letter or digit or "_", then also - ;
//! option = letter or "_", then letters, digits, _ and - ;
//! number = as in JSON, with "_" between digits and a leading "+" allowed; 007 and 1.2.3 are text ;
//! ```

mod builder;
mod canonical;
mod catalog;
mod check;
mod decoders;
mod document;
mod draws;
mod excerpt;
mod fingerprint;
mod line;
mod options;
mod policy;
mod print;
mod ranks;
mod settings;
#[cfg(test)]
mod tests;
mod unshuffled;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use forebay_core::{Error, Result, nearest};
use serde_json::Value;

pub use builder::{Builder, Draft};
pub use catalog::{Catalog, Kind, MagicSpec, OpensSpec, OptionSpec, PipeSpec, begins};
pub use fingerprint::{Fingerprint, node_hash};
pub use forebay_core::{
    Access, Class, Condition, Drops, FoldersOption, List, Noun, On, PipeAudit, PipeLayout, PipeOrder,
    PipePlacement, Randomness, Uids, parse_bytes,
};
pub use options::fit as fits;
pub use policy::{Action, Most, OnError};
pub use ranks::dealt;
pub use settings::Settings;

/// The option name that holds a value given by position, until [`Graph::check`] knows its real name.
pub const POSITIONAL: &str = "";

/// The option of every pipe that says what happens to a sample it fails on: see [`OnError`].
pub const ON_ERROR: &str = "on_error";

/// The option of every pipe that says where its work is done: see [`On`].
pub const ON: &str = "on";

/// The option of every map that lets samples come as they are done, in any order, so that a slow sample does not
/// hold up others. False unless given.
pub const UNORDERED: &str = "unordered";

/// The option for options of decoders, of every pipe that uses decoders: `options = {NAME = {OPTION = value}}`. If
/// several plugins have a decoder of one name, write `NAME@PLUGIN`. If a pipe has its own option of this name,
/// that one applies.
pub const OPTIONS: &str = "options";

/// The options that every pipe has and the loader reads. The last one is only for maps.
pub const COMMON: [&str; 3] = [ON_ERROR, ON, UNORDERED];

/// The most nodes one graph may have.
pub const MAX_NODES: usize = 10_000;

/// A whole pipeline as data: nodes in the order in which they were written, and how to run them.
///
/// ```
/// # use forebay_graph::Graph;
/// let graph = Graph::from_line("files 'shards/*.tar' | untar | batch 64 drop_last=true")?;
/// assert_eq!(graph.nodes().len(), 3);
/// assert_eq!(Graph::from_toml(&graph.to_toml())?, graph);
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    /// How to run it. It is no part of the fingerprint, nor of the one-line form.
    pub run: Settings,
}

/// One entry of a [`Graph`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// Its name, unique in a checked graph.
    pub name: String,
    /// The pipe it runs.
    pub pipe: String,
    /// The options that were given, none of them null; see [`POSITIONAL`].
    pub options: BTreeMap<String, Value>,
    /// The outputs it reads, in the pipe's order.
    pub inputs: Vec<Input>,
}

/// One output of one node: `fork` is its first, `fork.1` its second.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Input {
    /// The name of the node.
    pub node: String,
    /// Which of its outputs, from 0.
    pub port: u32,
}

impl Graph {
    /// Starts a graph in Rust.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The nodes, in the order they were written.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The graph with one more node, which the node called `reader` reads instead of what the new one reads.
    pub(crate) fn with_node_before(mut self, node: Node, reader: Option<&str>) -> Self {
        let reader = self.nodes.iter().position(|other| Some(other.name.as_str()) == reader);
        let output = Input { node: node.name.clone(), port: 0 };
        if let Some(reader) = reader {
            let old = self.nodes[reader].inputs.iter_mut().filter(|input| node.inputs.contains(input));
            old.for_each(|input| *input = output.clone());
        }
        self.nodes.insert(reader.unwrap_or(self.nodes.len()), node);
        self
    }

    /// The graph of one source.
    pub fn of_node(source: Node) -> Self {
        Self { nodes: vec![source], run: Settings::default() }
    }

    /// The graph with those options only that are `needed`.
    pub fn with_options(&self, needed: impl Fn(&Node, &str) -> bool) -> Self {
        let reduced = |node: &Node| {
            let options = node.options.iter().filter(|(option, _)| needed(node, option));
            Node {
                name: node.name.clone(),
                pipe: node.pipe.clone(),
                options: options.map(|(option, value)| (option.clone(), value.clone())).collect(),
                inputs: node.inputs.clone(),
            }
        };
        Self { nodes: self.nodes.iter().map(reduced).collect(), run: self.run.clone() }
    }

    /// The node at this place and all that it reads from.
    pub fn up_to(&self, last: usize) -> Self {
        let nodes = above(&self.edges(), last).into_iter().map(|at| self.nodes[at].clone());
        Self { nodes: nodes.collect(), run: self.run.clone() }
    }

    /// The graph without some nodes that have one input: who reads them reads that.
    pub fn without(mut self, leaves: impl Fn(&Node) -> bool) -> Self {
        while let Some(at) = self.nodes.iter().position(|node| node.inputs.len() == 1 && leaves(node)) {
            let Node { name, inputs, .. } = self.nodes.remove(at);
            let readers = self.nodes.iter_mut().flat_map(|node| &mut node.inputs);
            for (input, read) in readers.filter(|input| input.node == name).zip(inputs.iter().cycle()) {
                *input = read.clone();
            }
        }
        self
    }

    /// The node of this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// An order of the nodes in which each comes after all nodes that it reads from. Otherwise the written order
    /// is kept.
    ///
    /// # Errors
    /// `Invalid` if nodes read from each other in a circle; the error names them in order.
    pub fn order(&self) -> Result<Vec<usize>> {
        let sources = self.edges();
        let mut waiting: Vec<usize> = sources.iter().map(Vec::len).collect();
        let mut readers = vec![Vec::new(); self.nodes.len()];
        for (reader, read) in sources.iter().enumerate() {
            read.iter().for_each(|&from| readers[from].push(reader));
        }
        let mut ready: BTreeSet<usize> = (0..self.nodes.len()).filter(|&at| waiting[at] == 0).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(at) = ready.pop_first() {
            order.push(at);
            for &reader in &readers[at] {
                waiting[reader] -= 1;
                if waiting[reader] == 0 {
                    ready.insert(reader);
                }
            }
        }
        if order.len() == self.nodes.len() { Ok(order) } else { Err(self.circle(&sources, &waiting)) }
    }

    /// For each node the positions of those it reads from; inputs that name nothing are left out.
    pub fn edges(&self) -> Vec<Vec<usize>> {
        let places = self.places();
        let read =
            |node: &Node| node.inputs.iter().filter_map(|i| places.get(i.node.as_str()).copied()).collect();
        self.nodes.iter().map(read).collect()
    }

    /// The graph after `change` was called on each of its nodes.
    ///
    /// # Errors
    /// The errors of `change`.
    pub fn with_each(mut self, change: impl FnMut(&mut Node) -> Result<()>) -> Result<Self> {
        self.nodes.iter_mut().try_for_each(change)?;
        Ok(self)
    }

    /// Has the work of a node done there.
    pub fn move_node(&mut self, at: usize, on: On) {
        self.nodes[at].place(on);
    }

    /// Where each name stands first.
    fn places(&self) -> HashMap<&str, usize> {
        self.nodes.iter().enumerate().rev().map(|(at, node)| (node.name.as_str(), at)).collect()
    }

    /// Names one circle among the nodes that are still waiting.
    fn circle(&self, sources: &[Vec<usize>], waiting: &[usize]) -> Error {
        // Every waiting node reads from a waiting one, so walking backwards must come round.
        let mut path = Vec::new();
        let mut seen = HashMap::new();
        let mut at = waiting.iter().position(|&count| count > 0);
        while let Some(node) = at {
            if let Some(&start) = seen.get(&node) {
                path.drain(..start);
                break;
            }
            seen.insert(node, path.len());
            path.push(node);
            at = sources[node].iter().copied().find(|&from| waiting[from] > 0);
        }
        path.reverse();
        let first = path.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
        path.rotate_left(first);
        path.extend(path.first().copied());
        let names: Vec<&str> = path.iter().map(|&node| self.nodes[node].name.as_str()).collect();
        let first = path.first().map(|&node| &self.nodes[node]);
        let error = Error::invalid(format!("nodes read from each other in a circle: {}", names.join(" -> ")));
        first.map_or(error.clone(), |node| node.locate(error))
    }
}

/// The one-line form, every option by name except those given by position.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_line(None))
    }
}

/// A node and all that it reads from, by what each reads from.
pub fn above(read: &[Vec<usize>], node: usize) -> BTreeSet<usize> {
    let (mut found, mut todo) = (BTreeSet::new(), vec![node]);
    while let Some(at) = todo.pop() {
        if found.insert(at) {
            todo.extend(&read[at]);
        }
    }
    found
}

impl Node {
    /// The options that its pipe reads, as JSON: all but those that every pipe has, and those of decoders; `changed` replaces some of them.
    pub fn own_options<'a>(
        &'a self,
        spec: &PipeSpec,
        changed: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> String {
        let options = self.options.iter().map(|(name, value)| (name.as_str(), value));
        let own = |name: &str| !(COMMON.contains(&name) || name == OPTIONS && spec.configures());
        let mut options: BTreeMap<_, _> = options.filter(|(name, _)| own(name)).collect();
        options.extend(changed);
        let mut json = String::new();
        let mut text = canonical::Text::new(|part: &str| json.push_str(part));
        text.entries(options.into_iter());
        text.flush();
        json
    }

    /// Where the graph wants its work done; of a checked graph.
    pub fn on(&self) -> Option<On> {
        self.options.get(ON)?.as_str()?.parse().ok()
    }

    /// Has its work done there.
    pub(crate) fn place(&mut self, on: On) {
        self.options.insert(ON.to_owned(), Value::from(on.to_string()));
    }

    /// Whether its samples come as they are done; of a checked graph.
    pub fn is_unordered(&self) -> bool {
        self.options.get(UNORDERED) == Some(&Value::Bool(true))
    }

    /// What happens to samples that it fails on; of a checked graph.
    pub fn on_error(&self) -> OnError {
        let policy = self.options.get(ON_ERROR).and_then(|policy| policy.as_str()?.parse().ok());
        policy.unwrap_or_default()
    }

    /// Says that `error` happened at this node.
    pub fn locate(&self, error: Error) -> Error {
        error.context("node", &self.name).context("pipe", &self.pipe)
    }
}

impl Input {
    /// Reads `node` or `node.port`.
    ///
    /// # Errors
    /// `Invalid` when the text is neither.
    pub fn parse(text: &str) -> Result<Self> {
        let (node, port) = match text.split_once('.') {
            None => (text, Some(0)),
            Some((node, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (node, port.parse().ok()),
            Some((node, _)) => (node, None),
        };
        match port {
            Some(port) if builder::is_name(node) => Ok(Self { node: node.to_owned(), port }),
            _ => Err(Error::invalid(format!(
                "input is `{text}`, expected a node's name, or name.port as in `a.1`"
            ))),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            0 => f.write_str(&self.node),
            port => write!(f, "{}.{port}", self.node),
        }
    }
}
