//! How many samples nodes give, worked out before any is read.

use std::{slice, sync::Arc};

use forebay_core::{
    Chunk, Length, Result, Value,
    sampling::{COUNT, COUNTS},
    shim::check,
};
use forebay_engine::host::{Host, NodeContext};
use forebay_graph::{Action, Catalog as _, Class, Graph, Node, On, PipeSpec};
use forebay_registry::{Registry, handles::PipeHandle};

/// Asks the pipes of a graph, each made for this alone.
#[derive(Clone, Copy)]
pub(crate) struct Lengths<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) registry: &'a Registry,
    pub(crate) host: &'a Arc<Host>,
    pub(crate) seed: u64,
    pub(crate) ranks: (u32, u32),
}

impl Lengths<'_> {
    /// How many samples each node gives by each of its outputs; none where that depends on what is in the samples, or nobody can be asked.
    ///
    /// # Errors
    /// Those of sources that count, and of what plugins make.
    pub(crate) fn all(self) -> Result<Vec<Option<Length>>> {
        self.each(|at, inputs| {
            let node = &self.graph.nodes()[at];
            let length = match self.spec(node).class {
                Class::Source => self.counted(node),
                _ => self.of(at, inputs).transpose().map(Option::flatten),
            };
            length.map_err(|error| error.context("pipe", &node.name))
        })
    }

    /// As [`all`](Self::all), as far as it is known before anything is opened; what cannot be asked is not known.
    pub(crate) fn told(self) -> Result<Vec<Option<Length>>> {
        self.each(|at, inputs| {
            let node = &self.graph.nodes()[at];
            Ok(match self.spec(node).class {
                Class::Source => self.own(node),
                _ => self.of(at, inputs).and_then(Result::ok).flatten(),
            })
        })
    }

    /// What `length` says of each node, given those of its inputs.
    fn each(
        self,
        length: impl Fn(usize, &[Option<Length>]) -> Result<Option<Length>>,
    ) -> Result<Vec<Option<Length>>> {
        let read = self.graph.edges();
        let mut found = vec![None; read.len()];
        for at in self.graph.order()? {
            let inputs: Vec<_> = read[at].iter().map(|&from| found[from]).collect();
            found[at] = length(at, &inputs)?;
        }
        Ok(found)
    }

    /// What a source knows of itself, without counting.
    pub(crate) fn own(self, node: &Node) -> Option<Length> {
        let pipe = (!self.spec(node).is_part()).then(|| self.make(node, &node.pipe))?.ok()?;
        pipe.samples().map(Length::new)
    }

    /// What the pipe of a node with inputs says for inputs of so many; nothing where there is none to be asked: it is elsewhere, or older than
    /// the question.
    pub(crate) fn of(self, at: usize, inputs: &[Option<Length>]) -> Option<Result<Option<Length>>> {
        let node = &self.graph.nodes()[at];
        if self.spec(node).class == Class::Map {
            return Some(Ok(inputs.first().copied().flatten()));
        }
        match self.make(node, &node.pipe) {
            Ok(pipe) => pipe.length(self.context(node).raw(), inputs),
            Err(error) => Some(Err(error)),
        }
    }

    /// How many samples a source has: what it knows of itself; one with random access counts them.
    pub(crate) fn counted(self, node: &Node) -> Result<Option<Length>> {
        let spec = self.spec(node);
        let counts = if spec.is_part() {
            node.pipe.clone()
        } else if let Some(len) = self.make(node, &node.pipe)?.samples() {
            return Ok(Some(Length::new(len)));
        } else if spec.is_indexed() {
            format!("{}{COUNTS}", node.pipe)
        } else {
            return Ok(None);
        };
        match self.count(node, &counts) {
            // The run goes on without what it does not find.
            Err(_) if node.on_error().action != Action::Fail => Ok(None),
            counted => counted,
        }
    }

    /// What a pipe that counts gives.
    fn count(self, node: &Node, pipe: &str) -> Result<Option<Length>> {
        let mut pipe = self.make(node, pipe)?;
        if !pipe.is_here() {
            return Ok(None);
        }
        let (cx, mut out) = (self.context(node), Chunk::new());
        pipe.reset(cx.raw())?;
        check(pipe.poll(cx.raw(), &mut [], slice::from_mut(&mut out), 1))?;
        let count = out.pop().and_then(|sample| sample.get(COUNT).and_then(Value::as_i64));
        Ok(count.map(|count| Length::new(count.cast_unsigned())))
    }

    fn make(self, node: &Node, pipe: &str) -> Result<PipeHandle> {
        // What a graph has in a sandbox is not made outside of one.
        if node.on() == Some(On::Sandboxed) {
            return Ok(PipeHandle::elsewhere());
        }
        // Where it keeps what it reads changes no number.
        let identity = serde_json::Value::from("length");
        let spec = self.spec(node);
        let identity = spec.order.identity_option.map(|option| (option, &identity));
        self.registry.make_pipe(pipe, &node.own_options(spec, identity))
    }

    fn spec(&self, node: &Node) -> &PipeSpec {
        // Invariant: the graph was checked, so its pipes are known.
        match self.registry.pipe(&node.pipe) {
            Some(spec) => spec,
            None => unreachable!("a checked graph has a pipe that is unknown"),
        }
    }

    fn context(self, node: &Node) -> NodeContext {
        NodeContext::new(self.host, &node.name, self.seed, self.ranks, false)
    }
}
