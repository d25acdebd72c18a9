//! Tests of `sort`.

use forebay_core::{ErrorKind, Options, Sample, Value, random::Rng};

use super::*;
use crate::testing::{Drive, Setup, check, check_resume, errors, ints, sample, small_host};

fn sort(options: &str) -> Sort {
    Sort::new(SortOptions::parse(options).unwrap()).unwrap()
}

/// Samples with these values, and their places as `at`.
fn of(values: &[i64]) -> Vec<Sample> {
    let values = values.iter().zip(0..);
    values.map(|(&value, at)| sample(at, &[("at", (at as i64).into()), ("value", value.into())])).collect()
}

/// What each mode is defined to give, written out plainly: the places of these values.
fn reference(values: &[i64], size: usize, reverse: bool, mode: &str) -> Vec<i64> {
    let key = |&at: &usize| (if reverse { -values[at] } else { values[at] }, at);
    let mut rest = 0..values.len();
    let mut out = Vec::new();
    let mut held: Vec<usize> = Vec::new();
    loop {
        if mode == "buffer" || held.is_empty() {
            let missing = size - held.len();
            held.extend(rest.by_ref().take(missing));
        }
        let Some(first) = held.iter().copied().min_by_key(key) else { return out };
        held.retain(|&at| at != first);
        out.push(first as i64);
    }
}

