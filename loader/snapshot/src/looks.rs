//! What a serial flat map is about to be given: of which files.

use std::collections::VecDeque;

use forebay_core::Port;
use forebay_registry::Registry;

use crate::{FileMark, checkpoint_log::CheckpointLog, seen::Field};

/// What a serial flat map is about to be given.
#[derive(Default)]
pub struct Looks {
    field: Field,
    /// How many samples of the input were looked at, in this pass.
    until: u64,
    /// The files among those that were not yet taken.
    waiting: VecDeque<(u64, String)>,
}

impl Looks {
    /// The node starts a pass, after so many samples of its input.
    pub fn start(&mut self, taken: u64) {
        self.until = taken;
        self.waiting.clear();
    }

    /// Looks at what waits at the input, of which `taken` were taken before.
    pub fn look(&mut self, taken: u64, ports: &[Port]) {
        let Some(port) = ports.first() else { return };
        let known = usize::try_from(self.until.saturating_sub(taken)).unwrap_or(usize::MAX);
        if known >= port.chunk.len() {
            return;
        }
        if !self.field.is_in(&port.chunk) {
            self.until = taken + port.chunk.len() as u64;
            return;
        }
        for (_, _, schema, values) in port.chunk.samples().skip(known) {
            if let Some(path) = self.field.path(schema, values)
                && self.waiting.back().is_none_or(|(_, last)| last.as_str() != path)
            {
                self.waiting.push_back((self.until, path.to_owned()));
            }
            self.until += 1;
        }
    }

    /// Notes in `checkpoint_log` the files among the first `taken` samples of the input.
    pub fn note(&mut self, pass: u64, taken: u64, checkpoint_log: &CheckpointLog, registry: &Registry) {
        while self.waiting.front().is_some_and(|(at, _)| *at < taken) {
            let Some((first, path)) = self.waiting.pop_front() else { return };
            let is = || FileMark::look(&path, registry);
            checkpoint_log.note_file((pass, first), &path, is);
        }
    }
}
