//! Tests of `max_tokens` against what it is defined to give.

use forebay_core::{ErrorKind, Options, Value, random::Rng};

use super::*;
use crate::testing::{Drive, check, check_resume, ints, sample, small_host};

fn pipe(options: &str) -> impl Fn() -> MaxTokens {
    move || MaxTokens::new(MaxTokensOptions::parse(options).unwrap()).unwrap()
}

fn words(lengths: &[usize]) -> Vec<Sample> {
    let word = |(at, &length): (i64, &usize)| {
        let list = Value::list(vec![at.into(); length]);
        sample(at as u64, &[("at", at.into()), ("words", list)])
    };
    (0..).zip(lengths).map(word).collect()
}

fn members(batches: &[Sample]) -> Vec<Vec<i64>> {
    batches.iter().map(|batch| ints(std::slice::from_ref(batch), "at")).collect()
}

/// A plain definition, after torchdata/datapipes/iter/transform/bucketbatcher.py.
fn reference(lengths: &[usize], most: usize, buffer: usize, padding: bool) -> Vec<Vec<i64>> {
    let mut rest = (0..).zip(lengths).filter(|&(_, &length)| length > 0 && length <= most);
    let (mut held, mut out, mut batch) = (Vec::new(), Vec::new(), Vec::<(usize, i64)>::new());
    loop {
        held.extend(rest.by_ref().take(buffer - held.len()).map(|(at, &length)| (length, at)));
        held.sort_unstable();
        let Some(&(length, at)) = held.first() else { break };
        held.remove(0);
        let all = batch.iter().map(|one| one.0).chain([length]);
        let tokens = if padding { all.max().unwrap() * (batch.len() + 1) } else { all.sum() };
        if tokens > most {
            out.push(std::mem::take(&mut batch));
        }
        batch.push((length, at));
    }
    out.push(batch);
    let names = |batch: Vec<(usize, i64)>| batch.into_iter().map(|one| one.1).collect::<Vec<_>>();
    out.into_iter().filter(|batch| !batch.is_empty()).map(names).collect()
}

