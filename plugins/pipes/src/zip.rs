//! `zip`: the fields of one sample of each input in one sample.
//!
//! ```toml
//! [zip]
//! page = "streams"
//! examples = ['forebay head -n 1 "range @a 10 ; range @b 10 ; zip <a, b> prefix=[a_, b_]"']
//! cases = ["range @a N ; range @b N step=2 ; zip <a, b> mode=longest prefix=['', 'b-']"]
//! ```

use std::{iter, mem};

use forebay_core::{
    Any, Context, DataPipe, Drops, Error, Io, Length, PipeAudit, PipeInfo, PipeLayout, Result, Schema, State,
    StateExt, Step, Stream, Uids, Value, options,
};

use crate::plumbing::join::Join;

options! {
    /// Options of `zip`.
    pub struct ZipOptions {
        /// What to do if inputs are not equally long: `shortest` ends with the first, `strict` fails, `longest`
        /// goes on and takes `fill` for ended inputs.
        mode: String = "shortest", one_of ["shortest", "strict", "longest"];
        /// A prefix for the fields of each input, one text for each; null if no name comes twice.
        prefix: Option<Vec<String>> = null;
        /// The value that `longest` takes for each field of an ended input: null, a truth value, a number or a
        /// text.
        fill: Any = null;
    }
}

/// Joins the fields of one sample of each input into one sample, with the uid and key of the first.
///
/// It takes a sample from its inputs only when each has one, so it never holds any. Two inputs with
/// a field of one name are an error, unless prefixes tell them apart.
#[derive(Debug)]
pub struct Zip {
    mode: Mode,
    /// What stands for the fields of an input that has ended.
    fill: Value,
    /// How many samples were joined.
    rows: u64,
    /// Whether an error ended the stream.
    failed: bool,
    /// The fields of each input's last sample, which an input that has ended leaves to `fill`.
    row: Vec<Schema>,
    join: Join,
    /// Memory for the values of a row.
    values: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Shortest,
    Strict,
    Longest,
}

/// A saved position: how many samples were joined, whether an error ended the stream, and the names of each input's
/// fields where they may be needed.
type Position = (u64, bool, Vec<Vec<String>>);

