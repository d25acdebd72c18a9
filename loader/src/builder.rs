//! Settings of a run, set step by step.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use forebay_core::{BufferMut, Error, Level, Limits, Result};
use forebay_engine::{
    Executor, WorkerProgram,
    host::OwnMemory,
    prepared::{Prepared, RunFiles, RunSettings, as_size},
    running::Running,
    sandbox::MEMORY,
    stall::{Stall, Watch},
    worker::refuse_nested,
};
use forebay_graph::{Graph, dealt};
use forebay_registry::Registry;

use crate::{
    Loader,
    folders::with_folders,
    identity::identities,
    loader::{Behind, Failures, Position},
};

/// The default for the most bytes that wait between segments: enough to stay ahead, and little beside a model.
pub const DEFAULT_BUDGET: u64 = 64 << 20;
/// The default for how often nodes with state leave checkpoints. A resume repeats about that much work.
pub const DEFAULT_CHECKPOINTS: Duration = Duration::from_millis(5);

/// Settings of a run. Settings that are not set here come from the graph's `[run]` table.
pub struct LoaderBuilder {
    graph: Graph,
    executor: Option<Executor>,
    seed: Option<u64>,
    shuffles: bool,
    budget: Option<u64>,
    ahead: Option<u64>,
    limits: Option<Limits>,
    chunk: Option<usize>,
    checkpoints: Duration,
    ranks: Option<(u32, u32)>,
    worker: Option<WorkerProgram>,
    timeout: Option<Duration>,
    memory: u64,
    watch: Option<Watch>,
    audit: Option<PathBuf>,
    epochs: Option<u64>,
    limit: Option<u64>,
    record: Option<PathBuf>,
    replay: Option<PathBuf>,
    failures: Failures,
    memory_of: Option<OwnMemory>,
}

impl Loader {
    /// Starts with the default settings for `graph`.
    #[must_use]
    pub fn builder(graph: Graph) -> LoaderBuilder {
        LoaderBuilder::new(graph)
    }
}

impl LoaderBuilder {
    pub(crate) fn new(graph: Graph) -> Self {
        Self {
            graph,
            executor: None,
            seed: None,
            shuffles: true,
            budget: None,
            ahead: None,
            limits: None,
            chunk: None,
            checkpoints: DEFAULT_CHECKPOINTS,
            ranks: None,
            worker: None,
            timeout: None,
            memory: MEMORY,
            watch: None,
            audit: None,
            epochs: None,
            limit: None,
            record: None,
            replay: None,
            failures: Failures::default(),
            memory_of: None,
        }
    }

    /// Calls `tell` when the consumer has waited this long for a sample, and again each time the wait has doubled.
    /// The argument says which pipe works on which sample, and where. `tell` runs on the consumer's thread; with
    /// the executor inline, on a thread of its own.
    #[must_use]
    pub fn on_stall(mut self, after: Duration, tell: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.watch = Some(Watch { after: after.max(Duration::from_millis(1)), tell: Arc::new(tell) });
        self
    }

