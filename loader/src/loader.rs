//! The loader: a graph that is ready to run, read epoch by epoch.

mod ahead;
mod failure;
mod next;
mod recover;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use forebay_core::{Error, Length, Result, Sample};
use forebay_engine::{
    Executor,
    host::{Host, LostSample},
    plan::Plan,
    prepared::{Prepared, RunSettings},
    running::Running,
    stats::Stats,
};
use forebay_graph::{Graph, Node};
use forebay_guard::maps;
use forebay_registry::FoundPlugin;
use forebay_snapshot::{self as snapshot, PluginMark, Snapshot, checkpoint_log::StartPoint};

pub(crate) use self::{ahead::Behind, failure::Failures};
use crate::length::Lengths;

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
/// Dropping a loader stops all threads and frees all memory. [`finish`](Loader::finish) does the same, and returns
/// the error of a plugin that fails then.
pub struct Loader {
    pub(crate) prepared: Prepared,
    pub(crate) running: Running,
    pub(crate) begun: Option<Instant>,
    pub(crate) ran: Duration,
    pub(crate) at: Position,
    /// Whether no epoch was begun yet.
    pub(crate) idle: bool,
    /// Whether the last call gave nothing since nothing had come.
    pub(crate) pending: bool,
    /// The epoch after the last that will be read.
    pub(crate) epochs: u64,
    /// How many more samples will be read, if that was said.
    pub(crate) limit: Option<u64>,
    /// How often workers that had state died since the last sample; crashes count as many.
    pub(crate) deaths: usize,
    /// An error that had no other way out; what is asked for next fails with it.
    pub(crate) trouble: Option<Error>,
    /// How many maps of files this process had seen cut short when the loader was built.
    pub(crate) cut: u64,
    /// How long the consumer waited for runs that another took the place of.
    pub(crate) waited: Duration,
    pub(crate) failures: Failures,
    pub(crate) behind: Behind,
}

/// How far the consumer is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    pub(crate) epoch: u64,
    pub(crate) delivered: u64,
    pub(crate) ended: bool,
    pub(crate) failed: bool,
}

/// Stops a loader from another thread, for example at Ctrl-C. The loader cannot run again: to go on, resume a
/// [snapshot](Loader::snapshot) with a new loader.
#[derive(Clone)]
pub struct Stopper(Arc<Host>);

