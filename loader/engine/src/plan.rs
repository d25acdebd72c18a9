//! How a graph is cut for running: chains of nodes, and the edges between them.
//!
//! A chain of stateless maps becomes a parallel segment: several of its chunks can be in work at once. A parallel
//! flat map becomes one too, by itself. All other nodes are serial: one chunk at a time, in order. A segment is
//! always one chain. So a node with several inputs starts a segment, and a node with several outputs ends one.

mod check;

use forebay_core::{Error, Result};
use forebay_graph::{Action, Catalog, Graph, Node, On, PipeSpec};
use forebay_registry::{IsolationLevel, Registry};
use serde::Serialize;

use crate::{Executor, takes::Takes};

/// A checked graph, cut into segments. Each segment comes after all segments that it reads from.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The chains.
    pub segments: Vec<Segment>,
    /// The queues between segments; the last one leads to the consumer.
    pub edges: Vec<Edge>,
}

/// A chain of nodes that run together.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Segment {
    /// Indices into the graph's list of nodes, upstream first.
    pub nodes: Vec<usize>,
    /// Whether several chunks can be in work at once.
    pub parallel: bool,
    /// Whether chunks are passed on as they are done, in any order.
    pub unordered: bool,
    /// Where the segment runs.
    pub on: On,
    /// The edges it reads.
    pub inputs: Vec<usize>,
    /// The edges it writes.
    pub outputs: Vec<usize>,
    /// For each node whether it may start its inputs over.
    #[serde(skip)]
    pub(crate) rewinds: Vec<bool>,
    /// What each node takes for those that are wanted of it.
    #[serde(skip)]
    pub(crate) takes: Vec<Takes>,
    /// Whether one of them keeps what it reads: then nothing is made for it before it is asked for.
    #[serde(skip)]
    pub(crate) keeps: bool,
}

impl Segment {
    /// Its nodes that move to worker processes when it crashes.
    pub(crate) fn movable(&self, graph: &Graph, registry: &Registry) -> Vec<usize> {
        let moves = |at: &usize| registry.level_of(&graph.nodes()[*at]) == IsolationLevel::OnCrash;
        self.nodes.iter().copied().filter(moves).collect()
    }

    /// Whether a node may run with these: what follows a node on a thread of its own runs there too, unless told otherwise or
    /// best in a process.
    ///
    /// Unordered maps always run with those beside them, so that an order means the same wherever they run.
    fn joins(&self, node: &Node, on: On) -> bool {
        let follows = self.on == On::OwnThread && node.on().is_none() && !on.is_elsewhere();
        self.unordered == node.is_unordered() && (self.unordered || self.on == on || follows)
    }
}

/// Where the work of a node is done: as the graph says, else where its pipe is best, else where the executor does most.
fn place(node: &Node, spec: &PipeSpec, executor: Executor) -> On {
    match (executor, node.on(), spec.placement.on, spec.is_parallel()) {
        (Executor::Inline, ..) => On::Caller,
        (_, Some(on), ..) => on,
        (_, None, On::OwnThread, false) => On::OwnThread,
        (_, None, On::Process | On::Sandboxed, _) => spec.placement.on,
        (Executor::Processes(_), None, _, true) => On::Process,
        _ => On::Threads,
    }
}

/// Whether samples that are lost get a stand-in there, before any other map sees them: such a node ends its segment.
pub(crate) fn replaces(node: &Node) -> bool {
    node.on_error().action == Action::Replace
}

/// A queue between two segments.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Edge {
    /// The segment that writes it.
    pub from: usize,
    /// The segment that reads it; `None` for the consumer.
    pub to: Option<usize>,
}

