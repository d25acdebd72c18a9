//! `group_by`: samples with one key, stacked into one.
//!
//! ```toml
//! [group_by]
//! page = "batches"
//! examples = ['''forebay head -n 1 "range 100 | group_by 'value % 3' size=4"''']
//! cases = [
//!     "range N | group_by 'value % 5' size=3 buffer=20",
//!     "range N | group_by 'value / 4' consecutive=true",
//! ]
//! counted = false
//!
//! [[group_by.ending]]
//! graph = "files '../plugins/pipes/src/*.rs' open=read | take N | group_by 'head(bytes, 4)' size=3 | select path"
//! instead = "files '../plugins/pipes/src/*.rs' open=read | repeat | group_by 'head(bytes, 4)' size=3 | select path"
//! why = "a folder has an end: its files come again"
//! ```

use forebay_core::{
    Chunk, Context, DataPipe, Drops, Error, Io, Noun, PipeAudit, PipeInfo, PipeLayout, Result, Sample,
    Schema, State, StateExt, Step, Stream, Uids, options,
};

use crate::plumbing::{
    held::{Again, Held},
    keys::{By, Index},
    rows::order,
    stack::{Column, Place},
};

options! {
    /// Options of `group_by`.
    pub struct GroupByOptions {
        /// An expression that gives a sample's key.
        key: String = required;
        /// The most samples in a group: a group with so many is complete. Null for no bound.
        size: Option<usize> = null, in 1..=1_000_000_000;
        /// The most samples that wait, of all groups. If so many wait, the largest group is given as it is.
        buffer: usize = 10000, in 1..=1_000_000_000;
        /// The fewest samples of a group that is given because the buffer is full; a smaller group is an error.
        /// Null for `size`, or one.
        guaranteed: Option<usize> = null, in 1..=1_000_000_000;
        /// Leave out groups with fewer samples than guaranteed, at the end too.
        drop_remaining: bool = false;
        /// Let a sample with another key end the group before it, so that there is one group at a time.
        consecutive: bool = false;
    }
}

/// Stacks samples with equal keys into one, wherever they are within a buffer.
///
/// A group is given as soon as it has `size` samples; when the buffer is full, the largest one is, and among equally large ones
/// that which has been so for longest; at the end, all are, that with the oldest sample first. Its samples are in their order; it has the
/// key and the uid of the first. Values that do not stack become a list. State: which samples wait; they come again, with all that came between.
#[derive(Debug)]
pub struct GroupBy {
    by: By,
    size: Option<usize>,
    buffer: usize,
    guaranteed: usize,
    drop_remaining: bool,
    consecutive: bool,
    held: Held,
    /// The groups by their keys.
    index: Index,
    groups: Groups,
    /// The group of each slot of `held` that is taken.
    of: Vec<u32>,
    /// The key of the foremost sample.
    key: Vec<u8>,
}

