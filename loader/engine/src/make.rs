//! Makes the nodes of a graph: each pipe by its plugin, with all that runs it.

use std::sync::Arc;

use forebay_audit::Tap;
use forebay_core::{Noun, Result};
use forebay_graph::{Catalog, Node, On, PipeSpec};
use forebay_registry::{IsolationLevel, handles::PipeHandle};
use forebay_snapshot::{
    checkpoint_log::{Pace, StartPoint},
    looks::Looks,
    names::{Expected, Names},
};

use crate::{
    host::{Destination, NodeContext, Stacker},
    plan::Segment,
    prepared::{Prepared, as_size},
    resume::spec,
    run::{Blame, Body, Chain, ChunkSize, HandoffOrder, Link, MadeNode, NodePosition, Parallel},
    stats::{Counters, NodeInfo},
};

impl Prepared {
    /// Makes the nodes of a segment, and notes each in `made`, by its place in the graph. `known` are the nodes as they ran before, whose work
    /// counts on.
    pub(crate) fn body(
        &self,
        segment: &Segment,
        known: &[NodeInfo],
        made: &mut [Option<NodeInfo>],
    ) -> Result<Body> {
        let mut links =
            segment.nodes.iter().map(|&at| self.link(at, known, made)).collect::<Result<Vec<_>>>()?;
        if !segment.parallel {
            let chain = Chain::new(links, segment.takes.clone(), segment.inputs.len(), segment.outputs.len());
            return Ok(Body::Serial(Box::new(chain)));
        }
        for (link, &at) in links.iter_mut().zip(&segment.nodes) {
            // In which batch a sample of an unordered segment comes, or one of a flat map, is not known while it is made.
            let size = self.stacked_by(at).filter(|_| !segment.unordered && !link.node.spec.expands());
            link.node.destination =
                size.map(|size| Destination::Batch(Stacker::new(size, as_size(self.settings.limits.bytes))));
        }
        let (maps, ordered) = Parallel::new(links, self.handoff_order(segment));
        Ok(Body::Parallel(maps, Box::new(ordered)))
    }

    /// Who says whose turn it is in an unordered segment.
    fn handoff_order(&self, segment: &Segment) -> Option<Box<HandoffOrder>> {
        let &first = segment.nodes.first()?;
        let handoff_log = self.resume_plan.nodes[first].handoff_log.as_ref()?;
        let name = &self.graph.nodes()[first].name;
        Some(Box::new(HandoffOrder::new((first, name), handoff_log, &self.records)))
    }

    /// How many samples the only reader of a node stacks into one, if it does.
    fn stacked_by(&self, at: usize) -> Option<u64> {
        let name = &self.graph.nodes()[at].name;
        let reader =
            self.graph.nodes().iter().find(|node| node.inputs.iter().any(|input| input.node == *name))?;
        let spec = self.registry.pipe(&reader.pipe)?;
        reader.options.get(spec.layout.stacks?)?.as_u64().filter(|&size| size > 1)
    }

    fn link(&self, at: usize, known: &[NodeInfo], made: &mut [Option<NodeInfo>]) -> Result<Link> {
        let settings = &self.settings;
        let node: &Node = &self.graph.nodes()[at];
        let spec = spec(&self.registry, node)?;
        let (plugin, file) = match self.registry.plugin_of(&node.pipe) {
            Some(record) => (record.label(), record.file()),
            None => ("this program".to_owned(), "a closure".to_owned()),
        };
        let (tap, options) = self.options(at, spec);
        let blame = Blame { pipe: node.name.clone(), plugin: format!("{plugin} in {file}") };
        // What a graph has in a sandbox is not made outside of one.
        let mut pipe = match node.on() {
            Some(On::Sandboxed) if !self.host.is_worker() => PipeHandle::elsewhere(),
            _ => self.registry.make_pipe(&node.pipe, &options).map_err(|error| blame.on(error))?,
        };
        pipe.rename(&node.name);
        let known = known.iter().find(|known| known.node == node.name);
        let counters =
            known.map_or_else(|| Arc::new(Counters::default()), |known| Arc::clone(&known.counters));
        let unit = spec.layout.gives.unwrap_or(Noun::SAMPLE);
        made[at] = Some(NodeInfo {
            node: node.name.clone(),
            pipe: node.pipe.clone(),
            plugin,
            file,
            parallel: spec.is_parallel(),
            unit: (unit.one.to_owned(), unit.many.to_owned()),
            counters: Arc::clone(&counters),
        });
        let stop = &self.resume_plan.nodes[at];
        // Among ranks of another number nothing can be made again and skipped, so these mark every sample.
        let exact = stop.dealt && !spec.is_parallel();
        let origin = StartPoint::fresh(stop.inputs.len(), stop.outputs);
        let confined =
            self.registry.level_of(node) != IsolationLevel::InProcess || node.on() == Some(On::Sandboxed);
        let node = MadeNode {
            at,
            pipe,
            spec: Arc::new(spec.clone()),
            confined,
            cx: NodeContext::new(&self.host, &node.name, settings.seed, settings.ranks, stop.kept)
                .with_decoders(self.registry.tuned(node, spec)),
            destination: None,
            counters,
            blame,
            on_error: node.on_error(),
            checkpoint_log: Arc::clone(&stop.checkpoint_log),
            tap,
        };
        let position = NodePosition {
            place: origin.checkpoint.place,
            pace: if exact { Pace::exact(settings.checkpoints) } else { Pace::new(settings.checkpoints) },
            chunk_size: ChunkSize::new(if exact { Some(1) } else { settings.chunk }).within(settings.ahead),
            wanted: u64::MAX,
            deferred: None,
            skip: origin.skip,
            lenient: false,
            owed: Vec::new(),
            looks: stop.cuts.then(Looks::default),
            names: stop.inputs.is_empty().then(Names::default),
            expected: Expected::default(),
            restore: None,
            was: None,
        };
        Ok(Link { node, position })
    }

    /// A node's options as its pipe is told them: in a run that is audited with the field for the uids in a batch, and with the identity of
    /// what it reads where its pipe asks, beside what the graph says of it.
    fn options(&self, at: usize, spec: &PipeSpec) -> (Option<Tap>, String) {
        let node = &self.graph.nodes()[at];
        let text = |option: Option<&str>| node.options.get(option?)?.as_str();
        let given = text(spec.audit.uids_option);
        let tap = self.audit.as_ref().map(|log| Tap::new(log, at, given));
        let field = tap.as_ref().and_then(Tap::field).map(serde_json::Value::from);
        let field = spec.audit.uids_option.zip(field.as_ref());
        let given = text(spec.order.identity_option).unwrap_or_default();
        let identity =
            self.settings.identities.get(&at).map(|known| serde_json::Value::from(format!("{known}{given}")));
        let identity = spec.order.identity_option.zip(identity.as_ref());
        let options = node.own_options(spec, field.into_iter().chain(identity));
        (tap, options)
    }
}
