//! `window_shuffle` against its definition.

use std::collections::HashMap;

use forebay_core::{ErrorKind, Key, Options, Sample, Value, random::Rng};

use super::*;
use crate::testing::{Drive, Host, Setup, check, check_resume, errors, ints, numbers, sample, small_host};

fn shuffle(size: usize) -> WindowShuffle {
    WindowShuffle::new(WindowShuffleOptions { window_size: size, within: None }).unwrap()
}

fn within(size: usize, expression: &str) -> WindowShuffle {
    WindowShuffle::new(WindowShuffleOptions { window_size: size, within: Some(expression.into()) }).unwrap()
}

fn order(host: &Host, size: usize, count: usize) -> Vec<i64> {
    let input = numbers(count);
    let mut drive = Drive::with_host(shuffle(size), &input, 7, host);
    drive.run(5, usize::MAX).unwrap();
    ints(drive.out(), "value")
}

/// What the pipe is defined to give, written out plainly; `part` is what `within` gives for a number.
fn reference(host: &Host, size: usize, count: usize, part: impl Fn(i64) -> i64) -> Vec<i64> {
    let mut windows: Vec<Vec<i64>> = Vec::new();
    for number in 0..count as i64 {
        match windows.last_mut() {
            Some(last) if last.len() < size && part(last[0]) == part(number) => last.push(number),
            _ => windows.push(vec![number]),
        }
    }
    for (window, number) in windows.iter_mut().zip(0..) {
        let mut rng = host.context().rng(number);
        for end in (1..window.len()).rev() {
            window.swap(end, rng.below(end as u64 + 1) as usize);
        }
    }
    windows.concat()
}

#[test]
fn equals_the_definition_whatever_waits() {
    let mut rng = Rng::new(5, 0);
    for _ in 0..30 {
        let (count, size) = (rng.below(200) as usize, 1 + rng.below(60) as usize);
        let out = check(|| shuffle(size), &numbers(count));
        assert_eq!(ints(&out, "value"), reference(&small_host(), size, count, |_| 0));
        assert!(out.iter().all(|sample| sample.uid() == sample.key().index), "samples stay whole");
        let each = 1 + rng.below(30) as i64;
        let out = check(|| within(size, &format!("value / {each}")), &numbers(count));
        assert_eq!(ints(&out, "value"), reference(&small_host(), size, count, |number| number / each));
    }
}

#[test]
fn goes_on_from_every_moment() {
    for (size, count) in [(1, 4), (3, 2), (3, 12), (5, 13), (7, 7), (9, 1), (4, 0)] {
        check_resume(|| shuffle(size), &numbers(count));
        check_resume(|| within(size, "value / 4"), &numbers(count));
    }
    Setup { most: 9, ..Setup::new(&[&numbers(30)]) }.check_resume(|| within(6, "value / 5"));
}

/// Samples of several shards, of these sizes.
fn shards(sizes: &[u64]) -> Vec<Sample> {
    let mut all = Vec::new();
    for (size, shard) in sizes.iter().zip('a'..) {
        for index in 0..*size {
            let mut sample = sample(all.len() as u64, &[("value", (all.len() as i64).into())]);
            sample.set_key(Key { origin: shard.to_string().into(), index, ..Key::default() });
            all.push(sample);
        }
    }
    all
}

#[test]
fn shards_stay_in_their_order_and_are_permuted_inside() {
    let input = shards(&[5, 1, 40, 12]);
    let out = check(|| within(1000, "origin()"), &input);
    let origins =
        |samples: &[Sample]| samples.iter().map(|sample| sample.key().origin.to_string()).collect::<String>();
    assert_eq!(origins(&out), origins(&input));
    let values = ints(&out, "value");
    for shard in [0..5, 5..6, 6..46, 46..58] {
        let mut part = values[shard.clone()].to_vec();
        let wanted: Vec<i64> = shard.map(|at| at as i64).collect();
        assert!(part.len() == 1 || part != wanted);
        part.sort_unstable();
        assert_eq!(part, wanted);
    }
    check_resume(|| within(8, "origin()"), &shards(&[3, 1, 11]));
}

