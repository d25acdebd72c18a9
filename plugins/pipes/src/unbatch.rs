//! `unbatch`: a batch back into its samples.

use forebay_core::{
    Context, DataPipe, Error, FlatMap, Items, Key, PipeInfo, Result, Sample, State, StateExt, Str, Tensor,
    TensorExt, Value, View, abi::tag, options, random::mix,
};

use crate::stack::read_scalar;

/// Keeps the uids of rows apart from those that other pipes make of a uid and a number.
const ROWS: u64 = 0x726f_7773;

options! {
    /// Options of `unbatch`.
    pub struct UnbatchOptions {
        /// How many batches within each other come apart; -1 for as many as every field can.
        level: i64 = 1, in -1..=64;
    }
}

/// Splits each sample along the first axis of its fields: what `batch` stacked, comes apart again.
///
/// With a `level` above 1 the rows are split in turn, as by so many of these pipes; with -1 for as long as every field of a row has rows,
/// and as many as the others. A row of a tensor shares the tensor's memory. The first row has the batch's uid and key, as `batch`
/// gave it those of its first sample; the others get their own.
#[derive(Debug)]
pub struct Unbatch {
    /// None for as many as there are.
    level: Option<usize>,
}

impl DataPipe for Unbatch {
    const INFO: PipeInfo =
        PipeInfo { name: "unbatch", summary: "A batch back into its samples", ..PipeInfo::DEFAULT };
    type Options = UnbatchOptions;

    fn new(options: UnbatchOptions) -> Result<Self> {
        match options.level {
            0 => Err(Error::invalid("found 0, expected 1 or more, or -1 for all").context("option", "level")),
            level => Ok(Self { level: usize::try_from(level).ok() }),
        }
    }
}

impl FlatMap for Unbatch {
    type Items = Rows;

    fn open(&self, batch: Sample, _: &Context) -> Result<Rows> {
        Ok(Rows { open: vec![Open::new(batch)?], level: self.level })
    }
}

/// The uids and keys of what one sample comes apart into: the first part has the sample's, as what was put together has those of its first
/// part, and the others their own.
#[derive(Debug)]
pub(crate) struct Names {
    uid: u64,
    key: Key,
    /// The key, as those of the parts name it, once one asks.
    origin: Option<Str>,
    kind: u64,
}

impl Names {
    /// Of the parts of `sample`; `kind` keeps their uids apart from those that other pipes make of a uid and a number.
    pub(crate) fn of(sample: &Sample, kind: u64) -> Self {
        Self { uid: sample.uid(), key: sample.key().clone(), origin: None, kind }
    }

    /// Of the part with this number.
    pub(crate) fn at(&mut self, at: usize) -> (u64, Key) {
        match at {
            0 => (self.uid, self.key.clone()),
            _ => {
                let origin = self.origin.get_or_insert_with(|| self.key.to_string().into());
                let key = Key { origin: origin.clone(), index: at as u64, ..Key::default() };
                (mix(&[self.kind, self.uid, at as u64]), key)
            }
        }
    }
}

/// The samples of one batch.
#[derive(Debug)]
pub struct Rows {
    /// The batch, and the rows within each other that are being split; never empty.
    open: Vec<Open>,
    level: Option<usize>,
}

/// A batch that is being split.
#[derive(Debug)]
struct Open {
    batch: Sample,
    /// The batch's key, as the rows name it.
    origin: Str,
    count: usize,
    next: usize,
}

impl Open {
    fn new(batch: Sample) -> Result<Self> {
        let count = count_rows(&batch)?;
        Ok(Self { origin: batch.key().to_string().into(), batch, count, next: 0 })
    }

    fn next(&mut self) -> Result<Option<Sample>> {
        let at = self.next;
        if at == self.count {
            return Ok(None);
        }
        self.next += 1;
        self.row(at).map(Some)
    }

