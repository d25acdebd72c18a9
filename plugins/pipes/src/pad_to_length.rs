//! `pad_to_length`: at least so many samples, the last of them repeated if need be.
//!
//! ```toml
//! [pad_to_length]
//! page = "choose"
//! examples = ['forebay run "range 100 | pad_to_length multiple=64 ranks=true | batch 64"']
//! cases = ["range N | pad_to_length 33 on_error=skip"]
//! ```

use std::mem;

use forebay_core::{
    Context, DataPipe, Error, Io, Length, PipeAudit, PipeInfo, Result, Sample, State, StateExt, Step, Stream,
    Uids, options,
};

use crate::plumbing::wider::Wider;

options! {
    /// Options of `pad_to_length`.
    pub struct PadToLengthOptions {
        /// How many samples to give at least.
        count: u64 = 0;
        /// Give a multiple of this many.
        multiple: u64 = 1, in 1..=1000000000;
        /// Count `count` and `multiple` for each rank, so that all ranks get equally many samples and batches.
        ranks: bool = false;
        /// A new field: true for samples that came, false for samples that were added.
        field: String = "valid";
    }
}

/// Gives all samples with a field that is true, and then the last one with false in it, until there are `count`, and a multiple of what was said.
///
/// The last one, since it has the fields, types and shapes that the others have, so that batches of them stack. It keeps its key; its uid is
/// another each time. An input without samples has none to repeat, which is an error if some are wanted. Until there are `count`, and always where a multiple is
/// wanted, each sample waits for the next one. State: how many samples were given; the one that waits comes again.
#[derive(Debug)]
pub struct PadToLength {
    count: u64,
    multiple: u64,
    ranks: bool,
    given: u64,
    /// The sample that was taken last, and is not given before it is known whether it is the last of all.
    held: Sample,
    holds: bool,
    /// After the end: how often the last one was given.
    repeated: u64,
    /// How many samples were taken from the one that is held on: that, and those behind it that fail.
    behind: u64,
    /// After a restore: how many of those have not come again yet.
    again: u64,
    failed: bool,
    wider: Wider,
    copy: Sample,
}

/// The version of a saved position: how many samples were given, how often the last of all was, how many come again, and whether an
/// error ended the stream.
const VERSION: u32 = 1;

impl DataPipe for PadToLength {
    const INFO: PipeInfo = PipeInfo {
        name: "pad_to_length",
        summary: "At least so many samples, the last of them repeated if need be",
        audit: PipeAudit { uids: Uids::Made, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PadToLengthOptions;

    fn new(options: PadToLengthOptions) -> Result<Self> {
        let PadToLengthOptions { count, multiple, ranks, field } = options;
        let (wider, held, copy) = (Wider::new([field]), Sample::default(), Sample::default());
        let (holds, failed) = (false, false);
        let (given, repeated, behind, again) = (0, 0, 0, 0);
        Ok(Self { count, multiple, ranks, given, held, holds, repeated, behind, again, failed, wider, copy })
    }
}

impl Stream for PadToLength {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.given, self.repeated, self.behind, self.again) = (0, 0, 0, 0);
        (self.holds, self.failed) = (false, false);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let multiple = self.multiple * if self.ranks { u64::from(cx.world_size()) } else { 1 };
        if self.failed {
            return Ok(Step::End);
        }
        if !self.take_again(io)? {
            return Ok(Step::NeedInput(0));
        }
        while io.room() > 0 {
            if !self.multiplies() && self.holds && self.repeated == 0 && self.given + 1 >= self.count {
                self.give(io);
                continue;
            }
            match self.wider.take(io, [true.into()]) {
                Ok(true) => {
                    if self.holds {
                        self.give(io);
                    }
                    mem::swap(&mut self.held, self.wider.sample());
                    (self.holds, self.behind) = (true, 1);
                }
                Ok(false) if !io.ended(0) => return Ok(Step::NeedInput(0)),
                Ok(false) if self.holds && self.given < self.wanted(multiple) => self.repeat(io, cx),
                Ok(false) if self.given >= self.wanted(multiple) => return Ok(Step::End),
                Ok(false) => {
                    self.failed = true;
                    let wanted = self.wanted(multiple);
                    let message = format!("found no sample to repeat, expected {wanted} samples");
                    return Err(Error::invalid(message).context("option", "count"));
                }
                Err(error) => {
                    self.behind += u64::from(self.holds);
                    return Err(error);
                }
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], cx: &Context) -> Option<Length> {
        let ranks = if self.ranks { u64::from(cx.world_size()) } else { 1 };
        let whole = |count: u64| {
            count.max(self.count).checked_next_multiple_of(self.multiple * ranks).unwrap_or(u64::MAX)
        };
        Some(inputs[0]?.map(whole))
    }

    fn state(&self) -> Result<State> {
        let state = State::json(VERSION, &(self.given, self.repeated, self.behind, self.failed))?;
        Ok(state.again(0, self.behind - self.again))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        (self.given, self.repeated, self.behind, self.failed) = state.parse(VERSION)?;
        self.again = self.behind;
        Ok(())
    }
}

impl PadToLength {
    /// Takes again what waits of what was held, and those that failed behind it; says whether all are there.
    fn take_again(&mut self, io: &mut Io) -> Result<bool> {
        while self.again > 0 {
            match self.wider.take(io, [true.into()]) {
                Ok(true) => {
                    mem::swap(&mut self.held, self.wider.sample());
                    self.holds = true;
                }
                Ok(false) if !io.ended(0) => return Ok(false),
                Ok(false) => {
                    let missing = self.again;
                    self.failed = true;
                    let message = format!("the input ended {missing} samples before the saved position");
                    return Err(Error::invalid(message));
                }
                Err(_) => {} // It was told before.
            }
            self.again -= 1;
        }
        Ok(true)
    }

