//! What `pack` is defined to give, and that it gives that, whatever waits and from wherever it goes on.

use std::ops::Range;

use forebay_core::{DType, Sample, Tensor, TensorExt, Value, random::Rng};

use super::{field, list, pack, tensor, tokens};
use crate::testing::{check, check_resume, sample};

/// What a piece of a sample has of each field, with the number of the sample and of the piece.
type Part = (usize, u64, Vec<Range<usize>>);

/// The definition, written out plainly: which pieces are in which row, in the order in which rows are given.
struct Definition {
    method: &'static str,
    lengths: Vec<usize>,
    bins: usize,
    most: usize,
}

impl Definition {
    fn room(&self, row: &[Part], field: usize) -> usize {
        self.lengths[field] - row.iter().map(|part| part.2[field].len()).sum::<usize>()
    }

    fn full(&self, row: &[Part]) -> bool {
        let mut rooms = (0..self.lengths.len()).map(|field| self.room(row, field));
        let no_room =
            if self.method == "concat" { rooms.any(|room| room == 0) } else { rooms.all(|room| room == 0) };
        row.len() == self.most || no_room
    }

    /// The row that a piece goes to.
    fn choose(&self, open: &[Vec<Part>], piece: &[Range<usize>]) -> Option<usize> {
        let fits = |row: &Vec<Part>| {
            !self.full(row)
                && piece.iter().enumerate().all(|(field, range)| range.len() <= self.room(row, field))
        };
        let fitting = open.iter().enumerate().filter(|(_, row)| fits(row));
        let left =
            |row: &Vec<Part>| (0..self.lengths.len()).map(|field| self.room(row, field)).sum::<usize>();
        match self.method {
            "best_fit" => fitting.min_by_key(|(_, row)| left(row)).map(|(at, _)| at),
            _ => fitting.map(|(at, _)| at).next(),
        }
    }

    fn rows(&self, samples: &[Vec<usize>]) -> Vec<Vec<Part>> {
        let (mut given, mut open): (Vec<_>, Vec<Vec<Part>>) = (Vec::new(), Vec::new());
        for (at, lens) in samples.iter().enumerate() {
            let mut done = vec![0; lens.len()];
            for number in 0.. {
                while open.first().is_some_and(|row| self.full(row)) {
                    given.push(open.remove(0));
                }
                let concat = self.method == "concat";
                let most = |field| match open.first() {
                    Some(row) if concat => self.room(row, field),
                    _ => self.lengths[field],
                };
                let piece = done.iter().zip(lens).enumerate();
                let piece: Vec<_> =
                    piece.map(|(field, (&from, &len))| from..len.min(from + most(field))).collect();
                done = piece.iter().map(|range| range.end).collect();
                let row = if concat { open.len().checked_sub(1) } else { self.choose(&open, &piece) };
                let row = row.unwrap_or_else(|| {
                    if open.len() == self.bins {
                        given.push(open.remove(0));
                    }
                    open.push(Vec::new());
                    open.len() - 1
                });
                open[row].push((at, number, piece));
                if done == *lens {
                    break;
                }
            }
        }
        given.extend(open);
        given
    }
}

/// The number that item `item` of sample `at` has.
fn number(at: usize, item: usize) -> i64 {
    (1000 * (at + 1) + item) as i64
}

/// Samples with a field `a` of 32 bits, a field `b` of pairs of bytes, and a field `name`.
fn two_fields(lens: &[Vec<usize>]) -> Vec<Sample> {
    let samples = lens.iter().enumerate().map(|(at, lens)| {
        let a: Vec<_> = (0..lens[0]).map(|item| number(at, item) as i32).collect();
        let b: Vec<u8> = (0..lens[1]).flat_map(|item| [at as u8 + 1, item as u8]).collect();
        let b = Tensor::new(DType::U8, &[lens[1], 2], b.into()).unwrap();
        let fields =
            [("b", b.into()), ("name", Value::from(format!("s{at}"))), ("a", tensor(&[lens[0]], &a))];
        sample(500 + at as u64, &fields)
    });
    samples.collect()
}