    fn row(&self, at: usize) -> Result<Sample> {
        let values = self.batch.values().iter().map(|value| row(value, at));
        let (uid, key) = name_of_row(&self.batch, &self.origin, at);
        Ok(Sample::with_schema(uid, key, self.batch.schema().clone(), values.collect::<Result<_>>()?))
    }
}

/// The uid and key of a row of a batch, whose own key reads as `origin`.
pub(crate) fn name_of_row(batch: &Sample, origin: &Str, at: usize) -> (u64, Key) {
    if at == 0 {
        return (batch.uid(), batch.key().clone());
    }
    let key = Key { origin: origin.clone(), index: at as u64, ..Key::default() };
    // The first row of a batch of batches has its uid, and rows in turn: the depth tells these from its own.
    let depth = batch.values().iter().map(depth).max().unwrap_or(0);
    (mix(&[ROWS, batch.uid(), at as u64, depth]), key)
}

/// How many axes a value has, by its first items; each row has one less.
fn depth(mut value: &Value) -> u64 {
    let mut depth = 0;
    loop {
        let first = match value.view() {
            View::Tensor(tensor) => return depth + tensor.shape().len() as u64,
            View::List(items) => {
                depth += 1;
                items.first()
            }
            View::Struct(fields) => fields.values().first(),
            _ => return depth,
        };
        match first {
            Some(first) => value = first,
            None => return depth,
        }
    }
}

impl Rows {
    /// Whether rows of what is open last are split too, if they can be.
    fn goes_deeper(&self) -> bool {
        self.level.is_none_or(|level| self.open.len() < level)
    }

    /// Opens a row, to be split in turn; gives it back if it is a sample.
    fn enter(&mut self, row: Sample) -> Result<Option<Sample>> {
        if self.level.is_some() {
            self.open.push(Open::new(row)?);
            return Ok(None);
        }
        let kinds = [tag::TENSOR, tag::LIST, tag::STRUCT];
        if row.values().iter().any(|value| !kinds.contains(&value.tag())) {
            return Ok(Some(row));
        }
        match Open::new(row.clone()) {
            Ok(open) => self.open.push(open),
            Err(_) => return Ok(Some(row)),
        }
        Ok(None)
    }
}

impl Items for Rows {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        while let Some(last) = self.open.last_mut() {
            match last.next()? {
                Some(row) if self.goes_deeper() => {
                    if let Some(sample) = self.enter(row)? {
                        return Ok(Some(sample));
                    }
                }
                Some(row) => return Ok(Some(row)),
                None if self.open.len() == 1 => break,
                None => drop(self.open.pop()),
            }
        }
        Ok(None)
    }

    fn goes_on(&self) -> bool {
        true
    }

    /// For each batch that is open how many of its rows were given, or are open too.
    fn state(&self) -> Result<State> {
        State::json(2, &self.open.iter().map(|open| open.next).collect::<Vec<_>>())
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let saved: Vec<usize> = state.parse(2)?;
        self.open.truncate(1);
        for (depth, next) in saved.into_iter().enumerate() {
            if let Some(outer) = self.open.get(depth.wrapping_sub(1)) {
                let row = outer.next.checked_sub(1).map(|at| outer.row(at)).transpose()?;
                let row = row.ok_or_else(|| Error::invalid("a position within a row of none"))?;
                self.open.push(Open::new(row)?);
            }
            let Some(open) = self.open.get_mut(depth) else { break };
            if next > open.count {
                let count = open.count;
                return Err(Error::invalid(format!(
                    "found a position after row {next} of a batch of {count}"
                )));
            }
            open.next = next;
        }
        Ok(())
    }
}

