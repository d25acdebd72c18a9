//! Tests of `zip_by_key`.

use forebay_core::{ErrorKind, Key, Options, Str, random::Rng};

use super::*;
use crate::testing::{Drive, Setup, sample, small_host, uid_of};

fn zip(options: &str) -> ZipByKey {
    ZipByKey::new(ZipByKeyOptions::parse(options).unwrap()).unwrap()
}

/// Samples with these keys as `id`, and their places under another name.
fn input(place: &str, keys: &[i64]) -> Vec<Sample> {
    let one =
        |(at, &key): (usize, &i64)| sample(at as u64, &[("id", key.into()), (place, (at as i64).into())]);
    keys.iter().enumerate().map(one).collect()
}

/// A sample as the places that it joins.
fn text(sample: &Sample) -> String {
    let place =
        |field: &str| sample.get(field).and_then(Value::as_i64).map_or("-".into(), |at| at.to_string());
    format!("{} {}", place("a"), place("b"))
}

/// Everything that a pipe gives and tells, in order.
fn told(pipe: ZipByKey, inputs: &[&[Sample]], chunk: usize) -> Vec<Result<String, String>> {
    let mut drive = Drive::wide(pipe, inputs, 1, chunk, &small_host());
    let (mut all, mut given, mut end) = (Vec::new(), 0, false);
    while !end {
        let step = drive.step(1);
        all.extend(drive.out()[given..].iter().map(|sample| Ok(text(sample))));
        given = drive.out().len();
        match step {
            Ok(step) => end = step == Step::End,
            Err(error) => all.push(Err(error.get("sample").unwrap_or("none").to_owned())),
        }
    }
    all
}

/// What the pipe is defined to give and tell, written out plainly.
fn reference(
    left: &[i64],
    right: &[i64],
    join: &str,
    buffer: usize,
    drops: bool,
) -> Vec<Result<String, String>> {
    let (mut out, mut waiting, mut next) = (Vec::new(), Vec::<usize>::new(), 0);
    let alone = |b: usize, out: &mut Vec<_>| match join {
        "strict" => out.push(Err(format!("test#{b}"))),
        "outer" => out.push(Ok(format!("- {b}"))),
        _ => {}
    };
    'left: for (a, key) in left.iter().enumerate() {
        if let Some(found) = waiting.iter().position(|&b| right[b] == *key) {
            out.push(Ok(format!("{a} {}", waiting.remove(found))));
            continue;
        }
        while next < right.len() {
            let full = waiting.len() == buffer;
            if right[next] == *key {
                out.push(Ok(format!("{a} {next}")));
                next += 1;
                continue 'left;
            } else if waiting.iter().any(|&b| right[b] == right[next]) {
                out.push(Err(format!("test#{next}")));
            } else if full && drops {
                alone(waiting.remove(0), &mut out);
                continue;
            } else if full {
                out.push(Err(format!("test#{a}")));
                continue 'left;
            } else {
                waiting.push(next);
            }
            next += 1;
        }
        match join {
            "strict" => out.push(Err(format!("test#{a}"))),
            "inner" => {}
            _ => out.push(Ok(format!("{a} -"))),
        }
    }
    waiting.into_iter().chain(next..right.len()).for_each(|b| alone(b, &mut out));
    out
}

/// Keys from 0 on, each moved about by so much at most, some left out and some twice.
fn keys(rng: &mut Rng, count: i64, moved: u64, odd: f64) -> Vec<i64> {
    let mut places: Vec<(u64, i64)> = Vec::new();
    for key in 0..count {
        let copies = if rng.bool(odd) { rng.below(3) } else { 1 };
        places.extend((0..copies).map(|_| (key as u64 + rng.below(moved + 1), key)));
    }
    places.sort_by_key(|(place, _)| *place);
    places.into_iter().map(|(_, key)| key).collect()
}

const JOINS: [&str; 4] = ["strict", "inner", "left", "outer"];

