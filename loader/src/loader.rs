//! What a user holds: a graph, ready to run, read epoch by epoch.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use forebay_core::{Error, Limits, Result, Sample};

use crate::{
    Executor, Registry,
    executor::{Blame, Body, Chain, Grain, Inline, Job, Link, Parallel, Run, Threads},
    graph::{Catalog, Class, Graph, Node},
    host::{Host, NodeContext, Stacker},
    plan::{Plan, Segment},
    stats::{Counters, NodeInfo, Stats},
};

/// The most bytes that wait between segments, unless set: enough to stay ahead, little beside a model.
pub const DEFAULT_BUDGET: u64 = 64 << 20;
/// The most bytes of output memory that wait to be used again, unless the budget is larger.
const KEEP: u64 = 256 << 20;

/// A graph, ready to run: an iterator of batches for each epoch.
///
/// ```no_run
/// use forebay_loader::{Executor, Graph, Loader, Registry};
///
/// let registry = Registry::from_env()?;
/// let graph = Graph::from_line("files 'shards/*.tar' | untar | decode | shuffle 1000 | batch 64")?;
/// let mut loader = Loader::builder(graph).executor(Executor::Threads(2)).seed(7).build(&registry)?;
/// for epoch in 0..3 {
///     for batch in loader.epoch(epoch) {
///         println!("{:?}", batch?.get("jpg"));
///     }
/// }
/// println!("{}", loader.stats().limiting());
/// loader.finish()?;
/// # Ok::<(), forebay_loader::Error>(())
/// ```
///
/// Dropping it stops all threads and frees all memory; [`finish`](Loader::finish) does the same and
/// tells when a plugin failed at it.
pub struct Loader {
    run: Box<dyn Run>,
    graph: Graph,
    plan: Plan,
    nodes: Vec<NodeInfo>,
    begun: Option<Instant>,
    ran: Duration,
    len: Option<u64>,
    host: Arc<Host>,
}

/// Stops a loader from another thread, for instance at Ctrl-C.
#[derive(Clone)]
pub struct Stopper(Arc<Host>);

impl Stopper {
    /// Stops the loader: whoever waits for a sample gets an error of kind `Cancelled`.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

/// How a graph is to run. What is not set here is taken from the graph's `[run]` table.
pub struct LoaderBuilder {
    graph: Graph,
    executor: Option<Executor>,
    seed: Option<u64>,
    budget: Option<u64>,
    limits: Limits,
    chunk: Option<usize>,
}

impl LoaderBuilder {
    /// Where the work runs.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = Some(executor);
        self
    }

    /// The number that all random choices come from; 0 unless set.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The most bytes that wait between segments; 64 MiB unless set. One chunk may always pass.
    #[must_use]
    pub fn budget(mut self, bytes: u64) -> Self {
        self.budget = Some(bytes);
        self
    }

    /// What decoders may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Gives every call this many samples, where the loader would adapt the number. It never changes
    /// what comes out; for tests and measurements.
    #[must_use]
    pub fn chunk(mut self, samples: usize) -> Self {
        self.chunk = Some(samples.max(1));
        self
    }

    /// Checks the graph whole, and makes its pipes; nothing of the data is opened yet.
    ///
    /// # Errors
    /// `Invalid`, for all that is wrong with the graph; `Abi` and `Panic` of plugins; `Io` when no thread starts.
    pub fn build(self, registry: &Registry) -> Result<Loader> {
        let graph = self.graph.check(registry)?;
        let set = graph.run.clone();
        let executor = match (self.executor, &set.executor) {
            (Some(executor), _) => executor,
            (None, Some(text)) => text.parse()?,
            (None, None) => Executor::default(),
        };
        let seed = self.seed.or(set.seed).unwrap_or(0);
        let budget = self.budget.or(set.budget).unwrap_or(DEFAULT_BUDGET);
        let as_size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let plan = Plan::new(&graph, registry)?;
        let host = Host::new(registry.clone(), self.limits, as_size(budget.max(KEEP)));
        let mut maker = Maker {
            graph: &graph,
            registry,
            host: &host,
            seed,
            chunk: self.chunk,
            most: as_size(self.limits.bytes),
            nodes: BTreeMap::new(),
        };
        let bodies =
            plan.segments.iter().map(|segment| maker.body(segment, executor)).collect::<Result<Vec<_>>>()?;
        let nodes = maker.nodes.into_values().collect();
        let len = match &bodies[..] {
            [Body::Serial(chain)] => chain.len(),
            _ => None,
        };
        let job = Job {
            output: plan.output()?,
            plan: plan.clone(),
            bodies,
            host: Arc::clone(&host),
            budget: as_size(budget),
            chunk: self.chunk,
        };
        let run: Box<dyn Run> = match executor {
            Executor::Inline => Box::new(Inline::new(job)),
            Executor::Threads(count) => Box::new(Threads::new(job, count.max(1))?),
        };
        Ok(Loader { run, graph, plan, nodes, begun: None, ran: Duration::ZERO, len, host })
    }
}

