//! What is known and kept of objects: who they are, their blocks, and who reads them. It asks for nothing by itself.

mod expected;

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::Arc,
};

use forebay_core::{Buffer, Error, ErrorKind, Result, shown};

pub(crate) use self::expected::Ask;
use self::expected::Expected;
use crate::fetch::Identity;

/// Objects are kept and cached in blocks of so many bytes.
pub(crate) const BLOCK: u64 = 256 << 10;
/// One request is for so many blocks at most, and what is asked for ahead ends at a multiple of it.
pub(crate) const RUN: u64 = 8;
/// So much of one long read is asked for at once.
const AT_ONCE: u64 = 4 * RUN;
/// How many places of an object are remembered where somebody goes forwards.
const READERS: usize = 16;
/// Above so many objects those of which nothing is kept are forgotten.
const OBJECTS: usize = 1 << 14;

/// Objects by URL, and how much of them is kept.
pub(crate) struct Table {
    objects: HashMap<Arc<str>, Object>,
    /// How many bytes are kept, and how many are, and may be.
    memory: u64,
    ahead: u64,
    held: u64,
    /// Bytes that came, or are on their way, and were not read yet.
    unread: u64,
    /// Blocks that came, by when they were last used: those that were read, and those that were not.
    used: BTreeMap<u64, (Arc<str>, u64)>,
    waiting: BTreeMap<u64, (Arc<str>, u64)>,
    expected: Expected,
    /// Counts bytes that were read, one for each look at a block besides: a clock that stands still while nobody reads.
    clock: u64,
    /// How many generations of objects there were.
    generations: u64,
}

#[derive(Default)]
struct Object {
    state: State,
    blocks: BTreeMap<u64, Block>,
    /// The latest last.
    readers: Vec<Reader>,
    /// Another one whenever it changed, and of each object: what was asked for before belongs to another.
    generation: u64,
}

/// Somebody who goes forwards.
struct Reader {
    /// Where its next read is expected, and how many bytes it read to get there.
    next: u64,
    read: u64,
}

#[derive(Default)]
enum State {
    #[default]
    Unknown,
    Opening,
    Known(Identity),
    /// It could not be opened.
    Failed(Error),
    /// It changed, which all who ask are told until it is opened again.
    Changed(Error),
}

/// What is asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Anew {
    Nothing,
    /// What could not be opened.
    Failed,
    /// That, and what changed.
    Changed,
}

enum Block {
    /// On its way; how many wait for it.
    Coming(u32),
    /// It failed to come; how many have yet to be told.
    Failed(Error, u32),
    /// When it was last looked at, and whether it was read.
    Here { bytes: Buffer, at: u64, read: bool },
}

/// An object that is known, as it was when it was opened.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) url: Arc<str>,
    pub(crate) identity: Identity,
    generation: u64,
}

/// How an object stands.
pub(crate) enum Opened {
    Known(Known),
    /// Somebody asks for it: wait.
    Opening,
    /// Ask for it.
    Ask,
}

/// How a block stands.
pub(crate) enum Found {
    Here(Buffer),
    Coming,
    /// Ask for it.
    Missing,
}

impl Table {
    pub(crate) fn new(memory: u64, ahead: u64) -> Self {
        Self {
            objects: HashMap::new(),
            memory,
            ahead,
            held: 0,
            unread: 0,
            used: BTreeMap::new(),
            waiting: BTreeMap::new(),
            expected: Expected::default(),
            clock: 0,
            generations: 0,
        }
    }

    /// Who the object is. Whoever is told to ask must call [`opened`](Table::opened).
    pub(crate) fn open(&mut self, url: &Arc<str>, anew: Anew) -> Result<Opened> {
        if self.objects.len() >= OBJECTS && !self.objects.contains_key(url) {
            self.objects
                .retain(|_, object| !object.blocks.is_empty() || matches!(object.state, State::Opening));
        }
        let generations = &mut self.generations;
        let object = self.objects.entry(url.clone()).or_insert_with(|| {
            *generations += 1;
            Object { generation: *generations, ..Object::default() }
        });
        match &object.state {
            State::Known(identity) => {
                let (url, identity) = (url.clone(), identity.clone());
                return Ok(Opened::Known(Known { url, identity, generation: object.generation }));
            }
            State::Opening => return Ok(Opened::Opening),
            State::Failed(error) if anew < Anew::Failed => return Err(error.clone()),
            State::Changed(error) if anew < Anew::Changed => return Err(error.clone()),
            State::Failed(_) | State::Changed(_) | State::Unknown => {}
        }
        object.state = State::Opening;
        Ok(Opened::Ask)
    }

    /// Notes who the object is, with its first block, or why that cannot be known.
    pub(crate) fn opened(&mut self, url: &Arc<str>, found: Result<(Identity, Buffer)>) {
        let Some(object) = self.objects.get_mut(url) else { return };
        let (identity, first) = match found {
            Ok(found) => found,
            Err(error) => {
                object.state = State::Failed(error);
                return;
            }
        };
        object.state = State::Known(identity.clone());
        let known = Known { url: url.clone(), identity, generation: object.generation };
        if !first.is_empty() {
            object.blocks.insert(0, Block::Coming(0));
            self.grow();
            self.arrived(&known, 0, first);
        }
    }