impl DataPipe for Zip {
    const INFO: PipeInfo = PipeInfo {
        name: "zip",
        summary: "The fields of one sample of each input in one sample",
        layout: PipeLayout { inputs: (1, u32::MAX), per_input: &["prefix"], ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Derived, drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = ZipOptions;

    fn new(options: ZipOptions) -> Result<Self> {
        let mode = match options.mode.as_str() {
            "strict" => Mode::Strict,
            "longest" => Mode::Longest,
            _ => Mode::Shortest,
        };
        let fill = filler(&options.fill).map_err(|error| error.context("option", "fill"))?;
        if mode != Mode::Longest && !options.fill.0.is_null() {
            let error = Error::invalid("found something to fill with, which `longest` alone does");
            return Err(error.context("option", "fill"));
        }
        let (row, join, values) = (Vec::new(), Join::new(options.prefix), Vec::new());
        Ok(Self { mode, fill, rows: 0, failed: false, row, join, values })
    }
}

impl Stream for Zip {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.rows, self.failed) = (0, false);
        self.row.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if self.failed {
            return Ok(Step::End);
        }
        if let Some(found) = self.join.prefixes().filter(|&found| found != io.inputs()) {
            self.failed = true;
            let error = Error::invalid(format!("found {found} prefixes for {} inputs", io.inputs()));
            return Err(error.context("option", "prefix"));
        }
        self.row.resize(io.inputs(), Schema::empty());
        while io.room() > 0 {
            if let Some(step) = self.wait(io)? {
                return Ok(step);
            }
            // As many as all inputs that have not ended have.
            let waiting = (0..io.inputs()).filter_map(|input| io.input(input).map(|input| input.len()));
            let rows = waiting.filter(|&len| len > 0).min().unwrap_or(0);
            for _ in 0..rows.min(io.room()) {
                self.give(io, cx)?;
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        let mut lengths = inputs.iter().copied().collect::<Option<Vec<_>>>()?;
        lengths.sort();
        match self.mode {
            Mode::Longest => lengths.last().copied(),
            // Of others than alike it fails behind the shortest.
            Mode::Shortest | Mode::Strict => lengths.first().copied(),
        }
    }

    fn state(&self) -> Result<State> {
        let names = |schema: &Schema| schema.names().iter().map(|name| name.to_string()).collect();
        let row = if self.mode == Mode::Longest { self.row.as_slice() } else { &[] };
        let position: Position = (self.rows, self.failed, row.iter().map(names).collect());
        State::json(1, &position)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (rows, failed, names): Position = state.parse(1)?;
        (self.rows, self.failed) = (rows, failed);
        self.row = names.into_iter().map(Schema::new).collect();
        Ok(())
    }
}

impl Zip {
    /// What to wait for before the next row; `None` when it is there.
    fn wait(&mut self, io: &mut Io) -> Result<Option<Step>> {
        let mut over = 0;
        for input in 0..io.inputs() {
            if io.input(input).is_some_and(|input| !input.is_empty()) {
                continue;
            }
            if !io.ended(input) {
                return Ok(Some(Step::NeedInput(input)));
            }
            if self.mode == Mode::Shortest {
                return Ok(Some(Step::End));
            }
            over += 1;
        }
        if over == io.inputs() {
            return Ok(Some(Step::End));
        }
        if over > 0 && self.mode == Mode::Strict {
            self.failed = true;
            return Err(uneven(io, self.rows));
        }
        Ok(None)
    }

    /// Takes one sample of each input that has one, and gives them joined.
    fn give(&mut self, io: &mut Io, cx: &Context) -> Result<()> {
        let Self { row, values, fill, join, .. } = self;
        let mut first = None;
        for (input, schema) in row.iter_mut().enumerate() {
            let taken = io.input(input).and_then(|chunk| {
                chunk.pop_with(|uid, key, found, fields| {
                    if !found.is(schema) {
                        schema.clone_from(found);
                    }
                    values.extend(fields.iter_mut().map(mem::take));
                    (cx.uid_of(uid, [input as u64, 0]), key.take())
                })
            });
            match taken {
                None => values.extend(iter::repeat_n(&*fill, schema.len()).cloned()),
                Some(taken) if first.is_none() => first = Some(taken),
                Some(_) => {}
            }
        }
        self.rows += 1;
        let (uid, key) = first.unwrap_or_default();
        match join.schema(row.iter()) {
            Ok(schema) => io.push_row(uid, key, schema, values.drain(..)),
            Err(error) => {
                values.clear();
                return Err(error.context("sample", key));
            }
        }
        Ok(())
    }
}

/// The value that an option stands for.
fn filler(option: &Any) -> Result<Value> {
    let json = &option.0;
    let number = json.as_i64().map(Value::from).or_else(|| json.as_u64().map(Value::from));
    let scalar =
        number.or_else(|| json.as_f64().map(Value::from)).or_else(|| json.as_bool().map(Value::from));
    let value =
        scalar.or_else(|| json.as_str().map(Value::from)).or_else(|| json.is_null().then_some(Value::NULL));
    value.ok_or_else(|| {
        Error::invalid("found a list or an object, expected null, a truth value, a number or a text")
    })
}

/// The error for inputs of which some have ended after so many samples and some have not.
fn uneven(io: &Io, rows: u64) -> Error {
    let first_ended = io.ended(0);
    let odd = (1..io.inputs()).find(|&input| io.ended(input) != first_ended).unwrap_or(0);
    let those =
        |count: usize| if count == 1 { "input 0".into() } else { format!("inputs 0 to {}", count - 1) };
    Error::invalid(if first_ended {
        format!("input {odd} is longer than {}, found the end after {rows} samples", those(odd))
    } else {
        format!("input {odd} is shorter than {}, found its end after {rows} samples", those(odd))
    })
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, Options, Sample, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, errors, sample, small_host, uid_of};

    fn zip(options: &str) -> Zip {
        Zip::new(ZipOptions::parse(options).unwrap()).unwrap()
    }

    /// An input of so many samples with this field, and another one.
    fn input(field: &str, start: i64, count: usize) -> Vec<Sample> {
        let other = format!("{field}2");
        (start..start + count as i64)
            .map(|value| sample(value as u64, &[(field, value.into()), (&other, "x".into())]))
            .collect()
    }

    /// A sample's fields as text.
    fn text(sample: &Sample) -> String {
        let fields = sample.fields().filter(|(_, value)| value.as_str().is_none());
        fields.map(|(name, value)| format!("{name}={value:?} ")).collect()
    }

    fn lines(out: &[Sample]) -> Vec<String> {
        out.iter().map(|sample| text(sample).trim().to_owned()).collect()
    }

    #[test]
    fn joins_the_fields_and_ends_with_the_shortest() {
        let (a, b, c) = (input("a", 0, 3), input("b", 10, 2), input("c", 20, 4));
        let setup = Setup::new(&[&a, &b, &c]);
        let out = setup.check(|| zip("{}")).swap_remove(0);
        assert_eq!(lines(&out), ["a=Int(0) b=Int(10) c=Int(20)", "a=Int(1) b=Int(11) c=Int(21)"]);
        let names: Vec<_> = out[0].schema().names().iter().map(|name| name.as_str()).collect();
        assert_eq!(names, ["a", "a2", "b", "b2", "c", "c2"]);
        assert_eq!((out[1].uid(), out[1].key()), (a[1].uid(), a[1].key()));
        setup.check_resume(|| zip("{}"));
        let setup = Setup::new(&[&a]);
        assert_eq!(setup.check(|| zip("{}"))[0], a, "one input stays as it is");
        let none = Setup::new(&[&a, &[]]);
        assert!(none.check(|| zip("{}"))[0].is_empty());
    }

    #[test]
    fn the_longest_goes_on_with_nulls() {
        let (a, b) = (input("a", 0, 3), input("b", 10, 1));
        for (inputs, expected) in [
            ([&a[..], &b], ["a=Int(0) b=Int(10)", "a=Int(1) b=Null b2=Null", "a=Int(2) b=Null b2=Null"]),
            ([&b[..], &a], ["b=Int(10) a=Int(0)", "b=Null b2=Null a=Int(1)", "b=Null b2=Null a=Int(2)"]),
        ] {
            let longest = || zip(r#"{"mode": "longest"}"#);
            let setup = Setup::new(&inputs);
            let out = setup.check(longest).swap_remove(0);
            assert_eq!(lines(&out), expected);
            assert_eq!(out[2].key(), a[2].key());
            setup.check_resume(longest);
            let setup = Setup::new(&[&[], &a]);
            assert_eq!(
                lines(&setup.check(longest)[0])[0],
                "a=Int(0)",
                "an input without samples has no fields"
            );
            setup.check_resume(longest);
        }
    }

    #[test]
    fn strict_wants_equal_lengths_b083() {
        let strict = || zip(r#"{"mode": "strict"}"#);
        let of = |lengths: &[usize]| -> Vec<_> {
            let inputs = lengths.iter().enumerate();
            inputs.map(|(at, &length)| input(["a", "b", "c", "d"][at], 0, length)).collect()
        };
        let cases: [(&[usize], &str, usize); 4] = [
            (&[3, 2], "input 1 is shorter than input 0, found its end after 2 samples", 2),
            (&[2, 2, 2, 3], "input 3 is longer than inputs 0 to 2, found the end after 2 samples", 2),
            (&[0, 1], "input 1 is longer than input 0, found the end after 0 samples", 0),
            (&[2, 2, 1], "input 2 is shorter than inputs 0 to 1, found its end after 1 samples", 1),
        ];
        for (lengths, message, rows) in cases {
            let inputs = of(lengths);
            let inputs: Vec<_> = inputs.iter().map(Vec::as_slice).collect();
            for chunk in [1, 5] {
                let mut drive = Drive::wide(strict(), &inputs, 1, chunk, &small_host());
                let error = drive.run(2, 100).unwrap_err();
                assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, message));
                assert_eq!(drive.out().len(), rows);
                assert_eq!(drive.step(2).unwrap(), Step::End, "the error comes once");
            }
            Setup::new(&inputs).check_resume(strict);
        }
        let inputs = of(&[3, 3]);
        assert_eq!(Setup::new(&[&inputs[0], &inputs[1]]).check(strict)[0].len(), 3);
    }

    #[test]
    fn fields_of_one_name_are_told_apart_by_a_prefix() {
        let (a, b) = (input("a", 0, 2), input("a", 10, 2));
        let mut drive = Drive::wide(zip("{}"), &[&a, &b], 1, 1, &small_host());
        let error = drive.run(1, 100).unwrap_err();
        assert_eq!(error.message(), "inputs 0 and 1 both have this field: tell them apart by `prefix`");
        assert_eq!((error.get("field"), error.get("sample")), (Some("a"), Some("test#0")));
        let prefix = || zip(r#"{"prefix": ["", "right."]}"#);
        let setup = Setup::new(&[&a, &b]);
        assert_eq!(lines(&setup.check(prefix)[0]), ["a=Int(0) right.a=Int(10)", "a=Int(1) right.a=Int(11)"]);
        setup.check_resume(prefix);
        let mut drive = Drive::wide(zip(r#"{"prefix": ["x"]}"#), &[&a, &b], 1, 1, &small_host());
        let error = drive.run(1, 100).unwrap_err();
        assert_eq!(error.message(), "found 1 prefixes for 2 inputs");
        assert_eq!(error.get("option"), Some("prefix"));
        assert_eq!(drive.step(1).unwrap(), Step::End);
    }

    #[test]
    fn a_row_that_clashes_leaves_nothing_behind() {
        let (mut a, b) = (input("a", 0, 4), input("b", 10, 2));
        a[1] = sample(1, &[("b", 7_i64.into())]);
        let longest = || zip(r#"{"mode": "longest"}"#);
        let setup = Setup::new(&[&a, &b]);
        let mut drive = Drive::wide(longest(), &setup.inputs, 1, 1, &small_host());
        assert_eq!(drive.run(1, 100).unwrap_err().get("field"), Some("b"));
        drive.run(1, 100).unwrap();
        assert_eq!(
            lines(drive.out()),
            ["a=Int(0) b=Int(10)", "a=Int(2) b=Null b2=Null", "a=Int(3) b=Null b2=Null"]
        );
        setup.check_resume(longest);
    }

    #[test]
    fn the_longest_goes_on_with_what_it_is_told_to() {
        let (a, b) = (input("a", 0, 3), input("b", 10, 1));
        let setup = Setup::new(&[&a, &b]);
        for (fill, expected) in
            [("-1", "a=Int(2) b=Int(-1) b2=Int(-1)"), ("0.5", "a=Int(2) b=Float(0.5) b2=Float(0.5)")]
        {
            let filled = || zip(&format!(r#"{{"mode": "longest", "fill": {fill}}}"#));
            assert_eq!(lines(&setup.check(filled)[0])[2], expected);
            setup.check_resume(filled);
        }
        for (fill, value) in [
            ("\"?\"", "?".into()),
            ("true", true.into()),
            ("null", Value::NULL),
            ("18446744073709551615", u64::MAX.into()),
        ] {
            let out =
                setup.check(|| zip(&format!(r#"{{"mode": "longest", "fill": {fill}}}"#))).swap_remove(0);
            assert_eq!(out[1].get("b"), Some(&value));
        }
        for wrong in
            [r#"{"fill": 0}"#, r#"{"mode": "strict", "fill": "x"}"#, r#"{"mode": "longest", "fill": [0]}"#]
        {
            let error = Zip::new(ZipOptions::parse(wrong).unwrap()).unwrap_err();
            assert_eq!(error.get("option"), Some("fill"), "{wrong}");
        }
    }

    #[test]
    fn fields_may_change_on_the_way() {
        let (a, mut b) = (input("a", 0, 3), input("b", 10, 3));
        b[1] = sample(5, &[("other", 7_i64.into())]);
        let setup = Setup::new(&[&a, &b]);
        let out = setup.check(|| zip("{}")).swap_remove(0);
        assert_eq!(lines(&out)[1..], ["a=Int(1) other=Int(7)", "a=Int(2) b=Int(12)"]);
    }

    /// The joined rows, written out plainly: of an input that has ended come the fields of its last sample, each as `fill`.
    fn reference(inputs: &[Vec<Sample>], rows: usize, prefixed: bool, fill: &Value) -> Vec<Sample> {
        let row = |row: usize| {
            let there = inputs.iter().position(|input| row < input.len()).unwrap();
            let first = &inputs[there][row];
            let mut joined = Sample::new(uid_of(first.uid(), [there as u64, 0]), first.key().clone());
            for (at, input) in inputs.iter().enumerate() {
                let prefix = if prefixed { format!("{at}.") } else { String::new() };
                for (name, value) in input.get(row).or(input.last()).iter().flat_map(|last| last.fields()) {
                    let value = if row < input.len() { value } else { fill };
                    joined.set(&format!("{prefix}{name}"), value.clone());
                }
            }
            joined
        };
        (0..rows).map(row).collect()
    }

    #[test]
    fn equals_the_definition_for_inputs_of_any_length_and_fields() {
        let mut rng = Rng::new(31, 0);
        for round in 0..48_usize {
            let (prefixed, fill) = (rng.bool(0.5), [Value::NULL, (-1_i64).into()][round % 2].clone());
            let inputs: Vec<Vec<Sample>> = (0..1 + round % 4)
                .map(|at| {
                    let names = if prefixed {
                        ["x", "y"]
                    } else {
                        [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]][at]
                    };
                    let count = rng.below(6);
                    let mut one = |uid: u64| {
                        let fields = names.map(|name| (name, Value::from(rng.below(50) as i64)));
                        sample(10 * at as u64 + uid, &fields[rng.below(2) as usize..])
                    };
                    (0..count).map(&mut one).collect()
                })
                .collect();
            let lengths = || inputs.iter().map(Vec::len);
            let (shortest, longest) = (lengths().min().unwrap(), lengths().max().unwrap());
            let prefixes: Vec<_> = (0..inputs.len()).map(|at| format!("{at}.")).collect();
            let prefixes = if prefixed { format!("{prefixes:?}") } else { "null".to_owned() };
            let setup = Setup::new(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
            for (mode, rows) in [("shortest", shortest), ("strict", shortest), ("longest", longest)] {
                let number = if mode == "longest" && fill != Value::NULL { "-1" } else { "null" };
                let options = format!(r#"{{"mode": "{mode}", "prefix": {prefixes}, "fill": {number}}}"#);
                let make = || zip(&options);
                let wanted = reference(&inputs, rows, prefixed, &fill);
                if mode == "strict" && shortest < longest {
                    let mut drive = Drive::wide(make(), &setup.inputs, 1, 2, &small_host());
                    assert_eq!(errors(&mut drive).len(), 1, "{options}");
                    assert_eq!(drive.out(), wanted, "{options}");
                } else {
                    assert_eq!(setup.check(make)[0], wanted, "{options}");
                }
                setup.check_resume(make);
            }
        }
    }
}
