//! Tests of `group_by`.

use forebay_core::{DType, ErrorKind, Options, Tensor, TensorExt, Value, random::Rng};

use super::*;
use crate::testing::{Drive, Setup, check, check_resume, ints, sample, small_host};

fn group(options: &str) -> GroupBy {
    GroupBy::new(GroupByOptions::parse(options).unwrap()).unwrap()
}

/// Samples with these keys as `id`, and their places.
fn input(keys: &[i64]) -> Vec<Sample> {
    let one =
        |(at, &key): (usize, &i64)| sample(at as u64, &[("id", key.into()), ("at", (at as i64).into())]);
    keys.iter().enumerate().map(one).collect()
}

fn places(out: &[Sample]) -> Vec<Vec<i64>> {
    out.iter().map(|sample| ints(std::slice::from_ref(sample), "at")).collect()
}

struct Setting {
    size: Option<usize>,
    buffer: usize,
    guaranteed: Option<usize>,
    drops: bool,
    consecutive: bool,
}

impl Setting {
    fn options(&self) -> String {
        let Self { size, buffer, guaranteed, drops, consecutive } = self;
        let number = |number: &Option<usize>| number.map_or("null".into(), |number| number.to_string());
        let (size, guaranteed) = (number(size), number(guaranteed));
        format!(
            r#"{{"key": "id", "size": {size}, "buffer": {buffer}, "guaranteed": {guaranteed}, "drop_remaining": {drops}, "consecutive": {consecutive}}}"#
        )
    }

    /// What the pipe is defined to give, written out plainly: the places of the samples of each group, or of the first of
    /// one that is too small.
    fn reference(&self, keys: &[i64]) -> Vec<Result<Vec<i64>, i64>> {
        let least = self.guaranteed.or(self.size).unwrap_or(1);
        let mut groups: Vec<(i64, Vec<i64>)> = Vec::new();
        let mut out = Vec::new();
        let close = |group: Vec<i64>, out: &mut Vec<_>| {
            if group.len() >= least || !self.drops {
                out.push(Ok(group));
            }
        };
        for (at, &key) in keys.iter().enumerate() {
            if self.consecutive && groups.first().is_some_and(|(other, _)| *other != key) {
                close(groups.remove(0).1, &mut out);
            }
            let found = groups.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                groups.push((key, Vec::new()));
                groups.len() - 1
            });
            groups[found].1.push(at as i64);
            if Some(groups[found].1.len()) == self.size {
                out.push(Ok(groups.remove(found).1));
            }
            if groups.iter().map(|(_, group)| group.len()).sum::<usize>() == self.buffer {
                let size = groups.iter().map(|(_, group)| group.len()).max().unwrap();
                let largest = groups.iter().enumerate().filter(|(_, (_, group))| group.len() == size);
                let (found, _) = largest.min_by_key(|(_, (_, group))| *group.last().unwrap()).unwrap();
                let (_, group) = groups.remove(found);
                if size < least && !self.drops { out.push(Err(group[0])) } else { close(group, &mut out) }
            }
        }
        groups.into_iter().for_each(|(_, group)| close(group, &mut out));
        out
    }
}

/// Everything that a pipe gives and tells, in order.
fn told(pipe: GroupBy, input: &[Sample], chunk: usize) -> Vec<Result<Vec<i64>, i64>> {
    let mut drive = Drive::new(pipe, input, chunk);
    let (mut all, mut given, mut end) = (Vec::new(), 0, false);
    while !end {
        let step = drive.step(1);
        all.extend(places(&drive.out()[given..]).into_iter().map(Ok));
        given = drive.out().len();
        match step {
            Ok(step) => end = step == Step::End,
            Err(error) => {
                let first = error.get("first of group").unwrap();
                all.push(Err(first.trim_start_matches("test#").parse().unwrap()));
            }
        }
    }
    all
}

fn settings() -> Vec<Setting> {
    let mut settings = Vec::new();
    for (size, guaranteed) in
        [(None, None), (Some(1), None), (Some(3), None), (Some(4), Some(2)), (None, Some(3))]
    {
        for buffer in [4, 5, 100] {
            for drops in [false, true] {
                for consecutive in [false, true] {
                    let guarantees = guaranteed.or(size).is_some_and(|least| least > 1);
                    if guarantees || !drops {
                        settings.push(Setting { size, buffer, guaranteed, drops, consecutive });
                    }
                }
            }
        }
    }
    settings
}

