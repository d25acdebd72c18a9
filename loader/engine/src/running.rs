//! What runs a graph: started when a loader is built, and again when a crash moves some of it to worker processes.

use std::sync::Arc;

use forebay_core::Result;
use forebay_graph::On;
use forebay_queue::process::Arena;

use crate::{
    Executor, WorkerProgram,
    messages::{DedicatedSetup, Setup},
    prepared::{OWN_THREADS, Prepared, as_size},
    run::{Counts, DedicatedWorkerSpec, Inline, Interrupt, Job, Run, Threads, WorkerPool},
    setup::setup,
    stats::NodeInfo,
};

/// What runs, and what its nodes are called.
pub struct Running {
    /// What gives the samples.
    pub run: Box<dyn Run>,
    /// The nodes, in the graph's order.
    pub nodes: Vec<NodeInfo>,
}

impl Running {
    /// Makes the pipes, and starts what runs them; it waits for an epoch.
    ///
    /// `known` are the nodes as they ran before, whose work counts on.
    ///
    /// # Errors
    /// `Invalid` for options that a pipe refuses; `Abi` and `Panic` of plugins; `Io` when no thread starts.
    pub fn start(prepared: &Prepared, known: &[NodeInfo]) -> Result<Self> {
        let Prepared { graph, plan, settings, host, .. } = prepared;
        let worker_pool = prepared.worker_pool()?;
        let mut nodes: Vec<_> = graph.nodes().iter().map(|_| None).collect();
        let bodies = plan.segments.iter().map(|segment| prepared.body(segment, known, &mut nodes));
        let bodies = bodies.collect::<Result<Vec<_>>>()?;
        let nodes = nodes.into_iter().flatten().collect();
        let here = |segment: usize| !plan.segments[segment].on.is_elsewhere();
        let guards = |segment: usize| here(segment) && !prepared.movable(segment).is_empty();
        let job = Job {
            output: plan.output()?,
            plan: plan.clone(),
            bodies,
            host: Arc::clone(host),
            budget: as_size(settings.budget),
            ahead: settings.ahead,
            chunk: settings.chunk,
            names: graph.nodes().iter().map(|node| node.name.clone()).collect(),
            watch: settings.watch.clone(),
            guarded: (0..plan.segments.len()).map(guards).collect(),
        };
        Ok(Self { run: prepared.run(job, worker_pool)?, nodes })
    }
}

impl Prepared {
    /// What does a job.
    fn run(&self, job: Job, worker_pool: Option<WorkerPool>) -> Result<Box<dyn Run>> {
        Ok(match self.settings.executor {
            Executor::Inline => Box::new(Inline::new(job)?),
            Executor::Threads(count) | Executor::Processes(count) => {
                let maps =
                    job.plan.segments.iter().any(|segment| segment.parallel && segment.on == On::Threads);
                let serial = job.plan.segments_on(On::Threads);
                // Beside worker processes that do the maps, threads that have none hand on.
                let elsewhere = worker_pool.as_ref().is_some_and(|worker_pool| worker_pool.count > 0);
                let threads = if maps || !elsewhere { count.max(1) } else { serial.clamp(1, 2) };
                let own = job.plan.segments_on(On::OwnThread).min(OWN_THREADS);
                Box::new(Threads::new(job, Counts { threads, own }, worker_pool)?)
            }
        })
    }

    /// The worker processes, if there are to be any.
    fn worker_pool(&self) -> Result<Option<WorkerPool>> {
        let settings = &self.settings;
        let (Executor::Threads(count) | Executor::Processes(count)) = settings.executor else {
            return Ok(None);
        };
        let (Some(program), Some(arena)) = (&settings.worker_program, &self.arena) else { return Ok(None) };
        let away = self.plan.segments.iter().enumerate().filter(|(_, segment)| segment.on.is_elsewhere());
        let (maps, dedicated): (Vec<_>, Vec<_>) = away.partition(|(_, segment)| segment.parallel);
        if maps.is_empty() && dedicated.is_empty() {
            return Ok(None);
        }
        let dedicated = dedicated.into_iter().map(|(segment, _)| self.dedicated(segment));
        let dedicated = dedicated.collect::<Result<Vec<_>>>()?;
        let count = if maps.is_empty() { 0 } else { count.max(1) };
        self.pool(count, dedicated, (program, arena)).map(Some)
    }

    /// So many workers that have maps, and those that have a serial segment each.
    fn pool(
        &self,
        count: usize,
        dedicated: Vec<DedicatedWorkerSpec>,
        (program, arena): (&WorkerProgram, &Arena),
    ) -> Result<WorkerPool> {
        let mut setup = self.setup(None)?;
        // One that may take only so long over a sample waits for nobody.
        let waits = self.settings.sample_timeout.is_none() && setup.sandbox.is_none();
        setup.ledger = self.host.ledger().place().filter(|_| waits);
        Ok(WorkerPool {
            count,
            setup,
            dedicated,
            program: program.clone(),
            arena: arena.clone(),
            timeout: self.settings.sample_timeout,
        })
    }

    /// A worker for one serial segment.
    fn dedicated(&self, segment: usize) -> Result<DedicatedWorkerSpec> {
        let setup = self.setup(Some(segment))?;
        Ok(DedicatedWorkerSpec { segment, setup, interrupt: Interrupt::new()? })
    }

    fn setup(&self, segment: Option<usize>) -> Result<Setup> {
        let dedicated = segment.map(|segment| DedicatedSetup {
            segment,
            chunk: self.settings.chunk,
            ahead: self.settings.ahead,
            checkpoints: self.settings.checkpoints,
            dealt: self.settings.dealt.clone(),
            audited: self.audit.is_some(),
        });
        setup(self, dedicated)
    }
}
