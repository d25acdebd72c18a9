//! `scan`: fields that expressions give of a sample and of what they gave before it.
//!
//! ```toml
//! [scan]
//! page = "fields"
//! examples = ['''forebay head -n 3 "range 5 | scan 'total = total + value' init='total = 0'"''']
//! cases = ["range N | scan 'total=total + value' init='total=0'"]
//! ```

use forebay_core::{
    Condition, Context, DType, DataPipe, Error, Io, Key, Length, OneOrMany, PipeInfo, PipeOrder, Randomness,
    Result, Schema, State, StateExt, Step, Str, Stream, Value, View, options,
};

use crate::{
    plumbing::{
        expression::{Draws, Expression, Running},
        wider::Wider,
    },
    rename::pair,
    select::repeated,
};

/// The longest text that is carried on, in bytes: a saved position holds it.
const LONGEST: usize = 4096;

options! {
    /// Options of `scan`.
    pub struct ScanOptions {
        /// `name=expression`, for each value to carry on: `total=total + value`. Expressions see the sample, and
        /// under their names the values for the sample before.
        fields: OneOrMany<String> = required;
        /// `name=expression`, the value of each before the first sample: `total=0`.
        init: OneOrMany<String> = required;
    }
}

/// Carries values from sample to sample: each sample gets, as new fields, what expressions give of its fields and of the values before.
///
/// The values are null, truth, numbers, or text of at most 4,096 bytes. A sample of which an expression fails is left out and changes
/// none of them. State: the values.
#[derive(Debug)]
pub struct Scan {
    expressions: Vec<Running>,
    names: Vec<Str>,
    init: Vec<Value>,
    /// What was given for the last sample, and what is being made of the next.
    values: Vec<Value>,
    made: Vec<Value>,
    wider: Wider,
}

/// The version of a saved position: each value as the code, bits and lanes of its type and its own bits, or as text, or neither.
const VERSION: u32 = 1;

type Saved = (Option<(u8, u8, u16, u64)>, Option<String>);

