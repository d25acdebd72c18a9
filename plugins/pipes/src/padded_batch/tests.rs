//! Tests of `padded_batch` against what it is defined to give.

use forebay_core::{BufferMut, DType, ErrorKind, Options, Sample, Tensor, TensorExt, Value, random::Rng};

use super::*;
use crate::testing::{Drive, Setup, check, check_resume, ints, numbers, sample, small_host};

fn padded(options: &str) -> impl Fn() -> PaddedBatch {
    move || PaddedBatch::new(PaddedBatchOptions::parse(options).unwrap()).unwrap()
}

fn list(values: &[i64]) -> Value {
    Value::list(values.iter().map(|&value| value.into()).collect())
}

fn int64(shape: &[usize], values: &[i64]) -> Value {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    Tensor::new(DType::I64, shape, bytes.into()).unwrap().into()
}

fn uint8(shape: &[usize], values: &[u8]) -> Value {
    Tensor::new(DType::U8, shape, values.to_vec().into()).unwrap().into()
}

fn truth(shape: &[usize], values: &[u8]) -> Value {
    Tensor::new(DType::BOOL, shape, values.to_vec().into()).unwrap().into()
}

fn rows(values: &[Value]) -> Vec<Sample> {
    (0..)
        .zip(values)
        .map(|(at, value)| sample(at, &[("x", value.clone()), ("n", (at as i64).into())]))
        .collect()
}

