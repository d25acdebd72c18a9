//! A row that is being filled.

use std::{ops::Range, sync::Arc};

use forebay_core::{Context, DType, Key, Result, Sample, Tensor, TensorExt, Value};

use super::{
    plan::{Part, Plan},
    sequence::{Kind, Sequence, Values},
};
use crate::{plumbing::stack::Place, unbatch::as_origin};

/// A sample in a row, or a piece of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    /// Which of all samples taken it is, counted from any.
    pub(super) ordinal: u64,
    /// Which of its pieces, from 0.
    pub(super) piece: u64,
}

/// Samples side by side in fields of a fixed length.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// That of the first sample; none while the samples are still to come again.
    plan: Option<Arc<Plan>>,
    uid: u64,
    key: Key,
    pub(super) members: Vec<Member>,
    columns: Vec<Filled>,
    /// For each field that goes along a value for each member.
    meta: Vec<Vec<Value>>,
    uids: Vec<u64>,
    /// How many more items all fields together take.
    pub(super) left: usize,
    /// It takes no more.
    pub(super) full: bool,
    /// Where the sample was cut whose later piece comes first, if it was cut where a row had room.
    pub(super) cut: Vec<usize>,
}

/// One packed field of a row.
#[derive(Debug, Default)]
struct Filled {
    /// None while only empty lists came, which have no type.
    values: Option<Values>,
    /// Where each member ends.
    ends: Vec<u32>,
}

impl Filled {
    fn used(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }
}

/// A piece on its way into a row.
pub(super) struct Piece<'a> {
    pub(super) plan: &'a Arc<Plan>,
    pub(super) uid: u64,
    pub(super) key: &'a Key,
    pub(super) number: u64,
    pub(super) values: &'a [Value],
    /// For each column, which items.
    pub(super) ranges: &'a [Range<usize>],
}

impl Row {
    /// A row whose samples are still to come again.
    pub(super) fn awaiting(members: Vec<Member>) -> Self {
        Self { members, ..Self::default() }
    }

