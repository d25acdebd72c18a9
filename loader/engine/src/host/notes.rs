//! What pipes note of sample after sample: each once, with how often.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The most that is told apart: a field may have another name in each sample.
const MOST: usize = 256;

/// What a pipe noted of samples, as that it left a field as it was.
///
/// A pipe makes one with a line for the [log](forebay_core::Context::log), of level `Info`, that has more lines below it. The first line says what;
/// the host counts those that are alike at one node. The rest says why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Note {
    /// What.
    pub what: String,
    /// Why, the first time.
    pub why: String,
    /// How often.
    pub times: u64,
}

/// What was noted, by the number of the node and by what it is.
#[derive(Default)]
pub(crate) struct Notes(BTreeMap<(u64, String), (String, u64)>);

impl Notes {
    pub(super) fn add(&mut self, node: u64, note: Note) {
        let Note { what, why, times } = note;
        let full = self.0.len() >= MOST;
        match self.0.get_mut(&(node, what.clone())) {
            Some((_, known)) => *known += times,
            None if full => {}
            None => drop(self.0.insert((node, what), (why, times))),
        }
    }

    /// Those of a node.
    pub(super) fn of(&self, node: u64) -> Vec<Note> {
        let ours = self.0.iter().filter(|((of, _), _)| *of == node);
        let note = |(what, why, times): (&String, &String, u64)| Note {
            what: what.clone(),
            why: why.clone(),
            times,
        };
        ours.map(|((_, what), (why, times))| note((what, why, *times))).collect()
    }

    pub(super) fn take(&mut self) -> Vec<(u64, Note)> {
        let all = std::mem::take(&mut self.0).into_iter();
        all.map(|((node, what), (why, times))| (node, Note { what, why, times })).collect()
    }
}
