//! A parallel segment: a chain of stateless maps, or a parallel flat map by itself, shared by all threads.

use std::{sync::Arc, time::Instant};

use forebay_core::{Chunk, Error, Key, Result};
use forebay_graph::OnError;
use forebay_snapshot::checkpoint_log::StartPoint;

use crate::{
    host::{Destination, NodeContext},
    run::{
        handoff_order::HandoffOrder,
        link::{Blame, Link, MadeNode},
        mapped::{Lost, Mapped},
        ordered::OrderedOutput,
    },
    stats::Counters,
};

/// The maps of a segment, and the contexts of the epoch. Cheap to clone, for a worker to hold.
#[derive(Clone)]
pub(crate) struct Parallel {
    maps: Arc<Vec<MadeNode>>,
    contexts: Arc<Vec<NodeContext>>,
}

impl Parallel {
    /// The shared part of a segment, and the part that sees its chunks in order.
    pub(crate) fn new(links: Vec<Link>, handoff_order: Option<Box<HandoffOrder>>) -> (Self, OrderedOutput) {
        let ordered = OrderedOutput::new(&links, handoff_order);
        let contexts = links.iter().map(|link| link.node.cx.clone()).collect();
        let maps = Arc::new(links.into_iter().map(|link| link.node).collect());
        (Self { maps, contexts: Arc::new(contexts) }, ordered)
    }

    /// Starts an epoch; who holds a clone goes on with the one before.
    pub(crate) fn start(&mut self, epoch: u64, origins: &[StartPoint]) {
        let contexts = Arc::make_mut(&mut self.contexts);
        for (cx, map) in contexts.iter_mut().zip(self.maps.iter()) {
            cx.start(epoch, origins[map.at].checkpoint.place.pass);
        }
        self.clear();
    }

    /// Starts another pass within the epoch.
    pub(crate) fn start_pass(&mut self, pass: u64) {
        Arc::make_mut(&mut self.contexts).iter_mut().for_each(|cx| cx.set_pass(pass));
        self.clear();
    }

    fn clear(&self) {
        self.maps.iter().filter_map(|map| map.destination.as_ref()).for_each(Destination::clear);
    }

    /// Begins work for an epoch with these passes, in a worker.
    pub(crate) fn set_passes(&mut self, epoch: u64, passes: &[u64]) {
        let contexts = Arc::make_mut(&mut self.contexts);
        contexts.iter_mut().zip(passes).for_each(|(cx, &pass)| cx.start(epoch, pass));
    }

    /// How many samples of the output are stacked next; 0 if they are not.
    pub(crate) fn stacked(&self) -> u64 {
        match self.maps.last().and_then(|map| map.destination.as_ref()) {
            Some(Destination::Batch(stacker)) => stacker.size(),
            _ => 0,
        }
    }

    /// The epoch, and the pass of each map.
    pub(crate) fn passes(&self) -> (u64, Vec<u64>) {
        let epoch = self.contexts.first().map_or(0, |cx| cx.raw().epoch);
        (epoch, self.contexts.iter().map(|cx| cx.raw().pass).collect())
    }

    /// Has the output of the last map lie where `destination` says; before anybody else holds a clone.
    pub(crate) fn place_last(&mut self, destination: Destination) -> Result<()> {
        let maps = Arc::get_mut(&mut self.maps).and_then(|maps| maps.last_mut());
        let map = maps.ok_or_else(|| Error::bug("the maps of a segment are shared already"))?;
        map.destination = Some(destination);
        Ok(())
    }

    /// What each map did so far: samples, bytes, nanoseconds.
    pub(crate) fn work(&self) -> Vec<(usize, usize, u64)> {
        self.maps.iter().map(|map| map.counters.work()).collect()
    }

    /// The maps, upstream first.
    pub(crate) fn maps(&self) -> &[MadeNode] {
        &self.maps
    }

    /// Moves all samples of `input`, changed by each map in turn, to `out`, and says what was lost. `first` is the
    /// number of the first sample within the pass.
    pub(crate) fn run(&self, first: u64, input: &mut Chunk, out: &mut Chunk) -> Mapped {
        self.run_telling(first, input, out, |_| {})
    }