#[test]
fn gives_what_torchdata_says() {
    // The example of torchdata's documentation of max_token_bucketize.
    let lengths = [1, 2, 1, 4, 3, 1, 2, 2, 3];
    let out = check(pipe(r#"{"length": "words", "most": 5}"#), &words(&lengths));
    assert_eq!(members(&out), [vec![0, 2, 5, 1], vec![6, 7], vec![4], vec![8], vec![3]]);
    assert_eq!((out[1].uid(), out[1].key().to_string().as_str()), (6, "test#6"));
    let out = check(pipe(r#"{"length": "words", "most": 5, "padding": true}"#), &words(&lengths));
    assert_eq!(members(&out), [vec![0, 2, 5], vec![1, 6], vec![7], vec![4], vec![8], vec![3]]);
    let out = check(pipe(r#"{"length": "words", "most": 6, "min": 2, "max": 3}"#), &words(&lengths));
    assert_eq!(members(&out), [vec![1, 6, 7], vec![4, 8]]);
}

#[test]
fn equals_the_definition_and_goes_on_from_every_moment() {
    let mut rng = Rng::new(12, 0);
    for (most, buffer) in [(1, 1), (6, 1), (9, 4), (20, 7), (300, 1000)] {
        for padding in [false, true] {
            let lengths: Vec<usize> = (0..60).map(|_| rng.below(11) as usize).collect();
            let options =
                format!(r#"{{"length": "words", "most": {most}, "buffer": {buffer}, "padding": {padding}}}"#);
            let out = check(pipe(&options), &words(&lengths));
            assert_eq!(members(&out), reference(&lengths, most, buffer, padding), "{options}");
            for count in [0, 1, 14] {
                check_resume(pipe(&options), &words(&lengths[..count]));
            }
        }
    }
}

#[test]
fn batches_grow_and_are_padded() {
    let lengths: Vec<usize> = (0..100).map(|at| 1 + at % 2).collect();
    let options =
        r#"{"length": "words", "most": 100, "lengths": "_length", "values": "words=-1", "uids": "uids"}"#;
    let out = check(pipe(options), &words(&lengths));
    let shape = |at: usize| out[at].get("words").unwrap().as_tensor().unwrap().shape().to_vec();
    assert_eq!((shape(0), shape(1)), (vec![75, 2], vec![25, 2]));
    assert_eq!(ints(&out[..1], "words_length"), [vec![1; 50], vec![2; 25]].concat());
    assert_eq!(ints(&out[..1], "words")[..4], [0, -1, 2, -1]);
    assert_eq!(ints(&out[..1], "uids"), ints(&out[..1], "at"));
}

#[test]
fn samples_that_fail_are_told_once() {
    let mut input = words(&[3, 1, 2, 1, 3, 2, 2, 1, 3]);
    input[2] = sample(2, &[("at", 2_i64.into())]);
    input[5] = sample(5, &[("at", 0.5.into()), ("words", Value::list(vec![1_i64.into()]))]);
    for buffer in [1, 3, 100] {
        let options = format!(r#"{{"length": "words", "most": 5, "buffer": {buffer}}}"#);
        check_resume(pipe(&options), &input);
        let mut drive = Drive::new(pipe(&options)(), &input, 2);
        let mut errors = Vec::new();
        loop {
            match drive.step(9) {
                Ok(Step::End) => break,
                Ok(_) => {}
                Err(error) => errors.push(error.get("sample").unwrap().to_owned()),
            }
        }
        assert_eq!(errors[0], "test#2");
        assert!(errors.len() <= 2, "{errors:?}");
        let all: usize = drive
            .out()
            .iter()
            .map(|batch| batch.get("at").unwrap())
            .map(|at| match at.as_tensor() {
                Some(tensor) => tensor.shape()[0] as usize,
                None => 1,
            })
            .sum();
        assert_eq!(all + errors.len(), 9);
    }
}

#[test]
fn the_buffer_bounds_what_is_held() {
    let input = words(&[1; 500]);
    let mut drive = Drive::new(pipe(r#"{"length": "words", "most": 10, "buffer": 50}"#)(), &input, 7);
    drive.run(1, 5).unwrap();
    assert!(drive.taken(0) <= 5 * 10 + 50 + 10, "{}", drive.taken(0));
    let state = drive.state().unwrap();
    assert!(
        state.bytes.len() < 100 && state.again[0] < 70,
        "{} bytes, {}",
        state.bytes.len(),
        state.again[0]
    );
    let host = small_host();
    let restore = |options: &str| pipe(options)().restore(&state, &host.context());
    assert!(restore(r#"{"length": "words", "most": 10, "buffer": 50}"#).is_ok());
    assert_eq!(
        restore(r#"{"length": "words", "most": 10, "buffer": 9}"#).unwrap_err().kind(),
        ErrorKind::Invalid
    );
    let mut shorter = Drive::new(pipe(r#"{"length": "words", "most": 10, "buffer": 50}"#)(), &input[..9], 1);
    let mut other = pipe(r#"{"length": "words", "most": 10, "buffer": 50}"#)();
    other.restore(&state, &host.context()).unwrap();
    shorter.replace(other);
    assert_eq!(shorter.run(1, 9).unwrap_err().kind(), ErrorKind::Invalid, "the input became shorter");
    assert_eq!(shorter.step(1).unwrap(), Step::End);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let refused = |options: &str| {
        let made = MaxTokensOptions::parse(options).and_then(MaxTokens::new);
        made.err().unwrap().get("option").unwrap().to_owned()
    };
    assert_eq!(refused(r#"{"length": "x", "most": 0}"#), "most");
    assert_eq!(refused(r#"{"length": "x", "most": 5, "max": 6}"#), "max");
    assert_eq!(refused(r#"{"length": "x", "most": 5, "min": 6}"#), "min");
    assert_eq!(refused(r#"{"length": "x", "most": 5, "min": 0}"#), "min");
    assert_eq!(refused(r#"{"length": "x", "most": 5, "buffer": 0}"#), "buffer");
    assert_eq!(refused(r#"{"length": "x +", "most": 5}"#), "length");
}
