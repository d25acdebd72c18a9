//! Where a node has been: what a snapshot is put together from.
//!
//! A node with state notes, after some of its calls, how many samples it had taken and given, and its state. So the
//! place of the whole graph for any number of samples delivered can be found later, without stopping anything:
//! see `snapshot`.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use forebay_core::{Chunk, State, random::mix};
use serde::{Deserialize, Serialize};

use super::{
    epochs::Epochs,
    order::MapOrder,
    seen::{Field, Files, Seen},
    uids::UidRun,
};
use crate::FileMark;

/// The most checkpoints that are kept; beyond, every second one is forgotten.
const MOST: usize = 64;
/// A state may take this share of a node's time to save.
const SHARE: u32 = 50;

/// How far a node is within an epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Which pass it is in, by the number its context carries.
    pub pass: u64,
    /// How often it started each input over in this pass.
    pub rewound: Vec<u64>,
    /// Samples taken from each input, since that began its pass.
    pub taken: Vec<u64>,
    /// Samples given to each output in this pass.
    pub given: Vec<u64>,
    /// Failures in this pass that were forgiven; for nodes that may fail without losing a sample: all but maps that leave the
    /// sample out.
    pub lost: u64,
}

impl Progress {
    /// The start of a pass.
    pub fn start(pass: u64, inputs: usize, outputs: usize) -> Self {
        Self { pass, rewound: vec![0; inputs], taken: vec![0; inputs], given: vec![0; outputs], lost: 0 }
    }
}

/// The pass of an input that a node in `pass` started over so many times.
///
/// It follows from the two numbers alone, so that it does not depend on how far a node ran ahead before it was itself
/// started over. The passes of a node that nothing above starts over are 0, 1, 2 and so on.
pub fn pass_of_input(pass: u64, rewound: u64) -> u64 {
    if pass == 0 { rewound } else { mix(&[pass, rewound]) }
}

/// A place, and the state that goes with it; none at the start of a pass.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    /// How far the node is.
    pub place: Progress,
    /// What it saves of itself there.
    pub state: Option<State>,
}

/// Where a node begins to run.
#[derive(Debug, Clone, Default)]
pub struct StartPoint {
    /// The place that it goes to first.
    pub checkpoint: Checkpoint,
    /// How many of the samples it will give to each output were delivered before.
    pub skip: Vec<u64>,
    /// How many of the samples it will take from each input it had taken before, and held.
    pub again: Vec<u64>,
    /// For a node that begins an unordered segment: in which order it goes on.
    pub order: Option<MapOrder>,
    /// The files that its place lies in.
    pub files: Vec<FileMark>,
    /// Of a source: the uid of the last of the samples that come again.
    pub last: Option<u64>,
    /// Of a source that gives the count of what is drawn from it, and gives it again: what it saved behind that.
    pub was: Option<State>,
    /// Whether something before it was allowed to differ: then it may end before all of `skip` came again.
    pub lenient: bool,
}

impl StartPoint {
    /// The start of an epoch.
    pub fn fresh(inputs: usize, outputs: usize) -> Self {
        let place = Progress::start(0, inputs, outputs);
        Self {
            checkpoint: Checkpoint { place, state: None },
            skip: vec![0; outputs],
            again: vec![0; inputs],
            ..Self::default()
        }
    }
}

/// The checkpoints of one node, in the order it made them: of the epoch it is in, and of the one before while the consumer may
/// still be there.
#[derive(Debug, Default)]
pub struct CheckpointLog {
    checkpoints: Mutex<Epochs<VecDeque<Checkpoint>>>,
    /// Of a flat map: the files that it was given.
    files: Mutex<Epochs<Files>>,
    /// Of a source of files: the samples that it gave.
    uids: Mutex<Epochs<UidRun>>,
}

