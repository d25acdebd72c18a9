//! `repeat`: the whole stream several times.
//!
//! ```toml
//! [repeat]
//! page = "choose"
//! examples = ['forebay run "range 10 | shuffle 10 | repeat 3"']
//! cases = ["range N | repeat 3"]
//! ```

use forebay_core::{
    Context, DataPipe, Error, Io, Length, PipeAudit, PipeInfo, PipeOrder, Result, State, StateExt, Step,
    Stream, Uids, options,
};

options! {
    /// Options of `repeat`.
    pub struct RepeatOptions {
        /// How often to give the whole stream; null for no end.
        count: Option<u64> = null, in 1..=18446744073709551615;
    }
}

/// Gives its input `count` times, from the start each time.
///
/// A sample of a later pass has a uid of its own, so that random maps draw anew. A pass without
/// samples ends the stream, even one without end.
#[derive(Debug)]
pub struct Repeat {
    count: Option<u64>,
    pass: u64,
    /// Whether this pass has given a sample.
    gave: bool,
}

impl DataPipe for Repeat {
    const INFO: PipeInfo = PipeInfo {
        name: "repeat",
        summary: "The whole stream several times",
        also: &["cycle", "cycler"],
        order: PipeOrder { rewinds: true, ..PipeOrder::DEFAULT },
        audit: PipeAudit { uids: Uids::Derived, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RepeatOptions;

    fn new(options: RepeatOptions) -> Result<Self> {
        Ok(Self { count: options.count, pass: 0, gave: false })
    }
}

impl Repeat {
    fn forward(&mut self, io: &mut Io, cx: &Context) {
        if self.pass == 0 {
            self.gave |= io.forward(0, usize::MAX) > 0;
            return;
        }
        self.gave |= io.forward_as(0, usize::MAX, |uid| cx.uid_of(uid, [0, self.pass])) > 0;
    }
}

impl Stream for Repeat {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.pass = 0;
        self.gave = false;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        self.forward(io, cx);
        if !io.ended(0) {
            return Ok(if io.room() == 0 { Step::Ready } else { Step::NeedInput(0) });
        }
        let last = self.count.is_some_and(|count| self.pass + 1 >= count);
        if last || !self.gave {
            return Ok(Step::End);
        }
        self.pass += 1;
        self.gave = false;
        Ok(Step::Rewind(0))
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        // An input that has none ends it.
        match (self.count, inputs[0]) {
            (Some(count), input) => Some(input?.times(Length::new(count))),
            (None, Some(input)) => Some(input.times(Length::ENDLESS)),
            (None, None) => Some(Length::ENDLESS),
        }
    }

    fn state(&self) -> Result<State> {
        State::json(1, &(self.pass, self.gave, self.count))
    }

    /// The count of the state wins: it says how the saved run was meant to go on.
    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (pass, gave, count): (u64, bool, Option<u64>) = state.parse(1)?;
        if count.is_some_and(|count| pass >= count) {
            return Err(Error::invalid(format!("found a state in pass {pass} of {count:?}")));
        }
        (self.pass, self.gave, self.count) = (pass, gave, count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Sample, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, check, check_resume, ints, numbers, uid_of};

    fn repeat(count: Option<u64>) -> Repeat {
        Repeat::new(RepeatOptions { count }).unwrap()
    }

    #[test]
    fn gives_all_several_times_b060_b063() {
        assert_eq!(ints(&check(|| repeat(Some(2)), &numbers(3)), "value"), [0, 1, 2, 0, 1, 2]);
        assert_eq!(check(|| repeat(Some(3)), &numbers(6)).len(), 18);
        assert_eq!(check(|| repeat(Some(1)), &numbers(4)), numbers(4));
        assert!(RepeatOptions::parse(r#"{"count": 0}"#).is_err());
        assert!(RepeatOptions::parse(r#"{"count": -1}"#).is_err());
        assert_eq!(RepeatOptions::parse("{}").unwrap().count, None);
    }

    #[test]
    fn stays_at_the_end_b060() {
        let input = numbers(3);
        let mut drive = Drive::new(repeat(Some(2)), &input, 2);
        drive.run(64, 100).unwrap();
        for _ in 0..3 {
            assert_eq!(drive.step(64).unwrap(), Step::End);
        }
        assert_eq!(drive.out().len(), 6);
    }

    #[test]
    fn empty_input_ends_also_without_a_limit_b006_b065() {
        assert!(check(|| repeat(Some(2)), &[]).is_empty());
        assert!(check(|| repeat(None), &[]).is_empty());
    }

    #[test]
    fn goes_on_for_ever() {
        let input = numbers(3);
        let mut drive = Drive::new(repeat(None), &input, 2);
        drive.run(64, 1000).unwrap();
        assert!(drive.out().len() >= 1000);
        let right =
            ints(drive.out(), "value").into_iter().enumerate().all(|(at, value)| value == at as i64 % 3);
        assert!(right);
    }

    #[test]
    fn every_pass_has_uids_of_its_own() {
        let out = check(|| repeat(Some(3)), &numbers(50));
        let mut uids: Vec<_> = out.iter().map(Sample::uid).collect();
        assert_eq!(uids[..50], (0..50).collect::<Vec<_>>());
        uids.sort_unstable();
        uids.dedup();
        assert_eq!(uids.len(), 150);
    }

    #[test]
    fn goes_on_from_every_state_b061() {
        check_resume(|| repeat(Some(3)), &numbers(4));
        check_resume(|| repeat(Some(3)), &[]);
        check_resume(|| repeat(None), &[]);
        Setup { most: 11, ..Setup::new(&[&numbers(3)]) }.check_resume(|| repeat(None));
    }

    #[test]
    fn the_limit_of_the_state_wins_b062() {
        let input = numbers(3);
        let mut drive = Drive::new(repeat(Some(2)), &input, 1);
        while drive.out().len() < 4 {
            drive.step(1).unwrap();
        }
        let mut resumed = drive.resume(repeat(Some(5)));
        resumed.run(1, 100).unwrap();
        assert_eq!(ints(resumed.out(), "value"), [1, 2]);
    }

    #[test]
    fn equals_the_definition_for_inputs_of_any_length() {
        let mut rng = Rng::new(48, 0);
        for round in 0..30 {
            let input = numbers(round % 7);
            let count = rng.bool(0.7).then(|| 1 + rng.below(4));
            let passes = (0..count.unwrap_or(if input.is_empty() { 0 } else { 20 })).flat_map(|pass| {
                input.iter().map(move |sample| {
                    let mut sample = sample.clone();
                    sample.set_uid(uid_of(sample.uid(), [0, pass]));
                    sample
                })
            });
            let endless = count.is_none() && !input.is_empty();
            let most = if endless { 17 } else { usize::MAX };
            let setup = Setup { most, ..Setup::new(&[&input]) };
            assert_eq!(setup.check(|| repeat(count))[0], passes.take(most).collect::<Vec<_>>(), "{count:?}");
            setup.check_resume(|| repeat(count));
        }
    }
}
