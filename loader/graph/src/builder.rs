//! Graphs written in Rust, and the one place where every form becomes a [`Graph`]: default names and inputs, and
//! what names and values may hold.

use std::collections::{BTreeMap, HashMap, HashSet};

use forebay_core::{Error, Result};
use serde_json::Value;

use super::{Catalog, Graph, Input, MAX_NODES, Node, POSITIONAL, Settings};

/// Words that are no option's name: they are, or are kept for, words about the node itself.
const RESERVED: [&str; 3] = ["name", "pipe", "inputs"];

/// How deep lists and maps in an option's value may nest.
pub(super) const MAX_DEPTH: usize = 32;

/// Builds a [`Graph`] in Rust: a chain by [`pipe`](Self::pipe), anything else by [`node`](Self::node).
///
/// ```
/// # use forebay_graph::{Draft, Graph};
/// let graph = Graph::builder()
///     .node(Draft::source("files").name("a").option("paths", "a/*.tar"))
///     .node(Draft::source("files").name("b").option("paths", "b/*.tar"))
///     .node(Draft::new("zip").inputs(["a", "b"]))
///     .pipe("batch")
///     .option("size", 64)
///     .build()?;
/// assert_eq!(
///     graph.to_string(),
///     "files @a paths=a/*.tar ; files @b paths=b/*.tar ; zip <a, b> | batch size=64",
/// );
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Builder {
    drafts: Vec<Draft>,
    run: Settings,
}

impl Builder {
    /// Adds a node that runs `pipe` and reads the node before.
    #[must_use]
    pub fn pipe(self, pipe: impl Into<String>) -> Self {
        self.node(Draft::new(pipe))
    }

    /// Gives the last node an option; with no node yet, [`build`](Self::build) fails.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let last = self.drafts.pop().unwrap_or_default();
        self.node(last.option(name, value))
    }

    /// Adds a node.
    #[must_use]
    pub fn node(mut self, draft: Draft) -> Self {
        self.drafts.push(draft);
        self
    }

    /// Sets how to run the graph.
    #[must_use]
    pub fn run(mut self, run: Settings) -> Self {
        self.run = run;
        self
    }

    /// Makes the graph.
    ///
    /// # Errors
    /// `Invalid` if there is no node, if a name or option name has characters that names cannot have, or if
    /// an option is given twice. Also if a value nests more than 32 levels or holds null. `Limit` above
    /// [`MAX_NODES`].
    pub fn build(self) -> Result<Graph> {
        assemble(self.drafts, self.run)
    }

    /// Makes the graph, and checks it against `catalog`, usually a `Registry` of `forebay-registry`.
    /// [`build`](Self::build) knows no pipes, so a misspelt pipe fails only when a loader is made.
    ///
    /// ```
    /// use forebay_graph::{Catalog, Graph, PipeSpec};
    ///
    /// struct Pipes(Vec<PipeSpec>);
    ///
    /// impl Catalog for Pipes {
    ///     fn pipe(&self, name: &str) -> Option<&PipeSpec> {
    ///         self.0.iter().find(|pipe| pipe.name == name)
    ///     }
    ///
    ///     fn names(&self) -> Vec<String> {
    ///         self.0.iter().map(|pipe| pipe.name.clone()).collect()
    ///     }
    ///
    ///     fn looked(&self) -> String {
    ///         "this program".to_owned()
    ///     }
    /// }
    ///
    /// let pipes = Pipes(serde_json::from_str(r#"[{"name": "range", "class": "source"}, {"name": "batch", "class": "stream"}]"#)?);
    /// let error = Graph::builder().pipe("range").pipe("bacth").check(&pipes).unwrap_err();
    /// assert_eq!(error.message(), "unknown pipe `bacth`; did you mean `batch`?");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`build`](Self::build) and of [`Graph::check`]: unknown pipes and options with the nearest
    /// name, values of the wrong type, wrong inputs.
    pub fn check(self, catalog: &dyn Catalog) -> Result<Graph> {
        let graph = self.build()?;
        // As it was written: options by position, and samplers where they stand.
        graph.check(catalog)?;
        Ok(graph)
    }
}

/// One node as written. Parts that are left out get their defaults when the graph is made.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub(super) name: Option<String>,
    pub(super) pipe: String,
    pub(super) options: Vec<(String, Value)>,
    pub(super) inputs: Option<Vec<String>>,
}

impl Draft {
    /// A node that runs `pipe`.
    #[must_use]
    pub fn new(pipe: impl Into<String>) -> Self {
        Self { pipe: pipe.into(), ..Self::default() }
    }

    /// A node that runs `pipe` and reads no other node: a source that stands behind another node.
    ///
    /// ```
    /// # use forebay_graph::{Draft, Graph};
    /// let graph = Graph::builder()
    ///     .node(Draft::source("range").option("stop", 3))
    ///     .node(Draft::source("range").option("stop", 5))
    ///     .node(Draft::new("concat").inputs(["range", "range-2"]))
    ///     .build()?;
    /// assert_eq!(graph.to_string(), "range stop=3 ; range stop=5 ; concat <range, range-2>");
    /// # Ok::<(), forebay_core::Error>(())
    /// ```
    #[must_use]
    pub fn source(pipe: impl Into<String>) -> Self {
        Self { pipe: pipe.into(), inputs: Some(Vec::new()), ..Self::default() }
    }

