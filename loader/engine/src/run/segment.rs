//! Segments and edges as the table of the threads holds them.

use std::{collections::VecDeque, time::Instant};

use forebay_core::Waker;
use forebay_graph::On;
use forebay_snapshot::checkpoint_log::{StartPoint, pass_of_input};

use crate::{
    plan,
    run::{Body, Chain, ChunkSize, OrderedOutput, Parallel, item::Item, ordered::ReorderBuffer},
    takes::Takes,
};

/// A segment with its place in the graph.
pub(super) struct SegmentState {
    pub(super) kind: SegmentKind,
    pub(super) on: On,
    /// Places in the graph's list, upstream first.
    pub(super) nodes: Vec<usize>,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    /// For each node whether it may start its inputs over.
    pub(super) rewinds: Vec<bool>,
    /// What each node takes for those that are wanted of it.
    pub(super) takes: Vec<Takes>,
    /// Whether it keeps what it reads, and has not asked for any of that in this pass.
    keeps: bool,
    pub(super) idles: bool,
    pub(super) ended: bool,
    pub(super) waker: Waker,
    /// Has its chain come back from a worker that it has to itself.
    pub(super) interrupt: Option<Waker>,
    /// Since when it could not run, and why.
    pub(super) idle: Option<(Instant, Blocked)>,
}

/// What runs in a segment, and how far it is.
pub(super) enum SegmentKind {
    Serial {
        /// Away while it runs.
        chain: Option<Box<Chain>>,
        wants: Option<usize>,
        pending: bool,
        woken: bool,
        /// The pass that began while it was away.
        missed: Option<u64>,
    },
    Parallel {
        maps: Parallel,
        ordered: Box<OrderedOutput>,
        chunk_size: ChunkSize,
        /// Samples taken in this pass.
        taken: u64,
        running: usize,
        reorder: ReorderBuffer,
    },
}

/// Why a segment cannot run.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Blocked {
    Input,
    Room,
}

/// A queue with its place in the graph.
pub(super) struct EdgeQueue {
    pub(super) plan: plan::Edge,
    pub(super) items: VecDeque<Item>,
    /// What the items keep, and those that wait within the writer for their turn.
    pub(super) bytes: usize,
    /// How many samples came in this pass, those before a resume included.
    pub(super) came: u64,
    pub(super) ended: bool,
}

impl EdgeQueue {
    /// Takes what came first.
    pub(super) fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.bytes -= item.bytes();
        Some(item)
    }

    /// Whether a reader gets something: samples, an error, or the end.
    pub(super) fn can_give(&self) -> bool {
        !self.items.is_empty() || self.ended
    }
}

impl SegmentState {
    pub(super) fn new(plan: plan::Segment, body: Body, waker: Waker, chunk_size: ChunkSize) -> Self {
        let kind = match body {
            Body::Serial(chain) => SegmentKind::Serial {
                chain: Some(chain),
                wants: None,
                pending: false,
                woken: false,
                missed: None,
            },
            Body::Parallel(maps, ordered) => SegmentKind::Parallel {
                maps,
                ordered,
                chunk_size,
                taken: 0,
                running: 0,
                reorder: ReorderBuffer::default(),
            },
        };
        let (inputs, outputs, rewinds, takes) = (plan.inputs, plan.outputs, plan.rewinds, plan.takes);
        // A process is driven by the same threads whether it is in a sandbox or not.
        let on = if plan.on.is_elsewhere() { On::Process } else { plan.on };
        let keeps = plan.keeps;
        let nodes = plan.nodes;
        Self {
            kind,
            on,
            nodes,
            inputs,
            outputs,
            rewinds,
            takes,
            keeps,
            idles: keeps,
            ended: false,
            waker,
            interrupt: None,
            idle: None,
        }
    }

    /// Whether it has a worker process to itself.
    pub(super) fn is_dedicated(&self) -> bool {
        self.interrupt.is_some()
    }

    /// Starts an epoch, and gives what was waiting within; nothing runs now.
    pub(super) fn start(&mut self, epoch: u64, origins: &[StartPoint]) -> Vec<Item> {
        let waiting = self.take_done();
        self.restart();
        match &mut self.kind {
            SegmentKind::Serial { chain, .. } => {
                chain.iter_mut().for_each(|chain| chain.start(epoch, origins))
            }
            SegmentKind::Parallel { maps, ordered, taken, .. } => {
                maps.start(epoch, origins);
                *taken = ordered.start(epoch, origins);
            }
        }
        waiting
    }

    /// Starts another pass, and gives that of the inputs; nothing waits within any more.
    ///
    /// What is worked on now comes back with the number of another pass, or to a chain that missed the start of a pass.
    pub(super) fn start_pass(&mut self, pass: u64) -> u64 {
        self.restart();
        match &mut self.kind {
            SegmentKind::Serial { chain: Some(chain), .. } => drop(chain.start_pass(pass)),
            SegmentKind::Serial { missed, .. } => {
                *missed = Some(pass);
                self.interrupt.iter().for_each(Waker::wake);
            }
            SegmentKind::Parallel { maps, ordered, .. } => {
                maps.start_pass(pass);
                ordered.start_pass(pass);
            }
        }
        let up = |pass, &rewinds: &bool| if rewinds { pass_of_input(pass, 0) } else { pass };
        self.rewinds.iter().rev().fold(pass, up)
    }

    /// Forgets what belongs to one pass.
    fn restart(&mut self) {
        self.ended = false;
        self.idles = self.keeps;
        self.idle = None;
        match &mut self.kind {
            SegmentKind::Serial { wants, pending, woken, .. } => {
                (*wants, *pending, *woken) = (None, false, false)
            }
            SegmentKind::Parallel { taken, reorder, .. } => {
                *taken = 0;
                reorder.start_pass();
            }
        }
    }

    /// Takes what waits within for its turn.
    pub(super) fn take_done(&mut self) -> Vec<Item> {
        match &mut self.kind {
            SegmentKind::Serial { .. } => Vec::new(),
            SegmentKind::Parallel { reorder, .. } => reorder.clear(),
        }
    }

    /// Whether it waits to be woken.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.kind, SegmentKind::Serial { pending: true, woken: false, .. })
    }

    /// Counts how long it could not run, now that it does.
    pub(super) fn note_end_of_wait(&mut self) {
        let Some((since, wait)) = self.idle.take() else { return };
        let ends = match &self.kind {
            SegmentKind::Serial { chain, .. } => chain.as_ref().and_then(|chain| chain.ends()),
            SegmentKind::Parallel { maps, .. } => maps.ends(),
        };
        match (ends, wait) {
            (Some((first, _)), Blocked::Input) => first.waited_for_input(since.elapsed()),
            (Some((_, last)), Blocked::Room) => last.waited_for_room(since.elapsed()),
            (None, _) => {}
        }
    }
}