fn options(size: usize, reverse: bool, mode: &str) -> String {
    format!(r#"{{"by": "value", "size": {size}, "reverse": {reverse}, "mode": "{mode}"}}"#)
}

#[test]
fn equals_the_definition_and_goes_on_from_every_moment() {
    let mut rng = Rng::new(4, 0);
    for round in 0..24 {
        let count = [0, 1, 5, 9, 14][round % 5];
        let values: Vec<_> = (0..count).map(|_| rng.below(8) as i64 - 4).collect();
        for mode in ["buffer", "window"] {
            let (size, reverse) = ([1, 2, 4, 30][round % 4], round % 3 == 1);
            let (input, options) = (of(&values), options(size, reverse, mode));
            let out = check(|| sort(&options), &input);
            assert_eq!(ints(&out, "at"), reference(&values, size, reverse, mode), "{options} of {values:?}");
            check_resume(|| sort(&options), &input);
        }
    }
    let endless = of(&(0..60).map(|at| at * 7 % 11).collect::<Vec<_>>());
    for mode in ["buffer", "window"] {
        let options = options(3, false, mode);
        Setup { most: 8, ..Setup::new(&[&endless]) }.check_resume(|| sort(&options));
    }
}

#[test]
fn what_is_nearly_sorted_becomes_sorted() {
    let mut rng = Rng::new(6, 0);
    let mut keyed: Vec<_> = (0..400).map(|value| (value + rng.below(16) as i64, value)).collect();
    keyed.sort_unstable();
    let values: Vec<_> = keyed.into_iter().map(|(_, value)| value).collect();
    assert!(!values.is_sorted());
    let out = check(|| sort(r#"{"by": "value", "size": 17}"#), &of(&values));
    assert_eq!(ints(&out, "value"), (0..400).collect::<Vec<_>>());
}

#[test]
fn values_of_all_kinds_have_an_order() {
    let kinds: [Value; 6] = ["b".into(), f64::NAN.into(), 2_i64.into(), true.into(), 1.5.into(), Value::NULL];
    let input: Vec<_> = kinds.iter().zip(0..).map(|(kind, at)| sample(at, &[("x", kind.clone())])).collect();
    let uids = |options: &str| sort_once(options, &input).iter().map(Sample::uid).collect::<Vec<_>>();
    assert_eq!(uids(r#"{"by": "x", "size": 9}"#), [5, 3, 4, 2, 1, 0]);
    assert_eq!(uids(r#"{"by": "x", "size": 9, "reverse": true, "mode": "window"}"#), [0, 1, 2, 4, 3, 5]);
}

fn sort_once(options: &str, input: &[Sample]) -> Vec<Sample> {
    let mut drive = Drive::new(sort(options), input, 4);
    drive.run(3, usize::MAX).unwrap();
    drive.out().to_vec()
}

#[test]
fn a_sample_that_fails_is_named_once_and_the_others_come() {
    let mut input = of(&[9, 3, 8, 1, 7, 0, 6, 2]);
    for at in [0, 2, 3, 7] {
        input[at] = sample(at as u64, &[("at", 0_i64.into()), ("value", Value::list(vec![]))]);
    }
    for mode in ["buffer", "window"] {
        let options = options(2, false, mode);
        let mut drive = Drive::new(sort(&options), &input, 3);
        let found = errors(&mut drive);
        let names: Vec<_> = found.iter().map(|error| error.get("sample").unwrap()).collect();
        assert_eq!(names, ["test#0", "test#2", "test#3", "test#7"]);
        assert_eq!(ints(drive.out(), "value"), if mode == "buffer" { [3, 0, 6, 7] } else { [3, 7, 0, 6] });
        check_resume(|| sort(&options), &input);
    }
}

#[test]
fn a_position_is_small() {
    let mut rng = Rng::new(9, 0);
    let values: Vec<_> = (0..20_000).map(|_| rng.below(1 << 40) as i64).collect();
    let input = of(&values);
    for (mode, most) in [("buffer", 3100), ("window", 20)] {
        let options = options(1000, false, mode);
        let mut drive = Drive::new(sort(&options), &input, 64);
        drive.run(64, 10_000).unwrap();
        let state = drive.state().unwrap();
        assert!(state.bytes.len() < most, "{mode}: {} bytes", state.bytes.len());
        if mode == "window" {
            assert!(state.again[0] <= 1000);
        }
    }
}

#[test]
fn bad_options_and_states_are_refused() {
    for (options, option) in [
        ("{}", "by"),
        (r#"{"by": "x"}"#, "size"),
        (r#"{"by": "x", "size": 0}"#, "size"),
        (r#"{"by": "x", "size": 1, "mode": "heap"}"#, "mode"),
    ] {
        assert_eq!(SortOptions::parse(options).unwrap_err().get("option"), Some(option));
    }
    let error = Sort::new(SortOptions::parse(r#"{"by": "x <", "size": 1}"#).unwrap()).unwrap_err();
    assert_eq!(error.get("option"), Some("by"));
    let (host, input) = (small_host(), of(&[3, 1, 2, 5, 4]));
    for mode in ["buffer", "window"] {
        let mut drive = Drive::new(sort(&options(3, false, mode)), &input, 1);
        drive.run(1, 1).unwrap();
        let state = drive.state().unwrap();
        let refused = |options: &str| sort(options).restore(&state, &host.context()).unwrap_err();
        assert_eq!(refused(&options(4, false, mode)).get("option"), Some("size"));
        refused(&options(3, false, if mode == "buffer" { "window" } else { "buffer" }));
        let broken = State { bytes: vec![0x80].into(), ..state.clone() };
        assert!(sort(&options(3, false, mode)).restore(&broken, &host.context()).is_err());
    }
}

#[test]
fn an_input_that_became_shorter_is_an_error() {
    let input = of(&[3, 1, 2, 5, 4, 0, 9]);
    let mut drive = Drive::new(sort(&options(3, false, "buffer")), &input, 1);
    drive.run(1, 3).unwrap();
    let (state, host) = (drive.state().unwrap(), small_host());
    let mut pipe = sort(&options(3, false, "buffer"));
    pipe.restore(&state, &host.context()).unwrap();
    let mut short = Drive::new(sort(&options(3, false, "buffer")), &input[..1], 1);
    short.replace(pipe);
    let found = errors(&mut short);
    assert_eq!((found.len(), found[0].kind()), (1, ErrorKind::Invalid));
}