    /// Drops all that is kept of an object that changed; whoever reads it is told, until it is opened anew.
    pub(crate) fn changed(&mut self, known: &Known, error: &Error) {
        let generation = self.generations + 1;
        let Some(object) = self.object(known) else { return };
        object.state = State::Changed(error.clone());
        object.generation = generation;
        object.readers.clear();
        let blocks: Vec<_> = object.blocks.keys().copied().collect();
        self.generations = generation;
        for index in blocks {
            self.drop_block(&known.url, index);
        }
    }

    /// The object, if it is still the one that was known; one that was forgotten meanwhile is.
    fn object(&mut self, known: &Known) -> Option<&mut Object> {
        if !self.objects.contains_key(&known.url) {
            let state = State::Known(known.identity.clone());
            let object = Object { state, generation: known.generation, ..Object::default() };
            self.objects.insert(known.url.clone(), object);
        }
        self.objects.get_mut(&known.url).filter(|object| object.generation == known.generation)
    }

    /// Notes that somebody reads `bytes` of an object; gives how many bytes behind them are worth asking for: twice as many as
    /// were read in one go.
    pub(crate) fn reads(&mut self, known: &Known, bytes: &Range<u64>) -> u64 {
        self.is_read(known);
        let most = self.ahead;
        let Some(object) = self.object(known) else { return 0 };
        let goes_on = |reader: &Reader| reader.next.abs_diff(bytes.start) <= BLOCK;
        let Some(at) = object.readers.iter().rposition(goes_on) else {
            object.add_reader(Reader { next: bytes.end, read: bytes.end - bytes.start });
            return 0;
        };
        let reader = object.readers.remove(at);
        let read = reader.read + bytes.end.saturating_sub(reader.next);
        object.add_reader(Reader { next: bytes.end, read });
        read.saturating_mul(2).min(most)
    }

    /// Notes that the first `bytes` of an object will be read next, from its start on. What came of it before its turn is as good as new.
    fn will_read(&mut self, known: &Known, bytes: u64) {
        let Self { objects, waiting, clock, .. } = self;
        let Some(object) = objects.get_mut(&known.url) else { return };
        object.add_reader(Reader { next: 0, read: bytes / 2 });
        for (index, block) in &mut object.blocks {
            if let Block::Here { at, read: false, .. } = block {
                *clock += 1;
                waiting.remove(at);
                waiting.insert(*clock, (known.url.clone(), *index));
                *at = *clock;
            }
        }
    }

    /// The runs of blocks to ask for now, for a read of `bytes` and so much ahead of it; they are on their way from now on.
    pub(crate) fn wanted(&mut self, known: &Known, bytes: &Range<u64>, ahead: u64) -> Vec<Range<u64>> {
        let first = bytes.start / BLOCK;
        let last = bytes.end.div_ceil(BLOCK).min((first + AT_ONCE) / RUN * RUN);
        let far = ahead_until(known, bytes.end.saturating_add(ahead));
        // A long read asks for its own bytes first.
        let far = if last * BLOCK < bytes.end { last } else { far };
        let mut runs = Vec::new();
        self.missing(&mut runs, known, first..last, |_, _| true);
        // It is read sooner than what is only expected, which so takes none of its room.
        self.ahead_of(&mut runs, known, last..far, 0, self.memory / 4 * 3);
        runs
    }

    /// Adds the runs of these blocks to ask for now, which nobody reads yet, as long as that leaves room for so many others below `most`.
    fn ahead_of(
        &mut self,
        runs: &mut Vec<Range<u64>>,
        known: &Known,
        blocks: Range<u64>,
        left: u64,
        most: u64,
    ) {
        // All of a run has room, so that no request is for a few.
        let may =
            |table: &mut Self, index: u64| table.has_room((RUN - index % RUN).saturating_add(left), most);
        self.missing(runs, known, blocks, may);
    }

    /// Adds the runs of these blocks that are not here and not on their way, up to the first that may not be asked for; from now on
    /// they are.
    fn missing(
        &mut self,
        runs: &mut Vec<Range<u64>>,
        known: &Known,
        blocks: Range<u64>,
        mut may: impl FnMut(&mut Self, u64) -> bool,
    ) {
        for index in blocks {
            let Some(object) = self.object(known) else { break };
            if object.blocks.contains_key(&index) {
                continue;
            }
            if !may(self, index) {
                break;
            }
            let Some(object) = self.object(known) else { break };
            object.blocks.insert(index, Block::Coming(0));
            self.grow();
            match runs.last_mut() {
                Some(run) if run.end == index && run.end - run.start < RUN => run.end += 1,
                _ => runs.push(index..index + 1),
            }
        }
    }