/// How many rows each field of a batch has.
///
/// # Errors
/// `Invalid`, naming the field that has none, or others than those before it.
pub(crate) fn count_rows(batch: &Sample) -> Result<usize> {
    let mut first: Option<(&Str, usize)> = None;
    for (name, value) in batch.fields() {
        let Some(found) = rows(value).map_err(|error| error.context("field", name))? else { continue };
        match first {
            Some((other, expected)) if found != expected => {
                let message = format!("no batch: found {found} rows, expected {expected} as in `{other}`");
                return Err(Error::invalid(message).context("field", name));
            }
            Some(_) => {}
            None => first = Some((name, found)),
        }
    }
    let found = first.map(|(_, count)| count);
    found.ok_or_else(|| Error::invalid("no batch: no field says how many rows there are"))
}

/// How many rows a value has; `None` for a struct without fields, which has as many as the rest.
fn rows(value: &Value) -> Result<Option<usize>> {
    let found = match value.view() {
        View::Tensor(tensor) if !tensor.shape().is_empty() => return Ok(Some(tensor.shape()[0] as usize)),
        View::List(items) => return Ok(Some(items.len())),
        View::Struct(fields) => {
            let mut count = None;
            for (name, value) in fields.fields() {
                let found = rows(value).map_err(|error| error.context("name", name))?;
                if let (Some(found), Some(expected)) = (found, count)
                    && found != expected
                {
                    let message = format!("no batch: found {found} rows, expected {expected} as before it");
                    return Err(Error::invalid(message).context("name", name));
                }
                count = count.or(found);
            }
            return Ok(count);
        }
        View::Null => "null",
        View::Str(_) => "text",
        View::Bytes(_) => "bytes",
        View::Tensor(_) => "a tensor without axes",
        _ if value.dtype().is_some() => "a single number",
        _ => "a value without rows",
    };
    Err(Error::invalid(format!("no batch: found {found}, expected a tensor, a list or a struct of them")))
}

/// One row of a value, which has been seen to have it.
fn row(value: &Value, at: usize) -> Result<Value> {
    Ok(match value.view() {
        View::Tensor(tensor) => tensor_row(tensor, at)?,
        View::List(items) => items.get(at).cloned().unwrap_or_default(),
        View::Struct(fields) => {
            let fields = fields.fields().map(|(name, value)| Ok((name.clone(), row(value, at)?)));
            Value::structure(fields.collect::<Result<_>>()?)
        }
        _ => value.clone(),
    })
}

/// A row of a tensor along its first axis, which shares its memory, or a number.
pub(crate) fn tensor_row(tensor: &Tensor, at: usize) -> Result<Value> {
    let dtype = tensor.dtype();
    let number = !matches!(Value::scalar(dtype, 0).view(), View::Unknown(_));
    if tensor.shape().len() == 1 && number {
        return Ok(Value::scalar(dtype, read_scalar(tensor.data(), at, dtype)));
    }
    row_of(tensor, at).map(Value::from)
}

