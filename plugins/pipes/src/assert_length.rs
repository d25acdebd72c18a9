//! `assert_length`: the stream as it is, if it has as many samples as it should.
//!
//! ```toml
//! [assert_length]
//! page = "choose"
//! examples = ['forebay run "range 100 | assert_length 100 | batch 10"']
//! cases = ["range N | assert_length N"]
//! ```

use forebay_core::{
    Context, DataPipe, Error, Io, Length, PipeInfo, Result, State, StateExt, Step, Stream, options,
};

options! {
    /// Options of `assert_length`.
    pub struct AssertLengthOptions {
        /// How many samples must come.
        count: u64 = required;
    }
}

/// Gives all samples, and fails at the end if there were fewer than `count`, or as soon as there is one more.
///
/// It fails once and loses nothing: where that is forgiven, what is beyond is given too. State: how many samples were given, and whether it has failed.
#[derive(Debug)]
pub struct AssertLength {
    count: u64,
    given: u64,
    failed: bool,
}

/// The version of a saved position: how many samples were given, and whether it has failed.
const VERSION: u32 = 1;

impl DataPipe for AssertLength {
    const INFO: PipeInfo = PipeInfo {
        name: "assert_length",
        summary: "The stream as it is, if it has as many samples as it should",
        ..PipeInfo::DEFAULT
    };
    type Options = AssertLengthOptions;

    fn new(options: AssertLengthOptions) -> Result<Self> {
        Ok(Self { count: options.count, given: 0, failed: false })
    }
}

impl Stream for AssertLength {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.given, self.failed) = (0, false);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        let left = if self.failed { u64::MAX } else { self.count - self.given };
        self.given += io.forward(0, usize::try_from(left).unwrap_or(usize::MAX)) as u64;
        if self.failed || self.given < self.count {
            if !io.ended(0) {
                return Ok(if io.room() == 0 { Step::Ready } else { Step::NeedInput(0) });
            }
            return if self.failed {
                Ok(Step::End)
            } else {
                self.fail(format!("found {} samples", self.given))
            };
        }
        match io.input(0).and_then(|input| input.front()) {
            Some((_, key)) => {
                let key = key.clone();
                self.fail(format!("found a sample number {}", self.given + 1))
                    .map_err(|error| error.context("sample", key))
            }
            None => Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) }),
        }
    }

    fn length(&self, _: &[Option<Length>], _: &Context) -> Option<Length> {
        Some(Length::new(self.count))
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &(self.given, self.failed))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (given, failed) = state.parse(VERSION)?;
        (self.given, self.failed) = (given, failed || given > self.count);
        Ok(())
    }
}

impl AssertLength {
    fn fail(&mut self, found: String) -> Result<Step> {
        self.failed = true;
        let message = format!("{found}, expected {} samples", self.count);
        Err(Error::invalid(message).context("option", "count"))
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, Options};

    use super::*;
    use crate::testing::{Drive, Setup, check, check_resume, errors, numbers};

    fn assert_length(count: u64) -> AssertLength {
        AssertLength::new(AssertLengthOptions { count }).unwrap()
    }

    #[test]
    fn gives_what_has_the_length() {
        for count in [0, 1, 9] {
            let input = numbers(count);
            assert_eq!(check(|| assert_length(count as u64), &input), input);
        }
    }

    #[test]
    fn another_length_fails_once_and_loses_nothing() {
        for (count, wanted, message) in [
            (5, 7, "found 5 samples, expected 7 samples"),
            (0, 1, "found 0 samples, expected 1 samples"),
            (7, 5, "found a sample number 6, expected 5 samples"),
            (1, 0, "found a sample number 1, expected 0 samples"),
        ] {
            let input = numbers(count);
            for chunk in [1, 3, 10] {
                let mut drive = Drive::new(assert_length(wanted), &input, chunk);
                let mut seen = None;
                while seen.is_none() {
                    seen = drive.step(2).err().map(|error| (error, drive.out().len() as u64));
                }
                let (error, given) = seen.unwrap();
                assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, message));
                assert_eq!(error.get("option"), Some("count"));
                assert_eq!(given, wanted.min(count as u64), "as soon as it is known");
                assert!(errors(&mut drive).is_empty(), "it is told once");
                assert_eq!(drive.out(), input);
            }
            check_resume(|| assert_length(wanted), &input);
        }
        check_resume(|| assert_length(4), &numbers(4));
        Setup { most: 9, ..Setup::new(&[&numbers(30)]) }.check_resume(|| assert_length(30));
    }

    #[test]
    fn the_length_must_be_said() {
        for options in ["{}", r#"{"count": -1}"#] {
            assert_eq!(AssertLengthOptions::parse(options).unwrap_err().get("option"), Some("count"));
        }
    }
}
