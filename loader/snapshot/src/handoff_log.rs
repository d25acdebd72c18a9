//! What snapshots know of an unordered segment: in which order it handed its samples on.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    epochs::Epochs,
    order::{MapOrder, PlaceSet, Span, after, append, count},
};

/// How many spans are kept before old ones should be forgotten; twice what was needed the last time, if that is more.
const MANY: usize = 64;

/// The order in which an unordered segment handed its samples on, since the oldest place that a snapshot may ask for: of the
/// epoch it is in, and of the one before while the consumer may still be there.
#[derive(Default)]
pub struct HandoffLog(Mutex<Epochs<Log>>);

#[derive(Default)]
struct Log {
    /// In order of time.
    passes: VecDeque<Pass>,
    /// How many spans there may be before old ones should be forgotten.
    most: usize,
}

struct Pass {
    number: u64,
    /// What was handed on before the first span.
    before: PlaceSet,
    /// After a resume, these have yet to come again.
    spans: Vec<Span>,
}

impl HandoffLog {
    fn logs(&self) -> MutexGuard<'_, Epochs<Log>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an epoch in this pass, whose input begins at the place `low`.
    pub fn start(&self, (epoch, pass): (u64, u64), low: u64, order: &MapOrder) {
        let mut passes = VecDeque::from([Pass {
            number: pass,
            before: PlaceSet::new(low, &order.ahead),
            spans: Vec::new(),
        }]);
        for (number, spans) in &order.passes {
            match passes.back_mut().filter(|last| last.number == *number) {
                Some(last) => last.spans.clone_from(spans),
                None => passes.push_back(Pass {
                    number: *number,
                    before: PlaceSet::default(),
                    spans: spans.clone(),
                }),
            }
        }
        self.logs().start(epoch, Log { passes, most: MANY });
    }

    /// Forgets all before the epoch that the segment is in.
    pub(crate) fn settle(&self) {
        self.logs().settle();
    }

    /// Begins a pass; gives what was handed on before it goes on, and what comes next as far as it is known.
    pub fn begin(&self, pass: u64) -> (PlaceSet, Vec<Span>) {
        let mut logs = self.logs();
        let passes = &mut logs.now().passes;
        if let Some(known) = passes.iter().find(|known| known.number == pass) {
            return (known.before.clone(), known.spans.clone());
        }
        passes.push_back(Pass { number: pass, before: PlaceSet::default(), spans: Vec::new() });
        (PlaceSet::default(), Vec::new())
    }

    /// Notes what was handed on in a pass; says whether old spans should be forgotten.
    pub fn push(&self, pass: u64, span: Span) -> bool {
        let mut logs = self.logs();
        let log = logs.now();
        if let Some(pass) = log.passes.iter_mut().rfind(|known| known.number == pass) {
            append(&mut pass.spans, span);
        }
        log.passes.iter().map(|pass| pass.spans.len()).sum::<usize>() > log.most
    }

    /// Where the input goes on after so many samples of a pass of the epoch were handed on, and in which order.
    pub(crate) fn locate(&self, (epoch, pass): (u64, u64), given: u64) -> (u64, MapOrder) {
        let mut logs = self.logs();
        let Some(log) = logs.of(epoch) else { return (given, MapOrder::default()) };
        let Some(at) = log.passes.iter().position(|known| known.number == pass) else {
            return (given, MapOrder::default());
        };
        let (before, rest) = log.passes[at].split(given);
        let mut passes = vec![(pass, rest)];
        passes.extend(log.passes.range(at + 1..).map(|pass| (pass.number, pass.spans.clone())));
        passes.retain(|(_, spans)| !spans.is_empty());
        (before.low(), MapOrder { ahead: before.ahead(), passes })
    }

    /// Forgets what was handed on before in this epoch: nobody will ask for it any more.
    pub(crate) fn forget(&self, (epoch, pass): (u64, u64), given: u64) {
        let mut logs = self.logs();
        let Some(log) = logs.of(epoch) else { return };
        let Some(at) = log.passes.iter().position(|known| known.number == pass) else { return };
        log.passes.drain(..at);
        if let Some(first) = log.passes.front_mut() {
            (first.before, first.spans) = first.split(given);
        }
        let left: usize = log.passes.iter().map(|pass| pass.spans.len()).sum();
        log.most = MANY.max(2 * left);
    }
}

impl Pass {
    /// What was handed on with the first `given`, and the spans after them.
    fn split(&self, given: u64) -> (PlaceSet, Vec<Span>) {
        let mut before = self.before.clone();
        let since = given.saturating_sub(before.count());
        let rest = after(&self.spans, since);
        let mut left = since.min(count(&self.spans));
        for &Span(first, len) in &self.spans {
            let len = len.min(left);
            left -= len;
            if len > 0 {
                before.add(Span(first, len));
            }
        }
        (before, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_found_again_from_any_place() {
        let handoff_log = HandoffLog::default();
        handoff_log.start((0, 0), 0, &MapOrder::default());
        handoff_log.begin(0);
        for span in [Span(2, 2), Span(0, 1), Span(4, 3), Span(1, 1)] {
            handoff_log.push(0, span);
        }
        handoff_log.begin(9);
        handoff_log.push(9, Span(1, 1));
        let order: Vec<u64> = vec![2, 3, 0, 4, 5, 6, 1];
        for given in 0..=7 {
            let (low, found) = handoff_log.locate((0, 0), given as u64);
            let ahead = PlaceSet::new(low, &found.ahead);
            assert!(order.iter().all(|&place| ahead.alike(place).1 == order[..given].contains(&place)));
            let spans = found.passes.iter().filter(|(pass, _)| *pass == 0).flat_map(|(_, spans)| spans);
            assert!(spans.flat_map(|span| span.0..span.end()).eq(order[given..].iter().copied()));
            assert_eq!(found.passes.last(), Some(&(9, vec![Span(1, 1)])));
            // The same from where a resume begins, and once what lies before is forgotten.
            let resumed = HandoffLog::default();
            resumed.start((0, 0), low, &found);
            assert_eq!(resumed.locate((0, 0), 7), handoff_log.locate((0, 0), 7));
            resumed.forget((0, 0), 5.max(given as u64));
            assert_eq!(resumed.locate((0, 0), 7), handoff_log.locate((0, 0), 7));
        }
        handoff_log.forget((0, 9), 0);
        assert_eq!(
            handoff_log.locate((0, 9), 1),
            (0, MapOrder { ahead: vec![Span(1, 1)], passes: Vec::new() })
        );
    }
}