/// Checks that a row has what the definition says.
fn check_row(row: &Sample, parts: &[Part], lengths: &[usize]) {
    let names: Vec<_> = row.schema().names().iter().map(|name| name.as_str()).collect();
    let expected = ["b", "name", "a", "b_segment_ids", "b_positions", "a_segment_ids", "a_positions", "uids"];
    assert_eq!(names, expected);
    let padded = |mut items: Vec<i64>, length: usize, pad: i64| {
        items.resize(length, pad);
        items
    };
    let items = |field: usize| {
        parts.iter().flat_map(move |(at, _, ranges)| ranges[field].clone().map(move |item| (*at, item)))
    };
    let a = items(0).map(|(at, item)| number(at, item)).collect();
    assert_eq!(field(row, "a"), padded(a, lengths[0], -7));
    let b = items(1).flat_map(|(at, item)| [at as i64 + 1, item as i64]).collect();
    assert_eq!(
        field(row, "b").iter().map(|byte| byte & 0xff).collect::<Vec<_>>(),
        padded(b, 2 * lengths[1], 0)
    );
    assert_eq!(row.get("b").unwrap().as_tensor().unwrap().shape(), [lengths[1] as i64, 2]);
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let segments =
            parts.iter().zip(1..).flat_map(|(part, segment)| vec![segment; part.2[at].len()]).collect();
        assert_eq!(field(row, &format!("{name}_segment_ids")), padded(segments, lengths[at], 0));
        let positions = parts.iter().flat_map(|part| 0..part.2[at].len() as i64).collect();
        assert_eq!(field(row, &format!("{name}_positions")), padded(positions, lengths[at], 0));
    }
    let samples: Vec<_> = parts.iter().map(|part| part.0 as i64).collect();
    assert_eq!(field(row, "uids"), samples.iter().map(|at| at + 500).collect::<Vec<_>>());
    let names = samples.iter().map(|at| Value::from(format!("s{at}"))).collect();
    assert_eq!(row.get("name"), Some(&Value::list(names)));
    match parts[0] {
        (at, 0, _) => assert_eq!((row.uid(), row.key().index), (500 + at as u64, 500 + at as u64)),
        (at, piece, _) => assert_eq!(row.key().to_string(), format!("test#{}#{piece}", 500 + at)),
    }
}

/// The definition as options, for samples of [`two_fields`].
fn options(of: &Definition, too_long: &str) -> String {
    let Definition { method, lengths, bins, most } = of;
    let most = if *most == usize::MAX { "null".to_owned() } else { most.to_string() };
    format!(
        r#"{{"length": {}, "method": "{method}", "bins": {bins}, "max_per_bin": {most}, "fields": ["b={}", "a"],
            "too_long": "{too_long}", "uids": "uids", "pad": "a=-7"}}"#,
        lengths[0], lengths[1]
    )
}

/// Some definition and lengths of samples for it; those of the second field are at times as the first's.
fn any(rng: &mut Rng, longest: u64) -> (Definition, Vec<Vec<usize>>) {
    let method = ["first_fit", "best_fit", "concat"][rng.below(3) as usize];
    let lengths = vec![1 + rng.below(12) as usize, 1 + rng.below(12) as usize];
    let bins = if method == "concat" { 1 } else { 1 + rng.below(5) as usize };
    let most = if rng.bool(0.3) { 1 + rng.below(3) as usize } else { usize::MAX };
    let lens = (0..rng.below(40)).map(|_| {
        let (a, b) = (rng.below(longest) as usize, rng.below(longest) as usize);
        vec![a, if rng.bool(0.5) { a } else { b }]
    });
    let lens = lens.collect();
    (Definition { method, lengths, bins, most }, lens)
}

#[test]
fn equals_the_definition_whatever_waits() {
    let mut rng = Rng::new(11, 0);
    for _ in 0..120 {
        let (definition, lens) = any(&mut rng, 30);
        let too_long = if definition.method == "concat" { "error" } else { "split" };
        let options = options(&definition, too_long);
        let input = two_fields(&lens);
        let rows = check(|| pack(&options), &input);
        let expected = definition.rows(&lens);
        assert_eq!(rows.len(), expected.len(), "{options}");
        for (row, parts) in rows.iter().zip(&expected) {
            check_row(row, parts, &definition.lengths);
        }
        let mut uids: Vec<_> = rows.iter().map(Sample::uid).collect();
        uids.sort_unstable();
        uids.dedup();
        assert_eq!(uids.len(), rows.len(), "no two rows have one uid");
    }
    assert!(check(|| pack(r#"{"length": 5}"#), &[]).is_empty());
}

#[test]
fn goes_on_from_every_moment() {
    let mut rng = Rng::new(12, 0);
    for round in 0..20 {
        let (definition, mut lens) = any(&mut rng, 14);
        lens.truncate(12);
        let too_long = match definition.method {
            "concat" => "error",
            _ => ["split", "drop", "truncate", "error"][round % 4],
        };
        let mut input = two_fields(&lens);
        if round % 3 == 0 && input.len() > 3 {
            input[1] = sample(9, &[("b", 1_i64.into())]);
            input[3] = input[2].clone();
            input[3].set("a", list(&[1, 2]));
        }
        check_resume(|| pack(&options(&definition, too_long)), &input);
    }
    let long = tokens(&[25, 3, 12]);
    check_resume(|| pack(r#"{"length": 5, "method": "concat", "drop_last": true, "bos": -1}"#), &long);
    check_resume(|| pack(r#"{"length": 5, "too_long": "split", "eos": 7, "bins": 3}"#), &long);
}
