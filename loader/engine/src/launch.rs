//! Starts what runs a graph: once when a loader is built, and again when a crash moves some of it to worker processes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_audit::AuditLog;
use forebay_core::{Limits, Result};
use forebay_graph::{Graph, On};
use forebay_queue::{
    ledger::{self, Ledger},
    process::{Arena, Heap},
};
use forebay_registry::{IsolationLevel, Registry};
use forebay_snapshot::ResumePlan;

use crate::{
    Executor,
    executor::{BATCHES, Counts, DedicatedWorkerSpec, Inline, Interrupt, Job, Run, Threads, WorkerPool},
    host::Host,
    make::Maker,
    plan::Plan,
    record::Records,
    stall::Watch,
    stats::NodeInfo,
    worker::{
        self, WorkerProgram,
        protocol::{DedicatedSetup, Setup},
    },
};

/// The most threads for pipes that want one of their own; beyond, they share them.
const OWN: usize = 16;

/// What was said of how a graph is to run, with all that was not said filled in.
pub struct Recipe {
    pub executor: Executor,
    pub seed: u64,
    pub ranks: (u32, u32),
    pub budget: u64,
    /// The most samples that wait on an edge.
    pub ahead: usize,
    pub limits: Limits,
    pub chunk: Option<usize>,
    pub checkpoints: Duration,
    pub watch: Option<Watch>,
    /// Of each node whether it sees one rank's samples; empty when there are no ranks.
    pub dealt: Vec<bool>,
    /// What nodes read, by place, for those whose pipes ask.
    pub identities: BTreeMap<usize, String>,
    pub workers: Workers,
}

/// What was said of worker processes.
pub struct Workers {
    pub program: Option<WorkerProgram>,
    pub timeout: Option<Duration>,
    /// The most bytes of one in a sandbox.
    pub memory: u64,
    /// What they share with the loader, where there are any, or may come to be.
    pub arena: Option<Arena>,
}

/// What runs, and what was made for it.
pub struct Launched {
    pub run: Box<dyn Run>,
    pub nodes: Vec<NodeInfo>,
}

/// A checked graph, and how it is cut.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    pub graph: &'a Graph,
    pub registry: &'a Registry,
    pub plan: &'a Plan,
    pub resume_plan: &'a ResumePlan,
}

/// What lives as long as the loader.
#[derive(Clone, Copy)]
pub struct Keeps<'a> {
    pub host: &'a Arc<Host>,
    pub audit: Option<&'a Arc<AuditLog>>,
    pub records: &'a Records,
}

impl Recipe {
    /// Makes the memory that workers share, if there are to be any, or may come to be by a crash.
    ///
    /// # Errors
    /// `Invalid`, where they have no program; `Io`.
    pub fn prepare(&mut self, parts: Parts<'_>) -> Result<Option<Heap>> {
        let (Executor::Threads(count) | Executor::Processes(count)) = self.executor else { return Ok(None) };
        let segments = || parts.plan.segments.iter();
        let away = segments().filter(|segment| segment.on.is_elsewhere() || self.guards(parts, segment));
        let (maps, dedicated): (Vec<_>, Vec<_>) = away.partition(|segment| segment.parallel);
        if maps.is_empty() && dedicated.is_empty() {
            return Ok(None);
        }
        self.workers.program = Some(WorkerProgram::found(self.workers.program.take())?);
        // A chain that a crash moves may be cut before and behind what moves.
        let dedicated: usize = dedicated.iter().map(|segment| segment.nodes.len()).sum();
        let arena = WorkerPool::arena(if maps.is_empty() { 0 } else { count.max(1) } + dedicated)?;
        let heap = arena.heap(BATCHES, as_size(self.budget))?;
        self.workers.arena = Some(arena);
        Ok(Some(heap))
    }

    /// Where threads and workers reserve memory; after [`prepare`](Self::prepare).
    ///
    /// # Errors
    /// When shared memory has no room for it.
    pub fn ledger(&self) -> Result<Arc<Ledger>> {
        let (Executor::Threads(count) | Executor::Processes(count)) = self.executor else {
            return Ok(Ledger::nobody());
        };
        let count = count.max(1);
        // Threads of all, those of pipes that want their own, and workers.
        Ledger::new(count, 2 * count + OWN, self.budget, self.workers.arena.as_ref())
    }

    /// Whether a crash in this segment moves some of it.
    fn guards(&self, parts: Parts<'_>, segment: &crate::plan::Segment) -> bool {
        !segment.on.is_elsewhere() && !self.movable(parts, segment).is_empty()
    }

    /// The nodes of a segment that move to worker processes when it crashes.
    pub fn movable(&self, parts: Parts<'_>, segment: &crate::plan::Segment) -> Vec<usize> {
        let level = |at: usize| parts.registry.level_of(&parts.graph.nodes()[at]);
        segment.nodes.iter().copied().filter(|&at| level(at) == IsolationLevel::OnCrash).collect()
    }

