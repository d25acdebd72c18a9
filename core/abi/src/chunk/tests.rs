//! Tests of chunks.

use std::iter;

use super::*;

fn chunk(numbers: std::ops::Range<i64>) -> Chunk {
    let schema = Schema::new(["n"]);
    let mut chunk = Chunk::new();
    for n in numbers {
        chunk.push(n as u64, Key { index: n as u64, ..Key::default() }, &schema, [Value::from(n)]);
    }
    chunk
}

fn numbers(chunk: &mut Chunk, field: &str) -> Vec<(u64, u64, i64)> {
    let samples = std::iter::from_fn(|| chunk.pop());
    samples.map(|s| (s.uid(), s.key().index, s.get(field).and_then(Value::as_i64).unwrap())).collect()
}

#[test]
fn samples_come_out_as_they_went_in() {
    let (mut one, mut other) = (chunk(0..3), chunk(3..10));
    one.take_from(&mut other, 2);
    assert_eq!((one.len(), other.len()), (5, 5));
    assert_eq!(numbers(&mut one, "n"), (0..5).map(|n| (n as u64, n as u64, n)).collect::<Vec<_>>());
}

#[test]
fn a_sample_is_taken_apart_at_the_front() {
    let mut two = chunk(5..7);
    for n in 5_u64..7 {
        let taken = two.pop_with(|uid, key, schema, values| {
            (uid, std::mem::take(key).index, schema.len(), std::mem::take(&mut values[0]))
        });
        assert_eq!(taken, Some((n, n, 1, Value::from(n as i64))));
    }
    assert!(two.is_empty() && two.pop_with(|_, _, _, _| ()).is_none());
}

#[test]
fn map_into_changes_values_in_place_and_fields_at_any_point() {
    for switch in 0..5 {
        let (mut input, mut out) = (chunk(-1..4), Chunk::new());
        input.advance(); // What was taken before is not touched.
        let result: Result<(), ()> = input.map_into(&mut out, |sample| {
            let n = sample.get("n").and_then(Value::as_i64).unwrap();
            sample.set("n", n * 10);
            if n >= switch {
                sample.set("more", 1_i64);
            }
            Ok(())
        });
        assert!(result.is_ok() && input.is_empty());
        assert_eq!(numbers(&mut out, "n"), (0..4).map(|n| (n as u64, n as u64, n * 10)).collect::<Vec<_>>());
    }
}

#[test]
fn a_panic_leaves_only_what_was_mapped() {
    for grows in [false, true] {
        let (mut input, mut out) = (chunk(0..5), Chunk::new());
        let mapped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            input.map_into(&mut out, |sample| {
                if grows {
                    sample.set("more", 1_i64);
                }
                assert!(sample.uid() != 3, "meant");
                Ok::<(), ()>(())
            })
        }));
        assert!(mapped.is_err());
        assert_eq!(numbers(&mut out, "n").len(), 3);
    }
}

#[test]
fn a_chunk_that_never_drains_does_not_grow() {
    let mut queue = chunk(0..1);
    for n in 1..10_000 {
        queue.take_from(&mut chunk(n..n + 1), 1);
        assert_eq!(queue.pop().unwrap().uid(), n as u64 - 1);
    }
    assert!(queue.rows.len() < 200 && queue.values.len() < 200);
}

#[test]
fn map_into_leaves_what_comes_after_a_failure() {
    for (fails, grows) in [(0, false), (2, false), (2, true), (3, true)] {
        let (mut input, mut out) = (chunk(0..4), Chunk::new());
        let result = input.map_into(&mut out, |sample| {
            if grows {
                sample.set("more", 1_i64);
            }
            if sample.uid() == fails { Err(sample.uid()) } else { Ok(()) }
        });
        assert_eq!(result, Err(fails));
        let uids = |chunk: &mut Chunk| numbers(chunk, "n").into_iter().map(|n| n.0).collect::<Vec<_>>();
        assert_eq!(uids(&mut out), (0..fails).collect::<Vec<_>>());
        assert_eq!(uids(&mut input), (fails + 1..4).collect::<Vec<_>>());
    }
}

#[test]
fn one_of_the_samples_left_is_looked_at_by_its_place() {
    let mut chunk = chunk(0..10);
    for gone in 0..10 {
        assert_eq!(chunk.len(), 10 - gone);
        for at in 0..12 {
            let found = chunk.get(at).map(|(uid, key, _, values)| (uid, key.index, values[0].as_i64()));
            let number = (gone + at) as u64;
            let expected = (number < 10).then_some((number, number, Some(number as i64)));
            assert_eq!(found, expected, "{at} after {gone}");
        }
        chunk.advance();
    }
    assert!(chunk.get(0).is_none());
}

#[test]
fn a_sample_with_a_value_that_is_not_there_is_not_added() {
    let schema = Schema::new(["a", "b"]);
    let mut chunk = Chunk::new();
    for at in 0..4_u64 {
        let values = [Ok(Value::from(at)), if at % 2 == 0 { Ok(Value::NULL) } else { Err(at) }];
        let key = Key { index: at, ..Key::default() };
        let expected = if at % 2 == 0 { Ok(()) } else { Err(at) };
        assert_eq!(chunk.try_push(at, key, &schema, values), expected);
    }
    let found: Vec<_> = chunk.samples().map(|(uid, key, _, values)| (uid, key.index, values.len())).collect();
    assert_eq!(found, [(0, 0, 2), (2, 2, 2)]);
    // What is missing becomes null, what is too much is not asked for.
    let values = iter::once(Ok(Value::NULL)).chain(iter::once_with(|| Err(7)));
    assert_eq!(chunk.try_push(4, Key::default(), &Schema::new(["a"]), values), Ok(()));
    assert_eq!(chunk.try_push::<u64>(5, Key::default(), &schema, []), Ok(()));
    assert_eq!(chunk.last().map(|last| last.values().to_vec()), Some(vec![Value::NULL; 2]));
}