impl DataPipe for Scan {
    const INFO: PipeInfo = PipeInfo {
        name: "scan",
        summary: "Fields that expressions give of a sample and of what they gave before it",
        order: PipeOrder {
            draws: Randomness::If(&[Condition::Contains("fields", "random(")]),
            ..PipeOrder::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
    type Options = ScanOptions;

    fn new(options: ScanOptions) -> Result<Self> {
        let fields = pairs(&options.fields.0, "fields")?;
        let init = pairs(&options.init.0, "init")?;
        if let Some((name, _)) = init.iter().find(|(name, _)| fields.iter().all(|(other, _)| other != name)) {
            let message = format!("`{name}` is none of the names in `fields`");
            return Err(Error::invalid(message).context("option", "init"));
        }
        let (mut expressions, mut names, mut first) = (Vec::new(), Vec::new(), Vec::new());
        for (name, text) in fields {
            let Some((_, start)) = init.iter().find(|(other, _)| *other == name) else {
                let message = format!("nothing says what `{name}` is before the first sample");
                return Err(Error::invalid(message).context("option", "init"));
            };
            expressions.push(Running::new(text, "fields")?);
            names.push(Str::from(name));
            first.push(constant(start).map_err(|error| error.context("option", "init"))?);
        }
        let (wider, values) = (Wider::new(names.iter().cloned()), first.clone());
        Ok(Self { expressions, names, init: first, values, made: Vec::new(), wider })
    }
}

impl Stream for Scan {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.values.clone_from(&self.init);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if !self.wider.take(io, self.values.iter().cloned())? {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            self.make().map_err(|error| error.context("sample", self.wider.sample().key()))?;
            io.push(self.wider.sample());
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    fn state(&self) -> Result<State> {
        let save = |value: &Value| -> Saved {
            let number = value.dtype().map(|dtype| (dtype.code, dtype.bits, dtype.lanes, value.bits()));
            (number, value.as_str().map(str::to_owned))
        };
        State::json(VERSION, &self.values.iter().map(save).collect::<Vec<_>>())
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let saved: Vec<Saved> = state.parse(VERSION)?;
        if saved.len() != self.names.len() {
            let (found, expected) = (saved.len(), self.names.len());
            return Err(Error::invalid(format!("found a state of {found} values, expected {expected}")));
        }
        let value = |(number, text): Saved| match (number, text) {
            (Some((code, bits, lanes, value)), _) => Value::scalar(DType { code, bits, lanes }, value),
            (None, Some(text)) => text.into(),
            (None, None) => Value::NULL,
        };
        self.values = saved.into_iter().map(value).collect();
        Ok(())
    }
}

impl Scan {
    /// Makes the new values of the sample that was taken, which has the old ones behind its own.
    fn make(&mut self) -> Result<()> {
        let Self { expressions, names, values, made, wider, .. } = self;
        let sample = wider.sample();
        made.clear();
        let draws = Draws::none();
        let behind = sample.values().len() - names.len();
        for (running, name) in expressions.iter_mut().zip(&*names) {
            let (expression, places) = running.of(sample.schema());
            if let Some(given) = expression.quick(places, sample.values(), &draws) {
                // One alone, as most are, goes straight to both its places.
                if let [value] = &mut values[..] {
                    *value = given.into_value();
                    sample.values_mut()[behind] = given.into_value();
                    return Ok(());
                }
                made.push(given.into_value());
                continue;
            }
            let value = expression.long_value(places, sample.key(), sample.schema(), sample.values(), &draws);
            let value = value.and_then(|value| small(&value).map(|()| value));
            made.push(value.map_err(|error| error.context("sets", name))?);
        }
        sample.values_mut()[behind..].clone_from_slice(made);
        std::mem::swap(values, made);
        Ok(())
    }
}

/// The sides of `name=expression`, each name once.
fn pairs<'t>(texts: &'t [String], option: &'static str) -> Result<Vec<(&'t str, &'t str)>> {
    let refuse = |message: String| Error::invalid(message).context("option", option);
    let mut pairs = Vec::new();
    for text in texts {
        let (name, expression) =
            pair(text).ok_or_else(|| refuse(format!("found `{text}`, expected `name=expression`")))?;
        pairs.push((name.trim(), expression.trim()));
    }
    let names: Vec<_> = pairs.iter().map(|(name, _)| name).collect();
    match repeated(&names) {
        Some(twice) => Err(refuse(format!("`{twice}` is set twice"))),
        None if pairs.is_empty() => Err(refuse("found nothing, expected `name=expression`".to_owned())),
        None => Ok(pairs),
    }
}

/// What an expression gives without any sample.
fn constant(text: &str) -> Result<Value> {
    let (expression, schema) = (Expression::new(text)?, Schema::empty());
    let value =
        expression.value(&expression.places(&schema), &Key::default(), &schema, &[], &Draws::none())?;
    small(&value)?;
    Ok(value)
}

/// Refuses what is not to be carried on.
fn small(value: &Value) -> Result<()> {
    let found = match value.view() {
        View::Null | View::Bool(_) | View::Int(_) | View::UInt(_) | View::Float(_) => return Ok(()),
        View::Str(text) if text.len() <= LONGEST => return Ok(()),
        View::Str(text) => {
            let len = text.len();
            return Err(Error::limit(format!("a text of {len} bytes, at most {LONGEST} are carried on")));
        }
        View::Bytes(_) => "bytes",
        View::Tensor(_) => "a tensor",
        View::List(_) => "a list",
        View::Struct(_) => "a struct",
        _ => "another kind of value",
    };
    Err(Error::invalid(format!("it gives {found}, expected null, a truth value, a number or text")))
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, Options, Sample, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, check, check_resume, errors, ints, numbers, sample, small_host};

    fn scan(options: &str) -> Scan {
        Scan::new(ScanOptions::parse(options).unwrap()).unwrap()
    }

    const TOTAL: &str = r#"{"fields": "total=total + value", "init": "total=100"}"#;

    #[test]
    fn carries_a_sum_on() {
        for count in [0, 1, 12] {
            let out = check(|| scan(TOTAL), &numbers(count));
            let sums = (1..=count as i64).map(|count| 100 + (0..count).sum::<i64>());
            assert_eq!(ints(&out, "total"), sums.collect::<Vec<_>>());
            assert_eq!(ints(&out, "value"), (0..count as i64).collect::<Vec<_>>());
            assert!(
                out.iter()
                    .zip(&numbers(count))
                    .all(|(out, came)| (out.uid(), out.key()) == (came.uid(), came.key()))
            );
            check_resume(|| scan(TOTAL), &numbers(count));
        }
        Setup { most: 7, ..Setup::new(&[&numbers(40)]) }.check_resume(|| scan(TOTAL));
    }

    #[test]
    fn all_see_what_was_there_before() {
        let fibonacci = || scan(r#"{"fields": ["a = b", "b=a + b"], "init": ["b=1", "a=0"]}"#);
        let out = check(fibonacci, &numbers(8));
        assert_eq!(ints(&out, "a"), [1, 1, 2, 3, 5, 8, 13, 21]);
        assert_eq!(ints(&out, "b"), [1, 2, 3, 5, 8, 13, 21, 34]);
        check_resume(fibonacci, &numbers(8));
    }

    #[test]
    fn every_kind_of_scalar_is_saved_as_it_is() {
        let kinds: [Value; 8] = [
            Value::NULL,
            true.into(),
            7_u8.into(),
            (-3_i8).into(),
            0.1_f32.into(),
            f64::NAN.into(),
            u64::MAX.into(),
            "Ä \"quoted\"\n".into(),
        ];
        let input: Vec<Sample> =
            kinds.iter().zip(0..).map(|(kind, at)| sample(at, &[("x", kind.clone())])).collect();
        let make =
            || scan(r#"{"fields": ["last=x", "before=last"], "init": ["last='none'", "before=null"]}"#);
        let mut drive = Drive::new(make(), &input, 1);
        for (at, kind) in kinds.iter().enumerate() {
            drive.run(1, at + 1).unwrap();
            let mut other = drive.resume(make());
            other.run(1, at + 2).unwrap();
            let same = |found: &Value| {
                assert_eq!((found.dtype(), found.as_str()), (kind.dtype(), kind.as_str()));
                assert!(kind.dtype().is_none() || found.bits() == kind.bits());
            };
            same(drive.out()[at].get("last").unwrap());
            other.out().iter().take(1).for_each(|next| same(next.get("before").unwrap()));
        }
    }

    #[test]
    fn a_sample_that_fails_changes_nothing() {
        let mut input = numbers(6);
        input[1] = sample(1, &[("value", "x".into())]);
        input[2] = sample(2, &[("value", 2_i64.into()), ("total", 5_i64.into())]);
        input[4] = sample(4, &[("value", Value::list(vec![]))]);
        let mut drive = Drive::new(scan(TOTAL), &input, 2);
        let found = errors(&mut drive);
        let names: Vec<_> = found.iter().map(|error| error.get("sample").unwrap()).collect();
        assert_eq!(names, ["test#1", "test#2", "test#4"]);
        assert_eq!((found[0].get("sets"), found[1].get("field")), (Some("total"), Some("total")));
        assert_eq!(ints(drive.out(), "total"), [100, 103, 108]);
        check_resume(|| scan(TOTAL), &input);
    }

    #[test]
    fn what_is_carried_on_stays_small() {
        let long = Value::from("x".repeat(1000));
        let input: Vec<_> = (0..6).map(|at| sample(at, &[("x", long.clone())])).collect();
        let make = || scan(r#"{"fields": "all=all + x", "init": "all=''"}"#);
        let mut drive = Drive::new(make(), &input, 1);
        let found = errors(&mut drive);
        assert_eq!((found.len(), found[0].kind(), drive.out().len()), (2, ErrorKind::Limit, 4));
        assert!(drive.state().unwrap().bytes.len() < 4200);
        let listing = || scan(r#"{"fields": "all=[x]", "init": "all=''"}"#);
        let found = errors(&mut Drive::new(listing(), &input, 1));
        assert!(found[0].message().contains("it gives a list"), "{}", found[0]);
    }

    #[test]
    fn bad_options_are_refused_by_name() {
        for (options, option) in [
            (r#"{"fields": "total", "init": "total=0"}"#, "fields"),
            (r#"{"fields": [], "init": []}"#, "fields"),
            (r#"{"fields": "total=total +", "init": "total=0"}"#, "fields"),
            (r#"{"fields": ["a=1", "a=2"], "init": "a=0"}"#, "fields"),
            (r#"{"fields": "a=1", "init": "b=0"}"#, "init"),
            (r#"{"fields": ["a=1", "b=1"], "init": "b=0"}"#, "init"),
            (r#"{"fields": "a=1", "init": ["a=0", "b=0"]}"#, "init"),
            (r#"{"fields": "a=1", "init": "a=value"}"#, "init"),
            (r#"{"fields": "a=1", "init": "a=[]"}"#, "init"),
        ] {
            let error = Scan::new(ScanOptions::parse(options).unwrap()).unwrap_err();
            assert_eq!(error.get("option"), Some(option), "{options}");
        }
        assert_eq!(ScanOptions::parse("{}").unwrap_err().get("option"), Some("fields"));
        let host = small_host();
        let other = State::json(VERSION, &Vec::<Saved>::new()).unwrap();
        assert!(scan(TOTAL).restore(&other, &host.context()).is_err());
    }

    #[test]
    fn equals_the_definition_whatever_comes() {
        let mut rng = Rng::new(35, 0);
        for round in 0..40 {
            let (start, odd) = (rng.below(100) as i64 - 50, if round % 2 == 0 { 0.0 } else { 0.3 });
            let value = |rng: &mut Rng| match rng.bool(odd) {
                true => "x".into(),
                false => (rng.below(40) as i64 - 20).into(),
            };
            let input: Vec<_> =
                (0..rng.below(12)).map(|uid| sample(uid, &[("value", value(&mut rng))])).collect();
            let (mut total, mut least, mut last) = (start, 9, -1);
            let mut wanted = Vec::new();
            for sample in &input {
                let Some(value) = sample.get("value").unwrap().as_i64() else { continue };
                let mut made = sample.clone();
                (total, least) = (total + value, least.min(value));
                made.set("total", total);
                made.set("least", least);
                made.set("before", last);
                made.set("last", value);
                last = value;
                wanted.push(made);
            }
            let fields = r#"["total=total + value", "least=min(least, value)", "before=last", "last=value"]"#;
            let init = format!(r#"["last=-1", "before=-1", "least=9", "total={start}"]"#);
            let make = || scan(&format!(r#"{{"fields": {fields}, "init": {init}}}"#));
            if odd == 0.0 {
                assert_eq!(check(make, &input), wanted);
            }
            let mut drive = Drive::new(make(), &input, 3);
            assert_eq!(errors(&mut drive).len(), input.len() - wanted.len());
            assert_eq!(drive.out(), wanted);
            check_resume(make, &input);
            let alone = || scan(&format!(r#"{{"fields": "total=total + value", "init": "total={start}"}}"#));
            let mut drive = Drive::new(alone(), &input, 2);
            assert_eq!(errors(&mut drive).len(), input.len() - wanted.len());
            assert_eq!(ints(drive.out(), "total"), ints(&wanted, "total"));
            check_resume(alone, &input);
        }
    }
}
