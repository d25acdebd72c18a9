//! Samples on their way between two pipes, in one flat piece of memory.

use std::fmt;

use abi_stable::{StableAbi, std_types::RVec};

use crate::{Key, Sample, Schema, Value, value::tag};

/// Where one sample of a [`Chunk`] lies.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct Row {
    uid: u64,
    key: Key,
    schema: u32,
    first: u32,
}

/// A queue of samples in one flat piece of memory, taken from the front and added at the back.
///
/// A call across a library boundary moves a chunk, so its cost is shared by all samples in it. The
/// vectors keep their capacity: a chunk that goes round allocates nothing.
#[repr(C)]
#[derive(StableAbi, Default, Clone)]
pub struct Chunk {
    schemas: RVec<Schema>,
    rows: RVec<Row>,
    values: RVec<Value>,
    head: usize,
}

impl Chunk {
    /// A chunk without samples.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many samples are left.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.rows.len() - self.head
    }

    /// Whether no sample is left.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a sample at the back: one value for each name of `schema`; missing ones become null.
    ///
    /// # Panics
    /// When the chunk holds more than 2^32 values.
    // Always: a key that is handed over in memory has to wait there before it is read, which takes longer than all the rest.
    #[inline(always)]
    pub fn push(&mut self, uid: u64, key: Key, schema: &Schema, values: impl IntoIterator<Item = Value>) {
        let place = self.intern(schema);
        self.push_known(uid, key, place, schema.len(), values);
    }

    /// As [`push`](Chunk::push), for values that may not be there: at the first that is not, nothing is added.
    ///
    /// # Errors
    /// That of the value.
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    pub fn try_push<E>(
        &mut self,
        uid: u64,
        key: Key,
        schema: &Schema,
        values: impl IntoIterator<Item = Result<Value, E>>,
    ) -> Result<(), E> {
        let (len, mut failed) = (self.rows.len(), None);
        let values = values.into_iter().map_while(|value| value.map_err(|error| failed = Some(error)).ok());
        self.push(uid, key, schema, values);
        let Some(error) = failed else { return Ok(()) };
        let first = self.rows[len].first as usize;
        self.rows.truncate(len);
        self.values.truncate(first);
        Err(error)
    }

    /// Adds a sample whose schema stands at `schema` in the chunk's list, and has so many names.
    #[inline(always)]
    fn push_known(
        &mut self,
        uid: u64,
        key: Key,
        schema: u32,
        width: usize,
        values: impl IntoIterator<Item = Value>,
    ) {
        let first = self.values.len();
        assert!(first + width <= u32::MAX as usize, "a chunk holds at most 2^32 values");
        // To ask for room takes a call through a pointer each time, even where there is enough.
        values.into_iter().take(width).for_each(|value| self.values.push(value));
        for _ in self.values.len()..first + width {
            self.values.push(Value::NULL);
        }
        self.rows.push(Row { uid, key, schema, first: first as u32 });
    }

    /// Moves a sample to the back; what is left of it can be filled again by [`pop_into`](Chunk::pop_into).
    #[inline]
    pub fn push_sample(&mut self, sample: &mut Sample) {
        let Sample { uid, key, schema, values, .. } = sample;
        // No drain: it is put together in memory, and has to wait there before it is moved.
        self.push(*uid, key.take(), schema, values.iter_mut().map(std::mem::take));
        values.clear();
    }

    /// Moves the foremost sample into `sample`, whose memory is used again; says whether there was one.
    #[inline]
    pub fn pop_into(&mut self, sample: &mut Sample) -> bool {
        let Some(row) = self.rows.get_mut(self.head) else { return false };
        sample.uid = row.uid;
        std::mem::swap(&mut sample.key, &mut row.key);
        let schema = &self.schemas[row.schema as usize];
        sample.turn(schema);
        let first = row.first as usize;
        let values = &mut self.values[first..first + schema.len()];
        sample.values.clear();
        sample.values.extend(values.iter_mut().map(std::mem::take));
        self.advance();
        true
    }

    /// The foremost sample, moved out.
    pub fn pop(&mut self) -> Option<Sample> {
        let mut sample = Sample::default();
        self.pop_into(&mut sample).then_some(sample)
    }

    /// Takes the foremost sample apart: `take` is given its uid, key, schema and values, to be moved from there.
    #[inline]
    pub fn pop_with<T>(&mut self, take: impl FnOnce(u64, &mut Key, &Schema, &mut [Value]) -> T) -> Option<T> {
        let row = self.rows.get_mut(self.head)?;
        let schema = &self.schemas[row.schema as usize];
        let first = row.first as usize;
        let values = &mut self.values[first..first + schema.len()];
        let taken = take(row.uid, &mut row.key, schema, values);
        self.advance();
        Some(taken)
    }

    /// The schema and the values of the foremost sample, to be read or taken before [`advance`](Chunk::advance).
    #[inline]
    pub fn front_mut(&mut self) -> Option<(&Schema, &mut [Value])> {
        let row = self.rows.get(self.head)?;
        let schema = &self.schemas[row.schema as usize];
        let first = row.first as usize;
        Some((schema, &mut self.values[first..first + schema.len()]))
    }

    /// The uid and key of the foremost sample.
    #[must_use]
    pub fn front(&self) -> Option<(u64, &Key)> {
        self.rows.get(self.head).map(|row| (row.uid, &row.key))
    }

    /// The foremost sample, to be looked at: its uid, key, schema and values.
    #[must_use]
    #[inline]
    pub fn peek(&self) -> Option<(u64, &Key, &Schema, &[Value])> {
        self.get(0)
    }

    /// One of the samples left, counted from the foremost, to be looked at as by [`peek`](Chunk::peek).
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<(u64, &Key, &Schema, &[Value])> {
        self.rows.get(self.head..)?.get(at).map(|row| self.parts(row))
    }

    /// The schemas of all samples left, and perhaps of some that are gone.
    #[must_use]
    #[inline]
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }

    /// All samples left, in order, to be looked at as by [`peek`](Chunk::peek).
    #[inline]
    pub fn samples(&self) -> impl Iterator<Item = (u64, &Key, &Schema, &[Value])> {
        self.rows.get(self.head..).unwrap_or_default().iter().map(|row| self.parts(row))
    }

    #[inline]
    fn parts<'c>(&'c self, row: &'c Row) -> (u64, &'c Key, &'c Schema, &'c [Value]) {
        let schema = &self.schemas[row.schema as usize];
        let first = row.first as usize;
        (row.uid, &row.key, schema, &self.values[first..first + schema.len()])
    }

    /// The uids and keys of all samples left, in order.
    pub fn names(&self) -> impl Iterator<Item = (u64, &Key)> {
        self.rows.iter().skip(self.head).map(|row| (row.uid, &row.key))
    }

    /// A copy of the sample at the back, which shares its buffers.
    #[must_use]
    pub fn last(&self) -> Option<Sample> {
        let row = self.rows.get(self.head..)?.last()?;
        let schema = self.schemas[row.schema as usize].clone();
        let first = row.first as usize;
        let values = self.values[first..first + schema.len()].to_vec();
        Some(Sample::with_schema(row.uid, row.key.clone(), schema, values))
    }

    /// Lets the foremost sample go.
    #[inline]
    pub fn advance(&mut self) {
        self.head += 1;
        if self.head >= self.rows.len() {
            self.clear();
        }
    }

    /// Lets all samples go, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.head = 0;
        self.rows.clear();
        self.values.clear();
        self.schemas.clear();
    }

    /// Changes the uids of the samples at the back, all but the first `kept`.
    pub fn change_uids(&mut self, kept: usize, mut change: impl FnMut(usize, u64) -> u64) {
        for (at, row) in self.rows.iter_mut().skip(self.head).skip(kept).enumerate() {
            row.uid = change(at, row.uid);
        }
    }

    /// Changes each sample's values in place: the cheapest way to map a chunk whose fields stay.
    pub fn for_each_mut(&mut self, mut change: impl FnMut(u64, &Schema, &mut [Value])) {
        for row in self.rows.iter().skip(self.head) {
            let schema = &self.schemas[row.schema as usize];
            let first = row.first as usize;
            change(row.uid, schema, &mut self.values[first..first + schema.len()]);
        }
    }

    /// Moves all samples to the empty chunk `out`, each changed by `change`; when that fails the failed sample
    /// is gone, those before it are in `out`, and those after it still here.
    ///
    /// Cost: samples whose fields stay the same are changed in their place; nothing is allocated for them.
    ///
    /// # Errors
    /// That of `change`.
    pub fn map_into<E>(
        &mut self,
        out: &mut Self,
        mut change: impl FnMut(&mut Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        std::mem::swap(self, out);
        self.clear();
        let mut sample = Sample::default();
        let mut rows = Undo { at: out.head, chunk: out };
        while rows.at < rows.chunk.rows.len() {
            rows.chunk.exchange(rows.at, &mut sample);
            if let Err(error) = change(&mut sample) {
                rows.chunk.cut(rows.at, 1, self);
                return Err(error);
            }
            let row = &rows.chunk.rows[rows.at];
            let known = &rows.chunk.schemas[row.schema as usize];
            if !sample.schema.is(known) || sample.values.len() != known.len() {
                rows.chunk.cut(rows.at, 1, self);
                rows.chunk.push_sample(&mut sample);
                rows.at = rows.chunk.rows.len();
                return self.map_rest(&mut rows, &mut sample, change);
            }
            rows.chunk.exchange(rows.at, &mut sample);
            rows.at += 1;
        }
        Ok(())
    }

    /// Exchanges what row `at` holds for what `sample` holds; their fields are as many.
    fn exchange(&mut self, at: usize, sample: &mut Sample) {
        let row = &mut self.rows[at];
        sample.turn(&self.schemas[row.schema as usize]);
        sample.fit();
        std::mem::swap(&mut sample.uid, &mut row.uid);
        std::mem::swap(&mut sample.key, &mut row.key);
        let first = row.first as usize;
        let here = &mut self.values[first..first + sample.values.len()];
        here.swap_with_slice(&mut sample.values);
    }

    /// The rest of [`map_into`](Chunk::map_into), for samples whose fields change.
    fn map_rest<E>(
        &mut self,
        rows: &mut Undo<'_>,
        sample: &mut Sample,
        mut change: impl FnMut(&mut Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.pop_into(sample) {
            change(sample)?;
            rows.chunk.push_sample(sample);
            rows.at += 1;
        }
        Ok(())
    }

    /// Ends this chunk before row `at`: drops `gone` rows from there, and moves those after them to `rest`, which is empty.
    fn cut(&mut self, at: usize, gone: usize, rest: &mut Self) {
        let from = at.saturating_add(gone).min(self.rows.len());
        if at == self.head {
            // Nothing stays, so all goes as it lies.
            std::mem::swap(self, rest);
            rest.head = from;
        } else {
            self.hand_over(from, usize::MAX, rest);
            let end = self.rows.get(at).map_or(self.values.len(), |row| row.first as usize);
            self.rows.truncate(at);
            self.values.truncate(end);
        }
        for chunk in [self, rest] {
            if chunk.is_empty() {
                chunk.clear();
            }
        }
    }

    /// Moves up to `count` rows from row `from` on to the back of `to`, and gives how many moved.
    fn hand_over(&mut self, from: usize, count: usize, to: &mut Self) -> usize {
        let Self { schemas, rows, values, .. } = self;
        let rows = rows.get_mut(from..).unwrap_or_default();
        let count = count.min(rows.len());
        // Where in the other list the schema of the row before stands.
        let mut known = None;
        for row in &mut rows[..count] {
            let schema = &schemas[row.schema as usize];
            let place = match known {
                Some((schema, place)) if schema == row.schema => place,
                _ => to.intern(schema),
            };
            known = Some((row.schema, place));
            let first = row.first as usize;
            let values = values[first..first + schema.len()].iter_mut().map(std::mem::take);
            to.push_known(row.uid, row.key.take(), place, schema.len(), values);
        }
        count
    }

    /// Gives the memory of samples that were let go back to use, once they are most of the chunk.
    fn compact(&mut self) {
        if self.head > 64 && self.head > self.rows.len() / 2 {
            let first = self.rows.get(self.head).map_or(self.values.len(), |row| row.first as usize);
            drop(self.values.drain(..first));
            drop(self.rows.drain(..self.head));
            self.rows.iter_mut().for_each(|row| row.first -= first as u32);
            self.head = 0;
        }
    }

    /// Moves up to `count` samples from the front of `other` to the back of this.
    pub fn take_from(&mut self, other: &mut Self, count: usize) {
        self.compact();
        if self.rows.is_empty() && count >= other.len() {
            std::mem::swap(self, other);
            return;
        }
        other.head += other.hand_over(other.head, count, self);
        if other.is_empty() {
            other.clear();
        }
    }

    /// About how many bytes of memory the samples keep.
    #[must_use]
    pub fn size(&self) -> usize {
        let first = self.rows.get(self.head).map_or(0, |row| row.first as usize);
        let rows = self.len() * size_of::<Row>();
        let values = &self.values[first..];
        // Numbers are passed over: they are most of what small samples have.
        let behind: usize = values.iter().filter(|value| value.tag() > tag::SCALAR).map(Value::size).sum();
        std::mem::size_of_val(values) + behind + rows
    }

    /// The place of `schema` in the chunk's list; looks at the last one first, since streams rarely change.
    #[inline]
    fn intern(&mut self, schema: &Schema) -> u32 {
        if let Some(last) = self.schemas.last()
            && last.is(schema)
        {
            return self.schemas.len() as u32 - 1;
        }
        let place = self.schemas.iter().position(|known| known == schema).unwrap_or_else(|| {
            self.schemas.push(schema.clone());
            self.schemas.len() - 1
        });
        place as u32
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names().map(|(_, key)| key)).finish()
    }
}

/// Lets the rows from `at` on go when it is dropped: those that a panic left unchanged.
struct Undo<'a> {
    chunk: &'a mut Chunk,
    at: usize,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.at < self.chunk.rows.len() {
            self.chunk.cut(self.at, usize::MAX, &mut Chunk::new());
        }
    }
}

/// One input of a pipe: the samples that wait there, and whether more will come.
#[repr(C)]
#[derive(StableAbi, Default)]
pub struct Port {
    /// The samples that wait.
    pub chunk: Chunk,
    /// Nothing will come after those that wait.
    pub ended: bool,
}

#[cfg(test)]
mod tests;
