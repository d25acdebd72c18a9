//! From the number of samples delivered to the place that each node goes on from.

use std::sync::{Arc, OnceLock};

use forebay_graph::Graph;

use super::summary::GraphSummary;
use crate::{
    checkpoint_log::{Checkpoint, CheckpointLog, Progress, StartPoint, pass_of_input},
    handoff_log::HandoffLog,
    order::{MapOrder, count},
};

/// The nodes of a graph with their checkpoints, as a walk needs them.
pub struct ResumePlan {
    /// In the graph's order.
    pub nodes: Vec<NodeResume>,
    /// So that each node comes after all it reads from.
    pub order: Vec<usize>,
    /// The output that leads to the consumer: node and port.
    pub output: (usize, usize),
    /// What snapshots say of the graph.
    pub words: OnceLock<GraphSummary>,
}

/// One node.
pub struct NodeResume {
    /// Each input: the node it reads, and which of its outputs.
    pub inputs: Vec<(usize, usize)>,
    /// How many outputs it has.
    pub outputs: usize,
    /// Gives one sample for each it takes, and has no state.
    pub map: bool,
    /// Makes several samples of one, so that its place may lie within a file.
    pub cuts: bool,
    /// A source that gives the count of what is drawn from it.
    pub counts: bool,
    /// Starts its inputs over.
    pub rewinds: bool,
    /// Sees one rank's samples.
    pub dealt: bool,
    /// Gives the same in every epoch and pass, since that is kept.
    pub kept: bool,
    /// Gives each rank its share.
    pub deals: bool,
    /// Stacks a fixed number of samples into one.
    pub stacks: bool,
    /// Brings its samples out of the run.
    pub writes: bool,
    /// A map that gives a sample in place of one that is lost: a copy of the one before.
    pub replaces: bool,
    /// Where it has been.
    pub checkpoint_log: Arc<CheckpointLog>,
    /// For a node that begins an unordered segment: in which order that handed its samples on.
    pub handoff_log: Option<Arc<HandoffLog>>,
}

impl ResumePlan {
    /// What snapshots say of the graph, of which this is the plan.
    pub fn words(&self, graph: &Graph) -> &GraphSummary {
        self.words.get_or_init(|| GraphSummary::new(graph))
    }

    /// The start of an epoch.
    pub fn fresh(&self) -> Vec<StartPoint> {
        let fresh = |node: &NodeResume| StartPoint {
            order: node.handoff_log.as_ref().map(|_| MapOrder::default()),
            ..StartPoint::fresh(node.inputs.len(), node.outputs)
        };
        self.nodes.iter().map(fresh).collect()
    }

    /// Where each node goes on after so many samples of an epoch, and the place of its checkpoint for that.
    ///
    /// From the end up: a node goes on from its last checkpoint that had given no more than is wanted of it; what it has given
    /// since is given again, and skipped. Its inputs must then go on from what that checkpoint had taken of them, less what
    /// its pipe wants again.
    fn locate(&self, epoch: u64, delivered: u64) -> Vec<(Progress, StartPoint)> {
        let mut wanted: Vec<_> = self.nodes.iter().map(|node| vec![(0, 0); node.outputs]).collect();
        let mut found = vec![(Progress::default(), StartPoint::default()); self.nodes.len()];
        if let Some(output) = wanted.get_mut(self.output.0).and_then(|outputs| outputs.get_mut(self.output.1))
        {
            *output = (0, delivered);
        }
        for &at in self.order.iter().rev() {
            let node = &self.nodes[at];
            let (marked, origin) = node.locate(epoch, &wanted[at]);
            for (input, &(from, port)) in node.inputs.iter().enumerate() {
                let place = &origin.checkpoint.place;
                let pass = match node.rewinds {
                    true => pass_of_input(place.pass, place.rewound[input]),
                    false => place.pass,
                };
                wanted[from][port] = (pass, place.taken[input]);
            }
            found[at] = (marked, origin);
        }
        found
    }