impl CheckpointLog {
    fn checkpoints(&self) -> MutexGuard<'_, Epochs<VecDeque<Checkpoint>>> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uids(&self) -> MutexGuard<'_, Epochs<UidRun>> {
        self.uids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, Epochs<Files>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node starts an epoch at its origin.
    pub fn start(&self, epoch: u64, origin: &StartPoint) {
        self.checkpoints().start(epoch, VecDeque::new());
        let mut files = Files::default();
        let place = &origin.checkpoint.place;
        files.begin((place.pass, place.taken.first().copied().unwrap_or(0)), &origin.files);
        self.files().start(epoch, files);
        let mut uids = UidRun::default();
        if let (Some(last), [given]) = (origin.last, &place.given[..]) {
            uids.add((place.pass, (given + origin.skip[0]).saturating_sub(1)), std::iter::once(last));
        }
        self.uids().start(epoch, uids);
    }

    /// Forgets all before the epoch that the node is in.
    pub(crate) fn settle(&self) {
        self.checkpoints().settle();
        self.files().settle();
        self.uids().settle();
    }

    /// Takes all checkpoints, for another process that keeps them.
    pub fn take(&self) -> VecDeque<Checkpoint> {
        std::mem::take(self.checkpoints().now())
    }

    /// Takes all files, as above.
    pub fn take_files(&self) -> Vec<Seen> {
        self.files().now().take()
    }

    /// Takes the samples that a source gave, as above: the pass, the number of the first, and their uids.
    pub fn take_uids(&self) -> (u64, u64, Vec<u64>) {
        self.uids().now().take()
    }

    /// Adds a file that was noted in another process.
    pub fn add_file(&self, seen: Seen) {
        let (place, path, is) = seen.parts();
        self.files().now().note(place, &path, is);
    }

    /// Notes that the sample of the input at this place, pass and number, is about a file; `look` says what that is now.
    pub(crate) fn note_file(&self, place: (u64, u64), path: &str, look: impl FnOnce() -> Option<FileMark>) {
        let (last, known) = self.files().now().known(place.0, path);
        if !last {
            let is = known.or_else(look); // A snapshot does not wait for that.
            self.files().now().note(place, path, is);
        }
    }

    /// What a node saved behind its only sample of a pass.
    pub(crate) fn saved_behind(&self, (epoch, pass): (u64, u64)) -> Option<State> {
        let behind =
            |checkpoint: &&Checkpoint| checkpoint.place.pass == pass && checkpoint.place.given == [1];
        self.checkpoints().of(epoch)?.iter().find(behind)?.state.clone()
    }

    /// Notes which samples a source gave, from this place on: pass and number.
    pub fn note_uids(&self, place: (u64, u64), uids: impl Iterator<Item = u64>) {
        self.uids().now().add(place, uids);
    }

    /// Which sample was the last of the first `count` that a source gave in a pass, if it was noted.
    pub(crate) fn last_of(&self, (epoch, pass): (u64, u64), count: u64) -> Option<u64> {
        self.uids().of(epoch)?.last_of(pass, count)
    }

    /// Notes which files the samples of a chunk are about, which begins at this place of the input.
    pub fn note_files(&self, (pass, first): (u64, u64), chunk: &Chunk, field: &mut Field) {
        if !field.is_in(chunk) {
            return;
        }
        let mut files = None;
        for (at, (_, _, schema, values)) in (first..).zip(chunk.samples()) {
            if let Some(path) = field.path(schema, values) {
                let files = files.get_or_insert_with(|| self.files());
                files.now().note((pass, at), path, None);
            }
        }
    }

    /// The files that a place lies in: those of the samples from `low` on that come again, and, where so many more samples than the
    /// checkpoint had `given` are made again, those up to the next checkpoint behind that.
    pub(crate) fn files_in(
        &self,
        (epoch, pass): (u64, u64),
        (low, again): (u64, u64),
        (given, skip): (u64, u64),
    ) -> Vec<FileMark> {
        let wanted = given.saturating_add(skip);
        let behind = |checkpoint: &&Checkpoint| {
            checkpoint.place.pass == pass && checkpoint.place.given.first() >= Some(&wanted)
        };
        let high = match skip {
            0 => low.saturating_add(again),
            _ => {
                let mut checkpoints = self.checkpoints();
                let next = checkpoints.of(epoch).and_then(|checkpoints| checkpoints.iter().find(behind));
                next.and_then(|checkpoint| checkpoint.place.taken.first().copied()).unwrap_or(u64::MAX)
            }
        };
        self.files().of(epoch).map_or_else(Vec::new, |files| files.between(pass, low, high))
    }

    /// Adds a checkpoint that must not be lost: between two of them the node gives one sample for each it takes.
    pub fn keep(&self, checkpoint: Checkpoint) -> bool {
        let mut checkpoints = self.checkpoints();
        let checkpoints = checkpoints.now();
        checkpoints.push_back(checkpoint);
        checkpoints.len() > MOST
    }

    /// Adds a checkpoint; says whether there are so many that old ones should be forgotten.
    pub fn push(&self, checkpoint: Checkpoint) -> bool {
        let mut checkpoints = self.checkpoints();
        let checkpoints = checkpoints.now();
        if checkpoints.len() >= MOST {
            // The first may be the one that is needed now.
            let mut at = 0;
            checkpoints.retain(|_| (at += 1, at == 1 || at % 2 == 0).1);
        }
        checkpoints.push_back(checkpoint);
        checkpoints.len() > MOST / 2
    }

    /// The last checkpoint in this pass of the epoch that had given no more than `wanted` to any output; the start of the pass if
    /// there is none.
    pub(crate) fn before(&self, (epoch, pass): (u64, u64), wanted: &[u64], inputs: usize) -> Checkpoint {
        let fits = |checkpoint: &&Checkpoint| {
            checkpoint.place.pass == pass
                && checkpoint.place.given.iter().zip(wanted).all(|(given, wanted)| given <= wanted)
        };
        let found =
            self.checkpoints().of(epoch).and_then(|checkpoints| checkpoints.iter().rev().find(fits).cloned());
        found
            .unwrap_or_else(|| Checkpoint { place: Progress::start(pass, inputs, wanted.len()), state: None })
    }

    /// The first checkpoint in this pass of the epoch that had given just this: the one at which a pipe holds least of what comes
    /// after.
    pub(crate) fn just_at(&self, (epoch, pass): (u64, u64), wanted: &[u64]) -> Option<Checkpoint> {
        let fits =
            |checkpoint: &&Checkpoint| checkpoint.place.pass == pass && checkpoint.place.given == wanted;
        self.checkpoints().of(epoch)?.iter().find(fits).cloned()
    }

    /// Forgets what lies before a checkpoint of this epoch: nobody will ask for it any more. Says whether the checkpoint itself is still
    /// there.
    pub(crate) fn forget(&self, epoch: u64, before: &Progress) -> bool {
        let mut checkpoints = self.checkpoints();
        let Some(checkpoints) = checkpoints.of(epoch) else { return false };
        let at = checkpoints.iter().position(|checkpoint| checkpoint.place == *before);
        checkpoints.drain(..at.unwrap_or(0));
        if let (Some(checkpoint), Some(&taken)) =
            (checkpoints.front().filter(|_| at.is_some()), before.taken.first())
            && let Some(files) = self.files().of(epoch)
        {
            let again = checkpoint.state.as_ref().and_then(|state| state.again.first().copied());
            files.forget(before.pass, taken.saturating_sub(again.unwrap_or(0)));
        }
        if let (Some(_), Some(&given)) = (at, before.given.first())
            && let Some(uids) = self.uids().of(epoch)
        {
            uids.forget(before.pass, given);
        }
        at.is_some()
    }
}

/// Decides when a node makes its next checkpoint.
#[derive(Debug)]
pub struct Pace {
    every: Duration,
    /// Keeps a checkpoint for every sample given, until it is forgotten.
    exact: bool,
    /// What the last of those had given.
    given: Vec<u64>,
    /// Never, when the time cannot be told.
    due: Option<Instant>,
}

impl Pace {
    /// A checkpoint is due each time so long has passed.
    pub fn new(every: Duration) -> Self {
        Self { every, exact: false, given: Vec::new(), due: Instant::now().checked_add(every) }
    }

