//! Tests of `bucket_by_length` against what it is defined to give.

use forebay_core::{DType, ErrorKind, Options, Sample, Tensor, TensorExt, Value, random::Rng};

use super::*;
use crate::testing::{Drive, check, check_resume, ints, sample, small_host};

fn bucket(options: &str) -> impl Fn() -> BucketByLength {
    move || BucketByLength::new(BucketByLengthOptions::parse(options).unwrap()).unwrap()
}

/// Samples of these lengths, whose numbers are all those of the sample.
fn words(lengths: &[usize]) -> Vec<Sample> {
    let word = |(at, &length): (i64, &usize)| {
        let list = Value::list(vec![(at + 1).into(); length]);
        sample(at as u64, &[("at", at.into()), ("words", list)])
    };
    (0..).zip(lengths).map(word).collect()
}

fn shapes(batches: &[Sample]) -> Vec<Vec<i64>> {
    batches.iter().map(|batch| batch.get("words").unwrap().as_tensor().unwrap().shape().to_vec()).collect()
}

fn members(batches: &[Sample]) -> Vec<Vec<i64>> {
    batches.iter().map(|batch| ints(std::slice::from_ref(batch), "at")).collect()
}

/// A plain definition: which samples are in each batch.
fn reference(lengths: &[usize], boundaries: &[usize], sizes: &[usize], drop_last: bool) -> Vec<Vec<i64>> {
    let (mut buckets, mut out) = (vec![Vec::new(); sizes.len()], Vec::new());
    for (at, length) in (0..).zip(lengths) {
        let bucket = boundaries.iter().filter(|boundary| length >= boundary).count();
        buckets[bucket].push(at);
        if buckets[bucket].len() == sizes[bucket] {
            out.push(std::mem::take(&mut buckets[bucket]));
        }
    }
    out.extend(buckets.into_iter().filter(|bucket| !bucket.is_empty() && !drop_last));
    out
}

#[test]
fn sorts_as_tensorflow_does() {
    // tensorflow/python/data/kernel_tests/bucket_by_sequence_length_test.py testBucket: lengths below 10, from 10, 20 and 30 on.
    let lengths: Vec<usize> = [8, 13, 25, 35].into_iter().flat_map(|length| [length; 9]).collect();
    let options = r#"{"length": "words", "boundaries": [10, 20, 30], "sizes": [10, 8, 4, 2]}"#;
    let out = check(bucket(options), &words(&lengths));
    let expected =
        [[8, 13], [4, 25], [4, 25], [2, 35], [2, 35], [2, 35], [2, 35], [9, 8], [1, 13], [1, 25], [1, 35]];
    assert_eq!(shapes(&out), expected);
    let lengths = [9, 10, 19, 20, 29, 30, 0];
    let options = r#"{"length": "size(words)", "boundaries": [10, 20, 30], "sizes": [2, 2, 2, 1]}"#;
    let out = check(bucket(options), &words(&lengths));
    assert_eq!(
        members(&out),
        [vec![1, 2], vec![3, 4], vec![5], vec![0, 6]],
        "a boundary is the least of its bucket"
    );
    assert_eq!((out[3].uid(), out[3].key().to_string().as_str()), (0, "test#0"));
}

#[test]
fn pads_to_one_below_the_boundary() {
    let options = r#"{"length": "words", "boundaries": [3, 5], "sizes": [2, 2, 2], "pad_to_boundary": true,
        "values": "words=-1", "lengths": "_length", "mask": "_mask", "uids": "uids"}"#;
    let out = check(bucket(options), &words(&[1, 2, 3]));
    assert_eq!(shapes(&out), [[2, 2], [1, 4]]);
    assert_eq!(ints(&out, "words"), [1, -1, 2, 2, 3, 3, 3, -1]);
    assert_eq!(ints(&out, "words_length"), [1, 2, 3]);
    let mask = out[0].get("words_mask").and_then(Value::as_tensor).unwrap();
    assert_eq!((mask.shape(), &mask.data()[..]), (&[2, 2][..], &[1, 0, 1, 1][..]));
    let uids = Tensor::new(DType::U64, &[2], [0_u64, 1].map(u64::to_ne_bytes).concat().into()).unwrap();
    assert_eq!(out[0].get("uids"), Some(&uids.into()));
    let input = words(&[1, 5, 2]);
    let mut drive = Drive::new(bucket(options)(), &input, 1);
    let error = drive.run(9, 9).unwrap_err();
    assert_eq!(error.message(), "a sample of length 5 has no boundary to pad to");
    assert_eq!((error.get("sample"), error.get("option")), (Some("test#1"), Some("boundaries")));
    drive.run(9, 9).unwrap();
    assert_eq!(members(drive.out()), [[0, 2]], "goes on without it");
    check_resume(bucket(options), &input);
}

