//! `unbatch`: a batch back into its samples.

use forebay_core::{
    Context, DataPipe, Error, FlatMap, Items, Key, NoOptions, PipeInfo, Result, Sample, State, StateExt, Str,
    Tensor, TensorExt, Value, View, random::mix,
};

use crate::stack::read_scalar;

/// Keeps the uids of rows apart from those that other pipes make of a uid and a number.
const ROWS: u64 = 0x726f_7773;

/// Splits each sample along the first axis of its fields: what `batch` stacked, comes apart again.
///
/// A row of a tensor shares the tensor's memory. The first row has the batch's uid and key, as `batch`
/// gave it those of its first sample; the others get their own.
#[derive(Debug)]
pub struct Unbatch;

impl DataPipe for Unbatch {
    const INFO: PipeInfo =
        PipeInfo { name: "unbatch", summary: "A batch back into its samples", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl FlatMap for Unbatch {
    type Items = Rows;

    fn open(&self, batch: Sample, _: &Context) -> Result<Rows> {
        let mut first: Option<(&Str, usize)> = None;
        for (name, value) in batch.fields() {
            let Some(found) = rows(value).map_err(|error| error.context("field", name))? else { continue };
            match first {
                Some((other, expected)) if found != expected => {
                    let message =
                        format!("cannot unbatch: found {found} rows, expected {expected} as in `{other}`");
                    return Err(Error::invalid(message).context("field", name));
                }
                Some(_) => {}
                None => first = Some((name, found)),
            }
        }
        let Some((_, count)) = first else {
            return Err(Error::invalid("cannot unbatch: no field says how many rows there are"));
        };
        Ok(Rows { origin: batch.key().to_string().into(), batch, count, next: 0 })
    }
}

/// The samples of one batch.
#[derive(Debug)]
pub struct Rows {
    batch: Sample,
    /// The batch's key, as the rows name it.
    origin: Str,
    count: usize,
    next: usize,
}

impl Items for Rows {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let at = self.next;
        if at == self.count {
            return Ok(None);
        }
        self.next += 1;
        let values = self.batch.values().iter().map(|value| row(value, at));
        let (uid, key) = match at {
            0 => (self.batch.uid(), self.batch.key().clone()),
            _ => {
                let key = Key { origin: self.origin.clone(), index: at as u64, ..Key::default() };
                (mix(&[ROWS, self.batch.uid(), at as u64]), key)
            }
        };
        Ok(Some(Sample::with_schema(uid, key, self.batch.schema().clone(), values.collect::<Result<_>>()?)))
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let next: usize = state.parse(1)?;
        if next > self.count {
            let count = self.count;
            return Err(Error::invalid(format!("found a position after row {next} of a batch of {count}")));
        }
        self.next = next;
        Ok(())
    }
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
                    let message =
                        format!("cannot unbatch: found {found} rows, expected {expected} as before it");
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
    Err(Error::invalid(format!(
        "cannot unbatch: found {found}, expected a tensor, a list or a struct of them"
    )))
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

fn tensor_row(tensor: &Tensor, at: usize) -> Result<Value> {
    let dtype = tensor.dtype();
    let shape: Vec<_> = tensor.shape().iter().skip(1).map(|&axis| axis as usize).collect();
    let number = !matches!(Value::scalar(dtype, 0).view(), View::Unknown(_));
    if shape.is_empty() && number {
        return Ok(Value::scalar(dtype, read_scalar(tensor.data(), at, dtype)));
    }
    let each = shape.iter().product::<usize>() * dtype.size();
    let data = tensor.data().get(at * each..(at + 1) * each);
    let data = data.ok_or_else(|| Error::bug("a tensor with fewer bytes than its shape says"))?;
    Ok(Tensor::new(dtype, &shape, data)?.into())
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, DType, Options, random::Rng};

    use super::*;
    use crate::{
        batch::{Batch, BatchOptions},
        testing::{check, ints, numbers, sample, small_host},
    };

    fn unbatch(batches: &[Sample]) -> Result<Vec<Sample>> {
        let host = small_host();
        let mut out = Vec::new();
        for batch in batches {
            let mut rows = Unbatch.open(batch.clone(), &host.context())?;
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
        for batch in &batches {
            let open = || Unbatch.open(batch.clone(), &host.context()).unwrap();
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
            let late = State::json(1, &(rows.count + 1)).unwrap();
            assert!(open().restore(&late, &host.context()).is_err());
        }
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
            ("x".into(), "cannot unbatch: found text, expected a tensor, a list or a struct of them"),
            (
                7_i64.into(),
                "cannot unbatch: found a single number, expected a tensor, a list or a struct of them",
            ),
            (
                tensor(DType::U8, &[], vec![1]),
                "cannot unbatch: found a tensor without axes, expected a tensor, a list or a struct of them",
            ),
            (tensor(DType::U8, &[2], vec![1, 2]), "cannot unbatch: found 2 rows, expected 3 as in `a`"),
            (
                Value::structure(vec![("p".into(), three()), ("q".into(), Value::list(vec![]))]),
                "cannot unbatch: found 0 rows, expected 3 as before it",
            ),
        ];
        for (value, message) in cases {
            let error = unbatch(&[sample(3, &[("a", three()), ("b", value)])]).unwrap_err();
            assert_eq!((error.message(), error.get("field")), (message, Some("b")));
        }
        assert!(unbatch(&[sample(3, &[])]).is_err());
        assert!(NoOptions::parse(r#"{"size": 2}"#).is_err());
    }
}