#[test]
fn one_sample_to_a_window_keeps_the_order() {
    assert_eq!(order(&small_host(), 1, 50), (0..50).collect::<Vec<_>>());
}

#[test]
fn seed_epoch_pass_and_window_decide() {
    let host = |seed, epoch, pass| small_host().seed(seed).epoch(epoch).pass(pass);
    let base = order(&host(1, 0, 0), 10, 20);
    assert_eq!(base, order(&host(1, 0, 0), 10, 20));
    for other in [host(2, 0, 0), host(1, 1, 0), host(1, 0, 1)] {
        assert_ne!(base, order(&other, 10, 20));
    }
    let second: Vec<_> = base[10..].iter().map(|value| value - 10).collect();
    assert_ne!(base[..10], second[..]);
}

#[test]
fn every_order_of_every_window_is_alike() {
    let mut counts = [HashMap::new(), HashMap::new()];
    let runs = 12_000;
    for epoch in 0..runs {
        let order = order(&small_host().epoch(epoch), 4, 8);
        for (counts, window) in counts.iter_mut().zip(order.chunks(4)) {
            *counts.entry(window.to_vec()).or_insert(0_u32) += 1;
        }
    }
    for counts in counts {
        assert_eq!(counts.len(), 24);
        let expected = runs as f64 / 24.0;
        let chi: f64 = counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi < 49.73, "chi-square with 23 degrees of freedom is {chi}, above the 99.9 % bound");
    }
}

#[test]
fn a_sample_that_fails_is_named_once_and_the_window_goes_on() {
    let bad = |at: u64| if at % 4 == 1 || at == 8 { Value::from("x") } else { Value::from(at as i64) };
    let input: Vec<Sample> = (0..16).map(|at| sample(at, &[("value", bad(at))])).collect();
    for size in [1, 2, 3, 20] {
        let make = || within(size, "value / 6");
        let mut drive = Drive::new(make(), &input, 3);
        let found = errors(&mut drive);
        let names: Vec<_> = found.iter().map(|error| error.get("sample").unwrap()).collect();
        assert_eq!(names, ["test#1", "test#5", "test#8", "test#9", "test#13"]);
        let mut values = ints(drive.out(), "value");
        values.sort_unstable();
        assert_eq!(values, [0, 2, 3, 4, 6, 7, 10, 11, 12, 14, 15]);
        check_resume(make, &input);
    }
}

#[test]
fn states_of_others_are_refused_and_inputs_that_became_shorter() {
    let host = small_host();
    let input = numbers(20);
    let mut drive = Drive::new(shuffle(5), &input, 1);
    drive.run(1, 8).unwrap();
    let state = drive.state().unwrap();
    assert_eq!((state.again[0], state.bytes.len() < 20), (5, true));
    let error = shuffle(10).restore(&state, &host.context()).unwrap_err();
    assert_eq!((error.kind(), error.get("option")), (ErrorKind::Invalid, Some("window_size")));
    let mut pipe = shuffle(5);
    pipe.reset(&host.context()).unwrap();
    pipe.restore(&state, &host.context()).unwrap();
    let mut other = Drive::new(shuffle(5), &input[..2], 1);
    other.replace(pipe);
    let error = other.run(1, 100).unwrap_err();
    assert!(
        error.message().contains("the window has 2 samples, fewer than at the saved position"),
        "{error}"
    );
    assert_eq!(other.step(1).unwrap(), Step::End);
    let wrong = State::json(VERSION, &(5, 0, 6, 5)).unwrap();
    assert!(shuffle(5).restore(&wrong, &host.context()).is_err());
}

#[test]
fn bad_options_are_refused_by_name() {
    for (options, option) in [("{}", "window_size"), (r#"{"window_size": 0}"#, "window_size")] {
        assert_eq!(WindowShuffleOptions::parse(options).unwrap_err().get("option"), Some(option));
    }
    let options = WindowShuffleOptions::parse(r#"{"window_size": 3, "within": "a <"}"#).unwrap();
    assert_eq!(WindowShuffle::new(options).unwrap_err().get("option"), Some("within"));
}
