//! `rebatch`: batches of another size.
//!
//! ```toml
//! [rebatch]
//! page = "batches"
//! examples = ['forebay head -n 1 "range 100 | batch 10 | rebatch 16"']
//! cases = ["range N | batch 4 | rebatch 6"]
//! counted = false
//! ```

use std::{collections::VecDeque, ops::Range};

use forebay_core::{
    Context, DataPipe, Drops, Error, Io, Noun, PipeAudit, PipeInfo, PipeLayout, Result, Sample, State,
    StateExt, Step, Str, Stream, Tensor, TensorExt, Uids, Value, View, options,
};

use crate::{
    plumbing::{rows::order, stack::join_or_copy},
    unbatch::{as_origin, count_rows, deepest, name_of_row},
};

options! {
    /// Options of `rebatch`.
    pub struct RebatchOptions {
        /// Samples in one batch.
        size: usize = required, in 1..=1_000_000_000;
        /// Leave out the last batch if it is shorter.
        drop_last: bool = false;
    }
}

/// Cuts batches into ones of `size`, which may reach over several, without taking them apart into samples.
///
/// Gives what `unbatch` and `batch` in turn do, keys too. A batch that lies within one that comes shares its memory; others
/// are copied once. Memory: what makes one batch, and the rest of the last one that came. State: how many rows of the first batch held
/// were given; the batches held come again.
#[derive(Debug)]
pub struct Rebatch {
    size: usize,
    drop_last: bool,
    pieces: VecDeque<Piece>,
    /// How many rows they have left.
    left: usize,
    /// How many batches were taken, and up to which it told of those that do not fit, at times before a restore.
    taken: u64,
    told: u64,
    /// After a restore: the rows of the first batch that were given.
    skip: usize,
}

/// A batch that came, and the rows of it that are left.
#[derive(Debug)]
struct Piece {
    batch: Sample,
    rows: Range<usize>,
    /// Which of those taken it is.
    number: u64,
}

