//! `dedup`: leaves out texts that were nearly there before.

use std::collections::VecDeque;

use forebay_core::{
    Context, DataPipe, Error, Io, PipeInfo, Drops, PipeAudit, Result, Sample, State, StateExt as _, Step, Stream, Value, View,
    options,
};

use crate::fingerprint;

/// The version of a saved position: how many samples are taken again.
const STATE: u32 = 1;
/// So many fingerprints are compared before it is looked whether one was near: that way the compiler compares several at once.
const STRETCH: usize = 64;

options! {
    /// Options of `dedup`.
    pub struct DedupOptions {
        /// The field, text or bytes of UTF-8.
        field: String = "text";
        /// How many of the 64 bits of two fingerprints may differ for their texts to be the same.
        distance: u32 = 3, in 0..=32;
        /// How many words in a row are hashed together.
        words: usize = 3, in 1..=16;
        /// How many texts back is looked.
        window: usize = 10000, in 1..=10000000;
    }
}

/// Leaves out samples whose text is nearly one of the last `window` texts, whatever became of those.
///
/// State: how many samples there were since the oldest of these texts; they come again after a restore, and nothing of them is given or told.
pub struct Dedup {
    options: DedupOptions,
    /// The fingerprints of the last texts, and which of the samples had each.
    seen: VecDeque<u64>,
    places: VecDeque<u64>,
    /// How many samples were taken, since a reset or a restore.
    taken: u64,
    /// After a restore: how many samples still come again.
    again: u64,
}

impl DataPipe for Dedup {
    const INFO: PipeInfo = PipeInfo { name: "dedup", summary: "Leaves out texts that were nearly there before", audit: PipeAudit { // Samples are left out on purpose, whatever the options: an audit does not look for them.
        drops: Drops::Always, ..PipeAudit::DEFAULT }, ..PipeInfo::DEFAULT };
    type Options = DedupOptions;

    fn new(options: DedupOptions) -> Result<Self> {
        Ok(Self { options, seen: VecDeque::new(), places: VecDeque::new(), taken: 0, again: 0 })
    }
}

impl Stream for Dedup {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.seen.clear();
        self.places.clear();
        (self.taken, self.again) = (0, 0);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            let Some(mut sample) = io.pop(0) else { return self.wait(io) };
            let print = self.print(&sample);
            let is_new = print.as_ref().is_ok_and(|print| self.is_new(*print));
            if let Ok(print) = &print {
                self.remember(*print);
            }
            self.taken += 1;
            if self.again > 0 {
                // It was given, left out or told of before the restore.
                self.again -= 1;
                continue;
            }
            print.map_err(|error| error.context("sample", sample.key()))?;
            if is_new {
                io.push(&mut sample);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        let held = self.places.front().map_or(0, |oldest| self.taken - oldest);
        Ok(State::json(STATE, &held.saturating_add(self.again))?.again(0, held))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.again = state.parse(STATE)?;
        Ok(())
    }
}

impl Dedup {
    fn print(&self, sample: &Sample) -> Result<u64> {
        let field = &self.options.field;
        let wrong = |message: &str| Error::invalid(message).context("field", field);
        let text = match sample.get(field).map(Value::view) {
            Some(View::Str(text)) => text,
            Some(View::Bytes(bytes)) => std::str::from_utf8(bytes)
                .map_err(|error| Error::corrupt(error.to_string()).context("field", field))?,
            Some(_) => return Err(wrong("expected text, or bytes of UTF-8")),
            None => return Err(wrong("there is no such field: name another with the option `field`")),
        };
        Ok(fingerprint(text, self.options.words))
    }

    fn is_new(&self, print: u64) -> bool {
        let near = |other: &u64| (print ^ other).count_ones() <= self.options.distance;
        let any = |prints: &[u64]| prints.iter().fold(false, |any, other| any | near(other));
        let (older, newer) = self.seen.as_slices();
        !older.chunks(STRETCH).chain(newer.chunks(STRETCH)).any(any)
    }

    fn remember(&mut self, print: u64) {
        if self.seen.len() == self.options.window {
            self.seen.pop_front();
            self.places.pop_front();
        }
        self.seen.push_back(print);
        self.places.push_back(self.taken);
    }

    /// What follows when no sample waits.
    fn wait(&mut self, io: &Io) -> Result<Step> {
        if !io.ended(0) {
            return Ok(Step::NeedInput(0));
        }
        match std::mem::take(&mut self.again) {
            0 => Ok(Step::End),
            missing => {
                let message = format!("the input ended {missing} samples before the saved position");
                Err(Error::invalid(message))
            }
        }
    }
}
