//! Tests of `lookup`.

use std::collections::HashMap;

use forebay_core::{ErrorKind, Options, Sample, Value, random::Rng};

use super::*;
use crate::testing::{Drive, Setup, errors, sample, small_host};

fn lookup(options: &str) -> Lookup {
    Lookup::new(LookupOptions::parse(options).unwrap()).unwrap()
}

/// Samples with these keys as `id`, and their places under another name.
fn input(place: &str, keys: &[i64]) -> Vec<Sample> {
    let one =
        |(at, &key): (usize, &i64)| sample(at as u64, &[("id", key.into()), (place, (at as i64).into())]);
    keys.iter().enumerate().map(one).collect()
}

#[test]
fn a_key_that_no_row_has_is_told_beside_one_that_was_meant() {
    let message = |keys: &[Value], key: Value| {
        let rows: Vec<_> = (0..).zip(keys).map(|(at, key)| sample(at, &[("id", key.clone())])).collect();
        let left = [sample(0, &[("id", key), ("x", 1_i64.into())])];
        let mut drive = Drive::wide(lookup(r#"{"key": "id"}"#), &[&left[..], &rows], 1, 1, &small_host());
        let error = drive.run(1, 1).unwrap_err();
        assert_eq!(error.get("sample"), Some("test#0"));
        error.message().to_owned()
    };
    let files: Vec<Value> = (0..50).rev().map(|at| format!("{at:06}.jpg").as_str().into()).collect();
    for (keys, key, expected) in [
        (
            &files[..],
            "000007".into(),
            r#"no row has its key "000007"; the table has "000007.jpg" and 49 more"#,
        ),
        (&files[..1], "x".into(), r#"no row has its key "x"; the table has "000049.jpg""#),
        (&["7".into()], 7_i64.into(), r#"no row has its key 7; the table has "7""#),
        (&[], "x".into(), r#"no row has its key "x"; the table is empty"#),
    ] {
        assert_eq!(message(keys, key), expected);
    }
}

const JOINS: [&str; 3] = ["strict", "inner", "left"];

#[test]
fn equals_the_definition_whatever_comes() {
    let mut rng = Rng::new(61, 0);
    for round in 0..60 {
        let (count, rows) = (rng.below(30) as usize, rng.below(8) as usize);
        let left: Vec<i64> = (0..count).map(|_| rng.below(8) as i64).collect();
        let right: Vec<i64> = (0..rows).map(|_| rng.below(8) as i64).collect();
        let join = JOINS[round % 3];
        // By definition: a map of the table, whose first row with a key counts, and each sample's entry in it.
        let (mut table, mut told) = (HashMap::new(), Vec::new());
        for (at, key) in right.iter().enumerate() {
            match table.contains_key(key) {
                true => told.push(format!("test#{at}")),
                false => drop(table.insert(*key, at as i64)),
            }
        }
        let mut wanted = Vec::new();
        for (at, key) in left.iter().enumerate() {
            let fields = |row: Value| [("id", (*key).into()), ("a", (at as i64).into()), ("b", row)];
            match (table.get(key), join) {
                (Some(&row), _) => wanted.push(sample(at as u64, &fields(row.into()))),
                (None, "strict") => told.push(format!("test#{at}")),
                (None, "left") if rows > 0 => wanted.push(sample(at as u64, &fields(Value::NULL))),
                (None, "left") => wanted.push(sample(at as u64, &fields(Value::NULL)[..2])),
                _ => {}
            }
        }
        let inputs = [&input("a", &left)[..], &input("b", &right)];
        let make = || lookup(&format!(r#"{{"key": "id", "join": "{join}"}}"#));
        for chunk in [1, 7] {
            let mut drive = Drive::wide(make(), &inputs, 1, chunk, &small_host());
            let found: Vec<_> =
                errors(&mut drive).iter().map(|error| error.get("sample").unwrap().to_owned()).collect();
            assert_eq!((drive.out(), found), (&wanted[..], told.clone()), "{join}: {left:?} {right:?}");
        }
        Setup::new(&inputs).check_resume(make);
    }
}

#[test]
fn what_stands_before_the_names_and_keys_of_other_names() {
    let left = [sample(0, &[("file", "a/7.jpg".into()), ("x", 1_i64.into())])];
    let table = [sample(0, &[("x", "seven".into()), ("id", 7_i64.into())])];
    let inputs = [&left[..], &table];
    let given = |options: &str| {
        let mut drive = Drive::wide(lookup(options), &inputs, 1, 1, &small_host());
        drive.run(1, 1).map(|()| drive.out().to_vec())
    };
    let out = given(r#"{"left": "size(file)", "right": "id", "prefix": ["", "row-"]}"#).unwrap();
    let names: Vec<_> = out[0].schema().names().iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["file", "x", "row-x", "row-id"]);
    let twice = given(r#"{"left": "size(file)", "right": "id"}"#).unwrap_err();
    assert_eq!((twice.get("sample"), twice.get("field")), (Some("test#0"), Some("x")));
    for (options, option) in [
        (r#"{"prefix": ["a"]}"#, "prefix"),
        (r#"{"key": "a", "left": "b", "right": "c"}"#, "key"),
        (r#"{"right": "b +"}"#, "right"),
    ] {
        let error = Lookup::new(LookupOptions::parse(options).unwrap()).unwrap_err();
        assert_eq!(error.get("option"), Some(option));
    }
}

#[test]
fn a_table_that_is_too_large_ends_it_and_is_told_once() {
    let (left, table) = (input("a", &[1, 2, 3]), input("b", &(0..100).collect::<Vec<_>>()));
    let inputs = [&left[..], &table];
    let make = || lookup(r#"{"key": "id", "limit": 2000}"#);
    let mut drive = Drive::wide(make(), &inputs, 1, 8, &small_host());
    let found = errors(&mut drive);
    assert_eq!((found.len(), found[0].kind(), found[0].get("option")), (1, ErrorKind::Limit, Some("limit")));
    assert!(drive.out().is_empty());
    let mut late = drive.resume(make());
    assert!(errors(&mut late).is_empty() && late.out().is_empty());
}

#[test]
fn the_table_is_read_before_any_sample_and_a_position_is_small() {
    let (left, table) = (input("a", &[5; 40]), input("b", &(0..1000).collect::<Vec<_>>()));
    let mut drive = Drive::wide(lookup(r#"{"key": "id"}"#), &[&left, &table], 1, 16, &small_host());
    while drive.taken(1) < 1000 {
        drive.step(4).unwrap();
        assert_eq!((drive.fed(), drive.out().len()), (0, 0));
    }
    drive.run(4, 20).unwrap();
    let state = drive.state().unwrap();
    assert!(state.bytes.len() < 20);
    assert_eq!(state.again.get(1), Some(&1000));
}
