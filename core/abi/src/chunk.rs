//! Samples on their way between two pipes, in one flat piece of memory.

use abi_stable::{StableAbi, std_types::RVec};

use crate::{Key, Sample, Schema, Value};

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
        self.values.extend(values.into_iter().take(width));
        for _ in self.values.len()..first + width {
            self.values.push(Value::NULL);
        }
        self.rows.push(Row { uid, key, schema, first: first as u32 });
    }

    /// Moves a sample to the back; what is left of it can be filled again by [`pop_into`](Chunk::pop_into).
    #[inline]
    pub fn push_sample(&mut self, sample: &mut Sample) {
        let Sample { uid, key, schema, values, .. } = sample;
        self.push(*uid, std::mem::take(key), schema, values.drain(..));
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
        self.samples().next()
    }

    /// All samples left, in order, to be looked at as by [`peek`](Chunk::peek).
    #[inline]
    pub fn samples(&self) -> impl Iterator<Item = (u64, &Key, &Schema, &[Value])> {
        self.rows.get(self.head..).unwrap_or_default().iter().map(|row| {
            let schema = &self.schemas[row.schema as usize];
            let first = row.first as usize;
            (row.uid, &row.key, schema, &self.values[first..first + schema.len()])
        })
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
            to.push_known(row.uid, std::mem::take(&mut row.key), place, schema.len(), values);
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
        self.values[first..].iter().map(|value| size_of::<Value>() + value.size()).sum::<usize>() + rows
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
mod tests {
    use super::*;

    fn chunk(numbers: std::ops::Range<i64>) -> Chunk {
        let schema = Schema::new(["n"]);
        let mut chunk = Chunk::new();
        for n in numbers {
            chunk.push(n as u64, Key { index: n as u64, ..Key::default() }, &schema, [Value::from(n)]);
        }
        chunk
    }

    fn numbers(chunk: &mut Chunk, field: &str) -> Vec<(u64, u64, i64)> {
        let samples = std::iter::from_fn(|| chunk.pop());
        samples.map(|s| (s.uid(), s.key().index, s.get(field).and_then(Value::as_i64).unwrap())).collect()
    }

    #[test]
    fn samples_come_out_as_they_went_in() {
        let (mut one, mut other) = (chunk(0..3), chunk(3..10));
        one.take_from(&mut other, 2);
        assert_eq!((one.len(), other.len()), (5, 5));
        assert_eq!(numbers(&mut one, "n"), (0..5).map(|n| (n as u64, n as u64, n)).collect::<Vec<_>>());
    }

    #[test]
    fn a_sample_is_taken_apart_at_the_front() {
        let mut two = chunk(5..7);
        for n in 5_u64..7 {
            let taken = two.pop_with(|uid, key, schema, values| {
                (uid, std::mem::take(key).index, schema.len(), std::mem::take(&mut values[0]))
            });
            assert_eq!(taken, Some((n, n, 1, Value::from(n as i64))));
        }
        assert!(two.is_empty() && two.pop_with(|_, _, _, _| ()).is_none());
    }

    #[test]
    fn map_into_changes_values_in_place_and_fields_at_any_point() {
        for switch in 0..5 {
            let (mut input, mut out) = (chunk(-1..4), Chunk::new());
            input.advance(); // What was taken before is not touched.
            let result: Result<(), ()> = input.map_into(&mut out, |sample| {
                let n = sample.get("n").and_then(Value::as_i64).unwrap();
                sample.set("n", n * 10);
                if n >= switch {
                    sample.set("more", 1_i64);
                }
                Ok(())
            });
            assert!(result.is_ok() && input.is_empty());
            assert_eq!(
                numbers(&mut out, "n"),
                (0..4).map(|n| (n as u64, n as u64, n * 10)).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_panic_leaves_only_what_was_mapped() {
        for grows in [false, true] {
            let (mut input, mut out) = (chunk(0..5), Chunk::new());
            let mapped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                input.map_into(&mut out, |sample| {
                    if grows {
                        sample.set("more", 1_i64);
                    }
                    assert!(sample.uid() != 3, "meant");
                    Ok::<(), ()>(())
                })
            }));
            assert!(mapped.is_err());
            assert_eq!(numbers(&mut out, "n").len(), 3);
        }
    }

    #[test]
    fn a_chunk_that_never_drains_does_not_grow() {
        let mut queue = chunk(0..1);
        for n in 1..10_000 {
            queue.take_from(&mut chunk(n..n + 1), 1);
            assert_eq!(queue.pop().unwrap().uid(), n as u64 - 1);
        }
        assert!(queue.rows.len() < 200 && queue.values.len() < 200);
    }

    #[test]
    fn map_into_leaves_what_comes_after_a_failure() {
        for (fails, grows) in [(0, false), (2, false), (2, true), (3, true)] {
            let (mut input, mut out) = (chunk(0..4), Chunk::new());
            let result = input.map_into(&mut out, |sample| {
                if grows {
                    sample.set("more", 1_i64);
                }
                if sample.uid() == fails { Err(sample.uid()) } else { Ok(()) }
            });
            assert_eq!(result, Err(fails));
            let uids = |chunk: &mut Chunk| numbers(chunk, "n").into_iter().map(|n| n.0).collect::<Vec<_>>();
            assert_eq!(uids(&mut out), (0..fails).collect::<Vec<_>>());
            assert_eq!(uids(&mut input), (fails + 1..4).collect::<Vec<_>>());
        }
    }
}
