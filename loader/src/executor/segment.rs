//! A segment as the table of the threads holds it.

use std::{collections::BTreeMap, time::Instant};

use forebay_core::{Error, Waker};

use super::{Chain, Grain, Parallel, table::Item};

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

impl Segment {
    /// Forgets what belongs to one pass.
    pub(super) fn restart(&mut self) {
        self.ended = false;
        self.idle = None;
        match &mut self.kind {
            Kind::Serial { wants, pending, woken, .. } => (*wants, *pending, *woken) = (None, false, false),
            Kind::Parallel { next, taken, due, done, .. } => {
                (*next, *taken, *due) = (0, 0, 0);
                done.clear();
            }
        }
    }
}
