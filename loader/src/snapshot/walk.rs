//! From the number of samples delivered to the place that each node goes on from.

use std::sync::{Arc, OnceLock};

use super::Words;
use crate::{
    Graph,
    executor::{Arrivals, MapOrder, Mark, Origin, Place, Trail, count, pass_of_input},
};

/// The nodes of a graph with their marks, as a walk needs them.
pub(crate) struct Course {
    /// In the graph's order.
    pub(crate) stops: Vec<Stop>,
    /// So that each node comes after all it reads from.
    pub(crate) order: Vec<usize>,
    /// The output that leads to the consumer: node and port.
    pub(crate) output: (usize, usize),
    pub(crate) words: OnceLock<Words>,
}

/// One node.
pub(crate) struct Stop {
    /// Each input: the node it reads, and which of its outputs.
    pub(crate) inputs: Vec<(usize, usize)>,
    pub(crate) outputs: usize,
    /// Gives one sample for each it takes, and has no state.
    pub(crate) map: bool,
    /// Makes several samples of one, so that its place may lie within a file.
    pub(crate) cuts: bool,
    /// A source that gives the count of what is drawn from it.
    pub(crate) counts: bool,
    pub(crate) rewinds: bool,
    /// Sees one rank's samples.
    pub(crate) dealt: bool,
    /// Gives the same in every epoch and pass, since that is kept.
    pub(crate) kept: bool,
    /// Gives each rank its share.
    pub(crate) deals: bool,
    /// Stacks a fixed number of samples into one.
    pub(crate) stacks: bool,
    /// Brings its samples out of the run.
    pub(crate) writes: bool,
    /// A map that gives a sample in place of one that is lost: a copy of the one before.
    pub(crate) replaces: bool,
    pub(crate) trail: Arc<Trail>,
    /// For a node that begins an unordered segment: in which order that handed its samples on.
    pub(crate) arrivals: Option<Arc<Arrivals>>,
}

impl Course {
    /// What snapshots say of the graph, of which this is the course.
    pub(crate) fn words(&self, graph: &Graph) -> &Words {
        self.words.get_or_init(|| Words::new(graph))
    }

    /// The start of an epoch.
    pub(crate) fn fresh(&self) -> Vec<Origin> {
        let fresh = |stop: &Stop| Origin {
            order: stop.arrivals.as_ref().map(|_| MapOrder::default()),
            ..Origin::fresh(stop.inputs.len(), stop.outputs)
        };
        self.stops.iter().map(fresh).collect()
    }

