//! `batch`: consecutive samples stacked into one.
//!
//! ```toml
//! [batch]
//! page = "batches"
//! examples = ['forebay head -n 1 "range 100 | batch 4 drop_last=true"']
//! cases = [
//!     "range N | batch 7",
//!     "range N | batch 7 drop_last=true uids=of",
//! ]
//! ```

use forebay_core::{
    Context, DataPipe, Drops, Error, Noun, PipeAudit, PipeInfo, PipeLayout, Result, Str, Value, options,
};

use crate::plumbing::{
    rows::{Cut, Join, stream_of_cut},
    stack::{Column, Place},
};

options! {
    /// Options of `batch`.
    pub struct BatchOptions {
        /// Samples in one batch.
        size: usize = required, in 1..=1_000_000_000;
        /// Leave out the last batch if it is shorter.
        drop_last: bool = false;
        /// A new field for the uids of the samples in a batch, in their order; null for none.
        uids: Option<String> = null;
    }
}

/// Stacks `size` consecutive samples into one, whose key and uid are those of the first.
///
/// Numbers become a tensor with one more axis, structs a struct of stacked values, and everything
/// else a list. Tensors that the host laid side by side are joined without a copy; others are copied
/// once.
#[derive(Debug)]
pub struct Batch {
    cut: Cut<Stack>,
}

/// Stacks values of one type and shape.
#[derive(Debug)]
pub(crate) struct Stack {
    /// Whether an error names the pipes that batch what differs in shape.
    pub(crate) hints: bool,
}

impl Join for Stack {
    type Column = Column;

    fn column(&self, _: &str) -> Column {
        Column::default()
    }

    #[inline]
    fn push(&self, column: &mut Column, _: &str, value: &mut Value, row: usize, place: &Place) -> Result<()> {
        column.push(value, row, place).map_err(|error| match column.wants(value) {
            Some(hint) if self.hints => Error::new(error.kind(), format!("{}\n{hint}", error.message())),
            _ => error,
        })
    }

    fn truncate(&self, column: &mut Column, rows: usize) {
        column.truncate(rows);
    }

    fn finish(
        &self,
        column: Column,
        _: &Str,
        rows: usize,
        _: &mut Vec<(String, Value)>,
        _: &Context,
    ) -> Result<Value> {
        column.finish(rows)
    }
}