    /// A checkpoint for every sample given, and none is forgotten before its time.
    pub fn exact(every: Duration) -> Self {
        Self { exact: true, ..Self::new(every) }
    }

    /// Whether a checkpoint is due.
    pub fn is_due(&self, now: Instant, place: &Progress) -> bool {
        if self.exact { place.given != self.given } else { self.due.is_some_and(|due| now >= due) }
    }

    /// Goes back to checkpoints now and then: a pipe that holds samples can be exact in no other way.
    pub fn relax(&mut self) {
        self.exact = false;
    }

    /// Adds a checkpoint that the node made in another process; says whether checkpoints should be forgotten.
    pub fn note(&self, checkpoint_log: &CheckpointLog, checkpoint: Checkpoint) -> bool {
        if self.exact { checkpoint_log.keep(checkpoint) } else { checkpoint_log.push(checkpoint) }
    }

    /// Makes a checkpoint with the state that `save` gives, if it gives one; says whether checkpoints should be forgotten.
    pub fn checkpoint(
        &mut self,
        checkpoint_log: &CheckpointLog,
        place: &Progress,
        save: impl FnOnce() -> Option<State>,
    ) -> bool {
        let begin = Instant::now();
        let full = save().is_some_and(|state| {
            let checkpoint = Checkpoint { place: place.clone(), state: Some(state) };
            self.note(checkpoint_log, checkpoint)
        });
        if self.exact {
            self.given.clone_from(&place.given);
        }
        let now = Instant::now();
        // As often as it may be, unless a state takes long to save; with no pause at all, after every call.
        let rest = ((now - begin) * SHARE).min(self.every * 1000);
        self.due = now.checked_add(self.every.max(rest));
        full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(pass: u64, given: u64) -> Checkpoint {
        let place = Progress { given: vec![given], ..Progress::start(pass, 0, 1) };
        Checkpoint { place, state: Some(State::default()) }
    }

    #[test]
    fn the_latest_mark_that_is_not_too_far_is_found() {
        let checkpoint_log = CheckpointLog::default();
        for (pass, given) in [(0, 5), (0, 9), (1, 2), (1, 7)] {
            checkpoint_log.push(checkpoint(pass, given));
        }
        let found = |pass, wanted| checkpoint_log.before((0, pass), &[wanted], 0).place.given[0];
        assert_eq!([found(0, 4), found(0, 8), found(0, 100), found(1, 6), found(2, 6)], [0, 5, 9, 2, 0]);
        assert!(checkpoint_log.forget(0, &checkpoint(1, 2).place));
        assert_eq!([found(0, 100), found(1, 6), found(1, 7)], [0, 2, 7]);
    }

    #[test]
    fn the_epoch_before_is_remembered_until_it_is_settled() {
        let checkpoint_log = CheckpointLog::default();
        let found = |epoch| checkpoint_log.before((epoch, 0), &[100], 0).place.given[0];
        checkpoint_log.push(checkpoint(0, 5));
        checkpoint_log.start(1, &StartPoint::default());
        checkpoint_log.push(checkpoint(0, 7));
        assert_eq!([found(0), found(1), found(2)], [5, 7, 0]);
        checkpoint_log.settle();
        assert_eq!([found(0), found(1)], [0, 7]);
        checkpoint_log.start(1, &StartPoint::default());
        assert_eq!(found(1), 0);
    }

    #[test]
    fn many_marks_grow_sparse_and_keep_the_first() {
        let checkpoint_log = CheckpointLog::default();
        for given in 1..10_000 {
            checkpoint_log.push(checkpoint(0, given));
            assert!(checkpoint_log.checkpoints().now().len() <= MOST + 1);
        }
        assert_eq!(checkpoint_log.before((0, 0), &[1], 0).place.given, [1]);
        assert_eq!(checkpoint_log.before((0, 0), &[9999], 0).place.given, [9999]);
    }

    #[test]
    fn passes_of_nested_rewinds_differ() {
        let mut seen = std::collections::HashSet::new();
        for outer in 0..50 {
            let middle = pass_of_input(0, outer);
            for inner in 0..50 {
                assert!(seen.insert(pass_of_input(middle, inner)), "{outer} {inner}");
            }
        }
    }
}