    /// Whether the end alone tells how many are wanted. Among how many ranks it is gone on with is not known.
    fn multiplies(&self) -> bool {
        self.multiple > 1 || self.ranks
    }

    /// How many samples are to be given, of an input that has ended.
    fn wanted(&self, multiple: u64) -> u64 {
        let came = match self.repeated {
            0 => self.given + u64::from(self.holds),
            repeated => self.given - repeated + 1,
        };
        came.max(self.count).checked_next_multiple_of(multiple).unwrap_or(u64::MAX)
    }

    /// Gives the sample that is held.
    fn give(&mut self, io: &mut Io) {
        io.push(&mut self.held);
        (self.holds, self.behind) = (false, 0);
        self.given += 1;
    }

    /// Gives the last sample: itself, and then again and again.
    fn repeat(&mut self, io: &mut Io, cx: &Context) {
        let Self { held, copy, .. } = self;
        let uid = cx.uid_of(held.uid(), [self.repeated]);
        copy.refill(uid, held.key().clone(), held.schema(), held.values().iter().cloned());
        if let Some(valid) = copy.values_mut().last_mut() {
            *valid = (self.repeated == 0).into();
        }
        io.push(copy);
        self.repeated += 1;
        self.given += 1;
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, Options, Value};

    use super::*;
    use crate::testing::{Drive, Host, Setup, check, check_resume, errors, ints, numbers, sample};

    fn pad(options: &str) -> PadToLength {
        PadToLength::new(PadToLengthOptions::parse(options).unwrap()).unwrap()
    }

    fn valid(out: &[Sample], field: &str) -> Vec<Value> {
        out.iter().map(|sample| sample.get(field).unwrap().clone()).collect()
    }