/// A row of a tensor along its first axis, as a tensor which shares its memory.
pub(crate) fn row_of(tensor: &Tensor, at: usize) -> Result<Tensor> {
    let dtype = tensor.dtype();
    let shape: Vec<_> = tensor.shape().iter().skip(1).map(|&axis| axis as usize).collect();
    let each = shape.iter().product::<usize>() * dtype.size();
    let data = tensor.data().get(at * each..(at + 1) * each);
    let data = data.ok_or_else(|| Error::bug("a tensor with fewer bytes than its shape says"))?;
    Tensor::new(dtype, &shape, data)
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, DType, Options, random::Rng};

    use super::*;
    use crate::{
        batch::{Batch, BatchOptions},
        testing::{check, ints, numbers, sample, small_host},
    };

    fn pipe(level: i64) -> Unbatch {
        Unbatch::new(UnbatchOptions { level }).unwrap()
    }

    fn unbatch(batches: &[Sample]) -> Result<Vec<Sample>> {
        levels(batches, 1)
    }

    fn levels(batches: &[Sample], level: i64) -> Result<Vec<Sample>> {
        let host = small_host();
        let mut out = Vec::new();
        for batch in batches {
            let mut rows = pipe(level).open(batch.clone(), &host.context())?;
            while let Some(sample) = rows.next(&host.context())? {
                out.push(sample);
            }
        }
        Ok(out)
    }

    fn batch(input: &[Sample], size: usize) -> Vec<Sample> {
        check(|| Batch::new(BatchOptions { size, drop_last: false, uids: None }).unwrap(), input)
    }

    fn tensor(dtype: DType, shape: &[usize], data: impl Into<Buffer>) -> Value {
        Tensor::new(dtype, shape, data.into()).unwrap().into()
    }

    #[test]
    fn undoes_a_batch_b013() {
        assert_eq!(ints(&unbatch(&batch(&numbers(20), 6)).unwrap(), "value"), (0..20).collect::<Vec<_>>());
        let mut rng = Rng::new(4, 0);
        let input: Vec<_> = (0..23_u64)
            .map(|at| {
                let draw = rng.u64();
                let tag = Value::from(draw.to_string());
                let meta = Value::structure(vec![("id".into(), (draw as u16).into()), ("tag".into(), tag)]);
                let mixed = if draw.is_multiple_of(3) { Value::NULL } else { (draw as i32).into() };
                let list = Value::list(vec![(draw as i8).into(); draw as usize % 3]);
                let bytes = draw.to_le_bytes().to_vec();
                let fields = [
                    ("int", (draw as i8).into()),
                    ("float", (draw as f32).into()),
                    ("truth", draw.is_multiple_of(2).into()),
                    ("tensor", tensor(DType::U16, &[2, 2], bytes)),
                    ("meta", meta),
                    ("mixed", mixed),
                    ("list", list),
                    ("text", "x".into()),
                    ("none", Value::structure(vec![])),
                ];
                sample(at, &fields)
            })
            .collect();
        for size in [1, 4, 23] {
            let batches = batch(&input, size);
            let out = unbatch(&batches).unwrap();
            assert_eq!(out.len(), input.len());
            for (at, (found, expected)) in out.iter().zip(&input).enumerate() {
                assert!(found.fields().eq(expected.fields()), "{found:?} for {expected:?}");
                if at % size == 0 {
                    assert_eq!((found.uid(), found.key()), (expected.uid(), expected.key()));
                }
            }
            let mut uids: Vec<_> = out.iter().map(Sample::uid).collect();
            uids.sort_unstable();
            uids.dedup();
            assert_eq!(uids.len(), input.len());
        }
    }

    #[test]
    fn lists_come_apart_and_every_place_can_be_saved_b041() {
        let host = small_host();
        let lists: [&[i64]; 7] = [&[0, 1, 2, 3], &[], &[4, 5], &[6, 7, 8, 9], &[], &[], &[10, 11, 12]];
        let batches = lists.map(|list| {
            let list = Value::list(list.iter().map(|&value| value.into()).collect());
            sample(9, &[("value", list)])
        });
        assert_eq!(ints(&unbatch(&batches).unwrap(), "value"), (0..13).collect::<Vec<_>>());
        let nested = batch(&batch(&numbers(12), 3), 2);
        let nested = nested.iter().flat_map(|batch| [(2, batch), (-1, batch)]);
        for (level, batch) in batches.iter().map(|batch| (1, batch)).chain(nested) {
            let open = || pipe(level).open(batch.clone(), &host.context()).unwrap();
            let mut rows = open();
            loop {
                let mut rest = open();
                rest.restore(&rows.state().unwrap(), &host.context()).unwrap();
                assert_eq!(rest.state().unwrap(), rows.state().unwrap());
                let next = rows.next(&host.context()).unwrap();
                assert_eq!(rest.next(&host.context()).unwrap(), next);
                if next.is_none() {
                    break;
                }
            }
            let late = |next: &[usize]| open().restore(&State::json(2, &next).unwrap(), &host.context());
            assert!(late(&[rows.open[0].count + 1]).is_err());
            assert!(late(&[0, 0]).is_err(), "within a row that is none");
        }
    }

    #[test]
    fn undoes_batches_of_batches() {
        let input: Vec<_> = (0..24_i64)
            .map(|at| {
                let fields = [("n", at.into()), ("x", tensor(DType::U8, &[2], vec![at as u8, 7]))];
                sample(at as u64, &[&fields[..], &[("text", at.to_string().into())]].concat())
            })
            .collect();
        let twice = batch(&batch(&input, 3), 2);
        let one = unbatch(&unbatch(&twice).unwrap()).unwrap();
        assert_eq!(levels(&twice, 2).unwrap(), one, "as two of them do");
        assert_eq!(levels(&twice, -1).unwrap(), one, "a number or a text is no batch");
        let fields = |samples: &[Sample]| -> Vec<Vec<Value>> {
            samples.iter().map(|sample| sample.values().to_vec()).collect()
        };
        assert_eq!(fields(&one), fields(&input), "an exact inverse");
        assert_eq!((one[5].uid(), &one[5].key().to_string()[..]), (one[5].uid(), "test#0#1#2"));
        let mut uids: Vec<_> = one.iter().map(Sample::uid).collect();
        uids.sort_unstable();
        uids.dedup();
        assert_eq!(uids.len(), input.len());
        let thrice = batch(&twice, 9);
        assert_eq!(fields(&levels(&thrice, -1).unwrap()), fields(&input));
        assert_eq!(levels(&input[..1], -1).unwrap_err().get("field"), Some("n"), "what is no batch");
        assert_eq!(levels(&twice, 3).unwrap_err().get("field"), Some("n"), "deeper than there are batches");
    }

    #[test]
    fn rows_of_tensors_share_their_memory() {
        let data = Buffer::from((0..24).collect::<Vec<u8>>());
        let out = unbatch(&[sample(3, &[("x", tensor(DType::U8, &[3, 2, 4], data.clone()))])]).unwrap();
        let second = out[1].get("x").and_then(Value::as_tensor).unwrap();
        assert_eq!((second.shape(), second.data().as_ptr()), (&[2, 4][..], data[8..].as_ptr()));
        assert_eq!(out[1].key().to_string(), "test#3#1");
        let empty = unbatch(&[sample(3, &[("x", tensor(DType::U8, &[0, 2], vec![]))])]).unwrap();
        assert!(empty.is_empty());
    }

    #[test]
    fn what_has_no_rows_or_others_is_refused_by_name() {
        let three = || tensor(DType::U8, &[3], vec![1, 2, 3]);
        let cases: [(Value, &str); 5] = [
            ("x".into(), "no batch: found text, expected a tensor, a list or a struct of them"),
            (7_i64.into(), "no batch: found a single number, expected a tensor, a list or a struct of them"),
            (
                tensor(DType::U8, &[], vec![1]),
                "no batch: found a tensor without axes, expected a tensor, a list or a struct of them",
            ),
            (tensor(DType::U8, &[2], vec![1, 2]), "no batch: found 2 rows, expected 3 as in `a`"),
            (
                Value::structure(vec![("p".into(), three()), ("q".into(), Value::list(vec![]))]),
                "no batch: found 0 rows, expected 3 as before it",
            ),
        ];
        for (value, message) in cases {
            let error = unbatch(&[sample(3, &[("a", three()), ("b", value)])]).unwrap_err();
            assert_eq!((error.message(), error.get("field")), (message, Some("b")));
        }
        assert!(unbatch(&[sample(3, &[])]).is_err());
        assert!(UnbatchOptions::parse(r#"{"size": 2}"#).is_err());
        for level in [0, -2, 65] {
            let made = UnbatchOptions::parse(&format!(r#"{{"level": {level}}}"#)).and_then(Unbatch::new);
            assert_eq!(made.unwrap_err().get("option"), Some("level"));
        }
    }
}
