//! A segment as the table of the threads holds it.

use std::{collections::BTreeMap, time::Instant};

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

    /// Forgets what belongs to one pass, and gives the bytes that were waiting within.
    ///
    /// What is worked on now comes back with a number below `due`, or to a chain that missed a pass.
    pub(super) fn restart(&mut self) -> usize {
        self.ended = false;
        self.idle = None;
        match &mut self.kind {
            Kind::Serial { chain, wants, pending, woken, missed } => {
                (*wants, *pending, *woken) = (None, false, false);
                *missed += u64::from(chain.is_none());
            }
            Kind::Parallel { next, taken, due, .. } => (*taken, *due) = (0, *next),
        }
        self.drop_done()
    }

    /// Drops what waits within for its turn, and gives its bytes.
    pub(super) fn drop_done(&mut self) -> usize {
        match &mut self.kind {
            Kind::Serial { .. } => 0,
            Kind::Parallel { done, .. } => std::mem::take(done).values().map(|(item, _)| item.bytes()).sum(),
        }
    }
}
