//! Segments and edges as the table of the threads holds them.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Instant,
};

use forebay_core::{Chunk, Error, Waker};

use super::{Body, Chain, Grain, Parallel};
use crate::plan;

/// A segment with its place in the graph.
pub(super) struct Segment {
    pub(super) kind: Kind,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    pub(super) ended: bool,
    pub(super) waker: Waker,
    /// Since when it could not run, and why.
    pub(super) idle: Option<(Instant, Wait)>,
}

/// What runs in a segment, and how far it is.
pub(super) enum Kind {
    Serial {
        /// Away while it runs.
        chain: Option<Box<Chain>>,
        wants: Option<usize>,
        pending: bool,
        woken: bool,
        /// Passes that began while it was away.
        missed: u64,
    },
    Parallel {
        maps: Parallel,
        grain: Grain,
        next: u64,
        /// Samples taken in this pass.
        taken: u64,
        due: u64,
        running: usize,
        done: BTreeMap<u64, (Item, Option<Error>)>,
    },
}

/// Why a segment cannot run.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Wait {
    Input,
    Room,
}

/// What travels on an edge, in order.
pub(crate) enum Item {
    /// Samples, and how many bytes they keep.
    Chunk(Chunk, usize),
    /// Nothing comes after this.
    Failed(Error),
}

impl Item {
    /// How many bytes of the budget it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Chunk(_, bytes) => *bytes,
            Self::Failed(_) => 0,
        }
    }
}

/// A queue with its place in the graph.
pub(super) struct Edge {
    pub(super) plan: plan::Edge,
    pub(super) items: VecDeque<Item>,
    pub(super) ended: bool,
}

impl Edge {
    /// Whether a reader gets something: samples, an error, or the end.
    pub(super) fn can_give(&self) -> bool {
        !self.items.is_empty() || self.ended
    }
}

impl Segment {
    pub(super) fn new(plan: plan::Segment, body: Body, waker: Waker, chunk: Option<usize>) -> Self {
        let kind = match body {
            Body::Serial(chain) => {
                Kind::Serial { chain: Some(chain), wants: None, pending: false, woken: false, missed: 0 }
            }
            Body::Parallel(maps) => Kind::Parallel {
                maps,
                grain: Grain::new(chunk),
                next: 0,
                taken: 0,
                due: 0,
                running: 0,
                done: BTreeMap::new(),
            },
        };
        Self { kind, inputs: plan.inputs, outputs: plan.outputs, ended: false, waker, idle: None }
    }

    /// Forgets what belongs to one pass, and gives what was waiting within.
    ///
    /// What is worked on now comes back with a number below `due`, or to a chain that missed a pass.
    pub(super) fn restart(&mut self) -> Vec<Item> {
        self.ended = false;
        self.idle = None;
        match &mut self.kind {
            Kind::Serial { chain, wants, pending, woken, missed } => {
                (*wants, *pending, *woken) = (None, false, false);
                *missed += u64::from(chain.is_none());
            }
            Kind::Parallel { next, taken, due, .. } => (*taken, *due) = (0, *next),
        }
        self.take_done()
    }

    /// Takes what waits within for its turn.
    pub(super) fn take_done(&mut self) -> Vec<Item> {
        match &mut self.kind {
            Kind::Serial { .. } => Vec::new(),
            Kind::Parallel { done, .. } => std::mem::take(done).into_values().map(|(item, _)| item).collect(),
        }
    }

    /// Counts how long it could not run, now that it does.
    pub(super) fn note_end_of_wait(&mut self) {
        let Some((since, wait)) = self.idle.take() else { return };
        let ends = match &self.kind {
            Kind::Serial { chain, .. } => chain.as_ref().and_then(|chain| chain.ends()),
            Kind::Parallel { maps, .. } => maps.ends(),
        };
        match (ends, wait) {
            (Some((first, _)), Wait::Input) => first.waited_for_input(since.elapsed()),
            (Some((_, last)), Wait::Room) => last.waited_for_room(since.elapsed()),
            (None, _) => {}
        }
    }
}