    /// Sets its name. The default is the name of its pipe, made unique by `-2`, `-3`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets an option. Null is the same as not given; [`POSITIONAL`] is the pipe's first option.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// Sets its inputs: `a`, or `a.1` for a second output. The default is the node before.
    #[must_use]
    pub fn inputs(mut self, inputs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.inputs = Some(inputs.into_iter().map(Into::into).collect());
        self
    }

    /// The node, once its name and the node before it are known.
    fn finish(self, name: String, before: Option<&Node>) -> Result<Node> {
        let mut node = Node { name, pipe: self.pipe, options: BTreeMap::new(), inputs: Vec::new() };
        check_pipe(&node.pipe).and_then(|()| check_name(&node.name)).map_err(|error| node.locate(error))?;
        for (option, value) in self.options {
            check_option(&option).and_then(|()| check_value(&value)).map_err(|error| node.locate(error))?;
            if !value.is_null() && node.options.insert(option.clone(), value).is_some() {
                return Err(node.locate(Error::invalid(format!("option `{option}` is given twice"))));
            }
        }
        node.inputs = match self.inputs {
            None => before.map(|before| Input { node: before.name.clone(), port: 0 }).into_iter().collect(),
            Some(inputs) => {
                let inputs: Result<_> = inputs.iter().map(|input| Input::parse(input)).collect();
                inputs.map_err(|error| node.locate(error))?
            }
        };
        Ok(node)
    }
}

/// Makes a graph of drafts from any form.
pub(super) fn assemble(drafts: Vec<Draft>, run: Settings) -> Result<Graph> {
    if drafts.is_empty() {
        return Err(Error::invalid("the graph has no nodes, expected at least one"));
    }
    if drafts.len() > MAX_NODES {
        return Err(Error::limit(format!(
            "the graph has {} nodes, expected at most {MAX_NODES}",
            drafts.len()
        )));
    }
    let names = name_all(drafts.iter().map(|draft| (draft.name.as_deref(), draft.pipe.as_str())));
    let mut nodes: Vec<Node> = Vec::with_capacity(drafts.len());
    for (draft, name) in drafts.into_iter().zip(names) {
        nodes.push(draft.finish(name, nodes.last())?);
    }
    Ok(Graph { nodes, run })
}

/// The names of all nodes: the given one, or the pipe's, or the pipe's with the first number that is free.
pub(super) fn name_all<'a>(nodes: impl Iterator<Item = (Option<&'a str>, &'a str)> + Clone) -> Vec<String> {
    let mut taken: HashSet<String> = nodes.clone().filter_map(|(name, _)| name.map(str::to_owned)).collect();
    let mut next: HashMap<&str, usize> = HashMap::new();
    nodes
        .map(|(name, pipe)| {
            if let Some(name) = name {
                return name.to_owned();
            }
            let base = base_name(pipe);
            let number = next.entry(base).or_insert(1);
            loop {
                let name = if *number == 1 { base.to_owned() } else { format!("{base}-{number}") };
                *number += 1;
                if taken.insert(name.clone()) {
                    return name;
                }
            }
        })
        .collect()
}

/// Whether a nameless node of this pipe could get this name, depending on the others.
pub(super) fn may_be_default(name: &str, pipe: &str) -> bool {
    let rest = name.strip_prefix(base_name(pipe));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The part of a pipe's name that may name a node.
fn base_name(pipe: &str) -> &str {
    pipe.rsplit(['.', '/', ':']).find(|part| is_name(part)).unwrap_or("node")
}

fn is_first(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a character may stand in a node's name, or in an option's.
pub(super) fn in_name(c: char) -> bool {
    is_first(c) || c == '-'
}

/// Whether a character may stand in a pipe's name.
pub(super) fn in_pipe(c: char) -> bool {
    in_name(c) || matches!(c, '.' | '/' | ':')
}

/// Whether a node may be called this.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(is_first) && text.chars().all(in_name)
}

/// Whether this could be an option's name.
pub(super) fn is_option(text: &str) -> bool {
    is_name(text) && !text.starts_with(|c: char| c.is_ascii_digit())
}

pub(super) fn check_name(text: &str) -> Result<()> {
    if is_name(text) {
        return Ok(());
    }
    Err(Error::invalid(format!("node name is `{text}`, expected letters, digits, `_` and `-`")))
}

pub(super) fn check_pipe(text: &str) -> Result<()> {
    if text.starts_with(is_first) && text.chars().all(in_pipe) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "pipe name is `{text}`, expected letters, digits, `_`, `-`, `.`, `/` and `:`"
    )))
}

pub(super) fn check_option(text: &str) -> Result<()> {
    if RESERVED.contains(&text) {
        return Err(Error::invalid(format!("`{text}` is a reserved word, expected the name of an option")));
    }
    if text == POSITIONAL || is_option(text) {
        return Ok(());
    }
    Err(Error::invalid(format!("option name is `{text}`, expected letters, digits, `_` and `-`")))
}

/// Refuses what some form could not print: null inside lists and maps, and endless nesting.
fn check_value(value: &Value) -> Result<()> {
    let mut stack = vec![(value, 0)];
    while let Some((value, depth)) = stack.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("value nests deeper than {MAX_DEPTH} lists and maps")));
        }
        match value {
            Value::Null if depth > 0 => return Err(Error::invalid("found null inside a list or map")),
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(entries) => stack.extend(entries.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}