impl Stopper {
    /// Stops the loader. A thread that waits for a sample, or asks for one later, gets an error of kind
    /// `Cancelled`.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl Loader {
    /// Starts an epoch, from its first sample. Samples left from another epoch are dropped.
    pub fn epoch(&mut self, epoch: u64) -> Epoch<'_> {
        let at = Position { epoch, ..Position::default() };
        if self.running.run.go_over(epoch) {
            return self.enter(at);
        }
        let origins = self.prepared.resume_plan.fresh();
        self.start(at, &origins, (None, None))
    }

    /// Begins an epoch, whose samples [`next_sample`](Loader::next_sample) and the loader as a
    /// [`Stream`](futures_core::Stream) give. Use it if an [`Epoch`] cannot be held, since that borrows the loader.
    pub fn begin(&mut self, epoch: u64) {
        drop(self.epoch(epoch));
    }

    /// Starts at a place; `resumed` is the world size of the snapshot that says so, and its number in an audit.
    fn start(
        &mut self,
        at: Position,
        origins: &[StartPoint],
        resumed: (Option<u32>, Option<u64>),
    ) -> Epoch<'_> {
        if let Some(audit) = &self.prepared.audit {
            audit.begin((at.epoch, at.delivered), origins, resumed);
        }
        self.begun = Some(Instant::now());
        // Again where something crashed as the epoch before was broken off.
        loop {
            if let Some(crashed) = self.running.run.crashed()
                && let Err(error) = self.relocate(crashed)
            {
                self.trouble.get_or_insert(error);
                break;
            }
            let wanted = self.limit.map_or(u64::MAX, |left| at.delivered.saturating_add(left));
            self.running.run.start(at.epoch, origins, wanted);
            if self.running.run.crashed().is_none() {
                break;
            }
        }
        self.enter(at)
    }

    /// The consumer is at this place now, and so is what runs.
    fn enter(&mut self, at: Position) -> Epoch<'_> {
        self.begun.get_or_insert_with(Instant::now);
        (self.at, self.idle) = (at, false);
        self.behind.begin(at.delivered);
        self.prepared.resume_plan.settle();
        let next = at.epoch.saturating_add(1);
        // An audit puts what is written between two starts down to the first of them.
        // A record must not hold the order of an epoch that nobody reads.
        // Who reads no more than so many samples may not come to another epoch.
        if next < self.epochs
            && self.limit.is_none()
            && self.prepared.audit.is_none()
            && self.prepared.records.written.is_none()
        {
            self.running.run.prepare(next, self.prepared.resume_plan.fresh());
        }
        Epoch { loader: self }
    }

    /// The place of the consumer: after the samples of this epoch that were taken from the loader so far. Before
    /// the first sample it is the start of the epoch; after the last sample, the end.
    ///
    /// Cost: well below a millisecond, and the pipes go on meanwhile. The first call also hashes the files of
    /// plugins that do not declare the version of their states.
    ///
    /// # Errors
    /// `Io` if a plugin's file cannot be read, or if a file was cut short while it was mapped.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.snapshot_of(self.at)
    }

    /// The snapshot of this place, which what runs still knows.
    pub(crate) fn snapshot_of(&self, at: Position) -> Result<Snapshot> {
        // Pipes may remember what was read of it.
        maps::error_after(self.cut).map_or(Ok(()), Err)?;
        let Position { epoch, delivered, ended, .. } = at;
        let locate = || {
            if ended {
                self.prepared.resume_plan.fresh()
            } else {
                self.prepared.resume_plan.origins(epoch, delivered)
            }
        };
        let (number, origins) = match &self.prepared.audit {
            Some(audit) => audit.snapshot(locate),
            None => (None, locate()),
        };
        // What is before the checkpoints it is made of must not be lost with this process.
        self.flush()?;
        let at = (epoch, delivered, ended);
        let words = self.prepared.resume_plan.words(&self.prepared.graph);
        let mut snapshot = snapshot::assemble(
            self.prepared.settings.seed,
            at,
            self.prepared.settings.ranks,
            words,
            self.plugins_used()?,
            origins,
        );
        (snapshot.audit, snapshot.failed) = (number, self.failed());
        Ok(snapshot)
    }

    /// The rest of the epoch of `snapshot`: exactly the samples that would have come, whatever the executors of
    /// both loaders. If the snapshot was taken at the end of an epoch, this is the next epoch.
    ///
    /// Cost: pipes that save their state go on from it. Other pipes run again from the start, which the log
    /// reports.
    ///
    /// # Errors
    /// `Invalid` if the snapshot has another graph or seed, if plugins cannot read each other's states, or if
    /// files that the place lies in have changed. The error names every difference.
    pub fn resume(&mut self, snapshot: &Snapshot) -> Result<Epoch<'_>> {
        self.resume_allowing(snapshot, &[])
    }

    /// As [`resume`](Loader::resume), but if the snapshot was taken at the end of an epoch, it gives no samples.
    /// Use it in programs that count epochs in a loop of their own and resume within that loop.
    ///
    /// # Errors
    /// As [`resume`](Loader::resume).
    pub fn remainder(&mut self, snapshot: &Snapshot) -> Result<Epoch<'_>> {
        self.remainder_allowing(snapshot, &[])
    }

    /// As [`remainder`](Loader::remainder), for a graph that you changed on purpose: the nodes and plugins named
    /// in `allowed` can differ.
    ///
    /// # Errors
    /// As [`resume`](Loader::resume).
    pub fn remainder_allowing(&mut self, snapshot: &Snapshot, allowed: &[String]) -> Result<Epoch<'_>> {
        if !snapshot.ended {
            return self.resume_allowing(snapshot, allowed);
        }
        let origins = self.check(snapshot, allowed)?;
        self.failed_before(snapshot, &origins);
        Ok(self.enter(Position {
            epoch: snapshot.epoch,
            delivered: snapshot.delivered,
            ended: true,
            failed: false,
        }))
    }

    /// As [`resume`](Loader::resume), for a graph or data that you changed on purpose: the nodes, plugins and
    /// files named in `allowed` can differ. The name of a source allows all of its files. A changed pipe gets the
    /// state of the old pipe, and can refuse it.
    ///
    /// # Errors
    /// As [`resume`](Loader::resume).
    pub fn resume_allowing(&mut self, snapshot: &Snapshot, allowed: &[String]) -> Result<Epoch<'_>> {
        let origins = self.check(snapshot, allowed)?;
        self.failed_before(snapshot, &origins);
        if snapshot.ended {
            return Ok(self.epoch(snapshot.epoch + 1));
        }
        if let Some(recorded) = &self.prepared.records.followed {
            let mut begin =
                self.prepared.graph.nodes().iter().zip(&origins).filter(|(_, origin)| origin.order.is_some());
            begin.try_for_each(|(node, origin)| recorded.check(&node.name, snapshot.epoch, origin))?;
        }
        let at = Position { epoch: snapshot.epoch, delivered: snapshot.delivered, ..Position::default() };
        Ok(self.start(at, &origins, (Some(snapshot.world_size), snapshot.audit)))
    }

    /// Where each node goes on, if the snapshot is one of this graph.
    fn check(&self, snapshot: &Snapshot, allowed: &[String]) -> Result<Vec<StartPoint>> {
        let plugins =
            self.prepared.registry.plugins().iter().map(|record| (record.manifest().name.clone(), record));
        let now = snapshot::Now {
            graph: &self.prepared.graph,
            resume_plan: &self.prepared.resume_plan,
            registry: &self.prepared.registry,
            plugins: &plugins.collect(),
            seed: self.prepared.settings.seed,
            ranks: self.prepared.settings.ranks,
            allowed,
        };
        let origins = snapshot::origins(snapshot, &now)?;
        for node in snapshot.nodes.iter().filter(|node| allowed.contains(&node.name)) {
            let again: u64 = node.skip.iter().sum();
            if again > 0 {
                let name = &node.name;
                self.prepared.host.note(2, format!("node {name} was changed: the {again} samples before this place are counted in its new output"));
            }
        }
        let is_map = |name: &str| self.running.nodes.iter().any(|node| node.node == name && node.parallel);
        for node in snapshot.nodes.iter().filter(|node| node.state.is_none() && !is_map(&node.name)) {
            let again: u64 = node.skip.iter().sum();
            if again > 0 {
                let name = &node.name;
                self.prepared.host.note(
                    3,
                    format!("node {name} does not save its position: {again} samples are made again"),
                );
            }
        }
        Ok(origins)
    }

    /// The plugins that serve the graph, or served a sample so far.
    fn plugins_used(&self) -> Result<BTreeMap<String, PluginMark>> {
        let serves = |record: &FoundPlugin| {
            let of = |node: &Node| {
                self.prepared.registry.plugin_of(&node.pipe).is_some_and(|of| std::ptr::eq(of, record))
            };
            self.prepared.graph.nodes().iter().any(of)
        };
        let elsewhere = self.prepared.host.plugins_elsewhere();
        let used = |record: &FoundPlugin| record.is_loaded() || elsewhere.contains(&record.manifest().name);
        let records = self.prepared.registry.plugins().iter().filter(|record| used(record) || serves(record));
        records.map(|record| Ok((record.manifest().name.clone(), PluginMark::of(record)?))).collect()
    }

    /// The graph as it runs, with the name of every option filled in.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.prepared.graph
    }

    /// How the graph is cut.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// Where the graph runs.
    #[must_use]
    pub fn executor(&self) -> Executor {
        self.prepared.settings.executor
    }

    /// How many samples an epoch has: of batches, the number of batches; on a rank, its share. `None` if that
    /// depends on the data or if the epoch has no end.
    ///
    /// The count assumes that no sample fails and that endless repeats have something to repeat. It is also `None`
    /// for a source that forgives errors and cannot count, and for pipes that run in a sandbox.
    ///
    /// ```no_run
    /// use forebay_loader::{Graph, Loader, Registry};
    ///
    /// let graph = Graph::from_line("range 1000 | shuffle 100 | batch 64 drop_last=true")?;
    /// let loader = Loader::builder(graph).ranks(0, 2).build(&Registry::from_env()?)?;
    /// assert_eq!(loader.len()?, Some(7));
    /// # Ok::<(), forebay_loader::Error>(())
    /// ```
    ///
    /// Cost: makes each pipe once more. Sources with random access count their samples, which lists files. No file
    /// is read.
    ///
    /// # Errors
    /// The errors of sources that count.
    pub fn len(&self) -> Result<Option<u64>> {
        let RunSettings { seed, ranks, .. } = self.prepared.settings;
        let lengths = Lengths {
            graph: &self.prepared.graph,
            registry: &self.prepared.registry,
            host: &self.prepared.host,
            seed,
            ranks,
        };
        let each = lengths.all()?;
        Ok(each[self.prepared.resume_plan.output.0].and_then(Length::count))
    }

    /// How many samples a node took that sees them in order, in this process.
    pub(crate) fn taken_by(&self, node: &str) -> u64 {
        self.running.nodes.iter().filter(|info| info.node == node).map(|info| info.counters.taken()).sum()
    }

    /// What each node did so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let current = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let nodes = self.running.nodes.iter().map(|node| node.read(&self.prepared.host)).collect();
        let mut stats = Stats::new(nodes, self.prepared.host.memory());
        stats.threads = self.running.run.threads();
        stats.seconds = (self.ran + current).as_secs_f64();
        stats.consumer_wait = (self.waited + self.running.run.waited()).as_secs_f64();
        stats
    }

    /// The lines that plugins logged since the last call: level (1 error to 4 detail) and text.
    pub fn take_log(&self) -> Vec<(u32, String)> {
        self.prepared.host.take_log()
    }

    /// The samples that `on_error = "quarantine"` or `"fail_at_end"` left out since the loader was built; at most
    /// 10,000. Samples from one thread are in the order of the data.
    #[must_use]
    pub fn quarantine(&self) -> Vec<LostSample> {
        self.prepared.host.lost()
    }

    /// The ids of the living worker processes. A worker that dies is replaced.
    #[must_use]
    pub fn worker_processes(&self) -> Vec<u32> {
        self.running.run.processes()
    }

    /// A handle that stops this loader from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.prepared.host))
    }

    /// Stops the loader, frees every pipe, and returns the error of a plugin that fails then.
    ///
    /// It waits for calls of plugins that run. In an async program, give the loader to a thread that may wait:
    /// `spawn_blocking(move || loader.finish())`. The same holds for dropping it.
    ///
    /// # Errors
    /// The first error of a pipe's end, such as a panic in its drop. Otherwise the error of a file that was
    /// cut short while it was mapped; otherwise the [`failure`](Loader::failure) that no epoch ended with.
    pub fn finish(mut self) -> Result<()> {
        let failed = self.untold();
        self.prepared.host.cancel();
        let flushed = self.flush();
        let ended = self.running.run.finish();
        let cut = maps::error_after(self.cut).filter(|_| !self.at.failed);
        cut.map_or(ended, Err).and(flushed).and(failed.map_or(Ok(()), Err))
    }

    /// Puts what was written of the run into its files.
    fn flush(&self) -> Result<()> {
        self.prepared.records.written.as_ref().map_or(Ok(()), |file| file.flush())?;
        self.prepared.audit.as_ref().map_or(Ok(()), |audit| audit.flush())
    }

    pub(crate) fn pause_clock(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.ran += begun.elapsed();
        }
    }
}

/// The samples of one epoch, in order. An error ends the epoch. If samples fail at a node with
/// `on_error=fail_at_end`, as all nodes of a [path](crate::open()) have, the error comes after all other samples:
/// see [`Loader::failure`].
pub struct Epoch<'a> {
    loader: &'a mut Loader,
}

impl Iterator for Epoch<'_> {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        self.loader.next_sample()
    }
}

impl Drop for Epoch<'_> {
    fn drop(&mut self) {
        self.loader.pause_clock();
    }
}

impl std::ops::Deref for Epoch<'_> {
    type Target = Loader;

    /// The loader, for example to read its statistics during an epoch.
    fn deref(&self) -> &Loader {
        self.loader
    }
}