    /// How long a worker process can take for one sample of its maps: without limit unless set, and a minute [in a
    /// sandbox](forebay_registry::IsolationLevel::Sandboxed). The loader kills a worker that takes longer and
    /// treats it as a crash: it tries the sample once more, and then the sample is an error of its map, which
    /// `on_error` can forgive. The limit does not apply to pipes on threads, which cannot be killed, nor to pipes
    /// that see samples in order, even in a process of their own: see [`on_stall`](Self::on_stall).
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit.max(Duration::from_millis(1)));
        self
    }

    /// The most bytes of its own that a worker process can have [in a
    /// sandbox](forebay_registry::IsolationLevel::Sandboxed), without the samples that it gives; 4 GiB unless set.
    /// An allocation beyond the limit fails, which ends most programs. The sample then counts as one that crashed
    /// its worker.
    #[must_use]
    pub fn sandbox_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The program that worker processes run. It must call
    /// [`serve_if_worker`](forebay_engine::worker::serve_if_worker) first in its `main`. A program that does not
    /// is refused as soon as it builds a loader of its own. Unless set, it is the program that
    /// `FOREBAY_WORKER_PROGRAM` names, or the command `forebay` beside this program or in the `PATH`.
    #[must_use]
    pub fn worker(mut self, program: impl Into<WorkerProgram>) -> Self {
        self.worker = Some(program.into());
        self
    }

    /// Worker processes run this same program, so nothing else must be installed beside it. The program must call
    /// [`serve_if_worker`](forebay_engine::worker::serve_if_worker) first in its `main`. Short for
    /// [`worker`](Self::worker) with the path of the program.
    ///
    /// ```
    /// use forebay_loader::{Executor, Graph, Loader, serve_if_worker};
    ///
    /// fn main() -> forebay_loader::Result<()> {
    ///     serve_if_worker(); // returns at once, unless this process is a worker
    ///     let graph = Graph::from_line("files 'shards/*.tar' | untar | decode | batch 64")?;
    ///     let builder = Loader::builder(graph).executor(Executor::Processes(4)).worker_self()?;
    ///     // builder.build(&registry)? starts four of them.
    /// #   let _ = builder;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// `Io` if the system does not tell the file of this program.
    pub fn worker_self(self) -> Result<Self> {
        let program = std::env::current_exe().map_err(|error| {
            Error::from(error)
                .context("next", "name the program of worker processes by LoaderBuilder::worker")
        })?;
        Ok(self.worker(program))
    }

    /// Where the work runs.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = Some(executor);
        self
    }

    /// How many epochs you will read, in order; 1 unless set. Each epoch starts as soon as all samples of the
    /// epoch before are made, while the consumer still reads those. So only the first epoch's first batch is
    /// waited for. The output is the same whichever epochs you read.
    ///
    /// With the executor inline, and in a run that is [audited](Self::audit) or [recorded](Self::record), an epoch
    /// starts when you ask for it.
    #[must_use]
    pub fn epochs(mut self, count: u64) -> Self {
        self.epochs = Some(count);
        self
    }

    /// How many samples you will read over all epochs (batches, if the graph ends with those). So the loader makes
    /// nothing that only a later sample would need. If you read on, you get more samples, but you wait for them.
    #[must_use]
    pub fn limit(mut self, samples: u64) -> Self {
        self.limit = Some(samples);
        self
    }

    /// The seed of all random choices; 0 unless set.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Whether pipes shuffle; true unless set. With false, the loader runs the [graph
    /// unshuffled](Graph::unshuffled), for validation.
    #[must_use]
    pub fn shuffles(mut self, shuffles: bool) -> Self {
        self.shuffles = shuffles;
        self
    }

    /// The most bytes that wait between segments; 64 MiB unless set. A single chunk can be larger.
    #[must_use]
    pub fn budget(mut self, bytes: u64) -> Self {
        self.budget = Some(bytes);
        self
    }

    /// The most samples that wait between two segments, or are in work for that place; unless set, as many as the
    /// [budget](Self::budget) allows. Set it if a map is costly and the consumer can stop at any sample: at most
    /// this many samples are then made in vain. A call gets no more samples than this at once. The setting never
    /// changes the output.
    ///
    /// A batch counts as one sample. The consumer also has a chunk of at most this many.
    #[must_use]
    pub fn ahead(mut self, samples: u64) -> Self {
        self.ahead = Some(samples.max(1));
        self
    }

    /// The limits of decoders. Unless set, a value can have sixteen times the [budget](Self::budget), but at least
    /// 256 MiB, and at most 1 GiB or the budget, whichever is larger. An image can have 256 Mi pixels.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Makes this loader one of `world_size` that share the data. It gives the samples of `rank`, counted from 0.
    /// If the graph has no pipe that shards, it gets one: after the last pipe with state, before maps and batches.
    /// So all ranks agree on one order. A [snapshot](Loader::snapshot) of any rank resumes on any number of ranks,
    /// if all ranks had delivered the same number of samples. The snapshot must come from a run with ranks, even
    /// if only one of one.
    #[must_use]
    pub fn ranks(mut self, rank: u32, world_size: u32) -> Self {
        self.ranks = Some((rank, world_size));
        self
    }

    /// Asks `alloc` for the memory of each output of 2 KiB or more that a pipe of this process makes, such as a
    /// batch. Use it for memory that a device reads directly. `alloc` is called on any thread. It returns at least
    /// as many bytes as asked, or `None` to leave that output to the loader. The memory is dropped when nothing
    /// uses it any more, and is not recycled.
    ///
    /// Worker processes write to memory that they share with the loader, and do not ask `alloc` for it.
    #[must_use]
    pub fn memory(mut self, alloc: impl Fn(usize) -> Option<BufferMut> + Send + Sync + 'static) -> Self {
        self.memory_of = Some(Arc::new(alloc));
        self
    }

    /// How often nodes with state note their place; 5 ms unless set, zero for after every call. A resume repeats
    /// about that much work. A state that takes long to save is saved less often, so that saving takes at most a
    /// fiftieth of the time.
    #[must_use]
    pub fn checkpoint_every(mut self, every: Duration) -> Self {
        self.checkpoints = every;
        self
    }

    /// Gives every call this many samples; otherwise the loader adapts the number. The setting never changes the
    /// output; it is for tests and measurements.
    #[must_use]
    pub fn chunk(mut self, samples: usize) -> Self {
        self.chunk = Some(samples.max(1));
        self
    }

    /// Appends to this file what [`audit`](crate::audit()) needs to prove that every sample came exactly once.
    /// Each rank needs its own file. A run that resumes a snapshot can append to the file of the run before. The
    /// setting never changes the output.
    ///
    /// Cost: 25 to 80 bytes of the file a sample.
    #[must_use]
    pub fn audit(mut self, file: impl Into<PathBuf>) -> Self {
        self.audit = Some(file.into());
        self
    }

    /// Appends to this file the order in which maps with `unordered=true` give their samples, for
    /// [`replay`](Self::replay). A run that resumes a snapshot appends to the file of the run before. The setting
    /// never changes the output.
    ///
    /// Cost: about 10 bytes of the file for each chunk that came out of order.
    #[must_use]
    pub fn record(mut self, file: impl Into<PathBuf>) -> Self {
        self.record = Some(file.into());
        self
    }

    /// Makes maps with `unordered=true` give their samples in the order of this record, on any executor. So the
    /// output equals that of the run that wrote the record. Past the end of an incomplete record, samples come in
    /// input order.
    ///
    /// Cost: samples wait for the samples that the record puts before them, as in a run that keeps the order.
    #[must_use]
    pub fn replay(mut self, file: impl Into<PathBuf>) -> Self {
        self.replay = Some(file.into());
        self
    }

    /// Whether samples can fail at nodes with `on_error=fail_at_end`, as all nodes of [`open`](crate::open())
    /// have. With true, failed samples are listed, as by `quarantine`, and no epoch ends with an error for them.
    /// False unless set.
    #[must_use]
    pub fn allow_failures(mut self, allow: bool) -> Self {
        self.failures.allowed = allow;
        self
    }

    /// Checks the whole graph and makes its pipes. No data is opened yet, but folders are listed if an option
    /// takes their names. If a pipe keeps data for later runs, the files that the data comes from are listed with
    /// their size and time of change.
    ///
    /// # Errors
    /// `Invalid` for every problem of the graph, and for a record of another graph. `Corrupt` for a file that is
    /// no record. `Abi` and `Panic` of plugins. `Io` if no thread can start.
    pub fn build(self, registry: &Registry) -> Result<Loader> {
        refuse_nested()?;
        let executor = self.place()?;
        let graph = with_folders(checked(self.graph, self.shuffles, self.ranks, registry)?, registry)?;
        let seed = self.seed.or(graph.run.seed).unwrap_or(0);
        let epochs = self.epochs.or(graph.run.epochs).unwrap_or(1);
        let budget = self.budget.or(graph.run.budget).unwrap_or(DEFAULT_BUDGET);
        let ahead = self.ahead.or(graph.run.ahead);
        let limits = self.limits.unwrap_or_else(|| within(budget));
        let ranks = self.ranks.unwrap_or((0, 1));
        let dealt = if self.ranks.is_some() { dealt(&graph, registry)? } else { Vec::new() };
        let mut settings = RunSettings {
            executor,
            seed,
            ranks,
            budget,
            ahead: ahead.map_or(usize::MAX, as_size),
            limits,
            chunk: self.chunk,
            checkpoints: self.checkpoints,
            watch: self.watch,
            dealt,
            identities: BTreeMap::new(),
            worker_program: self.worker,
            sample_timeout: self.timeout,
            sandbox_memory: self.memory,
        };
        let (identities, told) = identities(&graph, registry, &settings);
        settings.identities = identities;
        let files = RunFiles {
            audit: self.audit.as_deref(),
            record: self.record.as_deref(),
            replay: self.replay.as_deref(),
        };
        let prepared = Prepared::new(graph, registry, settings, files, self.memory_of)?;
        let host = &prepared.host;
        told.into_iter().for_each(|line| host.note(Level::Warning as u32, line));
        let running = Running::start(&prepared, &[]);
        host.keep_home(host.home());
        Ok(Loader {
            running: running?,
            prepared,
            begun: None,
            ran: Duration::ZERO,
            at: Position::default(),
            idle: true,
            pending: false,
            epochs,
            limit: self.limit,
            deaths: 0,
            trouble: None,
            cut: forebay_guard::maps::count(),
            waited: Duration::ZERO,
            failures: self.failures,
            behind: Behind::default(),
        })
    }

    /// Where the work runs.
    fn place(&self) -> Result<Executor> {
        match (self.executor, &self.graph.run.executor) {
            (Some(executor), _) => Ok(executor.counted()),
            (None, Some(text)) => text.parse(),
            (None, None) => Ok(Executor::default()),
        }
    }
}

/// What decoders may take in a run with this budget, unless set.
fn within(budget: u64) -> Limits {
    let Limits { bytes, .. } = Limits::DEFAULT;
    let most = budget.saturating_mul(16).clamp(bytes / 4, bytes);
    Limits { bytes: most.max(budget), ..Limits::DEFAULT }
}

/// The graph, checked as it is written, without what shuffles where that is to be left out, and with what deals samples out to ranks.
fn checked(graph: Graph, shuffles: bool, ranks: Option<(u32, u32)>, registry: &Registry) -> Result<Graph> {
    let still = (!shuffles).then(|| graph.unshuffled(registry));
    let graph = graph.into_checked(registry)?;
    let graph = still.map_or(Ok(graph), |still| still.into_checked(registry))?;
    match ranks {
        Some((rank, world_size)) if rank >= world_size => {
            Err(Error::invalid(format!("rank is {rank}, expected one below the world size {world_size}")))
        }
        Some(_) => graph.for_ranks(registry),
        None => Ok(graph),
    }
}