impl DataPipe for Rebatch {
    const INFO: PipeInfo = PipeInfo {
        name: "rebatch",
        summary: "Batches of another size",
        layout: PipeLayout { gives: Some(Noun::BATCH), ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Made, drops: Drops::With(&["drop_last"]), ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RebatchOptions;

    fn new(options: RebatchOptions) -> Result<Self> {
        let RebatchOptions { size, drop_last } = options;
        Ok(Self { size, drop_last, pieces: VecDeque::new(), left: 0, taken: 0, told: 0, skip: 0 })
    }
}

impl Rebatch {
    /// Takes a batch. One that does not fit to those held is left out.
    fn take(&mut self, mut batch: Sample) -> Result<()> {
        let number = self.taken;
        self.taken += 1;
        let count = count_rows(&batch).and_then(|count| {
            if let Some(first) = self.pieces.front() {
                go_together(&first.batch, &mut batch)?;
            }
            Ok(count)
        });
        let count = match count {
            Ok(count) => count,
            Err(_) if number < self.told => return Ok(()),
            Err(error) => {
                self.told = self.taken;
                return Err(error.context("sample", batch.key()));
            }
        };
        let skip = std::mem::take(&mut self.skip);
        if skip > count {
            let message = format!("the batch that comes again has {count} rows, of which {skip} were given");
            return Err(Error::invalid(message).context("sample", batch.key()));
        }
        if skip < count {
            self.left += count - skip;
            self.pieces.push_back(Piece { batch, rows: skip..count, number });
        }
        Ok(())
    }

    /// The next `count` rows in one batch; they are gone also after an error.
    fn give(&mut self, count: usize, cx: &Context) -> Result<Sample> {
        let (mut cuts, mut missing) = (Vec::new(), count);
        while let Some(piece) = self.pieces.front_mut().filter(|_| missing > 0) {
            let start = piece.rows.start;
            piece.rows.start += missing.min(piece.rows.len());
            missing -= piece.rows.start - start;
            cuts.push((piece.batch.clone(), start..piece.rows.start));
            if piece.rows.is_empty() {
                self.pieces.pop_front();
            }
        }
        self.left -= count - missing;
        let Some((first, rows)) = cuts.first() else { return Err(Error::bug("no rows are left")) };
        let (uid, key) = name_of_row(first, &as_origin(first.key()), deepest(first), rows.start, cx);
        let values = first.schema().names().iter().enumerate().map(|(at, name)| {
            let parts = cuts.iter().map(|(batch, rows)| (&batch.values()[at], rows.clone()));
            splice(&parts.collect::<Vec<_>>(), cx).map_err(|error| error.context("field", name))
        });
        let values = values.collect::<Result<_>>()?;
        Ok(Sample::with_schema(uid, key, first.schema().clone(), values))
    }

    /// The number of the first batch held.
    fn first(&self) -> u64 {
        self.pieces.front().map_or(self.taken, |piece| piece.number)
    }
}

impl Stream for Rebatch {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.pieces.clear();
        (self.left, self.taken, self.told, self.skip) = (0, 0, 0, 0);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            if self.left >= self.size {
                io.push(&mut self.give(self.size, cx)?);
            } else if let Some(batch) = io.pop(0) {
                self.take(batch)?;
            } else if !io.ended(0) {
                return Ok(Step::NeedInput(0));
            } else if self.left > 0 && !self.drop_last {
                io.push(&mut self.give(self.left, cx)?);
            } else {
                self.reset(cx)?;
                return Ok(Step::End);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        let given = self.pieces.front().map_or(self.skip, |piece| piece.rows.start);
        let told = self.told.saturating_sub(self.first());
        let state = if given > 0 || told > 0 { State::json(1, &(given, told))? } else { State::default() };
        Ok(state.again(0, self.taken - self.first()))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        (self.skip, self.told) = if state.bytes.is_empty() { (0, 0) } else { state.parse(1)? };
        Ok(())
    }
}

/// Whether the rows of `other` can stand behind those of `first`, whose fields' order it is given.
fn go_together(first: &Sample, other: &mut Sample) -> Result<()> {
    if first.schema() != other.schema() {
        let order = order(first.schema(), other.schema())?;
        let values: Vec<_> = order.iter().map(|&at| std::mem::take(&mut other.values_mut()[at])).collect();
        other.replace(first.schema().clone(), values);
    }
    for ((name, one), other) in first.fields().zip(other.values()) {
        if !alike(one, other) {
            let (found, expected) = (shown(other), shown(one));
            let message = format!("cannot join: found rows of {found} after {expected}");
            return Err(Error::invalid(message).context("field", name));
        }
    }
    Ok(())
}

/// Whether rows of both make one value: whichever of several such values comes first, the answer is the same.
fn alike(one: &Value, other: &Value) -> bool {
    match (one.view(), other.view()) {
        (View::Tensor(one), View::Tensor(other)) => {
            one.dtype() == other.dtype() && one.shape().get(1..) == other.shape().get(1..)
        }
        (View::List(_), View::List(_)) => true,
        (View::Struct(one), View::Struct(other)) => {
            one.schema().len() == other.schema().len()
                && one.fields().all(|(name, value)| other.get(name).is_some_and(|other| alike(value, other)))
        }
        _ => false,
    }
}

/// What a row of a value is.
fn shown(value: &Value) -> String {
    match value.view() {
        View::Tensor(tensor) => {
            format!("{} {:?}", tensor.dtype(), tensor.shape().get(1..).unwrap_or_default())
        }
        View::List(_) => "a list".to_owned(),
        View::Struct(fields) => {
            let names: Vec<_> = fields.schema().names().iter().map(Str::as_str).collect();
            format!("a struct of {}", names.join(", "))
        }
        _ => "another value".to_owned(),
    }
}

/// One value of the rows of several, which go together.
fn splice(parts: &[(&Value, Range<usize>)], cx: &Context) -> Result<Value> {
    let Some((first, _)) = parts.first() else { return Ok(Value::list(Vec::new())) };
    Ok(match first.view() {
        View::Tensor(tensor) => {
            let tensors = parts.iter().filter_map(|(value, rows)| Some((value.as_tensor()?, rows)));
            let slices: Vec<_> = tensors.filter_map(|(tensor, rows)| rows_of(tensor, rows)).collect();
            let data = join_or_copy(&slices.iter().collect::<Vec<_>>(), cx)?;
            let count = parts.iter().map(|(_, rows)| rows.len()).sum();
            let tail = tensor.shape().iter().skip(1).map(|&axis| axis as usize);
            Tensor::new(tensor.dtype(), &[count].into_iter().chain(tail).collect::<Vec<_>>(), data)?.into()
        }
        View::Struct(fields) => {
            let values = fields.schema().names().iter().map(|name| {
                let of = |value: &&Value| match value.view() {
                    View::Struct(fields) => fields.get(name).cloned(),
                    _ => None,
                };
                let inner: Vec<_> =
                    parts.iter().map(|(value, rows)| (of(value).unwrap_or_default(), rows.clone())).collect();
                splice(&inner.iter().map(|(value, rows)| (value, rows.clone())).collect::<Vec<_>>(), cx)
            });
            Value::with_schema(fields.schema().clone(), values.collect::<Result<_>>()?)
        }
        _ => {
            let items = parts.iter().flat_map(|(value, rows)| match value.view() {
                View::List(items) => items.get(rows.clone()).unwrap_or_default(),
                _ => &[],
            });
            Value::list(items.cloned().collect())
        }
    })
}

/// The bytes of some rows of a tensor, which has them.
fn rows_of(tensor: &Tensor, rows: &Range<usize>) -> Option<forebay_core::Buffer> {
    let count = usize::try_from(*tensor.shape().first()?).ok()?;
    let each = tensor.data().len() / count.max(1);
    tensor.data().get(rows.start * each..rows.end * each)
}

#[cfg(test)]
mod tests {
    use forebay_core::{DType, ErrorKind, FlatMap, Items, Options, random::Rng};

    use super::*;
    use crate::{
        batch::{Batch, BatchOptions},
        testing::{Drive, check, check_resume, ints, numbers, sample, small_host},
        unbatch::{Unbatch, UnbatchOptions},
    };

    fn rebatch(size: usize, drop_last: bool) -> impl Fn() -> Rebatch {
        move || Rebatch::new(RebatchOptions { size, drop_last }).unwrap()
    }

    fn batch(input: &[Sample], size: usize) -> Vec<Sample> {
        check(|| Batch::new(BatchOptions { size, drop_last: false, uids: None }).unwrap(), input)
    }

    fn each(batches: &[Sample]) -> Vec<Vec<i64>> {
        batches.iter().map(|batch| ints(std::slice::from_ref(batch), "value")).collect()
    }

    #[test]
    fn changes_the_size_b023_b024_b026() {
        let of =
            |from: usize, size, drop_last| each(&check(rebatch(size, drop_last), &batch(&numbers(10), from)));
        assert_eq!(of(2, 4, false), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
        assert_eq!(of(4, 2, false), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]);
        assert_eq!(of(3, 3, false), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8], vec![9]]);
        assert_eq!(of(2, 4, true), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert!(check(rebatch(4, false), &[]).is_empty());
        assert_eq!(RebatchOptions::parse(r#"{"size": 0}"#).unwrap_err().get("option"), Some("size"));
    }

    /// Samples with fields of every kind.
    fn input(count: usize) -> Vec<Sample> {
        let mut rng = Rng::new(2, 0);
        let one = |at: usize| {
            let bytes = (at as u32).to_le_bytes().to_vec();
            let tensor = Tensor::new(DType::U8, &[2, 2], bytes.into()).unwrap();
            let meta = Value::structure(vec![("id".into(), (at as u16).into()), ("tag".into(), "x".into())]);
            let fields = [
                ("value", (at as i64).into()),
                ("x", tensor.into()),
                ("text", rng.u32().to_string().into()),
                ("meta", meta),
            ];
            sample(at as u64, &fields)
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn equals_unbatch_and_batch() {
        let host = small_host();
        for (count, from, size) in [(17, 4, 3), (17, 3, 5), (9, 1, 4), (9, 20, 2), (12, 6, 6)] {
            let batches = batch(&input(count), from);
            let mut samples = Vec::new();
            for batch in &batches {
                let pipe = Unbatch::new(UnbatchOptions { level: 1 }).unwrap();
                let mut rows = pipe.open(batch.clone(), &host.context()).unwrap();
                samples.extend(std::iter::from_fn(|| rows.next(&host.context()).unwrap()));
            }
            assert_eq!(check(rebatch(size, false), &batches), batch(&samples, size), "{from} to {size}");
            check_resume(rebatch(size, false), &batches);
            check_resume(rebatch(size, true), &batches);
        }
    }

    #[test]
    fn what_lies_within_one_batch_is_not_copied() {
        let whole = batch(&input(8), 8);
        let place = |batch: &Sample| batch.get("x").and_then(Value::as_tensor).unwrap().data().as_ptr();
        let out = check(rebatch(4, false), &whole);
        assert_eq!(place(&out[1]), place(&whole[0]).wrapping_add(16));
        assert_eq!(check(rebatch(8, false), &out).iter().map(place).collect::<Vec<_>>(), [place(&whole[0])]);
    }

    #[test]
    fn batches_that_do_not_fit_are_told_once_and_left_out() {
        let mut batches = batch(&numbers(12), 2);
        batches[2] = batch(&[sample(4, &[("value", 0.5.into())])], 2).remove(0);
        batches[3] = sample(6, &[("value", 3_i64.into())]);
        batches.insert(1, sample(90, &[("value", Value::list(vec![]))]));
        batches.insert(0, sample(91, &[("value", Value::structure(vec![]))]));
        for size in [1, 3, 5, 50] {
            check_resume(rebatch(size, false), &batches);
        }
        let mut drive = Drive::new(rebatch(5, false)(), &batches, 2);
        let mut errors = Vec::new();
        loop {
            match drive.step(9) {
                Ok(Step::End) => break,
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        let told: Vec<_> =
            errors.iter().map(|error| (error.get("sample").unwrap(), error.message())).collect();
        assert_eq!(told[0].0, "test#91");
        assert_eq!(told[1], ("test#90", "cannot join: found rows of a list after int64 []"));
        assert_eq!(told[2], ("test#4", "cannot join: found rows of float64 [] after int64 []"));
        assert_eq!(told[3].0, "test#6");
        assert_eq!(errors[3].kind(), ErrorKind::Invalid);
        assert_eq!(each(drive.out()), [vec![0, 1, 2, 3, 8], vec![9, 10, 11]]);
    }

    #[test]
    fn a_batch_that_became_shorter_is_an_error() {
        let host = small_host();
        let batches = batch(&numbers(8), 8);
        let mut drive = Drive::new(rebatch(3, false)(), &batches, 1);
        drive.run(1, 2).unwrap();
        let mut pipe = rebatch(3, false)();
        pipe.restore(&drive.state().unwrap(), &host.context()).unwrap();
        let shorter = batch(&numbers(4), 4);
        let mut other = Drive::new(rebatch(3, false)(), &shorter, 1);
        other.replace(pipe);
        assert_eq!(other.run(1, 9).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
