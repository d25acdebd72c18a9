//! `take_while`: the samples before the first of which an expression does not hold.
//!
//! ```toml
//! [take_while]
//! page = "choose"
//! examples = ['''forebay head "range 100 | take_while 'value * value < 10'"''']
//! counted = false
//!
//! [[take_while.short]]
//! graph = "range N | take_while 'value < 17'"
//! samples = 17
//! ```

use forebay_core::{
    Condition, Context, DataPipe, Drops, Io, PipeAudit, PipeInfo, PipeOrder, Randomness, Result, State,
    StateExt, Step, Stream, options,
};

use crate::plumbing::expression::Running;

options! {
    /// Options of `take_while`.
    pub struct TakeWhileOptions {
        /// An expression such as `step < 1000`. The first sample for which it is false ends the stream.
        predicate: String = required;
    }
}

/// Gives samples until an expression over their fields does not hold of one, and ends with it, without asking for another.
///
/// A sample of which the expression fails is an error, which ends nothing. State: whether it has ended.
#[derive(Debug)]
pub struct TakeWhile {
    predicate: Running,
    over: bool,
}

/// The version of a saved position, which says whether the end was seen.
const VERSION: u32 = 1;

impl DataPipe for TakeWhile {
    const INFO: PipeInfo = PipeInfo {
        name: "take_while",
        summary: "The first samples, as long as an expression holds",
        order: PipeOrder {
            draws: Randomness::If(&[Condition::Contains("predicate", "random(")]),
            ..PipeOrder::DEFAULT
        },
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = TakeWhileOptions;

    fn new(options: TakeWhileOptions) -> Result<Self> {
        Ok(Self { predicate: Running::new(&options.predicate, "predicate")?, over: false })
    }
}

impl Stream for TakeWhile {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.over = false;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while !self.over && io.room() > 0 {
            let Some(holds) = io.input(0).and_then(|input| self.predicate.holds(input)) else {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            };
            match holds {
                Ok(true) => drop(io.forward(0, 1)),
                Ok(false) => self.over = true,
                Err(error) => {
                    if let Some(input) = io.input(0) {
                        input.advance();
                    }
                    return Err(error);
                }
            }
        }
        Ok(if self.over { Step::End } else { Step::Ready })
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &self.over)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.over = state.parse(VERSION)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Sample, Value, random::Rng};

    use super::*;
    use crate::testing::{Drive, check, check_resume, errors, ints, numbers, sample};

    fn take_while(predicate: &str) -> TakeWhile {
        TakeWhile::new(TakeWhileOptions { predicate: predicate.into() }).unwrap()
    }

    #[test]
    fn gives_what_is_before_the_first_that_does_not_hold() {
        for (predicate, wanted) in
            [("value < 5", 5), ("value != 3", 3), ("true", 14), ("false", 0), ("value % 4 < 3", 3)]
        {
            let input = numbers(14);
            assert_eq!(check(|| take_while(predicate), &input), input[..wanted], "{predicate}");
            check_resume(|| take_while(predicate), &input);
            assert!(check(|| take_while(predicate), &[]).is_empty());
        }
        check_resume(|| take_while("value < 1"), &numbers(1));
    }

    #[test]
    fn ends_without_asking_for_more() {
        let input = numbers(9);
        let mut drive = Drive::new(take_while("value < 3"), &input, 2);
        drive.run(64, 100).unwrap();
        assert_eq!((drive.out().len(), drive.fed()), (3, 4));
        assert_eq!(drive.step(64).unwrap(), Step::End);
        assert_eq!(drive.fed(), 4);
    }

    #[test]
    fn a_sample_that_fails_ends_nothing() {
        let text = |at: u64| if at % 3 == 1 { Value::from("x") } else { Value::from(at as i64) };
        let input: Vec<Sample> = (0..9).map(|at| sample(at, &[("value", text(at))])).collect();
        let mut drive = Drive::new(take_while("value < 6"), &input, 2);
        let names: Vec<_> =
            errors(&mut drive).iter().map(|error| error.get("sample").unwrap().to_owned()).collect();
        assert_eq!(names, ["test#1", "test#4"]);
        assert_eq!(ints(drive.out(), "value"), [0, 2, 3, 5]);
        check_resume(|| take_while("value < 6"), &input);
    }

    #[test]
    fn a_predicate_must_be_one() {
        assert_eq!(TakeWhileOptions::parse("{}").unwrap_err().get("option"), Some("predicate"));
        let error = TakeWhile::new(TakeWhileOptions { predicate: "value <".into() }).unwrap_err();
        assert_eq!(error.get("option"), Some("predicate"));
    }

    #[test]
    fn equals_the_definition_whatever_comes() {
        let mut rng = Rng::new(46, 0);
        for round in 0..40 {
            let (count, least) = (round % 11, rng.below(10) as i64);
            let values: Vec<_> = (0..count).map(|_| rng.below(12) as i64).collect();
            let input: Vec<_> =
                values.iter().zip(0..).map(|(&value, uid)| sample(uid, &[("value", value.into())])).collect();
            let end = values.iter().position(|&value| value < least).unwrap_or(values.len());
            let make = || take_while(&format!("value >= {least}"));
            assert_eq!(check(make, &input), input[..end], "{least} of {values:?}");
            check_resume(make, &input);
        }
    }
}