#[test]
fn equals_the_definition_whatever_comes() {
    let mut rng = Rng::new(5, 0);
    for _ in 0..12 {
        let (count, kinds) = (rng.below(40), 1 + rng.below(8));
        let mut keys: Vec<_> = (0..count).map(|_| rng.below(kinds) as i64).collect();
        for at in 1..keys.len() {
            if rng.bool(0.5) {
                keys[at] = keys[at - 1];
            }
        }
        let input = input(&keys);
        for setting in settings() {
            for chunk in [1, 3, 50] {
                let found = told(group(&setting.options()), &input, chunk);
                assert_eq!(found, setting.reference(&keys), "{} {keys:?}", setting.options());
            }
        }
    }
}

#[test]
fn goes_on_from_every_moment_and_tells_nothing_twice() {
    for keys in [&[1, 2, 1, 1, 3, 3, 2, 4, 4, 4, 1, 5][..], &[1, 2, 3, 4, 5, 6], &[7], &[]] {
        let input = input(keys);
        for setting in settings() {
            let make = || group(&setting.options());
            check_resume(make, &input);
            let errors = |mut drive: Drive<'_, GroupBy>| {
                let mut count = 0;
                while !matches!(drive.step(1).inspect_err(|_| count += 1), Ok(Step::End)) {}
                count
            };
            let all = errors(Drive::new(make(), &input, 1));
            let (mut drive, mut before) = (Drive::new(make(), &input, 1), 0);
            loop {
                assert_eq!(before + errors(drive.resume(make())), all, "{}", setting.options());
                match drive.step(1) {
                    Ok(Step::End) => break,
                    Ok(_) => {}
                    Err(_) => before += 1,
                }
            }
        }
    }
}