    pub(super) fn plan(&self) -> Option<&Arc<Plan>> {
        self.plan.as_ref()
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn kind(&self, column: usize) -> Option<&Kind> {
        self.columns.get(column)?.values.as_ref().map(|values| &values.kind)
    }

    /// How many more items this field of a row with this plan takes.
    #[inline]
    pub(super) fn room(&self, plan: &Plan, column: usize) -> usize {
        plan.columns[column].length - self.columns.get(column).map_or(0, Filled::used)
    }

    /// Writes the values of a piece, which has been seen to have room. Nothing changes where that fails.
    pub(super) fn put(&mut self, piece: &Piece, cx: &Context) -> Result<()> {
        let plan = piece.plan;
        let mut fresh = Vec::new();
        for (at, (column, range)) in plan.columns.iter().zip(piece.ranges).enumerate() {
            if self.columns.get(at).is_some_and(|filled| filled.values.is_some()) {
                continue;
            }
            let kind = Sequence::seen(&piece.values[column.place]).kind();
            if let Some(kind) = kind.or((!range.is_empty()).then_some(Kind::INT64)) {
                let values = Values::new(column, kind, cx);
                fresh.push((at, values.map_err(|error| error.context("field", &column.name))?));
            }
        }
        if self.plan.is_none() {
            self.begin(piece, cx);
        }
        for (at, values) in fresh {
            self.columns[at].values = Some(values);
        }
        for ((filled, column), range) in self.columns.iter_mut().zip(&plan.columns).zip(piece.ranges) {
            let used = filled.used();
            if let Some(values) = &mut filled.values {
                let sequence = Sequence::seen(&piece.values[column.place]);
                values.write(used, sequence, column, range.clone());
            }
            // Rows are at most as long as an int32 counts.
            filled.ends.push((used + range.len()) as u32);
            self.left -= range.len();
        }
        for (values, (_, place)) in self.meta.iter_mut().zip(&plan.meta) {
            values.push(piece.values[*place].clone());
        }
        self.uids.push(piece.uid);
        Ok(())
    }

    /// Its key and uid are those of the first piece; where that is not a sample's first, they are made of them.
    fn begin(&mut self, piece: &Piece, cx: &Context) {
        self.plan = Some(Arc::clone(piece.plan));
        self.columns.resize_with(piece.plan.columns.len(), Filled::default);
        self.left = piece.plan.columns.iter().map(|column| column.length).sum();
        self.meta.resize_with(piece.plan.meta.len(), Vec::new);
        (self.uid, self.key) = match piece.number {
            0 => (piece.uid, piece.key.clone()),
            number => {
                let key = Key { origin: as_origin(piece.key), index: number, ..Key::default() };
                (cx.uid_of(piece.uid, [number]), key)
            }
        };
    }

    /// The sample.
    pub(super) fn finish(mut self, cx: &Context) -> Result<Sample> {
        let Some(plan) = self.plan.take() else { return Ok(Sample::default()) };
        let mut values: Vec<Value> = Vec::with_capacity(plan.parts.len());
        for (at, part) in plan.parts.iter().enumerate() {
            let made = match *part {
                Part::Values(column) => self.values(&plan, column, cx),
                Part::Meta(field) => Ok(Value::list(std::mem::take(&mut self.meta[field]))),
                Part::Segments(column) | Part::Positions(column) => {
                    match self.twin(&plan, &plan.parts[..at], *part) {
                        Some(twin) => Ok(values[twin].clone()),
                        None => self.numbers(*part, plan.columns[column].length, column, cx),
                    }
                }
                Part::Uids => {
                    let bytes: Vec<u8> = self.uids.iter().copied().flat_map(u64::to_ne_bytes).collect();
                    Tensor::new(DType::U64, &[self.uids.len()], bytes.into()).map(Value::from)
                }
            };
            values.push(made.map_err(|error| error.context("field", &plan.schema.names()[at]))?);
        }
        Ok(Sample::with_schema(self.uid, self.key, plan.schema.clone(), values))
    }

    fn values(&mut self, plan: &Plan, column: usize, cx: &Context) -> Result<Value> {
        let (field, filled) = (&plan.columns[column], &mut self.columns[column]);
        let values = match filled.values.take() {
            Some(values) => values,
            None => Values::new(field, Kind::INT64, cx)?,
        };
        values.finish(filled.used(), field.length)
    }

    /// Which of the parts before is the same: fields that go side by side, as tokens and their weights, share theirs.
    fn twin(&self, plan: &Plan, before: &[Part], part: Part) -> Option<usize> {
        let same = |one: usize, other: usize| {
            plan.columns[one].length == plan.columns[other].length
                && self.columns[one].ends == self.columns[other].ends
        };
        before.iter().position(|other| match (*other, part) {
            (Part::Segments(one), Part::Segments(other)) => same(one, other),
            (Part::Positions(one), Part::Positions(other)) => same(one, other),
            _ => false,
        })
    }

    /// Segments, from 1, or positions, from 0 in each segment; both are 0 where nothing is.
    fn numbers(&self, part: Part, length: usize, column: usize, cx: &Context) -> Result<Value> {
        let mut bytes = Place { capacity: length, strict: true, cx }.alloc(size_of::<i32>())?;
        let words = bytes.as_chunks_mut::<4>().0;
        let mut start = 0;
        for (segment, &end) in (1_i32..).zip(&self.columns[column].ends) {
            let words = &mut words[start..end as usize];
            match part {
                Part::Positions(_) => {
                    (0_i32..).zip(words).for_each(|(position, word)| *word = position.to_ne_bytes());
                }
                _ => words.fill(segment.to_ne_bytes()),
            }
            start = end as usize;
        }
        words[start..].fill([0; 4]);
        Ok(Tensor::new(DType::I32, &[length], bytes.freeze())?.into())
    }
}
