//! What a user holds: a graph, ready to run, read epoch by epoch.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use forebay_core::{Error, Limits, Result, Sample};

use crate::{
    Executor, Registry,
    executor::{BATCHES, Body, Crew, Inline, Job, Origin, Run, Threads},
    graph::{Graph, Node},
    host::{Host, LostSample},
    make::{Maker, course},
    plan::Plan,
    ranks,
    registry::Record,
    snapshot::{self, Course, PluginMark, Snapshot},
    stats::{NodeInfo, Stats},
    worker,
};

/// The most bytes that wait between segments, unless set: enough to stay ahead, little beside a model.
pub const DEFAULT_BUDGET: u64 = 64 << 20;
/// How often nodes with state leave marks, unless set: about the work that a resume does again.
pub const DEFAULT_MARKS: Duration = Duration::from_millis(5);
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
    registry: Registry,
    course: Course,
    seed: u64,
    ranks: (u32, u32),
    at: At,
}

/// How far the consumer is.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    epoch: u64,
    delivered: u64,
    ended: bool,
    failed: bool,
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
    marks: Duration,
    ranks: Option<(u32, u32)>,
    worker: Option<PathBuf>,
}

impl LoaderBuilder {
    /// The program of worker processes, which must call [`serve_if_worker`](crate::serve_if_worker) first thing. Unless set,
    /// it is what `FOREBAY_WORKER_PROGRAM` names, or the command `forebay` beside this program, or in the `PATH`.
    #[must_use]
    pub fn worker(mut self, program: impl Into<PathBuf>) -> Self {
        self.worker = Some(program.into());
        self
    }

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

    /// This loader is one of `world_size` that share the data, and gives the samples of `rank`, counted from 0. The graph
    /// gets a pipe that deals them out, if it has none: after the last pipe with state, before maps and batches. So all
    /// ranks agree on one order, and a [snapshot](Loader::snapshot) of any rank resumes on any number of ranks, as long as
    /// ranks were given, if only one of one, and all had delivered as many samples.
    #[must_use]
    pub fn ranks(mut self, rank: u32, world_size: u32) -> Self {
        self.ranks = Some((rank, world_size));
        self
    }

