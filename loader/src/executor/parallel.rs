//! A parallel segment: a chain of stateless maps, shared by all threads.

use std::{sync::Arc, time::Instant};

use forebay_core::{Chunk, Error, Result};

use super::chain::{Blame, Link};
use crate::{
    handles::PipeHandle,
    host::{NodeContext, Stacker},
    stats::Counters,
};

/// The maps of a segment, and the contexts of the epoch. Cheap to clone, for a worker to hold.
#[derive(Clone)]
pub(crate) struct Parallel {
    maps: Arc<Vec<SharedMap>>,
    contexts: Arc<Vec<NodeContext>>,
}

struct SharedMap {
    pipe: PipeHandle,
    stacker: Option<Arc<Stacker>>,
    counters: Arc<Counters>,
    blame: Blame,
}

impl Parallel {
    pub(crate) fn new(links: Vec<Link>) -> Self {
        let contexts = links.iter().map(|link| link.cx.clone()).collect();
        let share = |link: Link| SharedMap {
            pipe: link.pipe,
            stacker: link.stacker,
            counters: link.counters,
            blame: link.blame,
        };
        Self { maps: Arc::new(links.into_iter().map(share).collect()), contexts: Arc::new(contexts) }
    }

    /// Starts an epoch; who holds a clone goes on with the one before.
    pub(crate) fn start(&mut self, epoch: u64) {
        Arc::make_mut(&mut self.contexts).iter_mut().for_each(|cx| cx.start(epoch));
        self.clear();
    }

    /// Starts another pass within the epoch.
    pub(crate) fn next_pass(&mut self) {
        Arc::make_mut(&mut self.contexts).iter_mut().for_each(NodeContext::next_pass);
        self.clear();
    }

    fn clear(&self) {
        self.maps.iter().filter_map(|map| map.stacker.as_ref()).for_each(|stacker| stacker.clear());
    }

    /// Moves all samples of `input`, changed by each map in turn, to `out`; and says which one failed,
    /// with those before it in `out`; and how many bytes `out` keeps. `first` is the number of the first
    /// sample within the pass.
    pub(crate) fn run(&self, first: u64, input: &mut Chunk, out: &mut Chunk) -> (usize, Result<()>) {
        let (mut bytes, mut result) = (0, Ok(()));
        for (at, (map, cx)) in self.maps.iter().zip(self.contexts.iter()).enumerate() {
            if at > 0 {
                input.clear();
                std::mem::swap(input, out);
            }
            let begin = Instant::now();
            let count = input.len();
            let mapped = cx.stacked(map.stacker.as_ref(), first, count, |cx| map.pipe.map(cx, input, out));
            let busy = begin.elapsed();
            bytes = out.size();
            map.counters.add(out.len(), bytes, busy);
            if let Err(error) = mapped {
                // A later map fails on a sample that came before.
                result = Err(map.blame.on(error));
            }
        }
        input.clear();
        (bytes, result)
    }

    /// The counters of the first and of the last node.
    pub(crate) fn ends(&self) -> Option<(Arc<Counters>, Arc<Counters>)> {
        Some((Arc::clone(&self.maps.first()?.counters), Arc::clone(&self.maps.last()?.counters)))
    }

    /// Frees the pipes; gives the first error. Nobody else holds a clone by now.
    pub(crate) fn free(self) -> Result<()> {
        let maps = Arc::into_inner(self.maps).ok_or_else(|| Error::bug("a map is still in use"))?;
        let mut result = Ok(());
        for map in maps {
            let freed = map.pipe.free().map_err(|error| map.blame.on(error));
            result = result.and(freed);
        }
        result
    }
}
