//! Tests of `unbatch`.

use std::collections::HashSet;

use forebay_core::{Buffer, DType, Options, random::Rng};

use super::*;
use crate::{
    batch::{Batch, BatchOptions},
    testing::{check, expand, ints, numbers, sample, small_host},
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

#[test]
fn equals_the_definition_for_batches_of_any_length() {
    let mut rng = Rng::new(40, 0);
    for round in 0..40_u64 {
        let (mut batches, mut wanted) = (Vec::new(), Vec::new());
        for uid in 0..round % 4 {
            let numbers: Vec<i64> = (0..rng.below(5)).map(|_| rng.below(100) as i64).collect();
            let count = numbers.len();
            let list = Value::list(numbers.iter().map(|&number| number.into()).collect());
            let texts = Value::list(numbers.iter().map(|number| number.to_string().into()).collect());
            let bytes = tensor(
                DType::U8,
                &[count, 2],
                numbers.iter().flat_map(|&n| [n as u8, 7]).collect::<Vec<_>>(),
            );
            let meta = Value::structure(vec![("text".into(), texts)]);
            batches.push(sample(uid, &[("list", list), ("bytes", bytes), ("meta", meta)]));
            for (at, &number) in numbers.iter().enumerate() {
                let meta = Value::structure(vec![("text".into(), number.to_string().into())]);
                let bytes = tensor(DType::U8, &[2], vec![number as u8, 7]);
                wanted.push((
                    uid,
                    at,
                    sample(uid, &[("list", number.into()), ("bytes", bytes), ("meta", meta)]),
                ));
            }
        }
        let out = expand(&pipe(1), &batches).unwrap();
        assert_eq!(out.len(), wanted.len());
        for (found, (uid, at, wanted)) in out.iter().zip(&wanted) {
            assert!(found.fields().eq(wanted.fields()), "{found:?} for {wanted:?}");
            let key = if *at == 0 { format!("test#{uid}") } else { format!("test#{uid}#{at}") };
            assert_eq!(found.key().to_string(), key);
            assert!(*at > 0 || found.uid() == *uid);
        }
        let uids: HashSet<_> = out.iter().map(Sample::uid).collect();
        assert_eq!(uids.len(), out.len());
    }
}

#[test]
fn equals_the_definition_for_batches_in_batches() {
    let mut rng = Rng::new(41, 0);
    for round in 0..40_u64 {
        let (mut batches, mut wanted) = (Vec::new(), Vec::new());
        for uid in 0..round % 3 {
            let (mut numbers, mut texts) = (Vec::new(), Vec::new());
            for _ in 0..rng.below(4) {
                let row: Vec<i64> = (0..rng.below(4)).map(|_| rng.below(100) as i64).collect();
                numbers.push(Value::list(row.iter().map(|&number| number.into()).collect()));
                texts.push(Value::list(row.iter().map(|number| number.to_string().into()).collect()));
                wanted.extend(row.iter().map(|&number| {
                    sample(uid, &[("number", number.into()), ("text", number.to_string().into())])
                }));
            }
            batches.push(sample(uid, &[("number", Value::list(numbers)), ("text", Value::list(texts))]));
        }
        for level in [2, -1] {
            let out = expand(&pipe(level), &batches).unwrap();
            assert_eq!(out.len(), wanted.len());
            assert!(out.iter().zip(&wanted).all(|(found, wanted)| found.fields().eq(wanted.fields())));
            let uids: HashSet<_> = out.iter().map(Sample::uid).collect();
            assert_eq!(uids.len(), out.len());
        }
    }
}