#[test]
fn files_of_one_name_come_together_wherever_they_are() {
    let files = [
        "a.png", "b.png", "c.json", "a.json", "c.png", "b.json", "d.png", "d.json", "e.png", "f.json",
        "g.png", "f.png", "g.json", "e.json",
    ];
    let input: Vec<_> =
        files.iter().zip(0..).map(|(&name, at)| sample(at, &[("name", name.into())])).collect();
    let out = check(|| group(r#"{"key": "name.split('.')[0]", "buffer": 10, "size": 2}"#), &input);
    let names = |sample: &Sample| match sample.get("name").unwrap().view() {
        forebay_core::View::List(names) => {
            names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        }
        _ => Vec::new(),
    };
    let found: Vec<Vec<String>> = out.iter().map(names).collect();
    let expected = [
        ["a.png", "a.json"],
        ["c.json", "c.png"],
        ["b.png", "b.json"],
        ["d.png", "d.json"],
        ["f.json", "f.png"],
        ["g.png", "g.json"],
        ["e.png", "e.json"],
    ];
    assert_eq!(found, expected);
}

#[test]
fn values_stack_or_become_a_list_and_the_first_sample_names_the_group() {
    let tensor =
        |bytes: &[u8]| Value::from(Tensor::new(DType::U8, &[bytes.len()], bytes.to_vec().into()).unwrap());
    let mut files = input(&[1, 2, 1, 1]);
    for (at, bytes) in [&[1_u8, 2][..], &[9], &[3, 4], &[5, 6]].into_iter().enumerate() {
        files[at].set("x", tensor(bytes));
        files[at].set("y", tensor(&[0].repeat(at + 1)));
    }
    files[2] = sample(
        2,
        &[("y", tensor(&[0, 0, 0])), ("at", 2_i64.into()), ("id", 1_u8.into()), ("x", tensor(&[3, 4]))],
    );
    let out = check(|| group(r#"{"key": "id"}"#), &files);
    let x = out[0].get("x").and_then(Value::as_tensor).unwrap();
    assert_eq!((x.shape(), &x.data()[..]), (&[3, 2][..], &[1_u8, 2, 3, 4, 5, 6][..]));
    let wanted = Value::list(vec![tensor(&[0]), tensor(&[0, 0, 0]), tensor(&[0, 0, 0, 0])]);
    assert_eq!(out[0].get("y"), Some(&wanted));
    assert_eq!(out[0].get("id"), Some(&Value::list(vec![1_i64.into(), 1_u8.into(), 1_i64.into()])));
    assert_eq!((out[0].uid(), out[0].key()), (files[0].uid(), files[0].key()));
    assert_eq!((out[1].uid(), out[1].key()), (files[1].uid(), files[1].key()));
}

#[test]
fn samples_that_do_not_fit_are_named_and_the_others_come() {
    let mut bad = input(&[1, 1, 1, 2]);
    bad[1] = sample(1, &[("id", 1_i64.into())]);
    bad[2] = sample(2, &[("at", 7_i64.into())]);
    let mut drive = Drive::new(group(r#"{"key": "id"}"#), &bad, 2);
    let error = drive.run(1, 9).unwrap_err();
    assert_eq!((error.get("sample"), error.get("first of group")), (Some("test#1"), Some("test#0")));
    assert_eq!(error.message(), "cannot stack: a sample lacks `at`, which was there before");
    let error = drive.run(1, 9).unwrap_err();
    assert_eq!((error.get("sample"), error.get("field")), (Some("test#2"), Some("id")));
    drive.run(1, 9).unwrap();
    assert_eq!(places(drive.out()), [[0], [3]]);
    check_resume(|| group(r#"{"key": "id"}"#), &bad);
    check_resume(|| group(r#"{"key": "id", "consecutive": true}"#), &bad);
}

#[test]
fn a_full_buffer_without_a_large_group_names_its_option() {
    let input = input(&[1, 2, 3, 1]);
    let mut drive = Drive::new(group(r#"{"key": "id", "size": 2, "buffer": 3}"#), &input, 9);
    let error = drive.run(1, 9).unwrap_err();
    assert_eq!((error.kind(), error.get("option")), (ErrorKind::Invalid, Some("buffer")));
    let message = "the buffer of 3 is full, and its largest group has 1 of the 2 samples guaranteed";
    assert_eq!((error.message(), error.get("first of group")), (message, Some("test#0")));
}

#[test]
fn a_group_beyond_the_limit_of_memory_is_an_error_and_the_next_comes() {
    let large = |at: u64, id: i64, bytes: usize| {
        let tensor = Tensor::new(DType::U8, &[bytes], vec![at as u8; bytes].into()).unwrap();
        sample(at, &[("id", id.into()), ("at", (at as i64).into()), ("x", tensor.into())])
    };
    let input = [large(0, 1, 700_000), large(1, 1, 700_000), large(2, 2, 10), large(3, 2, 10)];
    let mut drive = Drive::new(group(r#"{"key": "id"}"#), &input, 9);
    let error = drive.run(9, 9).unwrap_err();
    assert_eq!((error.kind(), error.get("field")), (ErrorKind::Limit, Some("x")));
    drive.run(9, 9).unwrap();
    assert_eq!(places(drive.out()), [[2, 3]]);
}

#[test]
fn one_that_does_not_end_comes_in_bounded_memory() {
    let keys: Vec<_> = (0..1000).map(|at| at / 2 % 2).collect();
    let input = input(&keys);
    let setup = Setup { most: 100, ..Setup::new(&[&input]) };
    let out = setup.check(|| group(r#"{"key": "id", "buffer": 10}"#)).swap_remove(0);
    assert_eq!(places(&out)[..2], [vec![0, 1, 4, 5, 8, 9], vec![2, 3, 6, 7, 10, 11, 14, 15]]);
    let mut drive = Drive::new(group(r#"{"key": "id", "buffer": 10}"#), &input, 64);
    drive.run(1, 90).unwrap();
    let state = drive.state().unwrap();
    assert!(state.bytes.len() < 40 && state.again[0] <= 20, "{} bytes", state.bytes.len());
}

#[test]
fn options_that_do_not_work_are_refused() {
    for (options, option) in [
        ("{}", "key"),
        (r#"{"key": "id +"}"#, "key"),
        (r#"{"key": "id", "size": 0}"#, "size"),
        (r#"{"key": "id", "size": 11, "buffer": 10}"#, "size"),
        (r#"{"key": "id", "guaranteed": 3, "size": 2}"#, "guaranteed"),
        (r#"{"key": "id", "guaranteed": 11, "buffer": 10}"#, "guaranteed"),
        (r#"{"key": "id", "drop_remaining": true}"#, "drop_remaining"),
        (r#"{"key": "id", "buffer": 0}"#, "buffer"),
    ] {
        let error = GroupByOptions::parse(options).and_then(GroupBy::new).unwrap_err();
        assert_eq!(error.get("option"), Some(option), "{options}");
    }
    let host = small_host();
    let state = State::json(1, &[0_u64, 3]).unwrap();
    assert_eq!(
        group(r#"{"key": "id"}"#).restore(&state, &host.context()).unwrap_err().kind(),
        ErrorKind::Invalid
    );
}