    /// As [`run`](Parallel::run); `begins` is told of each map before it is called.
    pub(crate) fn run_telling(
        &self,
        first: u64,
        input: &mut Chunk,
        out: &mut Chunk,
        mut begins: impl FnMut(usize),
    ) -> Mapped {
        if let ([map], [cx]) = (&self.maps[..], &self.contexts[..])
            && map.spec.expands()
        {
            begins(0);
            return map.expand(cx, input, out);
        }
        let mut done = Mapped { taken: input.len(), ..Mapped::default() };
        // Who is who, by their place in the chunk; kept only where somebody may be lost and the others go on.
        let lenient = self.maps.iter().any(|map| map.on_error != OnError::default());
        let mut names: Vec<(usize, u64, Key)> = Vec::new();
        let mut end = usize::MAX;
        if lenient {
            names.extend(input.names().enumerate().map(|(at, (uid, key))| (at, uid, key.clone())));
        }
        for (at, (map, cx)) in self.maps.iter().zip(self.contexts.iter()).enumerate() {
            if at > 0 {
                input.clear();
                std::mem::swap(input, out);
            }
            begins(at);
            let begin = Instant::now();
            map.run(cx, first, (input, out), |given, error| {
                let error = map.blame.on(error);
                if !map.on_error.forgives(error.kind(), true) {
                    // What a map before this one lost further on was not to be looked at. A later map fails on a sample
                    // that came before.
                    end = names.get(given).map_or(end, |(at, ..)| *at);
                    names.truncate(given);
                    done.failed = Some(error);
                    return false;
                }
                let (at_input, uid, key) = names.remove(given);
                done.lost.push(Lost { map: at, at: at_input, given: 0, uid, key, error });
                true
            });
            let busy = begin.elapsed();
            done.bytes = out.size();
            map.counters.add(out.len(), done.bytes, busy);
        }
        input.clear();
        done.lost.retain(|lost| lost.at < end);
        done.lost.sort_by_key(|lost| lost.at);
        done
    }

    /// The counters of the first and of the last node.
    pub(crate) fn ends(&self) -> Option<(Arc<Counters>, Arc<Counters>)> {
        Some((Arc::clone(&self.maps.first()?.counters), Arc::clone(&self.maps.last()?.counters)))
    }

    /// Who must not be called in this process in place of another.
    pub(crate) fn confined(&self) -> Option<&Blame> {
        self.maps.iter().find(|map| map.confined).map(|map| &map.blame)
    }

    /// Whether somebody else holds a clone.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.maps) > 1
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

impl MadeNode {
    /// Moves all that the samples of `input` become to `out`.
    fn expand(&self, cx: &NodeContext, input: &mut Chunk, out: &mut Chunk) -> Mapped {
        let mut done = Mapped { taken: input.len(), ..Mapped::default() };
        let begin = Instant::now();
        let lenient = self.on_error != OnError::default();
        let names: Vec<_> = input.names().filter(|_| lenient).map(|(uid, key)| (uid, key.clone())).collect();
        let mut passed = 0;
        while !input.is_empty() {
            let before = (input.len(), passed);
            let Err(error) = self.pipe.expand(cx.raw(), input, &mut passed, out) else { break };
            let mut error = self.blame.on(error);
            if input.len() > before.0 || input.len() == before.0 && passed <= before.1 {
                error = self.blame.on(Error::bug(format!("the flat map failed twice at one place: {error}")));
            }
            if !self.on_error.forgives(error.kind(), true) {
                done.failed = Some(error);
                break;
            }
            // With nothing to pass over, the sample is gone.
            let at = done.taken - input.len() - usize::from(passed == 0);
            let (uid, key) = names.get(at).cloned().unwrap_or_default();
            done.lost.push(Lost { map: 0, at, given: out.len(), uid, key, error });
        }
        input.clear();
        done.bytes = out.size();
        self.counters.add(out.len(), done.bytes, begin.elapsed());
        done
    }

    /// Maps all of `input` to `out`; `on_loss` is told how many came out before a sample that failed, and says whether the
    /// others are to go on.
    fn run(
        &self,
        cx: &NodeContext,
        first: u64,
        (input, out): (&mut Chunk, &mut Chunk),
        mut on_loss: impl FnMut(usize, Error) -> bool,
    ) {
        let total = input.len();
        let mut more = Chunk::new();
        loop {
            let (count, at) = (input.len(), first + (total - input.len()) as u64);
            let fresh = out.is_empty();
            let to = if fresh { &mut *out } else { &mut more };
            let mapped = cx.stacked(self.destination.as_ref(), at, count, |cx| self.pipe.map(cx, input, to));
            if !fresh {
                out.take_from(&mut more, usize::MAX);
            }
            let Err(error) = mapped else { return };
            if !on_loss(out.len(), error) || input.is_empty() {
                return input.clear();
            }
        }
    }
}
