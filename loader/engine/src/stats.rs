//! What each node did: counters that workers add to, and what they say together.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Serialize;

use crate::host::{Host, Note};

/// One node's counters; shared by all who run it.
#[derive(Default)]
pub struct Counters {
    samples: AtomicU64,
    /// Samples taken, of a node that sees them in order in this process.
    taken: AtomicU64,
    bytes: AtomicU64,
    busy: AtomicU64,
    wait_input: AtomicU64,
    wait_room: AtomicU64,
    lost: AtomicU64,
}

impl Counters {
    /// Adds one call that gave these samples.
    pub(crate) fn add(&self, samples: usize, bytes: usize, busy: Duration) {
        self.samples.fetch_add(samples as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.busy.fetch_add(nanos(busy), Ordering::Relaxed);
    }

    pub(crate) fn took(&self, samples: u64) {
        self.taken.fetch_add(samples, Ordering::Relaxed);
    }

    /// Samples that it took.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    pub(crate) fn lost(&self, samples: u64) {
        self.lost.fetch_add(samples, Ordering::Relaxed);
    }

    /// Samples, bytes and nanoseconds of work.
    pub(crate) fn work(&self) -> (usize, usize, u64) {
        let [samples, bytes] =
            [&self.samples, &self.bytes].map(|counter| counter.load(Ordering::Relaxed) as usize);
        (samples, bytes, self.busy.load(Ordering::Relaxed))
    }

    /// Failures that were forgiven.
    pub fn losses(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn waited_for_input(&self, time: Duration) {
        self.wait_input.fetch_add(nanos(time), Ordering::Relaxed);
    }

    pub(crate) fn waited_for_room(&self, time: Duration) {
        self.wait_room.fetch_add(nanos(time), Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The work of one node so far.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NodeStats {
    /// The node's name.
    pub node: String,
    /// Its pipe.
    pub pipe: String,
    /// The plugin of the pipe, with its version.
    pub plugin: String,
    /// The file the plugin is in.
    pub file: String,
    /// How many units the node gave.
    pub samples: u64,
    /// The word for one unit: a sample, or a batch, a file and the like, which is made of several samples.
    pub unit: String,
    /// The word for several units.
    #[serde(skip)]
    pub units: String,
    /// Samples taken, if the pipe sees them in order in this process; else 0.
    pub taken: u64,
    /// Bytes of values given, shared ones included.
    pub bytes: u64,
    /// Seconds in the pipe's own code, summed over all threads, in wall-clock time. Waiting for a disk, a network
    /// or a processor counts.
    pub busy: f64,
    /// Seconds that its segment waited for input; set on the segment's first node.
    pub wait_input: f64,
    /// Seconds that its segment waited for room; set on the segment's last node.
    pub wait_room: f64,
    /// Whether several threads can run it at once.
    pub parallel: bool,
    /// Failures that `on_error` forgave.
    pub lost: u64,
    /// Notes of its pipe about samples, such as fields that it left as they were.
    pub notes: Vec<Note>,
}

/// The work of a run so far.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Node by node, in the graph's order.
    pub nodes: Vec<NodeStats>,
    /// The threads or worker processes that do most of the work. With the executor inline, the caller's thread.
    pub threads: usize,
    /// Seconds since the consumer asked for the first sample.
    pub seconds: f64,
    /// Seconds that the consumer waited for a sample.
    pub consumer_wait: f64,
    /// Large blocks of output memory taken from the system.
    pub blocks_fresh: u64,
    /// Large blocks of output memory used again.
    pub blocks_reused: u64,
}

impl Stats {
    /// What nodes did, and the large blocks of output memory that were taken from the system and used again.
    #[must_use]
    pub fn new(nodes: Vec<NodeStats>, (blocks_fresh, blocks_reused): (u64, u64)) -> Self {
        Self { nodes, threads: 1, seconds: 0.0, consumer_wait: 0.0, blocks_fresh, blocks_reused }
    }

    /// The stage that limits the rate, in one line.
    #[must_use]
    pub fn limiting(&self) -> String {
        let busiest = self.nodes.iter().max_by(|a, b| a.busy.total_cmp(&b.busy));
        let Some(busiest) = busiest.filter(|_| self.seconds > 0.0) else { return "nothing ran".to_owned() };
        let total: f64 = self.nodes.iter().map(|node| node.busy).sum();
        // Threads beside those that do most of the work may have done some of it.
        let load = (total / (self.seconds * self.threads as f64)).min(1.0);
        let share = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
        let serial = self.nodes.iter().find(|node| !node.parallel && node.busy > 0.9 * self.seconds);
        if let (Some(node), true) = (serial, self.threads > 1) {
            let busy = share(node.busy, self.seconds);
            return format!(
                "{}: runs on one thread at a time and was busy {busy:.0} % of the time",
                node.node
            );
        }
        if self.consumer_wait < 0.1 * self.seconds && load < 0.8 {
            return format!("the consumer: the pipes worked {:.0} % of the time", 100.0 * load);
        }
        let part = share(busiest.busy, total);
        format!(
            "{}: {part:.0} % of the work, {} threads {:.0} % busy",
            busiest.node,
            self.threads,
            100.0 * load
        )
    }
}

/// The names that go with a node's counters.
pub struct NodeInfo {
    /// Its name in the graph.
    pub node: String,
    pub(crate) pipe: String,
    pub(crate) plugin: String,
    pub(crate) file: String,
    /// Whether several chunks are worked on at once.
    pub parallel: bool,
    /// What one of those it gives is called, and several.
    pub(crate) unit: (String, String),
    /// What those who run it add to.
    pub counters: Arc<Counters>,
}

impl NodeInfo {
    /// What the node did so far.
    pub fn read(&self, host: &Host) -> NodeStats {
        let seconds = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 * 1e-9;
        let counters = &self.counters;
        NodeStats {
            node: self.node.clone(),
            pipe: self.pipe.clone(),
            plugin: self.plugin.clone(),
            file: self.file.clone(),
            samples: counters.samples.load(Ordering::Relaxed),
            unit: self.unit.0.clone(),
            units: self.unit.1.clone(),
            taken: counters.taken(),
            bytes: counters.bytes.load(Ordering::Relaxed),
            busy: seconds(&counters.busy),
            wait_input: seconds(&counters.wait_input),
            wait_room: seconds(&counters.wait_room),
            parallel: self.parallel,
            lost: counters.lost.load(Ordering::Relaxed),
            notes: host.notes_of(&self.node),
        }
    }
}
