//! What is prepared for a run, and outlives what runs: when a crash moves some of a graph to worker processes, it runs anew with this.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use forebay_audit::AuditLog;
use forebay_core::{Limits, Result};
use forebay_graph::{Graph, On};
use forebay_queue::{
    ledger::Ledger,
    process::{Arena, Heap},
};
use forebay_registry::Registry;
use forebay_snapshot::ResumePlan;

use crate::{
    Executor, WorkerProgram,
    host::{Host, OwnMemory, Pool},
    plan::Plan,
    record::{RecordOwner, Records},
    resume::resume_plan,
    run::{BATCHES, WorkerPool},
    stall::Watch,
};

/// The most threads for pipes that want one of their own; beyond, they share them.
pub(crate) const OWN_THREADS: usize = 16;

/// How a graph is to run, with all that was not said filled in.
pub struct RunSettings {
    /// Where the work runs.
    pub executor: Executor,
    /// What random numbers follow from.
    pub seed: u64,
    /// This rank and how many there are.
    pub ranks: (u32, u32),
    /// The most bytes of samples that wait between segments.
    pub budget: u64,
    /// The most samples that wait on an edge.
    pub ahead: usize,
    /// What decoders may take.
    pub limits: Limits,
    /// Pins the chunk size.
    pub chunk: Option<usize>,
    /// How often nodes with state leave checkpoints.
    pub checkpoints: Duration,
    /// Whom to tell of a stall.
    pub watch: Option<Watch>,
    /// Of each node whether it sees one rank's samples; empty when there are no ranks.
    pub dealt: Vec<bool>,
    /// What nodes read, by place, for those whose pipes ask.
    pub identities: BTreeMap<usize, String>,
    /// What worker processes run; the one that is found unless said.
    pub worker_program: Option<WorkerProgram>,
    /// How long a worker may take over a sample.
    pub sample_timeout: Option<Duration>,
    /// The most bytes of a worker in a sandbox.
    pub sandbox_memory: u64,
}

/// The files that a run writes and reads beside its data.
#[derive(Clone, Copy, Default)]
pub struct RunFiles<'a> {
    /// What it leaves for [`audit`](forebay_audit::audit()).
    pub audit: Option<&'a Path>,
    /// In which order its unordered maps give.
    pub record: Option<&'a Path>,
    /// In which order they are to give.
    pub replay: Option<&'a Path>,
}

/// A checked graph, and all that its nodes are made with.
pub struct Prepared {
    /// The graph.
    pub graph: Graph,
    /// The plugins that there are.
    pub registry: Registry,
    /// How the graph is cut.
    pub plan: Plan,
    /// How a snapshot walks it.
    pub resume_plan: ResumePlan,
    /// How it is to run.
    pub settings: RunSettings,
    /// What pipes find while they run.
    pub host: Arc<Host>,
    /// Where nodes leave word of what they take and give.
    pub audit: Option<Arc<AuditLog>>,
    /// In which order unordered segments gave, and are to give.
    pub records: Records,
    /// The memory that workers share with this process, where there are any, or may come to be.
    pub(crate) arena: Option<Arena>,
}

impl Prepared {
    /// Cuts a checked graph, and makes the memory and opens the files that it runs with.
    ///
    /// # Errors
    /// `Invalid` for a plan that the plugins do not allow, for workers without a program, and for a record of another graph; `Corrupt` for
    /// a file that is no record; `Io`.
    pub fn new(
        graph: Graph,
        registry: &Registry,
        mut settings: RunSettings,
        files: RunFiles<'_>,
        own_memory: Option<OwnMemory>,
    ) -> Result<Self> {
        let plan = Plan::new(&graph, registry, settings.executor)?;
        let resume_plan = resume_plan(&graph, registry, &plan, &settings.dealt)?;
        let arena = settings.arena(&graph, registry, &plan)?;
        let (arena, heap) = arena.unzip();
        let ledger = settings.ledger(arena.as_ref())?;
        let pool = Pool::with_own(as_size(settings.budget), heap, own_memory);
        let host = Host::new(registry.clone(), settings.limits, pool, ledger);
        let RunSettings { seed, ranks, .. } = settings;
        let audit =
            files.audit.map(|file| AuditLog::open(file, (&graph, registry, &resume_plan), seed, ranks));
        let audit = audit.transpose()?.map(Arc::new);
        let owner = RecordOwner::new(&resume_plan.words(&graph).graph, seed, ranks);
        let records = Records::open((files.record, files.replay), &plan, &owner)?;
        Ok(Self {
            graph,
            registry: registry.clone(),
            plan,
            resume_plan,
            settings,
            host,
            audit,
            records,
            arena,
        })
    }

    /// Has these nodes run in worker processes from the next run on.
    ///
    /// # Errors
    /// `Invalid` for a plan that the plugins do not allow.
    pub fn move_to_workers(&mut self, nodes: &[usize]) -> Result<()> {
        for &at in nodes {
            self.graph.move_node(at, On::Process);
        }
        self.plan = Plan::new(&self.graph, &self.registry, self.settings.executor)?;
        Ok(())
    }

    /// The nodes of a segment that move to worker processes when it crashes.
    #[must_use]
    pub fn movable(&self, segment: usize) -> Vec<usize> {
        self.plan.segments[segment].movable(&self.graph, &self.registry)
    }
}

impl RunSettings {
    /// Makes the memory that workers share, if there are to be any, or may come to be by a crash.
    fn arena(&mut self, graph: &Graph, registry: &Registry, plan: &Plan) -> Result<Option<(Arena, Heap)>> {
        let (Executor::Threads(count) | Executor::Processes(count)) = self.executor else { return Ok(None) };
        let away = plan
            .segments
            .iter()
            .filter(|segment| segment.on.is_elsewhere() || !segment.movable(graph, registry).is_empty());
        let (maps, dedicated): (Vec<_>, Vec<_>) = away.partition(|segment| segment.parallel);
        if maps.is_empty() && dedicated.is_empty() {
            return Ok(None);
        }
        self.worker_program = Some(WorkerProgram::found(self.worker_program.take())?);
        // A chain that a crash moves may be cut before and behind what moves.
        let dedicated: usize = dedicated.iter().map(|segment| segment.nodes.len()).sum();
        let arena = WorkerPool::arena(if maps.is_empty() { 0 } else { count.max(1) } + dedicated)?;
        let heap = arena.heap(BATCHES, as_size(self.budget))?;
        Ok(Some((arena, heap)))
    }

    /// Where threads and workers reserve memory.
    fn ledger(&self, arena: Option<&Arena>) -> Result<Arc<Ledger>> {
        let (Executor::Threads(count) | Executor::Processes(count)) = self.executor else {
            return Ok(Ledger::nobody());
        };
        let count = count.max(1);
        // Threads of all, those of pipes that want their own, and workers.
        Ledger::new(count, 2 * count + OWN_THREADS, self.budget, arena)
    }
}

/// As many bytes as can be addressed, at most.
#[must_use]
pub fn as_size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