    /// Makes the pipes, and starts what runs them; it waits for an epoch.
    ///
    /// `known` are the nodes as they ran before, whose work counts on.
    ///
    /// # Errors
    /// `Invalid` for options that a pipe refuses; `Abi` and `Panic` of plugins; `Io` when no thread starts.
    pub fn launch(&self, parts: Parts<'_>, keeps: Keeps<'_>, known: &[NodeInfo]) -> Result<Launched> {
        let Parts { graph, registry, plan, resume_plan } = parts;
        let worker_pool = self.worker_pool(parts, keeps.audit.is_some(), keeps.host.ledger().place())?;
        let mut maker = Maker {
            graph,
            registry,
            host: keeps.host,
            seed: self.seed,
            ranks: self.ranks,
            identities: &self.identities,
            chunk: self.chunk,
            ahead: self.ahead,
            most: as_size(self.limits.bytes),
            checkpoints: self.checkpoints,
            resume_plan,
            records: keeps.records,
            audit: keeps.audit,
            known,
            nodes: graph.nodes().iter().map(|_| None).collect(),
        };
        let bodies = plan.segments.iter().map(|segment| maker.body(segment)).collect::<Result<Vec<_>>>()?;
        let nodes = maker.nodes.into_iter().flatten().collect();
        let job = Job {
            output: plan.output()?,
            plan: plan.clone(),
            bodies,
            host: Arc::clone(keeps.host),
            budget: as_size(self.budget),
            ahead: self.ahead,
            chunk: self.chunk,
            names: graph.nodes().iter().map(|node| node.name.clone()).collect(),
            watch: self.watch.clone(),
            guarded: plan.segments.iter().map(|segment| self.guards(parts, segment)).collect(),
        };
        Ok(Launched { run: self.start(job, worker_pool)?, nodes })
    }

    /// The worker processes, if there are to be any.
    fn worker_pool(
        &self,
        parts: Parts<'_>,
        audited: bool,
        ledger: Option<ledger::LedgerPlace>,
    ) -> Result<Option<WorkerPool>> {
        let (Executor::Threads(count) | Executor::Processes(count)) = self.executor else { return Ok(None) };
        let Workers { program: Some(program), arena: Some(arena), .. } = &self.workers else {
            return Ok(None);
        };
        let plan = parts.plan;
        let here = plan.segments.iter().enumerate().filter(|(_, segment)| segment.on.is_elsewhere());
        let (maps, dedicated): (Vec<_>, Vec<_>) = here.partition(|(_, segment)| segment.parallel);
        if maps.is_empty() && dedicated.is_empty() {
            return Ok(None);
        }
        let post = |(segment, _)| {
            let setup = self.setup(parts, Some(segment), audited)?;
            Ok(DedicatedWorkerSpec { segment, setup, interrupt: Interrupt::new()? })
        };
        let mut setup = self.setup(parts, None, audited)?;
        // One that may take only so long over a sample waits for nobody.
        setup.ledger = ledger.filter(|_| self.workers.timeout.is_none() && setup.sandbox.is_none());
        Ok(Some(WorkerPool {
            count: if maps.is_empty() { 0 } else { count.max(1) },
            setup,
            dedicated: dedicated.into_iter().map(post).collect::<Result<Vec<_>>>()?,
            program: program.clone(),
            arena: arena.clone(),
            timeout: self.workers.timeout,
        }))
    }

    fn setup(&self, parts: Parts<'_>, segment: Option<usize>, audited: bool) -> Result<Setup> {
        let dedicated = segment.map(|segment| DedicatedSetup {
            segment,
            chunk: self.chunk,
            ahead: self.ahead,
            checkpoints: self.checkpoints,
            dealt: self.dealt.clone(),
            audited,
        });
        worker::setup(parts, self, dedicated)
    }

    fn start(&self, job: Job, worker_pool: Option<WorkerPool>) -> Result<Box<dyn Run>> {
        Ok(match self.executor {
            Executor::Inline => Box::new(Inline::new(job)?),
            Executor::Threads(count) | Executor::Processes(count) => {
                let maps =
                    job.plan.segments.iter().any(|segment| segment.parallel && segment.on == On::Threads);
                let serial = job.plan.segments_on(On::Threads);
                // Beside worker processes that do the maps, threads that have none hand on.
                let elsewhere = worker_pool.as_ref().is_some_and(|worker_pool| worker_pool.count > 0);
                let threads = if maps || !elsewhere { count.max(1) } else { serial.clamp(1, 2) };
                let own = job.plan.segments_on(On::OwnThread).min(OWN);
                Box::new(Threads::new(job, Counts { threads, own }, worker_pool)?)
            }
        })
    }
}

pub fn as_size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