    /// Where each node goes on after so many samples of an epoch.
    pub fn origins(&self, epoch: u64, delivered: u64) -> Vec<StartPoint> {
        let mut origins: Vec<_> =
            self.locate(epoch, delivered).into_iter().map(|(_, origin)| origin).collect();
        for (node, origin) in self.nodes.iter().zip(&mut origins).filter(|(node, _)| node.cuts) {
            let place = &origin.checkpoint.place;
            let [taken, again, given, skip] = [&place.taken, &origin.again, &place.given, &origin.skip]
                .map(|numbers| numbers.first().copied().unwrap_or(0));
            origin.files = node.checkpoint_log.files_in((epoch, place.pass), (taken, again), (given, skip));
        }
        for (node, origin) in self.nodes.iter().zip(&mut origins).filter(|(node, _)| node.inputs.is_empty()) {
            if let ([given], [skip]) = (&origin.checkpoint.place.given[..], &origin.skip[..])
                && *skip > 0
            {
                origin.last =
                    node.checkpoint_log.last_of((epoch, origin.checkpoint.place.pass), given + skip);
            }
        }
        for (node, origin) in self.nodes.iter().zip(&mut origins).filter(|(node, _)| node.counts) {
            if origin.checkpoint.place.given == [0] {
                origin.was = node.checkpoint_log.saved_behind((epoch, origin.checkpoint.place.pass));
            }
        }
        origins
    }

    /// Forgets the epoch before: the consumer is in the one that runs.
    pub fn settle(&self) {
        for node in &self.nodes {
            node.checkpoint_log.settle();
            node.handoff_log.iter().for_each(|handoff_log| handoff_log.settle());
        }
    }

    /// Forgets checkpoints that no snapshot will ask for any more.
    pub fn trim(&self, epoch: u64, delivered: u64) {
        let found = self.locate(epoch, delivered);
        for &at in self.order.iter().rev() {
            let (marked, origin) = &found[at];
            if let (Some(handoff_log), Some(order)) = (&self.nodes[at].handoff_log, &origin.order) {
                let place = &origin.checkpoint.place;
                handoff_log.forget((epoch, place.pass), place.taken[0] + count(&order.ahead));
            }
            // A node that has thinned its log since goes on from an older checkpoint, and so does all above it.
            if !self.nodes[at].checkpoint_log.forget(epoch, marked) && origin.checkpoint.state.is_some() {
                return;
            }
        }
    }
}

impl NodeResume {
    fn locate(&self, epoch: u64, wanted: &[(u64, u64)]) -> (Progress, StartPoint) {
        let pass = wanted.first().map_or(0, |(pass, _)| *pass);
        let wanted: Vec<u64> = wanted.iter().map(|(_, count)| *count).collect();
        if self.map {
            // Between two checkpoints of a map it gives one sample for each.
            let checkpoint = self.checkpoint_log.before((epoch, pass), &wanted, 1);
            let since = wanted[0] - checkpoint.place.given[0];
            // The losses just before: the last sample that was not lost is made again, to take the place of the next.
            let run = match &checkpoint.state {
                Some(state) if since == 0 => state.again.first().copied().unwrap_or(0),
                _ => 0,
            };
            let back = if self.replaces { (run + 1).min(wanted[0]) } else { 0 };
            let place = Progress {
                taken: vec![checkpoint.place.taken[0] + since - back],
                given: vec![wanted[0] - back],
                lost: checkpoint.place.lost - run,
                ..checkpoint.place.clone()
            };
            let mut origin = StartPoint {
                checkpoint: Checkpoint { place, state: None },
                skip: vec![back],
                again: vec![0],
                ..StartPoint::default()
            };
            if let Some(handoff_log) = &self.handoff_log {
                // So many in the order in which they came; its input goes on at the first place that did not.
                let taken = &mut origin.checkpoint.place.taken[0];
                let (low, order) = handoff_log.locate((epoch, pass), *taken);
                (*taken, origin.order) = (low, Some(order));
            }
            return (checkpoint.place, origin);
        }
        let just_at = if self.dealt { self.checkpoint_log.just_at((epoch, pass), &wanted) } else { None };
        let mut checkpoint =
            just_at.unwrap_or_else(|| self.checkpoint_log.before((epoch, pass), &wanted, self.inputs.len()));
        let skip = wanted.iter().zip(&checkpoint.place.given).map(|(wanted, given)| wanted - given).collect();
        let marked = checkpoint.place.clone();
        let mut again = vec![0; self.inputs.len()];
        if let Some(state) = &mut checkpoint.state {
            let wanted = std::mem::take(&mut state.again);
            for ((taken, again), wanted) in checkpoint.place.taken.iter_mut().zip(&mut again).zip(wanted) {
                *again = wanted.min(*taken);
                *taken -= *again;
            }
        }
        (marked, StartPoint { checkpoint, skip, again, ..StartPoint::default() })
    }
}