#[test]
fn equals_the_definition_and_goes_on_from_every_moment() {
    let mut rng = Rng::new(6, 0);
    let cases: [(&[usize], &[usize]); 4] =
        [(&[3, 6], &[3, 2, 1]), (&[], &[4]), (&[1], &[1, 5]), (&[2, 4, 6, 8], &[5, 4, 3, 2, 1])];
    for (boundaries, sizes) in cases {
        for drop_last in [false, true] {
            let lengths: Vec<usize> = (0..40).map(|_| rng.below(10) as usize).collect();
            let options = format!(
                r#"{{"length": "words", "boundaries": {boundaries:?}, "sizes": {sizes:?}, "drop_last": {drop_last}}}"#
            );
            let out = check(bucket(&options), &words(&lengths));
            assert_eq!(members(&out), reference(&lengths, boundaries, sizes, drop_last), "{options}");
            for count in [0, 1, 13] {
                check_resume(bucket(&options), &words(&lengths[..count]));
            }
        }
    }
}

#[test]
fn samples_that_fail_are_told_once() {
    let mut input = words(&[1, 2, 1, 7, 2, 1, 7, 1, 2]);
    input[2] = sample(2, &[("at", 2_i64.into()), ("other", 1_i64.into())]);
    input[4] = sample(4, &[("at", 0.5.into()), ("words", Value::list(vec![1_i64.into()]))]);
    let options = r#"{"length": "words", "boundaries": [5], "sizes": [3, 2]}"#;
    check_resume(bucket(options), &input);
    let mut drive = Drive::new(bucket(options)(), &input, 2);
    let mut errors = Vec::new();
    loop {
        match drive.step(9) {
            Ok(Step::End) => break,
            Ok(_) => {}
            Err(error) => errors.push(error.get("sample").unwrap().to_owned()),
        }
    }
    // What begins a batch is a sample like any other.
    assert_eq!(errors, ["test#2", "test#4"].map(str::to_owned));
    assert_eq!(members(drive.out()), [vec![0, 1, 5], vec![3, 6], vec![7, 8]]);
}

#[test]
fn a_position_is_small_and_states_of_others_are_refused() {
    let options = r#"{"length": "at % 10", "boundaries": [9], "sizes": [500, 500]}"#;
    let input = words(&vec![1; 900]);
    let mut drive = Drive::new(bucket(options)(), &input, 64);
    drive.run(1, 1).unwrap();
    let state = drive.state().unwrap();
    assert!(state.bytes.len() < 400, "{} bytes", state.bytes.len());
    let host = small_host();
    let other = |sizes: &str| {
        let options = format!(r#"{{"length": "at", "boundaries": [9], "sizes": {sizes}}}"#);
        bucket(&options)().restore(&state, &host.context())
    };
    assert!(other("[500, 500]").is_ok());
    assert_eq!(other("[500, 9]").unwrap_err().kind(), ErrorKind::Invalid);
    assert!(
        bucket(r#"{"length": "at", "boundaries": [], "sizes": [500]}"#)()
            .restore(&state, &host.context())
            .is_err()
    );
    let mut shorter = Drive::new(bucket(options)(), &input[..0], 1);
    let mut pipe = bucket(options)();
    pipe.restore(&state, &host.context()).unwrap();
    shorter.replace(pipe);
    assert_eq!(shorter.run(1, 9).unwrap_err().kind(), ErrorKind::Invalid, "the input became shorter");
    assert_eq!(shorter.step(1).unwrap(), Step::End);
}

#[test]
fn one_size_is_that_of_every_bucket() {
    let lengths = [9, 10, 19, 20, 29, 30, 0];
    let each = |sizes: &str| {
        let options = format!(r#"{{"length": "size(words)", "boundaries": [10, 20, 30], "sizes": {sizes}}}"#);
        members(&check(bucket(&options), &words(&lengths)))
    };
    assert_eq!(each("2"), each("[2, 2, 2, 2]"));
    let options = r#"{"length": "x", "boundaries": [10, 20, 30], "sizes": [16, 8]}"#;
    let error = BucketByLength::new(BucketByLengthOptions::parse(options).unwrap()).unwrap_err();
    let expected = "found 2 sizes, expected one for each of 4 buckets: sizes=[16,16,16,16]";
    assert_eq!((error.message(), error.get("option")), (expected, Some("sizes")));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let refused = |options: &str| {
        let made = BucketByLengthOptions::parse(options).and_then(BucketByLength::new);
        made.unwrap_err().get("option").unwrap().to_owned()
    };
    assert_eq!(refused(r#"{"length": "x <", "boundaries": [], "sizes": [1]}"#), "length");
    assert_eq!(refused(r#"{"length": "x", "boundaries": [3, 3], "sizes": [1, 1, 1]}"#), "boundaries");
    assert_eq!(refused(r#"{"length": "x", "boundaries": [0], "sizes": [1, 1]}"#), "boundaries");
    assert_eq!(refused(r#"{"length": "x", "boundaries": [3], "sizes": [1, 1, 1]}"#), "sizes");
    assert_eq!(refused(r#"{"length": "x", "boundaries": [], "sizes": [0]}"#), "sizes");
    let input = [sample(0, &[("at", (-1_i64).into()), ("words", 0.5.into())])];
    for length in ["at", "words"] {
        let options = format!(r#"{{"length": "{length}", "boundaries": [], "sizes": [1]}}"#);
        let error = Drive::new(bucket(&options)(), &input, 1).run(1, 1).unwrap_err();
        assert_eq!((error.get("option"), error.get("sample")), (Some("length"), Some("test#0")));
    }
}