/// Makes the nodes of a graph.
struct Maker<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    host: &'a Arc<Host>,
    seed: u64,
    chunk: Option<usize>,
    /// The most bytes of one batch's output memory.
    most: usize,
    nodes: BTreeMap<usize, NodeInfo>,
}

impl Maker<'_> {
    fn body(&mut self, segment: &Segment, executor: Executor) -> Result<Body> {
        let mut links = segment.nodes.iter().map(|&at| self.link(at)).collect::<Result<Vec<_>>>()?;
        for (link, &at) in links.iter_mut().zip(&segment.nodes).filter(|(link, _)| link.class == Class::Map) {
            link.stacker = self.stacked_by(at).map(|size| Stacker::new(size, self.most));
        }
        Ok(match executor {
            Executor::Threads(_) if segment.parallel => Body::Parallel(Parallel::new(links)),
            _ => Body::Serial(Box::new(Chain::new(links, segment.inputs.len(), segment.outputs.len()))),
        })
    }

    /// How many samples the only reader of a node stacks into one, if it does.
    fn stacked_by(&self, at: usize) -> Option<u64> {
        let name = &self.graph.nodes()[at].name;
        let reader =
            self.graph.nodes().iter().find(|node| node.inputs.iter().any(|input| input.node == *name))?;
        let spec = self.registry.pipe(&reader.pipe)?;
        reader.options.get(&spec.stacks)?.as_u64().filter(|&size| size > 1)
    }

    fn link(&mut self, at: usize) -> Result<Link> {
        let node: &Node = &self.graph.nodes()[at];
        let unknown = || Error::invalid(format!("unknown pipe {}", node.pipe));
        let record = self.registry.plugin_of(&node.pipe).ok_or_else(unknown)?;
        let class = self.registry.pipe(&node.pipe).ok_or_else(unknown)?.class;
        let options = serde_json::to_string(&node.options).map_err(|error| Error::bug(error.to_string()))?;
        let blame =
            Blame { pipe: node.name.clone(), plugin: format!("{} in {}", record.label(), record.file()) };
        let pipe = self.registry.make_pipe(&node.pipe, &options).map_err(|error| blame.on(error))?;
        let counters = Arc::new(Counters::default());
        self.nodes.insert(
            at,
            NodeInfo {
                node: node.name.clone(),
                pipe: node.pipe.clone(),
                plugin: record.label(),
                file: record.file(),
                parallel: class == Class::Map,
                counters: Arc::clone(&counters),
            },
        );
        let cx = NodeContext::new(self.host, &node.name, self.seed);
        let grain = Grain::new(self.chunk);
        Ok(Link { pipe, class, cx, stacker: None, taken: 0, counters, blame, grain, deferred: None })
    }
}

#[expect(clippy::len_without_is_empty, reason = "the length may be unknown")]
impl Loader {
    /// Begins to say how `graph` is to run.
    #[must_use]
    pub fn builder(graph: Graph) -> LoaderBuilder {
        LoaderBuilder {
            graph,
            executor: None,
            seed: None,
            budget: None,
            limits: Limits::DEFAULT,
            chunk: None,
        }
    }

    /// The samples of an epoch, from the first; whatever was left of another is dropped.
    pub fn epoch(&mut self, epoch: u64) -> Epoch<'_> {
        self.begun = Some(Instant::now());
        self.run.start(epoch);
        Epoch { loader: self }
    }

    /// The graph as it runs, with every option under its name.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// How the graph is cut.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many samples an epoch has, where that is known without reading.
    #[must_use]
    pub fn len(&self) -> Option<u64> {
        self.len
    }

    /// What each node did so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (blocks_fresh, blocks_reused) = self.host.memory();
        let current = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        Stats {
            nodes: self.nodes.iter().map(NodeInfo::read).collect(),
            threads: self.run.threads(),
            seconds: (self.ran + current).as_secs_f64(),
            consumer_wait: self.run.waited().as_secs_f64(),
            blocks_fresh,
            blocks_reused,
        }
    }

    /// The lines that plugins logged since the last time: level (1 error to 4 detail) and text.
    pub fn take_log(&self) -> Vec<(u32, String)> {
        self.host.take_log()
    }

    /// Something that stops this loader from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.host))
    }

    /// Stops, frees every pipe, and tells when a plugin failed at that.
    ///
    /// # Errors
    /// The first error of a pipe's end, such as a panic in its drop.
    pub fn finish(mut self) -> Result<()> {
        self.host.cancel();
        self.run.finish()
    }

    fn pause_clock(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.ran += begun.elapsed();
        }
    }
}

/// The samples of one epoch, in order. After an error there are no more.
pub struct Epoch<'a> {
    loader: &'a mut Loader,
}

impl Iterator for Epoch<'_> {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.loader.run.next().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.loader.pause_clock();
        }
        next
    }
}

impl Drop for Epoch<'_> {
    fn drop(&mut self) {
        self.loader.pause_clock();
    }
}

impl std::ops::Deref for Epoch<'_> {
    type Target = Loader;

    /// The loader, to look at its statistics on the way.
    fn deref(&self) -> &Loader {
        self.loader
    }
}
