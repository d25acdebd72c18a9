//! `skip_while`: the samples from the first on of which an expression does not hold.
//!
//! ```toml
//! [skip_while]
//! page = "choose"
//! examples = ['''forebay head -n 1 "range 100 | skip_while 'value < 50'"''']
//! cases = ["range N | skip_while 'value < 7'"]
//! counted = false
//! ```

use forebay_core::{
    Condition, Context, DataPipe, Drops, Io, PipeAudit, PipeInfo, PipeOrder, Randomness, Result, State,
    StateExt, Step, Stream, options,
};

use crate::plumbing::expression::Running;

options! {
    /// Options of `skip_while`.
    pub struct SkipWhileOptions {
        /// An expression such as `step < 1000`. Samples are left out until it is false for the first time.
        predicate: String = required;
    }
}

/// Leaves out samples until an expression over their fields does not hold of one, and gives that and all that follow.
///
/// A sample of which the expression fails before is an error, which begins nothing. State: whether it gives.
#[derive(Debug)]
pub struct SkipWhile {
    predicate: Running,
    gives: bool,
}

/// The version of a saved position, which says whether the first that is given was seen.
const VERSION: u32 = 1;

impl DataPipe for SkipWhile {
    const INFO: PipeInfo = PipeInfo {
        name: "skip_while",
        summary: "Leaves out the first samples, as long as an expression holds",
        order: PipeOrder {
            draws: Randomness::If(&[Condition::Contains("predicate", "random(")]),
            ..PipeOrder::DEFAULT
        },
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = SkipWhileOptions;

    fn new(options: SkipWhileOptions) -> Result<Self> {
        Ok(Self { predicate: Running::new(&options.predicate, "predicate")?, gives: false })
    }
}

impl Stream for SkipWhile {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.gives = false;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while !self.gives {
            let Some(input) = io.input(0) else { return Ok(Step::End) };
            match self.predicate.holds(input) {
                Some(Ok(false)) => self.gives = true,
                Some(other) => {
                    input.advance();
                    other?;
                }
                None => return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) }),
            }
        }
        io.forward(0, usize::MAX);
        Ok(if io.ended(0) {
            Step::End
        } else if io.room() == 0 {
            Step::Ready
        } else {
            Step::NeedInput(0)
        })
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &self.gives)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.gives = state.parse(VERSION)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Sample, Value, random::Rng};

    use super::*;
    use crate::testing::{Drive, check, check_resume, errors, ints, numbers, sample};

    fn skip_while(predicate: &str) -> SkipWhile {
        SkipWhile::new(SkipWhileOptions { predicate: predicate.into() }).unwrap()
    }

    #[test]
    fn gives_all_from_the_first_on_that_does_not_hold() {
        for (predicate, start) in
            [("value < 5", 5), ("value != 3", 3), ("true", 14), ("false", 0), ("value % 4 < 3", 3)]
        {
            let input = numbers(14);
            assert_eq!(check(|| skip_while(predicate), &input), input[start..], "{predicate}");
            check_resume(|| skip_while(predicate), &input);
            assert!(check(|| skip_while(predicate), &[]).is_empty());
        }
        check_resume(|| skip_while("value < 1"), &numbers(1));
    }

    #[test]
    fn a_sample_that_fails_begins_nothing_and_later_ones_are_not_looked_at() {
        let text = |at: u64| if at % 3 == 1 { Value::from("x") } else { Value::from(at as i64) };
        let mut input: Vec<Sample> = (0..6).map(|at| sample(at, &[("value", text(at))])).collect();
        input.push(sample(6, &[("value", 6_i64.into())]));
        input.push(sample(7, &[("other", 7_i64.into())]));
        let mut drive = Drive::new(skip_while("value < 6"), &input, 2);
        let names: Vec<_> =
            errors(&mut drive).iter().map(|error| error.get("sample").unwrap().to_owned()).collect();
        assert_eq!(names, ["test#1", "test#4"]);
        assert_eq!(drive.out(), &input[6..]);
        assert_eq!(ints(&drive.out()[..1], "value"), [6]);
        check_resume(|| skip_while("value < 6"), &input);
    }

    #[test]
    fn a_predicate_must_be_one() {
        assert_eq!(SkipWhileOptions::parse("{}").unwrap_err().get("option"), Some("predicate"));
        let error = SkipWhile::new(SkipWhileOptions { predicate: "value <".into() }).unwrap_err();
        assert_eq!(error.get("option"), Some("predicate"));
    }

    #[test]
    fn equals_the_definition_whatever_comes() {
        let mut rng = Rng::new(47, 0);
        for round in 0..40 {
            let (count, least) = (round % 11, rng.below(10) as i64);
            let values: Vec<_> = (0..count).map(|_| rng.below(12) as i64).collect();
            let input: Vec<_> =
                values.iter().zip(0..).map(|(&value, uid)| sample(uid, &[("value", value.into())])).collect();
            let end = values.iter().position(|&value| value < least).unwrap_or(values.len());
            let make = || skip_while(&format!("value >= {least}"));
            assert_eq!(check(make, &input), input[end..], "{least} of {values:?}");
            check_resume(make, &input);
        }
    }
}