impl DataPipe for GroupBy {
    const INFO: PipeInfo = PipeInfo {
        name: "group_by",
        summary: "Samples with one key, stacked into one",
        also: &["grouper"],
        layout: PipeLayout { gives: Some(Noun { one: "group", many: "groups" }), ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Made, drops: Drops::With(&["drop_remaining"]), ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = GroupByOptions;

    fn new(options: GroupByOptions) -> Result<Self> {
        let GroupByOptions { key, size, buffer, guaranteed, drop_remaining, consecutive } = options;
        let most = |option, found: Option<usize>, most: usize, of| match found {
            Some(found) if found > most => {
                Err(Error::invalid(format!("found {found}, expected at most the {most} of `{of}`"))
                    .context("option", option))
            }
            _ => Ok(()),
        };
        most("size", size, buffer, "buffer")?;
        most("guaranteed", guaranteed, buffer, "buffer")?;
        most("guaranteed", guaranteed, size.unwrap_or(buffer), "size")?;
        let guaranteed = guaranteed.or(size).unwrap_or(1);
        if drop_remaining && guaranteed == 1 {
            let error = Error::invalid(
                "every group has the one sample that is guaranteed: say `size` or `guaranteed`",
            );
            return Err(error.context("option", "drop_remaining"));
        }
        Ok(Self {
            by: By::new("key", Some(&key))?,
            size,
            buffer,
            guaranteed,
            drop_remaining,
            consecutive,
            held: Held::default(),
            index: Index::default(),
            groups: Groups::default(),
            of: Vec::new(),
            key: Vec::new(),
        })
    }
}

impl Stream for GroupBy {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held.clear();
        self.index.clear();
        self.groups = Groups::default();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        loop {
            match self.held.take_again(io, 0)? {
                Again::Done => break,
                Again::Wait => return Ok(Step::NeedInput(0)),
                Again::Kept(slot) => self.join_again(slot)?,
            }
        }
        while io.room() > 0 {
            if self.held.len() >= self.buffer {
                self.full(io, cx)?;
            } else if let Some(input) = io.input(0).filter(|input| !input.is_empty()) {
                if let Some(whole) = self.add(input)? {
                    self.close(whole, io, cx)?;
                }
            } else if !io.ended(0) {
                return Ok(Step::NeedInput(0));
            } else if let Some(oldest) = self.held.oldest() {
                self.close(self.of[oldest as usize], io, cx)?;
            } else {
                return Ok(Step::End);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        Ok(State::json(1, &self.held.runs())?.again(0, self.held.again()))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.held.restore(state.parse(1)?)
    }
}

impl GroupBy {
    /// Takes the foremost sample, or finds that it ends a group; gives a group that is whole then.
    fn add(&mut self, input: &mut Chunk) -> Result<Option<u32>> {
        let Some(read) = self.by.read(input, &mut self.key) else { return Ok(None) };
        if let Err(error) = read {
            self.held.pass(input);
            return Err(error);
        }
        let group = match self.groups.last {
            Some(last) if self.consecutive && self.index.key(last) == self.key => Some(last),
            Some(last) if self.consecutive => return Ok(Some(last)),
            _ => self.index.find(self.index.hash(&self.key), &self.key),
        };
        if let Some(group) = group {
            self.check(group, input)?;
        }
        let group = group.unwrap_or_else(|| self.start());
        let slot = self.held.keep(input);
        self.join(group, slot);
        Ok(Some(group).filter(|_| self.size.is_some_and(|size| self.groups.len(group) >= size)))
    }

    /// Whether the foremost sample has the fields of the group's first one; if not, it is let go.
    fn check(&mut self, group: u32, input: &mut Chunk) -> Result<()> {
        let Some((_, key, schema, _)) = input.peek() else { return Ok(()) };
        let known = self.groups.schema(group);
        if schema == known {
            return Ok(());
        }
        let Err(error) = order(known, schema) else { return Ok(()) };
        let first = self.groups.first(group).map(|slot| self.held.sample(slot).key().to_string());
        let error = error.context("sample", key).context("first of group", first.unwrap_or_default());
        self.held.pass(input);
        Err(error)
    }

    /// A new group of the key that was read last.
    fn start(&mut self) -> u32 {
        let group = self.groups.start();
        self.index.insert(self.index.hash(&self.key), &self.key, group);
        group
    }

    /// Puts a sample that waits into a group.
    fn join(&mut self, group: u32, slot: u32) {
        self.groups.grow(group, slot, self.held.sample(slot).schema());
        let at = slot as usize;
        if at >= self.of.len() {
            self.of.resize(at + 1, 0);
        }
        self.of[at] = group;
    }

    /// Puts a sample that waits again into its group.
    fn join_again(&mut self, slot: u32) -> Result<()> {
        if let Err(error) = self.by.of(self.held.sample(slot), &mut self.key) {
            self.held.release(slot);
            return Err(error);
        }
        let group = self.index.find(self.index.hash(&self.key), &self.key);
        let group = group.unwrap_or_else(|| self.start());
        self.join(group, slot);
        Ok(())
    }

    /// Makes room in the buffer.
    fn full(&mut self, io: &mut Io, cx: &Context) -> Result<()> {
        let Some(largest) = self.groups.largest() else { return Ok(()) };
        let found = self.groups.len(largest);
        if found >= self.guaranteed || self.drop_remaining {
            return self.close(largest, io, cx);
        }
        let key = self.groups.first(largest).map(|slot| self.held.sample(slot).key().to_string());
        self.remove(largest);
        let Self { buffer, guaranteed, .. } = self;
        let message = format!(
            "the buffer of {buffer} is full, and its largest group has {found} of the {guaranteed} samples guaranteed"
        );
        Err(Error::invalid(message)
            .context("option", "buffer")
            .context("first of group", key.unwrap_or_default()))
    }

    /// Gives a group that will not grow any more, or leaves it out.
    fn close(&mut self, group: u32, io: &mut Io, cx: &Context) -> Result<()> {
        if self.drop_remaining && self.groups.len(group) < self.guaranteed {
            self.remove(group);
            return Ok(());
        }
        let whole = self.stacked(group, cx);
        self.remove(group);
        io.push(&mut whole?);
        Ok(())
    }

    /// The samples of a group as one.
    fn stacked(&mut self, group: u32, cx: &Context) -> Result<Sample> {
        let members = self.groups.members(group);
        let Some(&first) = members.first() else { return Err(Error::bug("a group without samples")) };
        let first = self.held.sample(first);
        let (uid, key, schema) = (first.uid(), first.key().clone(), first.schema().clone());
        let place = Place { capacity: members.len(), strict: false, cx };
        let mut values = Vec::with_capacity(schema.len());
        for (at, name) in schema.names().iter().enumerate() {
            let mut column = Column::default();
            let mut push = |row: usize, slot| {
                let sample = self.held.sample(slot);
                let at = if sample.schema().is(&schema) { Some(at) } else { sample.schema().position(name) };
                match at.and_then(|at| sample.values_mut().get_mut(at)) {
                    Some(value) => column.push(value, row, &place),
                    None => Err(Error::bug("a group whose samples differ in their fields")),
                }
            };
            let pushed = members.iter().enumerate().try_for_each(|(row, &slot)| push(row, slot));
            let value = pushed.and_then(|()| column.finish(members.len()));
            values.push(value.map_err(|error| error.context("field", name).context("first of group", &key))?);
        }
        Ok(Sample::with_schema(uid, key, schema, values))
    }

    /// Lets a group and its samples go.
    fn remove(&mut self, group: u32) {
        self.groups.members(group).iter().for_each(|&slot| self.held.release(slot));
        self.groups.remove(group);
        self.index.remove(group);
    }
}

/// Groups of samples that wait, by small numbers.
#[derive(Debug, Default)]
struct Groups {
    all: Vec<Group>,
    free: Vec<u32>,
    /// By how many samples they have: the groups that have been so large for longest, and for shortest.
    sizes: Vec<(Option<u32>, Option<u32>)>,
    /// How many samples the largest has.
    largest: usize,
    /// The group of the last sample, unless it is gone.
    last: Option<u32>,
}

#[derive(Debug, Default)]
struct Group {
    /// The slots of its samples, in their order, and the fields of the first.
    members: Vec<u32>,
    schema: Schema,
    /// Those beside it among the equally large ones.
    older: Option<u32>,
    newer: Option<u32>,
}

impl Groups {
    fn len(&self, group: u32) -> usize {
        self.all[group as usize].members.len()
    }

    fn members(&self, group: u32) -> &[u32] {
        &self.all[group as usize].members
    }

    fn schema(&self, group: u32) -> &Schema {
        &self.all[group as usize].schema
    }

    fn first(&self, group: u32) -> Option<u32> {
        self.members(group).first().copied()
    }

    /// Of the largest groups that which has been so for longest.
    fn largest(&self) -> Option<u32> {
        self.sizes.get(self.largest).and_then(|ends| ends.0)
    }

    /// A group without samples.
    fn start(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(Group::default());
            self.all.len() as u32 - 1
        })
    }

    /// Adds a sample with these fields to a group.
    fn grow(&mut self, group: u32, slot: u32, schema: &Schema) {
        let size = self.len(group) + 1;
        if size > 1 {
            self.unlink(group);
        }
        if size >= self.sizes.len() {
            self.sizes.resize(size + 1, (None, None));
        }
        let older = self.sizes[size].1.replace(group);
        match older {
            Some(older) => self.all[older as usize].newer = Some(group),
            None => self.sizes[size].0 = Some(group),
        }
        let place = &mut self.all[group as usize];
        if size == 1 {
            place.schema = schema.clone();
        }
        place.members.push(slot);
        (place.older, place.newer) = (older, None);
        self.largest = self.largest.max(size);
        self.last = Some(group);
    }

    /// Takes a group from among the equally large ones.
    fn unlink(&mut self, group: u32) {
        let size = self.len(group);
        let Group { older, newer, .. } = self.all[group as usize];
        match older {
            Some(older) => self.all[older as usize].newer = newer,
            None => self.sizes[size].0 = newer,
        }
        match newer {
            Some(newer) => self.all[newer as usize].older = older,
            None => self.sizes[size].1 = older,
        }
    }

    fn remove(&mut self, group: u32) {
        self.unlink(group);
        self.all[group as usize].members.clear();
        self.free.push(group);
        while self.largest > 0 && self.largest().is_none() {
            self.largest -= 1;
        }
        self.last = self.last.filter(|&last| last != group);
    }
}

#[cfg(test)]
mod tests;