impl DataPipe for Batch {
    const INFO: PipeInfo = PipeInfo {
        name: "batch",
        summary: "Consecutive samples stacked into one",
        also: &["batcher"],
        layout: PipeLayout { stacks: Some("size"), gives: Some(Noun::BATCH), ..PipeLayout::DEFAULT },
        audit: PipeAudit {
            uids_option: Some("uids"),
            drops: Drops::With(&["drop_last"]),
            ..PipeAudit::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
    type Options = BatchOptions;

    fn new(options: BatchOptions) -> Result<Self> {
        let BatchOptions { size, drop_last, uids } = options;
        Ok(Self { cut: Cut::new(Stack { hints: true }, size, drop_last, uids.as_deref()) })
    }
}

stream_of_cut!(Batch);

#[cfg(test)]
mod tests {
    use forebay_core::{
        Buffer, BufferMut, DType, ErrorKind, Options, Sample, Tensor, TensorExt, random::Rng,
    };

    use super::*;
    use crate::testing::{Drive, check, check_resume, ints, numbers, sample};

    fn batch(options: &str) -> impl Fn() -> Batch {
        move || Batch::new(BatchOptions::parse(options).unwrap()).unwrap()
    }

    fn tensor(shape: &[usize], bytes: impl Into<Buffer>) -> Value {
        Tensor::new(DType::U8, shape, bytes.into()).unwrap().into()
    }

    fn lengths(batches: &[Sample]) -> Vec<i64> {
        batches.iter().map(|batch| batch.get("value").unwrap().as_tensor().unwrap().shape()[0]).collect()
    }

    #[test]
    fn cuts_the_stream_b010_b011_b016() {
        let cases: [(&str, usize, &[i64]); 6] = [
            (r#"{"size": 6, "drop_last": true}"#, 20, &[6, 6, 6]),
            (r#"{"size": 6}"#, 20, &[6, 6, 6, 2]),
            (r#"{"size": 3}"#, 10, &[3, 3, 3, 1]),
            (r#"{"size": 1}"#, 3, &[1, 1, 1]),
            (r#"{"size": 9}"#, 3, &[3]),
            (r#"{"size": 9}"#, 0, &[]),
        ];
        for (options, count, expected) in cases {
            let out = check(batch(options), &numbers(count));
            assert_eq!(lengths(&out), expected, "{options}");
            assert_eq!(ints(&out, "value"), (0..expected.iter().sum::<i64>()).collect::<Vec<_>>());
            assert!(
                out.iter().all(|batch| batch.uid() as i64 == ints(std::slice::from_ref(batch), "value")[0])
            );
        }
        assert!(BatchOptions::parse(r#"{"size": 0}"#).is_err(), "B012");
    }

    #[test]
    fn batches_cross_a_repeat_b018_b019() {
        let repeat = || crate::Repeat::new(crate::RepeatOptions { count: Some(2) }).unwrap();
        let twice = check(repeat, &numbers(10));
        let out = check(batch(r#"{"size": 3}"#), &twice);
        assert_eq!(lengths(&out), [3, 3, 3, 3, 3, 3, 2]);
        assert_eq!(ints(&out[3..4], "value"), [9, 0, 1]);
        assert_eq!(check(batch(r#"{"size": 3, "drop_last": true}"#), &twice), out[..6]);
    }

    #[test]
    fn stacks_records_and_vectors_b014_b015() {
        let input: Vec<_> = (0..8_u8)
            .map(|at| {
                sample(at.into(), &[("step", i64::from(at).into()), ("x", tensor(&[2], vec![at, 100 + at]))])
            })
            .collect();
        let out = check(batch(r#"{"size": 4}"#), &input);
        assert_eq!(ints(&out, "step"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(out[1].get("x"), Some(&tensor(&[4, 2], vec![4, 104, 5, 105, 6, 106, 7, 107])));
        assert_eq!(out[1].key().to_string(), "test#4");
    }

    #[test]
    fn the_uids_of_its_samples_go_into_a_field_that_is_named() {
        let uids = |batch: &Sample| {
            let words = batch.get("ids").unwrap().as_tensor().unwrap().data().to_vec();
            words.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect::<Vec<_>>()
        };
        let out = check(batch(r#"{"size": 3, "uids": "ids"}"#), &numbers(7));
        assert_eq!(out.iter().map(uids).collect::<Vec<_>>(), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
        check_resume(batch(r#"{"size": 3, "uids": "ids"}"#), &numbers(7));
        let input = numbers(4);
        let mut drive = Drive::new(batch(r#"{"size": 3, "uids": "value"}"#)(), &input, 2);
        let error = drive.run(9, 100).unwrap_err();
        assert_eq!(error.message(), "the field for the uids is there already");
        assert_eq!(error.get("field"), Some("value"));
    }

    /// A plain definition: what one field of some samples becomes.
    fn stacked(values: &[Value]) -> Value {
        let bits = |value: &Value, size: usize| value.bits().to_le_bytes()[..size].to_vec();
        match values[0].dtype().filter(|dtype| values.iter().all(|value| value.dtype() == Some(*dtype))) {
            Some(dtype) if values[0].as_tensor().is_none() => {
                let bytes: Vec<u8> = values.iter().flat_map(|value| bits(value, dtype.size())).collect();
                Tensor::new(dtype, &[values.len()], bytes.into()).unwrap().into()
            }
            Some(_) => {
                let bytes: Vec<u8> =
                    values.iter().flat_map(|value| value.as_tensor().unwrap().data().to_vec()).collect();
                tensor(&[values.len(), bytes.len() / values.len()], bytes)
            }
            None => Value::list(values.to_vec()),
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn equals_the_definition_for_all_kinds_of_values() {
        let mut rng = Rng::new(9, 0);
        let names = ["f64", "bool", "u16", "text", "mixed", "x"];
        let input: Vec<_> = (0..57)
            .map(|at| {
                let draw = rng.u64();
                let mixed = if draw.is_multiple_of(5) { Value::NULL } else { (draw as i32).into() };
                let bytes = draw.to_le_bytes().to_vec();
                let text: Value = draw.to_string().into();
                let values = [
                    (draw as f64).into(),
                    draw.is_multiple_of(2).into(),
                    (draw as u16).into(),
                    text,
                    mixed,
                    tensor(&[8], bytes),
                ];
                let mut fields: Vec<_> = names.into_iter().zip(values).collect();
                fields.rotate_left(at as usize % 2 * 3); // The order of the fields differs among samples.
                sample(at, &fields)
            })
            .collect();
        let out = check(batch(r#"{"size": 10}"#), &input);
        for (batch, part) in out.iter().zip(input.chunks(10)) {
            for name in names {
                let values: Vec<_> = part.iter().map(|sample| sample.get(name).unwrap().clone()).collect();
                assert_eq!(batch.get(name), Some(&stacked(&values)), "{name}");
            }
        }
    }

    #[test]
    fn tensors_side_by_side_are_joined_without_a_copy() {
        let mut memory = BufferMut::zeroed(40);
        memory.copy_from_slice(&(0..40).collect::<Vec<_>>());
        let memory = memory.freeze();
        let at = |start: usize| {
            sample(start as u64, &[("value", tensor(&[2, 5], memory.slice(start..start + 10)))])
        };
        let whole = check(batch(r#"{"size": 4}"#), &[at(0), at(10), at(20), at(30)]);
        let data = whole[0].get("value").unwrap().as_tensor().unwrap();
        assert_eq!((data.shape(), data.data().as_ptr()), (&[4, 2, 5][..], memory.as_ptr()));
        let gap = check(batch(r#"{"size": 4}"#), &[at(0), at(10), at(30)]);
        let data = gap[0].get("value").unwrap().as_tensor().unwrap();
        assert_ne!(data.data().as_ptr(), memory.as_ptr());
        assert_eq!(data.data()[..], [&memory[..20], &memory[30..]].concat());
    }

    #[test]
    fn structs_stack_field_by_field() {
        let row = |at: i64, tag: Value| {
            let meta = Value::structure(vec![("id".into(), at.into()), ("tag".into(), tag)]);
            sample(at as u64, &[("meta", meta)])
        };
        let out = check(batch(r#"{"size": 9}"#), &[row(5, "a".into()), row(6, "b".into())]);
        let ids = Tensor::new(DType::I64, &[2], [5_i64, 6].map(i64::to_ne_bytes).concat().into()).unwrap();
        let expected = |tags| {
            Value::structure(vec![("id".into(), ids.clone().into()), ("tag".into(), Value::list(tags))])
        };
        assert_eq!(out[0].get("meta"), Some(&expected(vec!["a".into(), "b".into()])));
        let out = check(batch(r#"{"size": 9}"#), &[row(5, 1_i64.into()), row(6, 1.5.into())]);
        assert_eq!(
            out[0].get("meta"),
            Some(&expected(vec![1_i64.into(), 1.5.into()])),
            "numbers within structs may differ"
        );
        let other = Value::structure(vec![("id".into(), 6_i64.into())]);
        let (one, two) = (row(5, 1_i64.into()), sample(6, &[("meta", other.clone())]));
        let out = check(batch(r#"{"size": 9}"#), &[one.clone(), two]);
        assert_eq!(out[0].get("meta"), Some(&Value::list(vec![one.get("meta").unwrap().clone(), other])));
    }

    #[test]
    fn what_does_not_stack_is_an_error_that_names_both_b020() {
        let x = |at, value: Value| sample(at, &[("x", value), ("y", 1_i64.into())]);
        let wide = || x(3, tensor(&[1, 2], vec![0; 2]));
        let cases = [
            (
                x(4, tensor(&[2, 1], vec![0; 2])),
                "cannot stack: found uint8 [2, 1] after uint8 [1, 2]\n`padded_batch` pads what differs in shape",
                Some("x"),
            ),
            (
                x(4, tensor(&[3, 2], vec![0; 6])),
                "cannot stack: found uint8 [3, 2] after uint8 [1, 2]\n`ragged_batch` puts what differs in length end to end, \
                 `padded_batch` pads it",
                Some("x"),
            ),
            (x(4, tensor(&[2], vec![0; 2])), "cannot stack: found uint8 [2] after uint8 [1, 2]", Some("x")),
            (x(4, 7_i64.into()), "cannot stack: found int64 after uint8 [1, 2]", Some("x")),
            (
                sample(4, &[("x", wide().get("x").unwrap().clone()), ("z", 1_i64.into())]),
                "cannot stack: a sample lacks `y`, which was there before, and has `z` beside",
                None,
            ),
        ];
        for (odd, message, field) in cases {
            let input = [wide(), wide(), odd, wide()];
            let mut drive = Drive::new(batch(r#"{"size": 3}"#)(), &input, 4);
            let error = drive.run(64, 100).unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, message));
            let places = ["field", "sample", "first of batch"].map(|name| error.get(name));
            assert_eq!(places, [field, Some("test#4"), Some("test#3")]);
            assert!(drive.out().is_empty(), "no partial batch");
            drive.run(64, 100).unwrap();
            assert_eq!(drive.out().len(), 1, "goes on without the sample that does not fit");
            assert_eq!(drive.out()[0].get("x"), Some(&tensor(&[3, 1, 2], vec![0; 6])));
            assert_eq!(ints(drive.out(), "y"), [1, 1, 1]);
        }
    }

    #[test]
    fn a_batch_beyond_the_limit_is_refused_before_memory_is_taken() {
        let mut drive = Drive::new(batch(r#"{"size": 1000000000}"#)(), &[], 1);
        assert!(drive.run(1, 1).is_ok());
        let input = numbers(1);
        let mut drive = Drive::new(batch(r#"{"size": 1000000000}"#)(), &input, 1);
        assert_eq!(drive.run(1, 1).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(drive.state().unwrap().again[0], 0, "nothing waits for what began no batch");
    }

    #[test]
    fn goes_on_from_every_moment() {
        for options in
            [r#"{"size": 3}"#, r#"{"size": 3, "drop_last": true}"#, r#"{"size": 1}"#, r#"{"size": 9}"#]
        {
            for count in [0, 1, 6, 8] {
                check_resume(batch(options), &numbers(count));
            }
        }
    }

    #[test]
    fn samples_that_did_not_fit_come_again_with_their_batch() {
        let mut input = numbers(9);
        for at in [0, 2, 4, 5, 8] {
            input[at] = sample(at as u64, &[("value", "text".into()), ("more", 1_i64.into())]);
        }
        check_resume(batch(r#"{"size": 2}"#), &input);
        let mut drive = Drive::new(batch(r#"{"size": 3}"#)(), &input[1..], 1);
        while drive.taken(0) < 4 {
            let _ = drive.step(1);
        }
        assert_eq!(drive.state().unwrap().again[0], 4, "the two that fit and the two between and after them");
    }
}