#[test]
fn pads_to_the_longest_in_each_batch() {
    let input = rows(&[list(&[1]), list(&[2, 3, 4]), list(&[]), list(&[5, 6]), list(&[7])]);
    let out = check(padded(r#"{"size": 2}"#), &input);
    assert_eq!(out[0].get("x"), Some(&int64(&[2, 3], &[1, 0, 0, 2, 3, 4])));
    assert_eq!(out[1].get("x"), Some(&int64(&[2, 2], &[0, 0, 5, 6])));
    assert_eq!(out[2].get("x"), Some(&int64(&[1, 1], &[7])));
    assert_eq!(ints(&out, "n"), [0, 1, 2, 3, 4]);
    assert_eq!((out[1].uid(), out[1].key().to_string().as_str()), (2, "test#2"));
    assert_eq!(check(padded(r#"{"size": 2, "drop_last": true}"#), &input), out[..2]);
    assert!(check(padded(r#"{"size": 2}"#), &[]).is_empty());
}

#[test]
fn the_length_may_be_fixed_or_a_multiple() {
    let input = rows(&[list(&[1]), list(&[2, 3, 4])]);
    let x = |options: &str| check(padded(options), &input)[0].get("x").unwrap().clone();
    assert_eq!(x(r#"{"size": 2, "pad_to": 4}"#), int64(&[2, 4], &[1, 0, 0, 0, 2, 3, 4, 0]));
    assert_eq!(x(r#"{"size": 2, "multiple": 2}"#), int64(&[2, 4], &[1, 0, 0, 0, 2, 3, 4, 0]));
    assert_eq!(x(r#"{"size": 2, "multiple": 3}"#), int64(&[2, 3], &[1, 0, 0, 2, 3, 4]));
    assert_eq!(
        x(r#"{"size": 2, "pad_to": [0, 9], "values": "x=-100"}"#),
        int64(&[2, 3], &[1, -100, -100, 2, 3, 4])
    );
    let planes = rows(&[uint8(&[1, 2], &[1, 2]), uint8(&[2, 1], &[3, 4])]);
    let x = |options: &str| check(padded(options), &planes)[0].get("x").unwrap().clone();
    assert_eq!(x(r#"{"size": 2, "values": ["x=9"]}"#), uint8(&[2, 2, 2], &[1, 2, 9, 9, 3, 9, 4, 9]));
    assert_eq!(
        x(r#"{"size": 2, "pad_to": [2, 3]}"#),
        uint8(&[2, 2, 3], &[1, 2, 0, 0, 0, 0, 3, 0, 0, 4, 0, 0])
    );
    assert_eq!(
        x(r#"{"size": 2, "multiple": [1, 3]}"#),
        uint8(&[2, 2, 3], &[1, 2, 0, 0, 0, 0, 3, 0, 0, 4, 0, 0])
    );
}

#[test]
fn masks_and_lengths_say_what_is_real() {
    let input = rows(&[list(&[0]), list(&[2, 0]), list(&[])]);
    let out = check(padded(r#"{"size": 3, "mask": "_mask", "lengths": "x=len", "uids": "ids"}"#), &input);
    let names: Vec<_> = out[0].schema().names().iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["x", "n", "x_mask", "len", "ids"]);
    assert_eq!(out[0].get("x_mask"), Some(&truth(&[3, 2], &[1, 0, 1, 1, 0, 0])));
    assert_eq!(out[0].get("len"), Some(&int64(&[3], &[1, 2, 0])));
    let planes = rows(&[uint8(&[1, 2], &[1, 2]), uint8(&[2, 1], &[3, 4])]);
    let out = check(padded(r#"{"size": 2, "mask": ["_m", "x=real"]}"#), &planes);
    assert_eq!(out[0].get("real"), Some(&truth(&[2, 2, 2], &[1, 1, 0, 0, 1, 0, 1, 0])));
    let equal = rows(&[list(&[1]), list(&[2])]);
    let out = check(padded(r#"{"size": 2, "mask": "_m"}"#), &equal);
    assert_eq!(out[0].get("x_m"), Some(&truth(&[2, 1], &[1, 1])), "the fields do not depend on what comes");
    let clash = [sample(0, &[("x", list(&[1])), ("x_m", 1_i64.into())])];
    let error = Drive::new(padded(r#"{"size": 2, "mask": "_m"}"#)(), &clash, 2).run(9, 9).unwrap_err();
    assert_eq!((error.message(), error.get("field")), ("a field of this name is there already", Some("x_m")));
}

#[test]
fn what_cannot_be_padded_stacks_as_batch_does() {
    let mut rng = Rng::new(3, 0);
    let input: Vec<_> = (0..9)
        .map(|at| {
            let draw = rng.u64();
            let optional = if at % 3 == 1 { Value::NULL } else { list(&[1, 2]) };
            let record = Value::structure(vec![("a".into(), (draw as i32).into()), ("b".into(), "x".into())]);
            let fields = [
                ("int", (draw as u16).into()),
                ("text", draw.to_string().into()),
                ("words", Value::list(vec!["a".into(); draw as usize % 3])),
                ("optional", optional),
                ("record", record),
                ("same", uint8(&[2], &draw.to_ne_bytes()[..2])),
            ];
            sample(at, &fields)
        })
        .collect();
    let batch = || crate::Batch::new(crate::BatchOptions { size: 3, drop_last: false, uids: None }).unwrap();
    let wanted = check(batch, &input);
    assert_eq!(check(padded(r#"{"size": 3}"#), &input), wanted);
    let ragged = rows(&[list(&[1]), list(&[2, 3])]);
    let options = r#"{"size": 2, "fields": []}"#;
    assert_eq!(check(padded(options), &ragged), check(batch, &ragged), "no field is to be padded");
}

/// A plain definition: numbers of one axis, padded to the longest.
fn reference(values: &[Vec<i64>], multiple: usize) -> Value {
    let longest = values.iter().map(Vec::len).max().unwrap_or(0).next_multiple_of(multiple);
    let padded = values.iter().flat_map(|row| row.iter().copied().chain(std::iter::repeat(-1)).take(longest));
    int64(&[values.len(), longest], &padded.collect::<Vec<_>>())
}

#[test]
fn equals_the_definition_for_lists_and_tensors() {
    let mut rng = Rng::new(8, 0);
    for size in [1, 3, 7, 40] {
        let rows: Vec<Vec<i64>> =
            (0..31).map(|_| (0..rng.below(9)).map(|_| rng.below(100) as i64).collect()).collect();
        let input: Vec<_> = (0..)
            .zip(&rows)
            .map(|(at, row)| sample(at, &[("a", list(row)), ("b", int64(&[row.len()], row))]))
            .collect();
        let options = format!(r#"{{"size": {size}, "multiple": 4, "values": ["a=-1", "b=-1"]}}"#);
        let out = check(padded(&options), &input);
        for (batch, part) in out.iter().zip(rows.chunks(size)) {
            if part.iter().any(|row| !row.is_empty()) {
                assert_eq!(batch.get("a"), Some(&reference(part, 4)));
            }
            assert_eq!(batch.get("b"), Some(&reference(part, 4)));
        }
        check_resume(padded(&options), &input[..12]);
    }
}

#[test]
fn lists_of_lists_are_blocks_and_empty_ones_go_with_any() {
    let boxes = |rows: &[&[i64]]| Value::list(rows.iter().map(|row| list(row)).collect());
    let input = rows(&[boxes(&[]), boxes(&[&[1, 2], &[3, 4]]), boxes(&[&[5, 6]])]);
    let out = check(padded(r#"{"size": 3, "lengths": "_count"}"#), &input);
    assert_eq!(out[0].get("x"), Some(&int64(&[3, 2, 2], &[0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0])));
    assert_eq!(out[0].get("x_count"), Some(&int64(&[3], &[0, 2, 1])));
    let out = check(padded(r#"{"size": 3}"#), &rows(&[list(&[]), list(&[])]));
    assert_eq!(out[0].get("x"), Some(&int64(&[2, 0], &[])), "nothing says which type they are of");
}

#[test]
fn tensors_side_by_side_are_not_copied() {
    let mut memory = BufferMut::zeroed(12);
    let parts: Vec<_> = (0..3).map(|_| memory.split_off_front(4).freeze()).collect();
    let values: Vec<Value> =
        parts.iter().map(|part| Tensor::new(DType::U8, &[4], part.clone()).unwrap().into()).collect();
    let out = check(padded(r#"{"size": 3}"#), &rows(&values));
    let joined = out[0].get("x").and_then(Value::as_tensor).unwrap();
    assert_eq!((joined.shape(), joined.data().as_ptr()), (&[3, 4][..], parts[0].as_ptr()));
}

#[test]
fn what_does_not_fit_is_an_error_that_names_it() {
    let cases = [
        (
            r#"{"size": 9, "pad_to": 2}"#,
            list(&[1, 2, 3]),
            "cannot pad: found int64 [3], expected at most [2]",
        ),
        (r#"{"size": 9}"#, uint8(&[3], &[0; 3]), "cannot stack: found uint8 [3] after int64 [1]"),
        (r#"{"size": 9}"#, int64(&[1, 1], &[0]), "cannot stack: found int64 [1, 1] after int64 [1]"),
        (r#"{"size": 9}"#, 5_i64.into(), "cannot stack: found int64 after int64 [1]"),
        (
            r#"{"size": 9, "fields": ["x"]}"#,
            "a".into(),
            "found another value, expected a tensor with axes or a list of numbers",
        ),
    ];
    for (options, odd, message) in cases {
        let input = rows(&[list(&[1]), odd, list(&[2, 3])]);
        let mut drive = Drive::new(padded(options)(), &input, 3);
        let error = drive.run(9, 9).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, message));
        let places = ["field", "sample", "first of batch"].map(|name| error.get(name));
        assert_eq!(places, [Some("x"), Some("test#1"), Some("test#0")]);
        drive.run(9, 9).unwrap();
        assert_eq!(drive.out()[0].get("x"), Some(&int64(&[2, 2], &[1, 0, 2, 3])), "goes on without it");
        assert_eq!(ints(drive.out(), "n"), [0, 2]);
        Setup::new(&[&input]).check_resume(padded(options));
    }
    let input = rows(&[uint8(&[1], &[1])]);
    let error = Drive::new(padded(r#"{"size": 1, "values": "x=-1"}"#)(), &input, 1).run(9, 9).unwrap_err();
    assert_eq!((error.get("option"), error.get("field")), (Some("values"), Some("x")));
    for options in [
        r#"{"size": 1, "fields": ["y"]}"#,
        r#"{"size": 1, "values": "y=1"}"#,
        r#"{"size": 1, "mask": "y=m"}"#,
    ] {
        let error = Drive::new(padded(options)(), &input, 1).run(9, 9).unwrap_err();
        assert_eq!(error.get("field"), Some("y"), "{options}");
    }
}

#[test]
fn a_later_field_that_fails_takes_its_sample_back() {
    let row = |at, x: &[i64], y: Value| sample(at, &[("x", list(x)), ("y", y)]);
    let input = [row(0, &[1], list(&[1])), row(1, &[1, 2, 3], "no".into()), row(2, &[4, 5], list(&[2]))];
    let mut drive = Drive::new(padded(r#"{"size": 2, "fields": ["x", "y"]}"#)(), &input, 3);
    assert_eq!(drive.run(9, 9).unwrap_err().get("field"), Some("y"));
    drive.run(9, 9).unwrap();
    assert_eq!(drive.out()[0].get("x"), Some(&int64(&[2, 2], &[1, 0, 4, 5])), "as long as what is in it");
}

#[test]
fn more_than_the_limit_is_refused_before_memory_is_taken() {
    let limit = small_host().context().limits().bytes as usize;
    let wide = uint8(&[limit / 2 - 10], &vec![1; limit / 2 - 10]);
    let input = rows(&[wide, uint8(&[1], &[2]), uint8(&[limit / 2 + 1], &vec![3; limit / 2 + 1])]);
    let mut drive = Drive::new(padded(r#"{"size": 3}"#)(), &input, 3);
    let error = drive.run(9, 9).unwrap_err();
    assert_eq!((error.kind(), error.get("sample")), (ErrorKind::Limit, Some("test#2")));
    let endless = Tensor::new(DType::U8, &[1 << 40, 0], vec![].into()).unwrap();
    let input = rows(&[endless.clone().into(), endless.into()]);
    let out = check(padded(r#"{"size": 2, "mask": "_m"}"#), &input);
    assert_eq!(out[0].get("x").and_then(Value::as_tensor).unwrap().shape(), [2, 1 << 40, 0]);
    let input =
        rows(&[Tensor::new(DType::U8, &[1 << 40, 0], vec![].into()).unwrap().into(), uint8(&[1, 1], &[1])]);
    let error = Drive::new(padded(r#"{"size": 2}"#)(), &input, 3).run(9, 9).unwrap_err();
    assert_eq!((error.kind(), error.get("sample")), (ErrorKind::Limit, Some("test#1")));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let refused = |options: &str| {
        let made = PaddedBatchOptions::parse(options).and_then(PaddedBatch::new);
        made.unwrap_err().get("option").unwrap().to_owned()
    };
    assert_eq!(refused(r#"{"size": 0}"#), "size");
    assert_eq!(refused(r#"{"size": 1, "multiple": 0}"#), "multiple");
    assert_eq!(refused(r#"{"size": 1, "pad_to": -1}"#), "pad_to");
    for values in [r#""x""#, r#""x=y""#, r#"["x=1", "x=2"]"#] {
        assert_eq!(refused(&format!(r#"{{"size": 1, "values": {values}}}"#)), "values");
    }
    assert_eq!(refused(r#"{"size": 1, "mask": ["_a", "_b"]}"#), "mask");
    assert_eq!(refused(r#"{"size": 1, "fields": ["x"], "lengths": "y=l"}"#), "lengths");
    assert_eq!(refused(r#"{"size": 1, "fields": ["x", "x"]}"#), "fields");
    assert_eq!(ints(&check(padded(r#"{"size": 4}"#), &numbers(9)), "value"), (0..9).collect::<Vec<_>>());
}