impl Plan {
    /// Cuts a checked graph for an executor.
    ///
    /// # Errors
    /// `Invalid` if a closure would run in a process, if a plugin must be isolated and would not be, or if the
    /// graph has a circle, which a checked graph does not.
    pub fn new(graph: &Graph, registry: &Registry, executor: Executor) -> Result<Self> {
        let order = graph.order()?;
        let spec = |at: usize| {
            let pipe = &graph.nodes()[at].pipe;
            registry.pipe(pipe).ok_or_else(|| Error::invalid(format!("unknown pipe {pipe}")))
        };
        let readers = Readers::new(graph);
        let mut plan = Self { segments: Vec::new(), edges: Vec::new() };
        let mut segment_of = vec![usize::MAX; graph.nodes().len()];
        for &at in &order {
            let (parallel, expands) = (spec(at)?.is_parallel(), spec(at)?.expands());
            let on = place(&graph.nodes()[at], spec(at)?, executor);
            let before = readers.only_input(at).map(|input| segment_of[input]);
            let joined = before.filter(|&segment| {
                let last = plan.segments[segment].nodes.last().copied();
                plan.segments[segment].parallel == parallel
                    && !(expands || last.is_some_and(|last| spec(last).is_ok_and(PipeSpec::expands)))
                    && plan.segments[segment].joins(&graph.nodes()[at], on)
                    && !last.is_some_and(|last| replaces(&graph.nodes()[last]))
                    && last == readers.only_input(at)
                    && last.is_some_and(|last| {
                        spec(last).is_ok_and(|spec| spec.outputs_of(&graph.nodes()[last]) == 1)
                    })
            });
            segment_of[at] = joined.unwrap_or(plan.segments.len());
            match joined {
                Some(segment) => plan.segments[segment].nodes.push(at),
                None => plan.segments.push(Segment {
                    nodes: vec![at],
                    parallel,
                    unordered: graph.nodes()[at].is_unordered(),
                    on,
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                    rewinds: Vec::new(),
                    takes: Vec::new(),
                    keeps: false,
                }),
            }
            plan.segments[segment_of[at]].rewinds.push(spec(at)?.order.rewinds);
            plan.segments[segment_of[at]].takes.push(Takes::of(&graph.nodes()[at], spec(at)?));
            plan.segments[segment_of[at]].keeps |= spec(at)?.order.keeps;
        }
        for segment in plan.segments.iter_mut().filter(|segment| segment.unordered) {
            let places = segment.nodes.iter().map(|&at| {
                let (node, spec) = (&graph.nodes()[at], spec(at)?);
                Ok((node.on().is_some(), place(node, spec, executor)))
            });
            let places = places.collect::<Result<Vec<_>>>()?;
            // The sandbox is for all; else one that was told so decides, then one whose pipe is best in a process of its own.
            let chosen =
                places.iter().max_by_key(|(told, on)| (*on == On::Sandboxed, *told, *on == On::Process));
            segment.on = chosen.map_or(segment.on, |(_, on)| *on);
        }
        plan.connect(graph, &segment_of, &spec)?;
        check::check(&plan, graph, registry)?;
        Ok(plan)
    }

    /// Makes an edge for each output of each segment's last node, and finds the readers' inputs.
    fn connect<'a>(
        &mut self,
        graph: &Graph,
        segment_of: &[usize],
        spec: &impl Fn(usize) -> Result<&'a PipeSpec>,
    ) -> Result<()> {
        let place = |name: &str| graph.nodes().iter().position(|node| node.name == name);
        for from in 0..self.segments.len() {
            let Some(&last) = self.segments[from].nodes.last() else { continue };
            for _ in 0..spec(last)?.outputs_of(&graph.nodes()[last]) {
                self.segments[from].outputs.push(self.edges.len());
                self.edges.push(Edge { from, to: None });
            }
        }
        for to in 0..self.segments.len() {
            let Some(&first) = self.segments[to].nodes.first() else { continue };
            for input in &graph.nodes()[first].inputs {
                let from = place(&input.node).map(|at| segment_of[at]);
                let edge =
                    from.and_then(|from| self.segments[from].outputs.get(input.port as usize).copied());
                let edge = edge.ok_or_else(|| Error::bug(format!("no edge for input {input}")))?;
                self.edges[edge].to = Some(to);
                self.segments[to].inputs.push(edge);
            }
        }
        Ok(())
    }

    /// Whether some node takes no more than so many samples, whatever is wanted of it.
    pub(crate) fn is_bounded(&self) -> bool {
        self.segments.iter().flat_map(|segment| &segment.takes).any(|takes| takes.is_bounded())
    }

    /// How many segments run there.
    pub(crate) fn segments_on(&self, on: On) -> usize {
        self.segments.iter().filter(|segment| segment.on == on).count()
    }

    /// Whether any worker process of maps, or that of this serial segment, is in a sandbox.
    pub(crate) fn is_sandboxed(&self, dedicated: Option<usize>) -> bool {
        match dedicated {
            Some(at) => self.segments[at].on == On::Sandboxed,
            None => self.segments.iter().any(|segment| segment.parallel && segment.on == On::Sandboxed),
        }
    }

    /// The edge that leads to the consumer.
    ///
    /// # Errors
    /// `Invalid` if nodes of the graph read every output.
    pub fn output(&self) -> Result<usize> {
        let open = self.edges.iter().position(|edge| edge.to.is_none());
        open.ok_or_else(|| Error::invalid("the graph has no output to read"))
    }
}

/// Who reads whom.
struct Readers {
    inputs: Vec<Vec<usize>>,
}

impl Readers {
    fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes();
        let place = |name: &str| nodes.iter().position(|node| node.name == name);
        let inputs: Vec<Vec<usize>> = nodes
            .iter()
            .map(|node| node.inputs.iter().filter_map(|input| place(&input.node)).collect())
            .collect();
        Self { inputs }
    }

    fn only_input(&self, at: usize) -> Option<usize> {
        match self.inputs[at][..] {
            [only] => Some(only),
            _ => None,
        }
    }
}