#[test]
fn equals_the_definition_whatever_comes() {
    let mut rng = Rng::new(3, 0);
    for round in 0..40 {
        let (count, moved) = (rng.below(20) as i64, rng.below(6));
        let odd = if round % 4 == 0 { 0.0 } else { 0.2 };
        let (left, right) = (keys(&mut rng, count, moved, odd), keys(&mut rng, count, moved, odd));
        let inputs = [&input("a", &left)[..], &input("b", &right)];
        for join in JOINS {
            for (buffer, on_full) in [(100, "fail"), (2, "fail"), (2, "drop_oldest")] {
                let options = format!(
                    r#"{{"key": "id", "join": "{join}", "buffer": {buffer}, "on_full": "{on_full}"}}"#
                );
                let expected = reference(&left, &right, join, buffer, on_full == "drop_oldest");
                for chunk in [1, 2, 50] {
                    let found = told(zip(&options), &inputs, chunk);
                    assert_eq!(found, expected, "{options} {left:?} {right:?}");
                }
            }
        }
    }
}

#[test]
fn goes_on_from_every_moment_and_tells_nothing_twice() {
    let cases: [(&[i64], &[i64]); 5] = [
        (&[3, 1, 2, 5, 9, 4], &[1, 2, 2, 3, 7, 4, 5, 8]),
        (&[1, 2, 3, 4], &[4, 3, 2, 1]),
        (&[1, 1, 2], &[2, 1, 1]),
        (&[], &[1, 2]),
        (&[1, 2], &[]),
    ];
    for (left, right) in cases {
        let inputs = [&input("a", left)[..], &input("b", right)];
        for join in JOINS {
            for rest in [r#""buffer": 9"#, r#""buffer": 2"#, r#""buffer": 2, "on_full": "drop_oldest""#] {
                let make = || zip(&format!(r#"{{"key": "id", "join": "{join}", {rest}}}"#));
                Setup::new(&inputs).check_resume(make);
                let errors = |mut drive: Drive<'_, ZipByKey>| {
                    let mut count = 0;
                    while !matches!(drive.step(1).inspect_err(|_| count += 1), Ok(Step::End)) {}
                    count
                };
                let all = errors(Drive::wide(make(), &inputs, 1, 1, &small_host()));
                let mut drive = Drive::wide(make(), &inputs, 1, 1, &small_host());
                let mut before = 0;
                loop {
                    assert_eq!(before + errors(drive.resume(make())), all, "{join} {rest} {left:?}");
                    match drive.step(1) {
                        Ok(Step::End) => break,
                        Ok(_) => {}
                        Err(_) => before += 1,
                    }
                }
            }
        }
    }
}

#[test]
fn the_joined_sample_is_that_of_the_first_input_with_the_fields_of_both() {
    let (a, mut b) = (input("a", &[5, 6]), input("b", &[6, 5]));
    b[1].set("id", 5.0);
    let inputs = [&a[..], &b];
    let setup = Setup::new(&inputs);
    let out = setup.check(|| zip(r#"{"key": "id"}"#)).swap_remove(0);
    let wanted =
        |at: u64, id: i64, a: i64, b: i64| sample(at, &[("id", id.into()), ("a", a.into()), ("b", b.into())]);
    assert_eq!(
        out,
        [wanted(0, 5, 0, 1), wanted(1, 6, 1, 0)],
        "the key stands there once, as the first has it"
    );
    let prefix = || zip(r#"{"key": "id", "prefix": ["", "r."]}"#);
    let out = setup.check(prefix).swap_remove(0);
    let wanted =
        sample(0, &[("id", 5_i64.into()), ("a", 0_i64.into()), ("r.id", 5.0.into()), ("r.b", 1_i64.into())]);
    assert_eq!(out[0], wanted);
    let mut drive = Drive::wide(zip(r#"{"left": "id", "right": "id + 0"}"#), &inputs, 1, 1, &small_host());
    let error = drive.run(1, 9).unwrap_err();
    assert_eq!((error.get("field"), error.get("sample")), (Some("id"), Some("test#0")));
    assert!(error.message().contains("tell them apart by `prefix`"), "{error}");
}

#[test]
fn keys_of_other_names_and_the_samples_names_join_too() {
    let b: Vec<_> = [6_i64, 5].iter().map(|&n| sample(n as u64, &[("number", n.into())])).collect();
    let a = input("a", &[5, 6]);
    let setup = Setup::new(&[&a, &b]);
    let out = setup.check(|| zip(r#"{"left": "id", "right": "number"}"#)).swap_remove(0);
    let values = |field: &str| {
        out.iter().map(|sample| sample.get(field).unwrap().as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((values("id"), values("number")), (vec![5, 6], vec![5, 6]));
    let named = |origin: &str, name: &str, field: &str| {
        let mut sample = sample(1, &[(field, name.into())]);
        let member = Key { origin: "x.tar".into(), name: Str::from(name), index: 3 };
        sample.set_key(if origin.is_empty() { member } else { Key::whole(format!("{origin}/{name}")) });
        sample
    };
    let (a, b) = (
        [named("img", "1.jpg", "jpg"), named("img", "2.jpg", "jpg")],
        [named("", "2", "x"), named("", "1", "x")],
    );
    let out = Setup::new(&[&a, &b]).check(|| zip("{}")).swap_remove(0);
    let found: Vec<_> =
        out.iter().map(|sample| sample.get("x").unwrap().as_str().unwrap().to_owned()).collect();
    assert_eq!(found, ["1", "2"]);
}

#[test]
fn without_a_partner_the_others_fields_are_null() {
    let (a, b) = (input("a", &[1, 2]), input("b", &[2, 3]));
    let outer = || zip(r#"{"key": "id", "join": "outer"}"#);
    let out = Setup::new(&[&a, &b]).check(outer).swap_remove(0);
    let wanted =
        |id: i64, a: Value, b: Value| vec![("id".into(), id.into()), ("a".into(), a), ("b".into(), b)];
    let found: Vec<Vec<(Str, Value)>> = out
        .iter()
        .map(|sample| sample.fields().map(|(name, value)| (name.clone(), value.clone())).collect())
        .collect();
    let expected = [
        wanted(1, 0_i64.into(), Value::NULL),
        wanted(2, 1_i64.into(), 0_i64.into()),
        wanted(3, Value::NULL, 1_i64.into()),
    ];
    assert_eq!(found, expected);
    assert_eq!((out[1].uid(), out[2].uid()), (a[1].uid(), uid_of(b[1].uid(), [1, 0])));
    let out = Setup::new(&[&[], &b]).check(outer).swap_remove(0);
    assert_eq!(out[0].get("id").and_then(Value::as_i64), Some(2), "the key is known where no fields are");
    let out = Setup::new(&[&a, &[]]).check(|| zip(r#"{"key": "id", "join": "left"}"#)).swap_remove(0);
    assert_eq!(out, a);
}

#[test]
fn errors_name_the_sample_and_the_option() {
    let run = |options: &str, left: &[i64], right: &[i64]| {
        let inputs = [&input("a", left)[..], &input("b", right)];
        Drive::wide(zip(options), &inputs, 1, 1, &small_host()).run(1, 99).unwrap_err()
    };
    let error = run(r#"{"key": "id", "buffer": 2}"#, &[9], &[1, 2, 3, 9]);
    assert_eq!((error.get("option"), error.get("sample")), (Some("buffer"), Some("test#0")));
    assert!(error.message().starts_with("its partner is not among the 2 samples of input 1"), "{error}");
    let error = run(r#"{"key": "id"}"#, &[9], &[1, 2, 1]);
    assert_eq!(
        (error.message(), error.get("sample")),
        ("its key is that of `test#0`, which waits for its partner", Some("test#2"))
    );
    let error = run(r#"{"key": "id"}"#, &[9], &[]);
    assert_eq!(
        (error.message(), error.get("sample")),
        ("no sample of input 1 has its key 9", Some("test#0"))
    );
    let error = run(r#"{"key": "id"}"#, &[], &[7]);
    assert_eq!(
        (error.message(), error.get("sample")),
        ("no sample of input 0 has its key 7", Some("test#0"))
    );
    let error = run(r#"{"left": "id", "right": "nowhere"}"#, &[9], &[7]);
    assert_eq!((error.get("field"), error.get("sample")), (Some("nowhere"), Some("test#0")));
}

#[test]
fn it_takes_no_more_of_the_second_input_than_it_needs() {
    let (a, b) = (input("a", &[0, 1, 2]), input("b", &(0..50).collect::<Vec<_>>()));
    let inputs = [&a[..], &b];
    let mut drive = Drive::wide(zip(r#"{"key": "id", "join": "inner"}"#), &inputs, 1, 4, &small_host());
    drive.run(9, 99).unwrap();
    assert_eq!((drive.out().len(), drive.taken(0), drive.taken(1)), (3, 3, 3));
    let mut drive = Drive::wide(zip(r#"{"key": "id"}"#), &inputs, 1, 1, &small_host());
    assert_eq!(drive.step(9).unwrap(), Step::NeedInput(0));
    assert_eq!(drive.step(9).unwrap(), Step::NeedInput(1));
}

#[test]
fn a_saved_position_is_small() {
    let count = 5000;
    let (a, b) =
        (input("a", &(0..count).collect::<Vec<_>>()), input("b", &(0..count).rev().collect::<Vec<_>>()));
    let inputs = [&a[..], &b];
    let mut drive = Drive::wide(zip(r#"{"key": "id"}"#), &inputs, 1, 64, &small_host());
    drive.run(1, 100).unwrap();
    let state = drive.state().unwrap();
    assert!(state.bytes.len() < 40, "{} bytes for {} samples that wait", state.bytes.len(), state.again[1]);
    assert_eq!(state.again[1], count as u64);
    let host = small_host();
    for wrong in [&b"[[1, 0], []]"[..], b"[[18446744073709551615, 1], []]", b"7"] {
        let state = State { bytes: wrong.to_vec().into(), ..state.clone() };
        assert_eq!(zip("{}").restore(&state, &host.context()).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn an_input_that_became_shorter_is_an_error() {
    let (a, b) = (input("a", &[3, 2, 1, 0]), input("b", &[0, 1, 2, 3]));
    let mut drive = Drive::wide(zip(r#"{"key": "id"}"#), &[&a, &b], 1, 1, &small_host());
    drive.run(1, 1).unwrap();
    let host = small_host();
    let mut pipe = zip(r#"{"key": "id"}"#);
    pipe.reset(&host.context()).unwrap();
    pipe.restore(&drive.state().unwrap(), &host.context()).unwrap();
    let mut other = Drive::wide(zip("{}"), &[&a[..], &b[..1]], 1, 1, &host);
    other.replace(pipe);
    let error = other.run(1, 9).unwrap_err();
    assert_eq!(error.message(), "the input ended 3 samples before the saved position");
    assert_eq!(other.step(1).unwrap(), Step::End);
}

#[test]
fn options_that_do_not_work_are_refused() {
    for (options, option) in [
        (r#"{"buffer": 0}"#, "buffer"),
        (r#"{"join": "full"}"#, "join"),
        (r#"{"on_full": "wait"}"#, "on_full"),
        (r#"{"key": "id +"}"#, "key"),
        (r#"{"key": "id", "left": "id", "right": "id"}"#, "key"),
        (r#"{"left": "("}"#, "left"),
        (r#"{"right": "("}"#, "right"),
        (r#"{"prefix": ["a"]}"#, "prefix"),
    ] {
        let error = ZipByKeyOptions::parse(options).and_then(ZipByKey::new).unwrap_err();
        assert_eq!(error.get("option"), Some(option), "{options}");
    }
}