    /// How often nodes with state note where they are; 5 ms unless set, zero for after every call. A resume does about
    /// so much work again. A state that takes long to save is saved less often: it takes at most a fiftieth of the time.
    #[must_use]
    pub fn marks(mut self, every: Duration) -> Self {
        self.marks = every;
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
        let mut graph = self.graph.check(registry)?;
        if let Some((rank, world_size)) = self.ranks {
            if rank >= world_size {
                return Err(Error::invalid(format!(
                    "rank is {rank}, expected one below the world size {world_size}"
                )));
            }
            graph = ranks::deal(graph, registry)?;
        }
        let set = graph.run.clone();
        let executor = match (self.executor, &set.executor) {
            (Some(executor), _) => executor,
            (None, Some(text)) => text.parse()?,
            (None, None) => Executor::default(),
        };
        let seed = self.seed.or(set.seed).unwrap_or(0);
        let budget = self.budget.or(set.budget).unwrap_or(DEFAULT_BUDGET);
        let as_size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let ranks = self.ranks.unwrap_or((0, 1));
        let plan = Plan::new(&graph, registry)?;
        let dealt = if self.ranks.is_some() { ranks::dealt(&graph, registry)? } else { Vec::new() };
        let course = course(&graph, registry, &plan, &dealt)?;
        let crew = match executor {
            Executor::Processes(count) => {
                let setup = worker::setup(&graph, registry, (seed, ranks, self.limits))?;
                let program = worker::program(self.worker)?;
                Some(Crew { count: count.max(1), program, setup, arena: Crew::arena(count.max(1))? })
            }
            _ => None,
        };
        let heap = crew.as_ref().map(|crew| crew.arena.heap(BATCHES)).transpose()?;
        let host = Host::new(registry.clone(), self.limits, as_size(budget.max(KEEP)), heap);
        let mut maker = Maker {
            graph: &graph,
            registry,
            host: &host,
            seed,
            ranks,
            chunk: self.chunk,
            most: as_size(self.limits.bytes),
            marks: self.marks,
            course: &course,
            nodes: graph.nodes().iter().map(|_| None).collect(),
        };
        let bodies = plan.segments.iter().map(|segment| maker.body(segment)).collect::<Result<Vec<_>>>()?;
        let nodes = maker.nodes.into_iter().flatten().collect();
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
            Executor::Threads(count) => Box::new(Threads::new(job, count.max(1), None)?),
            Executor::Processes(_) => {
                let serial = plan.segments.iter().filter(|segment| !segment.parallel).count();
                Box::new(Threads::new(job, serial.clamp(1, 2), crew)?)
            }
        };
        Ok(Loader {
            run,
            graph,
            plan,
            nodes,
            begun: None,
            ran: Duration::ZERO,
            len,
            host,
            registry: registry.clone(),
            course,
            seed,
            ranks,
            at: At::default(),
        })
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
            marks: DEFAULT_MARKS,
            ranks: None,
            worker: None,
        }
    }

    /// The samples of an epoch, from the first; whatever was left of another is dropped.
    pub fn epoch(&mut self, epoch: u64) -> Epoch<'_> {
        let origins = self.course.fresh();
        self.start(At { epoch, ..At::default() }, &origins)
    }

    fn start(&mut self, at: At, origins: &[Origin]) -> Epoch<'_> {
        self.begun = Some(Instant::now());
        self.at = at;
        self.run.start(at.epoch, origins);
        Epoch { loader: self }
    }

    /// Where the run is: after the samples of this epoch that were taken from the loader so far, whatever the pipes are
    /// at. Before the first sample it is the start of the epoch; after the last one, the end of it.
    ///
    /// Cost: well under a millisecond, while the pipes go on; the first time the plugins' files are hashed.
    ///
    /// # Errors
    /// `Io`, when a plugin's file cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let At { epoch, delivered, ended, .. } = self.at;
        let origins = (!ended).then(|| self.course.origins(delivered));
        let head = (self.seed, epoch, delivered, self.ranks.1);
        Ok(snapshot::assemble(head, &self.graph, self.plugins_used()?, origins.as_deref()))
    }

    /// The rest of the epoch that `snapshot` was taken in: exactly the samples that would have come, on whatever executor
    /// it was taken and this loader has. After one taken at the end of an epoch, the next epoch.
    ///
    /// Cost: pipes that save their state go on from there; others are run again from the start, which the log says.
    ///
    /// # Errors
    /// `Invalid` for a snapshot of another graph, seed or build of a plugin: it names every difference.
    pub fn resume(&mut self, snapshot: &Snapshot) -> Result<Epoch<'_>> {
        self.resume_allowing(snapshot, &[])
    }

    /// As [`resume`](Loader::resume), for a graph that was changed on purpose: nodes and plugins named in `allowed` may
    /// differ. A changed pipe is given the old one's state, and may refuse it.
    ///
    /// # Errors
    /// As [`resume`](Loader::resume).
    pub fn resume_allowing(&mut self, snapshot: &Snapshot, allowed: &[String]) -> Result<Epoch<'_>> {
        if snapshot.seed != self.seed {
            let (was, is) = (snapshot.seed, self.seed);
            return Err(Error::invalid(format!("the snapshot has seed {was}, the loader {is}")));
        }
        if snapshot.ended {
            return Ok(self.epoch(snapshot.epoch + 1));
        }
        let plugins = self.plugins(|record| snapshot.plugins.contains_key(&record.manifest().name))?;
        let origins = snapshot::origins(snapshot, &self.graph, &self.course, (&plugins, allowed))?;
        for node in snapshot.nodes.iter().filter(|node| allowed.contains(&node.name)) {
            let again: u64 = node.skip.iter().sum();
            if again > 0 {
                let name = &node.name;
                self.host.note(2, format!("node {name} was changed, and {again} samples before this place are counted as it gives them now"));
            }
        }
        if snapshot.world_size != self.ranks.1 {
            snapshot::check_ranks(snapshot, &self.graph, &self.course, self.ranks.1)?;
        }
        let at = At { epoch: snapshot.epoch, delivered: snapshot.delivered, ..At::default() };
        Ok(self.start(at, &origins))
    }

    /// The plugins that serve the graph, or served a sample so far.
    fn plugins_used(&self) -> Result<BTreeMap<String, PluginMark>> {
        let serves = |record: &Record| {
            let of =
                |node: &Node| self.registry.plugin_of(&node.pipe).is_some_and(|of| std::ptr::eq(of, record));
            self.graph.nodes().iter().any(of)
        };
        self.plugins(|record| record.is_loaded() || serves(record))
    }

    fn plugins(&self, which: impl Fn(&Record) -> bool) -> Result<BTreeMap<String, PluginMark>> {
        let records = self.registry.plugins().iter().filter(|record| which(record));
        records
            .map(|record| {
                let manifest = record.manifest();
                let mark = PluginMark { version: manifest.version.clone(), hash: record.hash()? };
                Ok((manifest.name.clone(), mark))
            })
            .collect()
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

    /// The samples that were left out by `on_error = "quarantine"` since the loader was built, in the order of the data
    /// wherever one thread gives them; at most 10,000.
    #[must_use]
    pub fn quarantine(&self) -> Vec<LostSample> {
        self.host.lost()
    }

    /// The ids of the worker processes that live now; one that dies is replaced.
    #[must_use]
    pub fn worker_processes(&self) -> Vec<u32> {
        self.run.processes()
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
        let loader = &mut *self.loader;
        let next = loader.run.next().transpose();
        match next {
            Some(Ok(_)) => loader.at.delivered += 1,
            Some(Err(_)) => {
                loader.at.failed = true;
                loader.pause_clock();
            }
            None => {
                loader.at.ended |= !loader.at.failed && !loader.host.is_cancelled();
                loader.pause_clock();
            }
        }
        if loader.host.take_trim() {
            loader.course.trim(loader.at.delivered);
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
