//! `ragged_batch`: consecutive samples stacked into one, with fields that differ in length end to end.
//!
//! ```toml
//! [ragged_batch]
//! page = "batches"
//! examples = ['''forebay head -n 1 "range 5 | map 'ids = [1, 2, 3].filter(x, x <= value)' | skip 1 | ragged_batch 4 fields=ids"''']
//! cases = ["range N | map 'list=[1, 2]' | ragged_batch 4 fields=list"]
//! ```

use forebay_core::{
    Buffer, Context, DType, DataPipe, Drops, Error, Noun, OneOrMany, PipeAudit, PipeInfo, PipeLayout, Result,
    Schema, Str, Tensor, TensorExt, Value, View, options,
};

use crate::{
    plumbing::{
        parts::{Cells, Dims, Parts, shown},
        rows::{Cut, Join, stream_of_cut},
        stack::{Place, check_limit, join_or_copy, write_scalar},
    },
    select::place,
};

options! {
    /// Options of `ragged_batch`.
    pub struct RaggedBatchOptions {
        /// Samples in one batch.
        size: usize = required, in 1..=1_000_000_000;
        /// The fields that become ragged in every batch; null for lists of numbers and for tensors whose lengths
        /// differ.
        fields: Option<OneOrMany<String>> = null;
        /// Leave out the last batch if it is shorter.
        drop_last: bool = false;
        /// A new field for the uids of the samples in a batch, in their order; null for none.
        uids: Option<String> = null;
    }
}

/// Stacks `size` consecutive samples into one, as `batch` does, where the first axes of tensors, and lists of numbers, may differ in length.
///
/// Such a field becomes a struct of `values`, all rows one after the other, and `offsets`, an int64 `[n + 1]` that says where each
/// sample's begin and the last one's end. The values are written once; those that lie side by side are joined without a copy. State: none
/// of its own; the samples of the unfinished batch come again.
#[derive(Debug)]
pub struct RaggedBatch {
    cut: Cut<Ragged>,
}

/// Puts values of one field end to end.
#[derive(Debug)]
struct Ragged {
    fields: Option<Vec<String>>,
    /// `values` and `offsets`.
    names: Schema,
}

