//! The part of a parallel flat map that sees its chunks in order: how many samples came of those it took.

use forebay_core::{Chunk, Error, State};
use forebay_snapshot::checkpoint_log::Checkpoint;

use crate::{
    host::Host,
    run::{mapped::Mapped, ordered::OrderedOutput},
};

impl OrderedOutput {
    /// Notes which files the samples from the place `at` on are about that a flat map is given, and leaves word of them for an audit.
    pub(super) fn take(&mut self, at: u64, chunk: &Chunk) {
        if let (true, [map]) = (self.expands && !chunk.is_empty(), &self.maps[..]) {
            map.checkpoint_log.note_files((map.place.pass, at), chunk, &mut self.field);
            if let Some(tap) = &map.tap {
                tap.took(map.place.pass, at, chunk);
            }
        }
    }

    /// Takes what became of the next chunk, counts what was lost on the way, and leaves a checkpoint. Gives the error that ends the
    /// segment, after what is in `chunk` then.
    pub(super) fn settle_expanded(&mut self, done: Mapped, chunk: &mut Chunk, host: &Host) -> Option<Error> {
        let map = self.maps.first_mut()?;
        let (taken, given) = (map.place.taken[0], map.place.given[0]);
        let mut failed = done.failed;
        for lost in done.lost {
            (map.place.taken[0], map.place.given[0]) = (taken + lost.at as u64, given + lost.given as u64);
            let seen = map.place.taken[0].max(map.place.given[0]) + 1;
            if let Some(reason) = map.on_error.exceeded(map.place.lost, seen) {
                let mut whole = Chunk::new();
                whole.take_from(chunk, lost.given);
                *chunk = whole;
                failed = Some(lost.error.context("on_error", reason));
                break;
            }
            map.place.lost += 1;
            if self.even {
                map.place.taken[0] += 1;
                // Between two losses it gives one for each, so the place is known by these checkpoints, of which none may go.
                let checkpoint = Checkpoint { place: map.place.clone(), state: Some(State::default()) };
                if map.checkpoint_log.keep(checkpoint) {
                    host.ask_for_trim();
                }
            }
            if let Some(tap) = &map.tap {
                tap.lost(map.place.pass, map.place.lost, None);
            }
            // What was delivered before a resume was told then.
            if lost.given as u64 >= self.skip {
                map.counters.lost(1);
                host.lose(&map.blame.pipe, map.on_error, Some((lost.uid, &lost.key)), lost.error);
            }
        }
        (map.place.taken[0], map.place.given[0]) = (taken + done.taken as u64, given + chunk.len() as u64);
        if let Some(tap) = map.tap.as_ref().filter(|_| !chunk.is_empty()) {
            tap.made(map.place.pass, given, chunk);
        }
        let checkpoint = || Checkpoint { place: map.place.clone(), state: Some(State::default()) };
        if failed.is_none() && !self.even && map.checkpoint_log.push(checkpoint()) {
            host.ask_for_trim();
        }
        while self.skip > 0 && !chunk.is_empty() {
            self.skip -= 1;
            chunk.advance();
        }
        failed
    }
}