    /// Whether there is room for the first blocks of so many objects: an eighth of the memory beyond what there is for the others.
    fn may_open(&mut self, objects: u64) -> bool {
        self.has_room(objects, self.memory / 2 + self.memory / 8)
    }

    fn has_room(&mut self, blocks: u64, most: u64) -> bool {
        // What came so long ago that all memory was read twice since then, its reader has given up, if its turn has come.
        while self.unread.saturating_add(blocks.saturating_mul(BLOCK)) > most {
            let old = self.waiting.range(..self.clock.saturating_sub(self.memory * 2));
            let given_up = |(url, _): &&(Arc<str>, u64)| !self.expected.holds(url);
            let Some((url, index)) = old.map(|(_, block)| block).find(given_up).cloned() else {
                return false;
            };
            self.drop_block(&url, index);
        }
        true
    }

    fn grow(&mut self) {
        self.held += BLOCK;
        self.unread += BLOCK;
        while self.held > self.memory {
            let Some((_, (url, index))) = self.used.first_key_value() else { break };
            let (url, index) = (url.clone(), *index);
            self.drop_block(&url, index);
        }
    }

    /// Notes that a block has come.
    pub(crate) fn arrived(&mut self, known: &Known, index: u64, bytes: Buffer) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(block @ Block::Coming(_)) = self.block(known, index) {
            *block = Block::Here { bytes, at: clock, read: false };
            self.waiting.insert(clock, (known.url.clone(), index));
        }
    }

    /// Notes that blocks will not come: who waits for one is told, the others may be asked for again.
    pub(crate) fn failed(&mut self, known: &Known, blocks: Range<u64>, error: &Error) {
        self.unexpect(&known.url);
        for index in blocks {
            match self.block(known, index) {
                Some(Block::Coming(0)) => self.drop_block(&known.url, index),
                Some(block) => {
                    if let Block::Coming(count) = *block {
                        *block = Block::Failed(error.clone(), count);
                    }
                }
                None => {}
            }
        }
    }

    fn block(&mut self, known: &Known, index: u64) -> Option<&mut Block> {
        self.object(known)?.blocks.get_mut(&index)
    }

    /// A block, of which so many bytes are read. `waits` is whether the caller is counted among those who wait for it.
    pub(crate) fn find(&mut self, known: &Known, index: u64, waits: &mut bool, reads: u64) -> Result<Found> {
        let clock = self.clock + 1 + reads;
        let Some(object) = self.object(known) else {
            return Err(self.error_of(known));
        };
        let waited = std::mem::replace(waits, false);
        match object.blocks.get_mut(&index) {
            None => Ok(Found::Missing),
            Some(Block::Coming(count)) => {
                *count += u32::from(!waited);
                *waits = true;
                Ok(Found::Coming)
            }
            // Once those who waited were told, it can be asked for again.
            Some(Block::Failed(..)) if !waited => Ok(Found::Coming),
            Some(Block::Failed(error, count)) => {
                *count -= 1;
                let (error, told) = (error.clone(), *count == 0);
                if told {
                    self.drop_block(&known.url, index);
                }
                Err(error)
            }
            Some(Block::Here { bytes, at, read }) => {
                let (bytes, before) = (bytes.clone(), std::mem::replace(at, clock));
                if std::mem::replace(read, true) {
                    self.used.remove(&before);
                } else {
                    self.waiting.remove(&before);
                    self.unread -= BLOCK;
                }
                self.used.insert(clock, (known.url.clone(), index));
                self.clock = clock;
                Ok(Found::Here(bytes))
            }
        }
    }

    /// Why an object is no more the one that was known.
    fn error_of(&self, known: &Known) -> Error {
        match self.objects.get(&known.url).map(|object| &object.state) {
            Some(State::Changed(error)) => error.clone(),
            _ => Error::new(ErrorKind::Io, "the object changed while it was read")
                .context("url", shown(&known.url)),
        }
    }

    fn drop_block(&mut self, url: &Arc<str>, index: u64) {
        let block = self.objects.get_mut(url).and_then(|object| object.blocks.remove(&index));
        let read = match block {
            Some(Block::Here { at, read: true, .. }) => self.used.remove(&at).is_some(),
            Some(Block::Here { at, read: false, .. }) => self.waiting.remove(&at).is_none(),
            Some(Block::Coming(_) | Block::Failed(..)) => false,
            None => return,
        };
        self.held -= BLOCK;
        if !read {
            self.unread -= BLOCK;
        }
    }
}

/// The block up to which it is worth asking ahead for the bytes before `end`: the end of a request, or of the object.
fn ahead_until(known: &Known, end: u64) -> u64 {
    let size = known.identity.size;
    if end >= size { size.div_ceil(BLOCK) } else { end / (RUN * BLOCK) * RUN }
}

impl Object {
    fn add_reader(&mut self, reader: Reader) {
        if self.readers.len() >= READERS {
            self.readers.remove(0);
        }
        self.readers.push(reader);
    }
}

#[cfg(test)]
mod tests;
