//! `filter`: the samples of which an expression holds.

use forebay_core::{Context, DataPipe, Io, PipeInfo, Result, State, StateExt, Step, Stream, options};

use crate::expression::{Draws, Running};

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
    predicate: Running,
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
        Ok(Self { predicate: Running::new(&options.predicate, "predicate")? })
    }
}

impl Stream for Filter {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            let (kept, stop) = self.run(io, cx);
            if kept == 0 && stop.is_none() {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            io.forward(0, kept);
            if let (Some(stop), Some(input)) = (stop, io.input(0)) {
                input.advance();
                stop?;
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
    /// How many of the foremost samples there is room for and the predicate holds of, and what stands behind them: a sample of which it
    /// does not hold, or the error of one.
    fn run(&mut self, io: &mut Io, cx: &Context) -> (usize, Option<Result<()>>) {
        let room = io.room();
        let Some(input) = io.input(0) else { return (0, None) };
        let mut kept = 0;
        for (uid, key, schema, values) in input.samples().take(room) {
            let (predicate, places) = self.predicate.of(schema);
            match predicate.holds(places, key, schema, values, &Draws::new(cx, uid)) {
                Ok(true) => kept += 1,
                Ok(false) => return (kept, Some(Ok(()))),
                Err(error) => return (kept, Some(Err(error.context("sample", key)))),
            }
        }
        (kept, None)
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Sample, Value};

    use super::*;
    use crate::testing::{check, check_resume, errors, ints, numbers, sample};

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
    fn drops_all_and_ends_b029() {
        let input = numbers(10);
        let mut drive = crate::testing::Drive::new(filter("value > 100"), &input, 3);
        drive.run(2, 1).unwrap();
        assert!(drive.out().is_empty() && drive.fed() == 10 && drive.told_the_end());
    }

    #[test]
    fn goes_on_behind_a_saved_position_b031() {
        let input = numbers(10);
        let mut drive = crate::testing::Drive::new(filter("value % 2 == 0"), &input, 1);
        drive.run(1, 2).unwrap();
        let mut other = drive.resume(filter("value % 2 == 0"));
        other.run(1, 5).unwrap();
        assert_eq!((ints(drive.out(), "value"), ints(other.out(), "value")), (vec![0, 2], vec![4, 6, 8]));
    }

    #[test]
    fn what_is_left_is_batched_b038() {
        let batch = || crate::Batch::new(crate::BatchOptions::parse(r#"{"size": 2}"#).unwrap()).unwrap();
        let even = check(|| filter("value % 2 == 0"), &numbers(9)[1..]);
        let batches: Vec<_> =
            check(batch, &even).iter().map(|one| ints(std::slice::from_ref(one), "value")).collect();
        assert_eq!(batches, [[2, 4], [6, 8]]);
    }

    #[test]
    fn a_sample_that_fails_is_named_and_the_others_come() {
        let bad = |at: u64| if at % 4 == 1 { Value::from("x") } else { Value::from(at as i64) };
        let input: Vec<Sample> = (0..9).map(|at| sample(at, &[("value", bad(at))])).collect();
        let mut drive = crate::testing::Drive::new(filter("value < 7"), &input, 2);
        let errors = errors(&mut drive);
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

    #[test]
    fn a_random_share_b143() {
        let input = numbers(1000);
        for (share, wanted) in [("1.0", 1000..=1000), ("0.0", 0..=0), ("0.1", 80..=120)] {
            let predicate = format!("random() < {share}");
            let out = check(|| filter(&predicate), &input);
            assert!(wanted.contains(&out.len()), "{share}: {}", out.len());
        }
        check_resume(|| filter("random() < 0.5"), &numbers(12));
    }
}
