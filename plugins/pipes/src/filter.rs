//! `filter`: the samples of which an expression holds.

use forebay_core::{
    Chunk, Context, DataPipe, Io, PipeInfo, Result, Schema, State, StateExt, Step, Stream, options,
};

use crate::expression::{Expression, Places};

options! {
    /// Options of `filter`.
    pub struct FilterOptions {
        /// An expression that is true of the samples to keep: `label < 10 && size(text) > 3`.
        predicate: String = required;
    }
}

/// Keeps the samples of which an expression over their fields holds, in their order.
#[derive(Debug)]
pub struct Filter {
    predicate: Expression,
    /// The last schema, and where the fields of the expression are in it.
    known: Option<(Schema, Places)>,
}

/// The version of a saved position, which holds nothing.
const VERSION: u32 = 1;

impl DataPipe for Filter {
    const INFO: PipeInfo = PipeInfo {
        name: "filter",
        summary: "The samples of which an expression holds",
        drops: "*",
        ..PipeInfo::DEFAULT
    };
    type Options = FilterOptions;

    fn new(options: FilterOptions) -> Result<Self> {
        let predicate = Expression::new(&options.predicate);
        Ok(Self { predicate: predicate.map_err(|error| error.context("option", "predicate"))?, known: None })
    }
}

impl Stream for Filter {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            let Some(kept) = io.input(0).and_then(|input| self.holds(input)) else {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            };
            match kept {
                Ok(true) => drop(io.forward(0, 1)),
                other => {
                    if let Some(input) = io.input(0) {
                        input.advance();
                    }
                    other?;
                }
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &())
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        state.parse(VERSION)
    }
}

impl Filter {
    /// Whether the predicate holds of the foremost sample; none where there is no sample.
    #[inline]
    fn holds(&mut self, input: &Chunk) -> Option<Result<bool>> {
        let (_, key, schema, values) = input.peek()?;
        let places = match &mut self.known {
            Some((known, places)) if known.is(schema) => places,
            known => &mut known.insert((schema.clone(), self.predicate.places(schema))).1,
        };
        let holds = self.predicate.holds(places, key, schema, values);
        Some(holds.map_err(|error| error.context("sample", key)))
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Sample, Value};

    use super::*;
    use crate::testing::{check, check_resume, ints, numbers, sample};

    fn filter(predicate: &str) -> Filter {
        Filter::new(FilterOptions { predicate: predicate.into() }).unwrap()
    }

    #[test]
    fn keeps_what_holds_in_its_order() {
        for (predicate, wanted) in [
            ("value % 3 == 0", vec![0, 3, 6, 9, 12]),
            ("value > 12", vec![13]),
            ("false", vec![]),
            ("true", (0..14).collect()),
        ] {
            assert_eq!(ints(&check(|| filter(predicate), &numbers(14)), "value"), wanted, "{predicate}");
            check_resume(|| filter(predicate), &numbers(14));
        }
        assert!(check(|| filter("true"), &[]).is_empty());
    }

    #[test]
    fn a_sample_that_fails_is_named_and_the_others_come() {
        let bad = |at: u64| if at % 4 == 1 { Value::from("x") } else { Value::from(at as i64) };
        let input: Vec<Sample> = (0..9).map(|at| sample(at, &[("value", bad(at))])).collect();
        let mut drive = crate::testing::Drive::new(filter("value < 7"), &input, 2);
        let (mut errors, mut end) = (Vec::new(), false);
        while !end {
            match drive.step(3) {
                Ok(step) => end = step == Step::End,
                Err(error) => errors.push(error),
            }
        }
        let names: Vec<_> = errors.iter().map(|error| error.get("sample").unwrap()).collect();
        assert_eq!(names, ["test#1", "test#5"]);
        assert!(errors[0].message().contains("text cannot be compared"), "{}", errors[0]);
        assert_eq!(ints(drive.out(), "value"), [0, 2, 3, 4, 6]);
    }

    #[test]
    fn a_predicate_must_be_one() {
        assert_eq!(FilterOptions::parse("{}").unwrap_err().get("option"), Some("predicate"));
        let error = Filter::new(FilterOptions { predicate: "value <".into() }).unwrap_err();
        assert_eq!(error.get("option"), Some("predicate"));
        let mut drive_input = numbers(1);
        let mut drive = crate::testing::Drive::new(filter("value"), &drive_input, 1);
        let error = loop {
            if let Err(error) = drive.step(1) {
                break error;
            }
        };
        assert!(error.message().contains("it gives an integer"), "{error}");
        drive_input.clear();
    }
}
