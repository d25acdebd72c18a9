//! `cache`: what was read once is given from memory, or from files.
//!
//! ```toml
//! [cache]
//! page = "choose"
//! examples = ['''forebay run "files 'examples/photos/*.tar' | untar | resize 64 | decode | cache | flip | batch 32" --epochs 2''']
//! cases = [
//!     "range N | shuffle 9 | cache | shuffle 5",
//!     "range N | cache limit=300 | repeat 2",
//!     "range N | cache FOLDER",
//!     "range N | map 'x=random()' | cache FOLDER limit=2000 | repeat 2",
//! ]
//! ```

mod disk;
mod folder;
pub(crate) mod memory;
mod piece;

use std::mem;

use forebay_core::{
    Context, DataPipe, Error, Io, Key, Length, Level, PipeAudit, PipeInfo, PipeOrder, Result, Schema, State,
    StateExt, Step, Stream, Uids, Value, options,
};

use self::{disk::Disk, memory::Memory};

/// How many bytes are kept in memory and in a folder, unless something is said.
const IN_MEMORY: u64 = 1 << 30;
const IN_FOLDER: u64 = 16 << 30;

options! {
    /// Options of `cache`.
    pub struct CacheOptions {
        /// A folder that keeps samples for later runs too; empty to keep them in memory.
        folder: String = "";
        /// The most bytes to keep, in a folder of all caches together; by default 1 GiB in memory and 16 GiB in a
        /// folder. Beyond that the last samples are kept, and the first are read anew.
        limit: Option<u64> = null;
        /// A name for the kept samples in the folder. The loader adds the identity of the graph before the cache
        /// and of the files that it reads. It cannot see a change behind a URL.
        identity: String = "";
    }
}

/// Keeps the samples of its first pass, and gives them in all later ones without a look at its input.
///
/// What it keeps is the same whenever it is read: everything before it is told of epoch 0 and pass 0 at all times. So a run that begins, or goes on, in a
/// later epoch gives what one gives that began in the first.
///
/// A pass reads its samples in order, from the first. So if not all can be kept, those that are worth most are the last: the input is read up to them, and
/// no further. To keep the first would save nothing, since whoever makes the last has to make those before.
#[derive(Debug)]
pub struct Cache {
    kept: Box<dyn Kept>,
    /// How many samples were taken in this pass, and given.
    taken: u64,
    given: u64,
    /// Whether it was said that not all are kept.
    told: bool,
}

/// The uid, key, schema and values of a sample.
type Parts<'a> = (u64, &'a Key, &'a Schema, &'a [Value]);

/// Consecutive samples of a stream, by number.
trait Kept: Send + std::fmt::Debug {
    /// A pass begins.
    fn begin(&mut self, cx: &Context) -> Result<()>;

    fn has(&self, at: u64) -> bool;

    /// The number of the next sample to be kept.
    fn end(&self) -> u64;

    /// A sample that is here. When it turns out that it is not, none of this pass is any more.
    fn get(&mut self, at: u64, cx: &Context) -> Option<Parts<'_>>;

    /// Keeps the sample with the number [`end`](Kept::end).
    fn push(&mut self, sample: Parts, cx: &Context);

    /// There are no more.
    fn close(&mut self, cx: &Context);

    /// How many there are in all, once that is known.
    fn total(&self) -> Option<u64>;

    /// How many of the first were not kept.
    fn missing(&self) -> u64;
}

/// The version of a saved position: how many samples were given.
const VERSION: u32 = 1;

impl DataPipe for Cache {
    const INFO: PipeInfo = PipeInfo {
        name: "cache",
        summary: "Keeps samples in memory or a folder, for later epochs and runs",
        also: &["in_memory_cache", "on_disk_cache", "snapshot"],
        order: PipeOrder { keeps: true, identity_option: Some("identity"), ..PipeOrder::DEFAULT },
        audit: PipeAudit {
            // In a pass that reads nothing they come of nothing.
            uids: Uids::Made,
            ..PipeAudit::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
    type Options = CacheOptions;

    fn new(options: CacheOptions) -> Result<Self> {
        let CacheOptions { folder, limit, identity } = options;
        let kept: Box<dyn Kept> = match (folder.is_empty(), identity.is_empty()) {
            (true, _) => Box::new(Memory::new(limit.unwrap_or(IN_MEMORY))),
            (false, false) => Box::new(Disk::new(&folder, limit.unwrap_or(IN_FOLDER), &identity)),
            (false, true) => {
                return Err(Error::invalid("a folder wants a name for what is kept in it")
                    .context("option", "identity"));
            }
        };
        Ok(Self { kept, taken: 0, given: 0, told: false })
    }
}

impl Stream for Cache {
    fn reset(&mut self, cx: &Context) -> Result<()> {
        (self.taken, self.given) = (0, 0);
        self.kept.begin(cx)?;
        self.tell(cx);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            if self.kept.has(self.given) {
                if let Some((uid, key, schema, values)) = self.kept.get(self.given, cx) {
                    io.push_row(uid, key.clone(), schema, values.iter().cloned());
                    self.given += 1;
                }
            } else if self.kept.total().is_some_and(|total| self.given >= total) {
                return Ok(Step::End);
            } else if self.take(io, cx) {
            } else if io.ended(0) {
                if self.taken == self.kept.end() {
                    self.kept.close(cx);
                }
                self.tell(cx);
                return Ok(Step::End);
            } else {
                return Ok(Step::NeedInput(0));
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    fn state(&self) -> Result<State> {
        Ok(State::json(VERSION, &self.given)?.again(0, self.taken))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.given = state.parse(VERSION)?;
        Ok(())
    }
}

impl Cache {
    /// Keeps samples that wait, and gives those that were not given before; says whether there were any.
    fn take(&mut self, io: &mut Io, cx: &Context) -> bool {
        let room = io.room() as u64;
        let Some(input) = io.input(0) else { return false };
        let again = self.given.saturating_sub(self.taken);
        let most = match self.kept.missing().saturating_sub(self.given) {
            _ if again > 0 => again,
            0 => room,
            // Those from there on are kept.
            before => before.min(room),
        };
        let count = most.min(input.len() as u64) as usize;
        for sample in input.samples().take(count) {
            if self.taken == self.kept.end() {
                self.kept.push(sample, cx);
            }
            self.taken += 1;
        }
        if again > 0 {
            // They came again, to be kept.
            (0..count).for_each(|_| input.advance());
        } else {
            self.given += io.forward(0, count) as u64;
        }
        count > 0
    }

    /// Says once that not all are kept.
    fn tell(&mut self, cx: &Context) {
        let (Some(total), missing) = (self.kept.total(), self.kept.missing()) else { return };
        if missing > 0 && !mem::replace(&mut self.told, true) {
            let line = format!(
                "cache: of {total} samples the last {} are kept, and those before are read anew in every epoch; the option `limit` says how many \
                 bytes are",
                total - missing,
            );
            cx.log(Level::Warning, &line);
        }
    }
}

#[cfg(test)]
mod tests;