    /// Where each node goes on after so many samples of an epoch, and the place of its mark for that.
    ///
    /// From the end up: a node goes on from its last mark that had given no more than is wanted of it; what it has given
    /// since is given again, and skipped. Its inputs must then go on from what that mark had taken of them, less what
    /// its pipe wants again.
    fn locate(&self, epoch: u64, delivered: u64) -> Vec<(Place, Origin)> {
        let mut wanted: Vec<_> = self.stops.iter().map(|stop| vec![(0, 0); stop.outputs]).collect();
        let mut found = vec![(Place::default(), Origin::default()); self.stops.len()];
        if let Some(output) = wanted.get_mut(self.output.0).and_then(|outputs| outputs.get_mut(self.output.1))
        {
            *output = (0, delivered);
        }
        for &at in self.order.iter().rev() {
            let stop = &self.stops[at];
            let (marked, origin) = stop.locate(epoch, &wanted[at]);
            for (input, &(from, port)) in stop.inputs.iter().enumerate() {
                let place = &origin.mark.place;
                let pass = match stop.rewinds {
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
    pub(crate) fn origins(&self, epoch: u64, delivered: u64) -> Vec<Origin> {
        let mut origins: Vec<_> =
            self.locate(epoch, delivered).into_iter().map(|(_, origin)| origin).collect();
        for (stop, origin) in self.stops.iter().zip(&mut origins).filter(|(stop, _)| stop.cuts) {
            let place = &origin.mark.place;
            let [taken, again, given, skip] = [&place.taken, &origin.again, &place.given, &origin.skip]
                .map(|numbers| numbers.first().copied().unwrap_or(0));
            origin.files = stop.trail.files_in((epoch, place.pass), (taken, again), (given, skip));
        }
        for (stop, origin) in self.stops.iter().zip(&mut origins).filter(|(stop, _)| stop.inputs.is_empty()) {
            if let ([given], [skip]) = (&origin.mark.place.given[..], &origin.skip[..])
                && *skip > 0
            {
                origin.last = stop.trail.last_of((epoch, origin.mark.place.pass), given + skip);
            }
        }
        for (stop, origin) in self.stops.iter().zip(&mut origins).filter(|(stop, _)| stop.counts) {
            if origin.mark.place.given == [0] {
                origin.was = stop.trail.saved_behind((epoch, origin.mark.place.pass));
            }
        }
        origins
    }

    /// Forgets the epoch before: the consumer is in the one that runs.
    pub(crate) fn settle(&self) {
        for stop in &self.stops {
            stop.trail.settle();
            stop.arrivals.iter().for_each(|arrivals| arrivals.settle());
        }
    }

    /// Forgets marks that no snapshot will ask for any more.
    pub(crate) fn trim(&self, epoch: u64, delivered: u64) {
        let found = self.locate(epoch, delivered);
        for &at in self.order.iter().rev() {
            let (marked, origin) = &found[at];
            if let (Some(arrivals), Some(order)) = (&self.stops[at].arrivals, &origin.order) {
                let place = &origin.mark.place;
                arrivals.forget((epoch, place.pass), place.taken[0] + count(&order.ahead));
            }
            // A node that has thinned its trail since goes on from an older mark, and so does all above it.
            if !self.stops[at].trail.forget(epoch, marked) && origin.mark.state.is_some() {
                return;
            }
        }
    }
}

impl Stop {
    fn locate(&self, epoch: u64, wanted: &[(u64, u64)]) -> (Place, Origin) {
        let pass = wanted.first().map_or(0, |(pass, _)| *pass);
        let wanted: Vec<u64> = wanted.iter().map(|(_, count)| *count).collect();
        if self.map {
            // Between two marks of a map it gives one sample for each.
            let mark = self.trail.before((epoch, pass), &wanted, 1);
            let since = wanted[0] - mark.place.given[0];
            // The losses just before: the last sample that was not lost is made again, to take the place of the next.
            let run = match &mark.state {
                Some(state) if since == 0 => state.again.first().copied().unwrap_or(0),
                _ => 0,
            };
            let back = if self.replaces { (run + 1).min(wanted[0]) } else { 0 };
            let place = Place {
                taken: vec![mark.place.taken[0] + since - back],
                given: vec![wanted[0] - back],
                lost: mark.place.lost - run,
                ..mark.place.clone()
            };
            let mut origin = Origin {
                mark: Mark { place, state: None },
                skip: vec![back],
                again: vec![0],
                ..Origin::default()
            };
            if let Some(arrivals) = &self.arrivals {
                // So many in the order in which they came; its input goes on at the first place that did not.
                let taken = &mut origin.mark.place.taken[0];
                let (low, order) = arrivals.locate((epoch, pass), *taken);
                (*taken, origin.order) = (low, Some(order));
            }
            return (mark.place, origin);
        }
        let just_at = if self.dealt { self.trail.just_at((epoch, pass), &wanted) } else { None };
        let mut mark =
            just_at.unwrap_or_else(|| self.trail.before((epoch, pass), &wanted, self.inputs.len()));
        let skip = wanted.iter().zip(&mark.place.given).map(|(wanted, given)| wanted - given).collect();
        let marked = mark.place.clone();
        let mut again = vec![0; self.inputs.len()];
        if let Some(state) = &mut mark.state {
            let wanted = std::mem::take(&mut state.again);
            for ((taken, again), wanted) in mark.place.taken.iter_mut().zip(&mut again).zip(wanted) {
                *again = wanted.min(*taken);
                *taken -= *again;
            }
        }
        (marked, Origin { mark, skip, again, ..Origin::default() })
    }
}
