//! How many samples nodes give, worked out before any is read.

use std::{slice, sync::Arc};

use forebay_core::{
    Chunk, Error, Length, Result, Value,
    sampling::{COUNT, COUNTS},
    shim::check,
};

use crate::{
    Registry,
    graph::{Catalog as _, Class, Graph, Node, PipeSpec},
    handles::PipeHandle,
    host::{Host, NodeContext},
};

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
    /// How many samples each node gives by each of its outputs, if sources have as many as `source` says; none where that depends on what is
    /// in the samples, and for nodes that are `unsure` of it for other reasons.
    ///
    /// # Errors
    /// Those of `source`, and of what the plugins make.
    pub(crate) fn all(
        self,
        source: impl Fn(Self, &Node, &PipeSpec) -> Result<Option<Length>>,
        unsure: impl Fn(usize) -> bool,
    ) -> Result<Vec<Option<Length>>> {
        let read = self.graph.edges();
        let mut found = vec![None; read.len()];
        for at in self.graph.order()? {
            let node = &self.graph.nodes()[at];
            let spec = self.registry.pipe(&node.pipe);
            let spec = spec.ok_or_else(|| Error::bug("a node of a checked graph has no pipe"))?;
            let inputs: Vec<_> = read[at].iter().map(|&from| found[from]).collect();
            found[at] = match spec.class {
                Class::Source => source(self, node, spec),
                _ if unsure(at) => Ok(None),
                Class::Map => Ok(inputs.first().copied().flatten()),
                _ => self
                    .make(node, spec, &node.pipe)
                    .and_then(|pipe| pipe.length(self.context(node).raw(), &inputs)),
            }
            .map_err(|error| error.context("pipe", &node.name))?;
        }
        Ok(found)
    }

    /// How many samples a source has: what it knows of itself; one with random access counts them.
    pub(crate) fn counted(self, node: &Node, spec: &PipeSpec) -> Result<Option<Length>> {
        if let Some(len) = self.make(node, spec, &node.pipe)?.len() {
            return Ok(Some(Length::new(len)));
        }
        if !spec.indexed {
            return Ok(None);
        }
        let counts = if spec.is_part() { node.pipe.clone() } else { format!("{}{COUNTS}", node.pipe) };
        let mut pipe = self.make(node, spec, &counts)?;
        if !pipe.is_here() {
            return Ok(None);
        }
        let (cx, mut out) = (self.context(node), Chunk::new());
        pipe.reset(cx.raw())?;
        check(pipe.poll(cx.raw(), &mut [], slice::from_mut(&mut out), 1))?;
        let count = out.pop().and_then(|sample| sample.get(COUNT).and_then(Value::as_i64));
        Ok(count.map(|count| Length::new(count.cast_unsigned())))
    }

    fn make(self, node: &Node, spec: &PipeSpec, pipe: &str) -> Result<PipeHandle> {
        // Where it keeps what it reads changes no number.
        let identity = serde_json::Value::from("length");
        let identity =
            Some((spec.identity_option.as_str(), &identity)).filter(|(option, _)| !option.is_empty());
        let options = node.own_options(identity);
        self.registry.make_pipe(pipe, &options)
    }

    fn context(self, node: &Node) -> NodeContext {
        NodeContext::new(self.host, &node.name, self.seed, self.ranks, false)
    }
}