impl DataPipe for RaggedBatch {
    const INFO: PipeInfo = PipeInfo {
        name: "ragged_batch",
        summary: "Consecutive samples stacked into one, end to end where they differ in length",
        also: &["dense_to_ragged_batch"],
        layout: PipeLayout { stacks: Some("size"), gives: Some(Noun::BATCH), ..PipeLayout::DEFAULT },
        audit: PipeAudit {
            uids_option: Some("uids"),
            drops: Drops::With(&["drop_last"]),
            ..PipeAudit::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
    type Options = RaggedBatchOptions;

    fn new(options: RaggedBatchOptions) -> Result<Self> {
        let RaggedBatchOptions { size, fields, drop_last, uids } = options;
        let fields = fields.map(|fields| fields.0);
        let ragged = Ragged { fields, names: Schema::new(["values", "offsets"]) };
        Ok(Self { cut: Cut::new(ragged, size, drop_last, uids.as_deref()) })
    }
}

stream_of_cut!(RaggedBatch);

impl Join for Ragged {
    type Column = Cells;

    fn begin(&self, schema: &Schema) -> Result<()> {
        self.fields.iter().flatten().try_for_each(|name| place(schema, name).map(drop))
    }

    fn column(&self, name: &str) -> Cells {
        match &self.fields {
            None => Cells::parts(false),
            Some(fields) if fields.iter().any(|field| field == name) => Cells::parts(true),
            Some(_) => Cells::Plain(Default::default()),
        }
    }

    #[inline]
    fn push(&self, column: &mut Cells, _: &str, value: &mut Value, row: usize, at: &Place) -> Result<()> {
        column.push(value, row, at, check)
    }

    fn truncate(&self, column: &mut Cells, rows: usize) {
        column.truncate(rows);
    }

    fn finish(
        &self,
        column: Cells,
        _: &Str,
        rows: usize,
        _: &mut Vec<(String, Value)>,
        cx: &Context,
    ) -> Result<Value> {
        let parts = match column {
            Cells::Plain(column) => return column.finish(rows),
            Cells::Parts(parts) => parts,
        };
        let (dtype, longest) = (parts.dtype(), parts.longest());
        let data = end_to_end(&parts, dtype.size(), cx)?;
        let lengths = parts.values().iter().map(|value| parts.dims(value)[0]);
        let tensors = parts.values().iter().all(|value| matches!(value.view(), View::Tensor(_)));
        if self.fields.is_none() && tensors && lengths.clone().all(|length| length == longest[0]) {
            let shape: Vec<_> = [rows].into_iter().chain(longest.iter().copied()).collect();
            return Ok(Tensor::new(dtype, &shape, data)?.into());
        }
        let mut offsets = Vec::with_capacity((rows + 1) * 8);
        let mut end = 0_usize;
        offsets.extend((end as i64).to_ne_bytes());
        for length in lengths {
            end += length;
            offsets.extend((end as i64).to_ne_bytes());
        }
        let shape: Vec<_> = [end].into_iter().chain(longest.iter().skip(1).copied()).collect();
        let values = Tensor::new(dtype, &shape, data)?.into();
        let offsets = Tensor::new(DType::I64, &[rows + 1], offsets.into())?.into();
        Ok(Value::with_schema(self.names.clone(), vec![values, offsets]))
    }
}

/// Only the first axis may differ.
fn check(parts: &Parts, dtype: DType, dims: &Dims) -> Result<()> {
    let longest = parts.longest();
    if parts.is_known() && longest.iter().skip(1).ne(dims.iter().skip(1)) {
        let (found, after) = (shown(dtype, dims), shown(dtype, &longest));
        let message =
            format!("cannot stack: found {found} after {after}, expected only the first axis to differ");
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// All values one after the other.
fn end_to_end(parts: &Parts, width: usize, cx: &Context) -> Result<Buffer> {
    let whole: Option<Vec<_>> =
        parts.values().iter().map(|value| value.as_tensor().map(Tensor::data)).collect();
    if let Some(whole) = whole {
        return join_or_copy(&whole, cx);
    }
    let each = |value: &Value| parts.dims(value).iter().product::<usize>() * width;
    let len: usize = parts.values().iter().map(each).sum();
    check_limit(len, cx)?;
    let (mut bytes, mut at) = (cx.alloc(len)?, 0);
    for value in parts.values() {
        let place = &mut bytes[at..at + each(value)];
        at += place.len();
        match value.view() {
            View::Tensor(tensor) => place.copy_from_slice(tensor.data()),
            View::List(items) => {
                items.iter().enumerate().for_each(|(at, item)| write_scalar(place, at, width, item.bits()));
            }
            _ => {}
        }
    }
    Ok(bytes.freeze())
}

#[cfg(test)]
mod tests {
    use forebay_core::{BufferMut, ErrorKind, Options, Sample, random::Rng};

    use super::*;
    use crate::testing::{Drive, check, check_resume, ints, sample};

    fn ragged(options: &str) -> impl Fn() -> RaggedBatch {
        move || RaggedBatch::new(RaggedBatchOptions::parse(options).unwrap()).unwrap()
    }

    fn int64(shape: &[usize], values: &[i64]) -> Value {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Tensor::new(DType::I64, shape, bytes.into()).unwrap().into()
    }

    fn list(values: &[i64]) -> Value {
        Value::list(values.iter().map(|&value| value.into()).collect())
    }

    fn pair(values: Value, offsets: &[i64]) -> Value {
        let offsets = int64(&[offsets.len()], offsets);
        Value::structure(vec![("values".into(), values), ("offsets".into(), offsets)])
    }

    fn rows(values: &[Value]) -> Vec<Sample> {
        let row = |(at, value): (i64, &Value)| sample(at as u64, &[("x", value.clone()), ("n", at.into())]);
        (0..).zip(values).map(row).collect()
    }

    #[test]
    fn puts_values_end_to_end() {
        let mut rng = Rng::new(4, 0);
        let all: Vec<Vec<i64>> =
            (0..23).map(|_| (0..rng.below(5)).map(|_| rng.below(99) as i64).collect()).collect();
        for size in [1, 4, 30] {
            let row = |(at, row): (u64, &Vec<i64>)| {
                let doubled: Vec<i64> = row.iter().flat_map(|&value| [value, -value]).collect();
                sample(
                    at,
                    &[("a", list(row)), ("b", int64(&[row.len(), 2], &doubled)), ("n", (at as i64).into())],
                )
            };
            let input: Vec<_> = (0..).zip(&all).map(row).collect();
            let options = format!(r#"{{"size": {size}, "fields": ["a", "b"], "uids": "ids"}}"#);
            let out = check(ragged(&options), &input);
            for (batch, part) in out.iter().zip(all.chunks(size)) {
                let mut offsets = vec![0];
                part.iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len() as i64));
                let flat = part.concat();
                assert_eq!(batch.get("a"), Some(&pair(int64(&[flat.len()], &flat), &offsets)));
                let doubled: Vec<i64> = flat.iter().flat_map(|&value| [value, -value]).collect();
                assert_eq!(batch.get("b"), Some(&pair(int64(&[flat.len(), 2], &doubled), &offsets)));
            }
            assert_eq!(ints(&out, "n"), (0..23).collect::<Vec<_>>());
            assert_eq!(ints(&out, "ids"), (0..23).collect::<Vec<_>>());
            check_resume(ragged(&options), &input[..9]);
        }
        assert!(check(ragged(r#"{"size": 4}"#), &[]).is_empty());
    }

    #[test]
    fn unless_fields_are_named_tensors_of_one_shape_stack() {
        let input = rows(&[int64(&[1], &[1]), int64(&[1], &[2]), int64(&[2], &[3, 4]), int64(&[0], &[])]);
        let out = check(ragged(r#"{"size": 2}"#), &input);
        assert_eq!(out[0].get("x"), Some(&int64(&[2, 1], &[1, 2])));
        assert_eq!(out[1].get("x"), Some(&pair(int64(&[2], &[3, 4]), &[0, 2, 2])));
        let out = check(ragged(r#"{"size": 2, "fields": ["x"]}"#), &input);
        assert_eq!(out[0].get("x"), Some(&pair(int64(&[2], &[1, 2]), &[0, 1, 2])));
        let out = check(ragged(r#"{"size": 2}"#), &rows(&[list(&[1]), list(&[2])]));
        assert_eq!(out[0].get("x"), Some(&pair(int64(&[2], &[1, 2]), &[0, 1, 2])), "lists always are");
    }

    #[test]
    fn values_side_by_side_are_not_copied() {
        let mut memory = BufferMut::zeroed(6);
        let parts = [1, 3, 2].map(|len| memory.split_off_front(len).freeze());
        let tensors = parts.clone().map(|part| Tensor::new(DType::U8, &[part.len()], part).unwrap().into());
        let out = check(ragged(r#"{"size": 3}"#), &rows(&tensors));
        let Some(View::Struct(x)) = out[0].get("x").map(Value::view) else { panic!("a struct") };
        assert_eq!(x.get("values").and_then(Value::as_tensor).unwrap().data().as_ptr(), parts[0].as_ptr());
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_names_it() {
        let cases = [
            (
                int64(&[1, 3], &[0; 3]),
                "cannot stack: found int64 [1, 3] after int64 [2, 2], expected only the first axis to differ",
            ),
            (int64(&[1], &[0]), "cannot stack: found int64 [1] after int64 [2, 2]"),
            ("x".into(), "found another value, expected a tensor with axes or a list of numbers"),
        ];
        for (odd, message) in cases {
            let input = rows(&[int64(&[2, 2], &[1, 2, 3, 4]), odd, int64(&[1, 2], &[5, 6])]);
            let options = r#"{"size": 2, "fields": ["x"]}"#;
            let mut drive = Drive::new(ragged(options)(), &input, 3);
            let error = drive.run(9, 9).unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, message));
            assert_eq!([error.get("field"), error.get("sample")], [Some("x"), Some("test#1")]);
            drive.run(9, 9).unwrap();
            let expected = pair(int64(&[3, 2], &[1, 2, 3, 4, 5, 6]), &[0, 2, 3]);
            assert_eq!(drive.out()[0].get("x"), Some(&expected), "goes on without it");
            check_resume(ragged(options), &input);
        }
        assert_eq!(RaggedBatchOptions::parse(r#"{"size": 0}"#).unwrap_err().get("option"), Some("size"));
        let input = rows(&[list(&[1])]);
        let error = Drive::new(ragged(r#"{"size": 1, "fields": ["y"]}"#)(), &input, 1).run(9, 9).unwrap_err();
        assert_eq!(error.get("field"), Some("y"));
    }
}