    #[test]
    fn repeats_the_last_until_there_are_enough() {
        for count in [1, 2, 5, 9] {
            for length in [0, 1, 4, 5, 6, 12] {
                let options = format!(r#"{{"count": {length}}}"#);
                let input = numbers(count);
                let out = check(|| pad(&options), &input);
                let wanted: Vec<_> = (0..count.max(length)).map(|at| at.min(count - 1) as i64).collect();
                assert_eq!(ints(&out, "value"), wanted);
                let real: Vec<_> = (0..out.len()).map(|at| Value::from(at < count)).collect();
                assert_eq!(valid(&out, "valid"), real);
                for (sample, came) in out.iter().zip(&input) {
                    assert_eq!((sample.uid(), sample.key()), (came.uid(), came.key()));
                }
                assert!(out[count..].iter().all(|sample| sample.key() == input[count - 1].key()));
                let uids: std::collections::HashSet<_> = out.iter().map(Sample::uid).collect();
                assert_eq!(uids.len(), out.len());
                if count < 9 {
                    check_resume(|| pad(&options), &input);
                }
            }
        }
        Setup { most: 9, ..Setup::new(&[&numbers(40)]) }.check_resume(|| pad(r#"{"count": 5}"#));
        assert!(check(|| pad(r#"{"count": 0}"#), &[]).is_empty());
    }

    #[test]
    fn repeats_the_last_up_to_a_multiple() {
        for count in [1_usize, 3, 4, 5, 8] {
            for (options, length) in [
                (r#"{"multiple": 4}"#, count.next_multiple_of(4)),
                (r#"{"multiple": 4, "ranks": true}"#, count.next_multiple_of(4)),
                (r#"{"count": 6, "multiple": 4}"#, 8),
            ] {
                let input = numbers(count);
                let out = check(|| pad(options), &input);
                let wanted: Vec<_> = (0..length).map(|at| at.min(count - 1) as i64).collect();
                assert_eq!(ints(&out, "value"), wanted, "{options} of {count}");
                check_resume(|| pad(options), &input);
            }
        }
        assert!(check(|| pad(r#"{"multiple": 4}"#), &[]).is_empty());
        let (options, input) = (r#"{"multiple": 2, "ranks": true}"#, numbers(7));
        for rank in 0..3 {
            let mut drive = Drive::with_host(pad(options), &input, 2, &Host::new().rank(rank, 3));
            drive.run(5, usize::MAX).unwrap();
            assert_eq!(
                ints(drive.out(), "value"),
                [0, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6],
                "6 for each rank and batch"
            );
        }
    }

    #[test]
    fn nothing_has_no_last() {
        let mut drive = Drive::new(pad(r#"{"count": 3}"#), &[], 1);
        let found = errors(&mut drive);
        assert_eq!(
            (found.len(), found[0].kind(), found[0].get("option")),
            (1, ErrorKind::Invalid, Some("count"))
        );
        assert!(found[0].message().contains("no sample to repeat, expected 3"));
        check_resume(|| pad(r#"{"count": 3}"#), &[]);
    }

    #[test]
    fn a_field_of_that_name_is_an_error_and_the_others_come() {
        let mut input = numbers(7);
        for at in [0, 3, 5, 6] {
            input[at] = sample(at as u64, &[("value", 0_i64.into()), ("real", 1_i64.into())]);
        }
        let make = || pad(r#"{"count": 5, "field": "real"}"#);
        for chunk in [1, 2, 7] {
            let mut drive = Drive::new(make(), &input, chunk);
            let found = errors(&mut drive);
            let names: Vec<_> = found.iter().map(|error| error.get("sample").unwrap()).collect();
            assert_eq!(names, ["test#0", "test#3", "test#5", "test#6"]);
            assert!(found.iter().all(|error| error.get("field") == Some("real")));
            assert_eq!(ints(drive.out(), "value"), [1, 2, 4, 4, 4]);
            assert_eq!(valid(drive.out(), "real"), [true, true, true, false, false].map(Value::from));
        }
        check_resume(make, &input);
    }

    #[test]
    fn an_input_that_became_shorter_is_an_error() {
        let input = numbers(4);
        let mut drive = Drive::new(pad(r#"{"count": 9}"#), &input, 1);
        drive.run(1, 2).unwrap();
        let (state, host) = (drive.state().unwrap(), crate::testing::small_host());
        assert_eq!(state.again[0], 1);
        let mut pipe = pad(r#"{"count": 9}"#);
        pipe.restore(&state, &host.context()).unwrap();
        let mut short = Drive::new(pad(r#"{"count": 9}"#), &[], 1);
        short.replace(pipe);
        assert_eq!(errors(&mut short).len(), 1);
    }

    #[test]
    fn a_length_below_zero_is_refused() {
        for (option, options) in [("count", r#"{"count": -1}"#), ("multiple", r#"{"multiple": 0}"#)] {
            assert_eq!(PadToLengthOptions::parse(options).unwrap_err().get("option"), Some(option));
        }
    }
}
