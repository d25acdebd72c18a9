//! Tests of `pack`, against what Grain's tests expect and a plain definition.

mod definition;
mod padding;

use forebay_core::{
    DType, DataPipe, ErrorKind, Limits, Options, Sample, State, Stream, Tensor, TensorExt, Value, View,
    random::Rng,
};

use super::{Pack, PackOptions};
use crate::{
    plumbing::numbers,
    testing::{Drive, check, check_resume, ints, sample, small_host},
};

fn pack(options: &str) -> Pack {
    Pack::new(PackOptions::parse(options).unwrap()).unwrap()
}

fn tensor(shape: &[usize], numbers: &[i32]) -> Value {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    Tensor::new(DType::I32, shape, bytes.into()).unwrap().into()
}

fn list(numbers: &[i64]) -> Value {
    Value::list(numbers.iter().map(|&number| number.into()).collect())
}

/// Samples with `tokens` of these lengths, all the number of the sample from 1.
fn tokens(lens: &[usize]) -> Vec<Sample> {
    let all = lens.iter().zip(1..);
    all.map(|(&len, at)| sample(at as u64, &[("tokens", tensor(&[len], &vec![at; len]))])).collect()
}

/// The numbers of a field.
fn field(row: &Sample, name: &str) -> Vec<i64> {
    match row.get(name).unwrap_or_else(|| panic!("{name} in {row:?}")).view() {
        View::List(items) => items.iter().map(|item| item.as_i64().unwrap()).collect(),
        View::Tensor(tensor) => {
            let size = tensor.dtype().size();
            let words = tensor.data().chunks_exact(size).map(|word| {
                let mut bytes = [0; 8];
                bytes[..size].copy_from_slice(word);
                i64::from_le_bytes(bytes) << (64 - 8 * size) >> (64 - 8 * size)
            });
            words.collect()
        }
        other => panic!("{other:?}"),
    }
}

fn fields(rows: &[Sample], name: &str) -> Vec<Vec<i64>> {
    rows.iter().map(|row| field(row, name)).collect()
}

#[test]
fn first_fit_takes_the_first_with_room_b150() {
    let rows = check(|| pack(r#"{"length": 10, "method": "first_fit", "bins": 2}"#), &tokens(&[4, 8, 2]));
    assert_eq!(fields(&rows, "tokens"), [[1, 1, 1, 1, 3, 3, 0, 0, 0, 0], [2, 2, 2, 2, 2, 2, 2, 2, 0, 0]]);
    let segments = [[1, 1, 1, 1, 2, 2, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]];
    assert_eq!(fields(&rows, "tokens_segment_ids"), segments);
    let positions = [[0, 1, 2, 3, 0, 1, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5, 6, 7, 0, 0]];
    assert_eq!(fields(&rows, "tokens_positions"), positions);
    assert_eq!(rows[0].get("tokens_segment_ids").unwrap().as_tensor().unwrap().dtype(), DType::I32);
    // Best fit puts the two beside the eight.
    let rows = check(|| pack(r#"{"length": 10, "bins": 2}"#), &tokens(&[4, 8, 2]));
    assert_eq!(fields(&rows, "tokens"), [[1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [2, 2, 2, 2, 2, 2, 2, 2, 3, 3]]);
}

#[test]
fn what_fits_nowhere_begins_a_row_b152() {
    let rows =
        check(|| pack(r#"{"length": 100, "method": "first_fit", "bins": 2}"#), &tokens(&[50, 70, 25, 40]));
    let counts =
        |row: &Vec<i64>| [1, 2, 3, 4].map(|sample| row.iter().filter(|&&item| item == sample).count());
    let found: Vec<_> = fields(&rows, "tokens").iter().map(counts).collect();
    assert_eq!(found, [[50, 0, 25, 0], [0, 70, 0, 0], [0, 0, 0, 40]]);
}

#[test]
fn only_the_oldest_row_goes_for_what_fits_nowhere() {
    let input = tokens(&[6, 7, 8, 3, 2]);
    let mut drive = Drive::new(pack(r#"{"length": 10, "bins": 2}"#), &input, 1);
    while drive.taken(0) < 3 {
        drive.step(1).unwrap();
    }
    assert_eq!(drive.out().len(), 1, "the sixth had to go for the eighth");
    drive.run(1, usize::MAX).unwrap();
    assert_eq!(fields(drive.out(), "tokens").concat().iter().filter(|&&item| item > 0).count(), 26);
    assert_eq!(
        fields(drive.out(), "tokens")[1],
        [2, 2, 2, 2, 2, 2, 2, 4, 4, 4],
        "the seventh took the third"
    );
}

#[test]
fn fields_that_are_not_as_the_options_say_are_refused_b154() {
    let input = [sample(3, &[("inputs", list(&[1])), ("targets", list(&[2])), ("id", 5_i64.into())])];
    let cases = [
        (
            r#"{"length": 6, "fields": ["inputs", "index=4"]}"#,
            "cannot pack: found the fields inputs, targets, id; expected inputs, index",
        ),
        (
            r#"{"length": 6, "fields": "inputs", "meta": ["id"]}"#,
            "cannot pack: found the fields inputs, targets, id; expected inputs, and beside what is packed: id",
        ),
        (
            r#"{"length": 6, "meta": ["inputs", "targets"]}"#,
            "cannot pack: found the fields inputs, targets, id; expected one or more sequences, and beside what is packed: inputs, targets",
        ),
        (
            r#"{"length": 6, "meta": ["name", "id"]}"#,
            "cannot pack: found the fields inputs, targets, id; expected one or more sequences, and beside what is packed: name, id",
        ),
        (
            r#"{"length": 6, "fields": "id"}"#,
            "cannot pack: found a single number, expected a tensor with axes or a list of numbers",
        ),
        (r#"{"length": 6, "uids": "id"}"#, "a row has a field of this name already"),
    ];
    for (options, message) in cases {
        let mut drive = Drive::new(pack(options), &input, 1);
        let error = drive.run(1, 1).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, message), "{options}");
        assert_eq!(error.get("sample"), Some("test#3"));
        drive.run(1, 1).unwrap();
        assert!(drive.out().is_empty(), "the sample is left out");
    }
}

#[test]
fn several_fields_share_a_row_where_all_have_room() {
    // Grain's test_pack_sequences_length_3.
    let pair = |at, inputs: &[i64], targets: &[i64]| {
        sample(at, &[("inputs", list(inputs)), ("targets", list(targets))])
    };
    let input = [pair(0, &[1, 2, 3], &[10]), pair(1, &[4, 5], &[20, 30, 40]), pair(2, &[6], &[50, 60])];
    for method in ["first_fit", "best_fit"] {
        for bins in 1..4 {
            let options = format!(r#"{{"length": 3, "bins": {bins}, "method": "{method}"}}"#);
            let rows = check(|| pack(&options), &input);
            assert_eq!(fields(&rows, "inputs"), [[1, 2, 3], [4, 5, 0], [6, 0, 0]]);
            assert_eq!(fields(&rows, "targets"), [[10, 0, 0], [20, 30, 40], [50, 60, 0]]);
            assert_eq!(fields(&rows, "targets_positions"), [[0, 0, 0], [0, 1, 2], [0, 1, 0]]);
        }
    }
}

#[test]
fn concat_cuts_where_a_row_ends() {
    // Grain's test_split_element_multiple_times.
    let count = |len: i64| list(&(0..len).collect::<Vec<_>>());
    let input = [
        sample(0, &[("a", count(7)), ("id", 1_i64.into())]),
        sample(1, &[("a", count(25)), ("id", 2_i64.into())]),
    ];
    let concat = |more: &str| format!(r#"{{"length": 10, "method": "concat"{more}}}"#);
    let rows = check(|| pack(&concat("")), &input);
    assert_eq!(field(&rows[0], "a"), [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]);
    assert_eq!(field(&rows[0], "a_segment_ids"), [1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
    assert_eq!(field(&rows[1], "a"), (3..13).collect::<Vec<_>>());
    assert_eq!(field(&rows[1], "a_positions"), (0..10).collect::<Vec<_>>());
    assert_eq!(field(&rows[3], "a"), [23, 24, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(fields(&rows, "id"), [vec![1, 2], vec![2], vec![2], vec![2]], "each piece has its sample's");
    assert_eq!(check(|| pack(&concat(r#", "drop_last": true"#)), &input), rows[..3]);
    let marked = check(|| pack(&concat(r#", "bos": 100, "eos": ["a=101"]"#)), &input);
    assert_eq!(field(&marked[0], "a"), [100, 0, 1, 2, 3, 4, 5, 6, 101, 100]);
    assert_eq!(field(&marked[3], "a"), [20, 21, 22, 23, 24, 101, 0, 0, 0, 0]);
    let tight = check(|| pack(r#"{"length": 9, "method": "concat", "bos": 100, "eos": 101}"#), &input);
    assert_eq!(field(&tight[0], "a"), [100, 0, 1, 2, 3, 4, 5, 6, 101]);
    assert_eq!(tight.len(), 4, "what ends with a row leaves nothing");
}

#[test]
fn a_row_takes_only_so_many_sequences() {
    let options = r#"{"length": 10, "max_per_bin": 2, "bins": 2, "segments": false}"#;
    let rows = check(|| pack(options), &tokens(&[2, 2, 2, 0, 3]));
    assert_eq!(
        fields(&rows, "tokens"),
        [[1, 1, 2, 2, 0, 0, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0, 0, 0, 0, 0], [5, 5, 5, 0, 0, 0, 0, 0, 0, 0],]
    );
    let names: Vec<_> = rows[0].schema().names().iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["tokens", "tokens_positions"]);
}

#[test]
fn what_is_too_long_is_told_or_what_the_option_says() {
    let input = tokens(&[2, 7, 3]);
    let mut drive = Drive::new(pack(r#"{"length": 4, "bins": 1}"#), &input, 1);
    let error = drive.run(1, 9).unwrap_err();
    assert_eq!(error.message(), "found 7 items, a row has 4: shorten them before, or say `too_long`");
    assert_eq!((error.get("field"), error.get("sample")), (Some("tokens"), Some("test#2")));
    drive.run(1, 9).unwrap();
    let left = vec![vec![1, 1, 0, 0], vec![3, 3, 3, 0]];
    assert_eq!(fields(drive.out(), "tokens"), left);
    let pack = |too_long: &str| {
        let options = format!(r#"{{"length": 4, "bins": 1, "too_long": "{too_long}"}}"#);
        fields(&check(|| pack(&options), &input), "tokens")
    };
    assert_eq!(pack("drop"), left);
    assert_eq!(pack("truncate"), [[1, 1, 0, 0], [2, 2, 2, 2], [3, 3, 3, 0]]);
    assert_eq!(pack("split"), [[1, 1, 0, 0], [2, 2, 2, 2], [2, 2, 2, 0], [3, 3, 3, 0]]);
}

#[test]
fn empty_lists_have_any_type() {
    let half = |x: &[f64]| Value::list(x.iter().map(|&x| x.into()).collect());
    let one = |at, x: Value| sample(at, &[("x", x)]);
    let input = [one(0, half(&[])), one(1, half(&[0.5])), one(2, half(&[])), one(3, half(&[1.5, 2.5]))];
    let rows = check(|| pack(r#"{"length": 3, "bins": 1, "pad": 0.25}"#), &input);
    let bits = |x: [f64; 3]| x.map(|x| x.to_bits().cast_signed());
    assert_eq!(fields(&rows, "x"), [bits([0.5, 1.5, 2.5])]);
    assert_eq!(field(&rows[0], "x_segment_ids"), [2, 4, 4]);
    let empty = check(|| pack(r#"{"length": 2, "pad": 3}"#), &input[..1]);
    assert_eq!((fields(&empty, "x"), fields(&empty, "x_segment_ids")), (vec![vec![3, 3]], vec![vec![0, 0]]));
    check_resume(|| pack(r#"{"length": 2, "bins": 2}"#), &input);
    let marked = check(|| pack(r#"{"length": 2, "bos": 9}"#), &input[..1]);
    assert_eq!(fields(&marked, "x"), [[9, 0]]);
}

#[test]
fn a_sample_that_does_not_go_with_the_others_is_named() {
    let tokens = |value: Value| sample(7, &[("tokens", value)]);
    let first = tokens(tensor(&[2], &[1, 1]));
    let mixed = Value::list(vec![1_i64.into(), 0.5.into()]);
    let cases = [
        (tokens(list(&[1])), "cannot pack: found int64 after int32"),
        (tokens(tensor(&[1, 2], &[1, 2])), "cannot pack: found items of int32 [2] after int32"),
        (tokens(mixed), "cannot pack: found float64 in a list of int64, expected numbers of one type"),
        (
            sample(7, &[("ids", list(&[1])), ("name", "x".into())]),
            "cannot pack: found sequences in ids, beside name after sequences in tokens",
        ),
        (tokens("text".into()), "cannot pack: found the fields tokens; expected one or more sequences"),
    ];
    for (odd, message) in cases {
        let input = [first.clone(), odd, first.clone()];
        let mut drive = Drive::new(pack(r#"{"length": 5}"#), &input, 2);
        let error = drive.run(1, 9).unwrap_err();
        assert_eq!((error.message(), error.get("sample")), (message, Some("test#7")));
        drive.run(1, 9).unwrap();
        assert_eq!(fields(drive.out(), "tokens"), [[1, 1, 1, 1, 0]], "the others share a row");
        check_resume(|| pack(r#"{"length": 5}"#), &input);
    }
}

#[test]
fn fields_in_another_order_share_a_row() {
    let (a, b) = (("a", list(&[1, 2])), ("b", list(&[3])));
    let input = [sample(0, &[a.clone(), b.clone()]), sample(1, &[b, a])];
    let rows = check(|| pack(r#"{"length": 5}"#), &input);
    assert_eq!(
        (fields(&rows, "a"), fields(&rows, "b")),
        (vec![vec![1, 2, 1, 2, 0]], vec![vec![3, 3, 0, 0, 0]])
    );
}

#[test]
fn fields_of_equal_lengths_share_segments_and_positions() {
    let both = sample(0, &[("ids", list(&[1, 2])), ("weights", list(&[1, 0])), ("more", list(&[1]))]);
    let row = check(|| pack(r#"{"length": 5}"#), &[both]).remove(0);
    let place = |name: &str| row.get(name).unwrap().as_tensor().unwrap().data().as_ptr();
    assert_eq!(place("ids_segment_ids"), place("weights_segment_ids"));
    assert_eq!(place("ids_positions"), place("weights_positions"));
    assert_ne!(place("ids_segment_ids"), place("more_segment_ids"));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for (options, option) in [
        (r#"{"length": 0}"#, "length"),
        (r#"{"length": 5, "bins": 0}"#, "bins"),
        (r#"{"length": 5, "max_per_bin": 0}"#, "max_per_bin"),
        (r#"{"length": 5, "method": "worst_fit"}"#, "method"),
        (r#"{"length": 5, "too_long": "keep"}"#, "too_long"),
        (r#"{"length": 5, "method": "concat", "too_long": "drop"}"#, "too_long"),
        (r#"{"length": 5, "drop_last": true}"#, "drop_last"),
        (r#"{"length": 5, "fields": []}"#, "fields"),
        (r#"{"length": 5, "fields": ["a=x"]}"#, "fields"),
        (r#"{"length": 5, "fields": ["a=0"]}"#, "fields"),
        (r#"{"length": 5, "fields": ["a", "a=7"]}"#, "fields"),
        (r#"{"length": 5, "fields": ["a"], "meta": ["a"]}"#, "meta"),
        (r#"{"length": 5, "meta": ["b", "b"]}"#, "meta"),
        (r#"{"length": 5, "pad": "x"}"#, "pad"),
        (r#"{"length": 5, "pad": [0]}"#, "pad"),
        (r#"{"length": 5, "bos": ["a=1", "a=2"]}"#, "bos"),
        (r#"{"length": 5, "fields": ["a"], "eos": "b=1"}"#, "eos"),
    ] {
        let error = PackOptions::parse(options).and_then(Pack::new).unwrap_err();
        assert_eq!((error.kind(), error.get("option")), (ErrorKind::Invalid, Some(option)), "{options}");
    }
    let input = tokens(&[2]);
    let mut drive = Drive::new(pack(r#"{"length": 5, "pad": 0.5}"#), &input, 1);
    let error = drive.run(1, 1).unwrap_err();
    assert_eq!((error.message(), error.get("option")), ("0.5 is no int32", Some("pad")));
}

#[test]
fn a_row_beyond_the_limit_is_refused_before_memory_is_taken() {
    let host = small_host().limits(Limits { bytes: 4000, ..Limits::DEFAULT });
    let input = tokens(&[5]);
    let mut drive = Drive::with_host(pack(r#"{"length": 1001}"#), &input, 1, &host);
    assert_eq!(drive.run(1, 1).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(drive.state().unwrap().again[0], 0, "nothing waits for what began no row");
    let mut drive = Drive::with_host(pack(r#"{"length": 1000}"#), &input, 1, &host);
    drive.run(1, 1).unwrap();
    assert_eq!(drive.out().len(), 1);
}

#[test]
fn a_position_is_small_and_asks_again_from_the_oldest_on() {
    let mut rng = Rng::new(5, 5);
    let lens: Vec<_> = (0..3000).map(|_| 1 + rng.below(100) as usize).collect();
    let input = tokens(&lens);
    for method in ["first_fit", "best_fit"] {
        let options = format!(r#"{{"length": 200, "bins": 50, "method": "{method}", "uids": "uids"}}"#);
        let mut drive = Drive::new(pack(&options), &input, 64);
        drive.run(64, 400).unwrap();
        let state = drive.state().unwrap();
        let given: std::collections::HashSet<_> = ints(drive.out(), "uids").into_iter().collect();
        let held = drive.taken(0) - given.len();
        assert!(held > 100 && state.bytes.len() < 2 * held + 60, "{} bytes for {held}", state.bytes.len());
        let oldest = (1..).find(|uid| !given.contains(uid)).unwrap();
        assert_eq!(state.again[0], drive.taken(0) as u64 + 1 - oldest as u64);
    }
}

#[test]
fn states_of_others_are_refused() {
    let host = small_host();
    let input = tokens(&[3, 4, 4, 1]);
    let mut drive = Drive::new(pack(r#"{"length": 5, "bins": 3}"#), &input, 1);
    while drive.taken(0) < 4 {
        drive.step(1).unwrap();
    }
    let state = drive.state().unwrap();
    for (options, option) in [
        (r#"{"length": 6, "bins": 3}"#, "length"),
        (r#"{"length": 5, "bins": 2}"#, "bins"),
        (r#"{"length": 5, "bins": 3, "method": "first_fit"}"#, "method"),
    ] {
        let error = pack(options).restore(&state, &host.context()).unwrap_err();
        assert_eq!((error.kind(), error.get("option")), (ErrorKind::Invalid, Some(option)));
    }
    let with = |words: &[u64]| State { bytes: numbers::write(words.iter().copied()).into(), ..state.clone() };
    for broken in [with(&[5, 1]), with(&[5, 1, 0, 1, 0]), State { version: 9, ..state.clone() }] {
        assert!(pack(r#"{"length": 5}"#).restore(&broken, &host.context()).is_err());
    }
    // It reads as one, but no run comes to it: the next sample has begun, and the row has room.
    let mut pipe = pack(r#"{"length": 5, "method": "concat"}"#);
    pipe.restore(&with(&[5, 2, 1, 1, 1, 1, 0]), &host.context()).unwrap();
    let mut after = Drive::new(pack(r#"{"length": 5}"#), &input, 1);
    after.replace(pipe);
    after.run(1, usize::MAX).unwrap();
    assert_eq!(fields(after.out(), "tokens")[0], [1, 1, 1, 0, 0]);
}

#[test]
fn an_input_that_became_another_is_an_error() {
    let input = tokens(&[3, 4, 4, 1]);
    for (other, message) in [
        (tokens(&[3, 4]), "the input ended 2 samples before the saved position"),
        (tokens(&[3, 4, 4, 4]), "the sample has another length than it had"),
    ] {
        let mut drive = Drive::new(pack(r#"{"length": 5, "bins": 3}"#), &input, 1);
        while drive.taken(0) < 4 {
            drive.step(1).unwrap();
        }
        let host = small_host();
        let mut pipe = pack(r#"{"length": 5, "bins": 3}"#);
        let mut after = Drive::new(pack(r#"{"length": 5}"#), &other, 1);
        pipe.reset(&host.context()).unwrap();
        pipe.restore(&drive.state().unwrap(), &host.context()).unwrap();
        after.replace(pipe);
        assert_eq!(after.run(1, 100).unwrap_err().message(), message);
        after.run(1, 100).unwrap();
    }
}
