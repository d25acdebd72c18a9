//! `slice`: a part of the stream, as Python's slice of a list.
//!
//! ```toml
//! [slice]
//! page = "choose"
//! examples = ['forebay head "range 100 | slice start=-4 step=2"']
//! cases = ["range N | slice 3 stop=-4 step=2"]
//! ```

use std::{collections::VecDeque, mem};

use forebay_core::{
    Context, DataPipe, Drops, Error, Io, Length, PipeAudit, PipeInfo, Result, Sample, State, StateExt, Step,
    Stream, options,
};

options! {
    /// Options of `slice`.
    pub struct SliceOptions {
        /// The first sample to give, from 0; a negative number counts from the end; null for the first of all.
        start: Option<i64> = null, in -1000000000..=9223372036854775807;
        /// The sample to stop before; a negative number counts from the end; null for none.
        stop: Option<i64> = null, in -1000000000..=9223372036854775807;
        /// The step from one sample to the next.
        step: i64 = 1;
    }
}

/// Gives the samples from `start` to before `stop`, every `step`-th, as Python's slice of all samples.
///
/// With numbers from 0 on it ends without asking for another sample than it needs. A negative `stop` holds back as many samples
/// as it says, a negative `start` keeps that many, the last ones, and gives them at the end. State: from which sample on to go; those held come again.
#[derive(Debug)]
pub struct Slice {
    start: Bound,
    stop: Option<Bound>,
    step: u64,
    /// How many samples were taken: the number of the next that comes.
    at: u64,
    /// Counted from the start: the number of the next sample to give. Those held, if any, begin with it and are `step` apart.
    next: u64,
    /// Samples held, the oldest first; counted from the end: the last that were taken, all of them.
    held: VecDeque<Sample>,
    /// A sample that was given, whose memory is used again.
    spare: Sample,
}

/// An end of the part, among all samples.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Start(u64),
    /// So many before the end.
    End(u64),
}

impl Bound {
    fn new(place: i64) -> Self {
        if place < 0 { Self::End(place.unsigned_abs()) } else { Self::Start(place.unsigned_abs()) }
    }

    /// The number it has among `count` samples.
    fn of(self, count: u64) -> u64 {
        match self {
            Self::Start(place) => place,
            Self::End(back) => count.saturating_sub(back),
        }
    }
}

/// The version of a saved position: the number of the sample to go on from.
const VERSION: u32 = 1;

impl DataPipe for Slice {
    const INFO: PipeInfo = PipeInfo {
        name: "slice",
        summary: "A part of the stream, as Python's slice of a list",
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = SliceOptions;

    fn new(options: SliceOptions) -> Result<Self> {
        let SliceOptions { start, stop, step } = options;
        let Some(step) = u64::try_from(step).ok().filter(|&step| step > 0) else {
            let why = "a stream is not given backwards";
            let error = Error::invalid(format!("found {step}, expected a step from 1: {why}"));
            return Err(error.context("option", "step"));
        };
        let (start, stop) = (Bound::new(start.unwrap_or(0)), stop.map(Bound::new));
        let (held, spare) = (VecDeque::new(), Sample::default());
        let mut slice = Self { start, stop, step, at: 0, next: 0, held, spare };
        slice.begin(0);
        Ok(slice)
    }
}

impl Stream for Slice {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.begin(0);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        Ok(match (self.start, self.stop) {
            (Bound::End(last), _) => self.give_last(io, last),
            (_, Some(Bound::End(back))) => self.hold_back(io, back),
            (_, Some(Bound::Start(stop))) => self.pass(io, stop),
            (_, None) => self.pass(io, u64::MAX),
        })
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        let part = |count: u64| {
            let stop = self.stop.map_or(count, |stop| stop.of(count)).min(count);
            stop.saturating_sub(self.start.of(count)).div_ceil(self.step)
        };
        match (inputs[0]?.count(), self.start, self.stop) {
            (Some(count), ..) => Some(Length::new(part(count))),
            (None, Bound::Start(_), Some(Bound::Start(stop))) => Some(Length::new(part(stop))),
            // What is counted from the end waits for it.
            (None, Bound::End(_), _) => None,
            (None, ..) => Some(Length::ENDLESS),
        }
    }

    fn state(&self) -> Result<State> {
        let from = match self.start {
            Bound::End(_) => self.at - self.held.len() as u64,
            Bound::Start(_) if self.held.is_empty() => self.at,
            Bound::Start(_) => self.next,
        };
        Ok(State::json(VERSION, &from)?.again(0, self.at - from))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.begin(state.parse(VERSION)?);
        Ok(())
    }
}

impl Slice {
    /// Holds nothing, and goes on with this sample of the input.
    fn begin(&mut self, from: u64) {
        self.held.clear();
        (self.at, self.next) = (from, 0);
        if let Bound::Start(start) = self.start {
            let steps = from.saturating_sub(start).div_ceil(self.step);
            self.next = start.saturating_add(steps.saturating_mul(self.step));
        }
    }

    /// Leaves out samples up to the next to give; says whether it is the next that comes.
    fn skip(&mut self, io: &mut Io) -> bool {
        let Some(input) = io.input(0) else { return false };
        while self.at < self.next && !input.is_empty() {
            input.advance();
            self.at += 1;
        }
        self.at == self.next
    }

    /// Takes a sample to be held; says whether there was one.
    fn take(&mut self, io: &mut Io) -> bool {
        let took = io.pop_into(0, &mut self.spare);
        if took {
            self.held.push_back(mem::take(&mut self.spare));
            self.at += 1;
        }
        took
    }

    /// Gives the oldest sample that is held.
    fn give(&mut self, io: &mut Io) {
        if let Some(oldest) = self.held.pop_front() {
            self.spare = oldest;
            io.push(&mut self.spare);
        }
    }

    /// Both ends counted from the start: nothing is held.
    fn pass(&mut self, io: &mut Io, stop: u64) -> Step {
        while self.next < stop {
            if io.room() == 0 {
                return Step::Ready;
            }
            let most = if self.step == 1 { stop - self.next } else { 1 };
            let given = match self.skip(io) {
                true => io.forward(0, usize::try_from(most).unwrap_or(usize::MAX)) as u64,
                false => 0,
            };
            if given == 0 {
                return if io.ended(0) { Step::End } else { Step::NeedInput(0) };
            }
            self.at += given;
            self.next = self.next.saturating_add(given.saturating_mul(self.step));
        }
        Step::End
    }

    /// Gives a sample once so many more have come after it.
    fn hold_back(&mut self, io: &mut Io, back: u64) -> Step {
        loop {
            while !self.held.is_empty() && self.next + back < self.at {
                if io.room() == 0 {
                    return Step::Ready;
                }
                self.give(io);
                self.next += self.step;
            }
            let candidate = self.next + self.held.len() as u64 * self.step;
            let took = match io.input(0) {
                Some(input) if self.at != candidate && !input.is_empty() => {
                    input.advance();
                    self.at += 1;
                    true
                }
                _ => self.take(io),
            };
            if !took {
                return if io.ended(0) { Step::End } else { Step::NeedInput(0) };
            }
        }
    }

    /// Keeps so many samples, the last ones, and gives at the end those of them that are wanted.
    fn give_last(&mut self, io: &mut Io, last: u64) -> Step {
        // Bound there on the first of the last ones is not before the stop.
        let enough = match self.stop {
            Some(Bound::Start(stop)) => stop.saturating_add(last),
            Some(Bound::End(back)) if back >= last => 0,
            _ => u64::MAX,
        };
        while self.at < enough && self.take(io) {
            if self.held.len() as u64 > last
                && let Some(oldest) = self.held.pop_front()
            {
                self.spare = oldest;
            }
        }
        if self.at >= enough {
            return Step::End;
        }
        if !io.ended(0) {
            return Step::NeedInput(0);
        }
        let (start, stop) =
            (self.at.saturating_sub(last), self.stop.map_or(self.at, |stop| stop.of(self.at)));
        while !self.held.is_empty() {
            let number = self.at - self.held.len() as u64;
            if number >= stop || io.room() == 0 {
                return if number >= stop { Step::End } else { Step::Ready };
            }
            match (number - start) % self.step {
                0 => self.give(io),
                _ => drop(self.held.pop_front()),
            }
        }
        Step::End
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, check, check_resume, ints, numbers, small_host};

    fn slice(start: Option<i64>, stop: Option<i64>, step: i64) -> Slice {
        Slice::new(SliceOptions { start, stop, step }).unwrap()
    }

    /// Python's slice of the integers below `count`, written out plainly.
    fn reference(start: Option<i64>, stop: Option<i64>, step: i64, count: i64) -> Vec<i64> {
        let place = |place: i64| if place < 0 { (count + place).max(0) } else { place.min(count) };
        let (start, stop) = (start.map_or(0, place), stop.map_or(count, place));
        (start..stop).step_by(step as usize).collect()
    }

    #[test]
    fn equals_pythons_slice_b079() {
        for start in -8..=7 {
            for stop in -9..=7 {
                for step in [1, 2] {
                    let out = check(|| slice(Some(start), Some(stop), step), &numbers(20));
                    let wanted = reference(Some(start), Some(stop), step, 20);
                    assert_eq!(ints(&out, "value"), wanted, "{start}:{stop}:{step}");
                }
            }
        }
    }

    #[test]
    fn of_any_stream_and_from_every_moment() {
        let mut rng = Rng::new(3, 0);
        let mut place = || (!rng.bool(0.2)).then(|| rng.below(19) as i64 - 9);
        for round in 0..60 {
            let (start, stop, step, count) = (place(), place(), 1 + round % 4, round * 7 % 13);
            let input = numbers(count as usize);
            let make = || slice(start, stop, step);
            let wanted = reference(start, stop, step, count);
            assert_eq!(ints(&check(make, &input), "value"), wanted, "{start:?}:{stop:?}:{step} of {count}");
            check_resume(make, &input);
        }
        for ends in
            [(None, None), (Some(i64::MAX), None), (None, Some(i64::MAX)), (Some(-1_000_000_000), None)]
        {
            let wanted = reference(ends.0, ends.1, i64::MAX, 5);
            assert_eq!(ints(&check(|| slice(ends.0, ends.1, i64::MAX), &numbers(5)), "value"), wanted);
        }
    }

    #[test]
    fn of_a_slice_b080() {
        let once = check(|| slice(Some(2), Some(18), 2), &numbers(20));
        assert_eq!(ints(&check(|| slice(Some(1), Some(6), 2), &once), "value"), [4, 8, 12]);
    }

    #[test]
    fn ends_as_soon_as_it_can_b079() {
        for (ends, step, fed) in [
            ((Some(2), Some(11)), 4, 11),
            ((None, Some(0)), 1, 0),
            ((Some(5), Some(5)), 1, 0),
            ((Some(-3), Some(-3)), 1, 0),
            ((Some(-3), Some(4)), 1, 7),
        ] {
            let input = numbers(50);
            let mut drive = Drive::new(slice(ends.0, ends.1, step), &input, 1);
            drive.run(64, 100).unwrap();
            assert_eq!(drive.fed(), fed, "{ends:?}");
            assert_eq!(drive.step(1).unwrap(), Step::End);
        }
        let endless = numbers(30);
        Setup { most: 9, ..Setup::new(&[&endless]) }.check_resume(|| slice(Some(3), Some(-5), 2));
    }

    #[test]
    fn holds_no_more_than_it_says() {
        let input = numbers(1000);
        for (ends, held) in [((None, Some(-7)), 7), ((Some(-7), None), 7)] {
            let mut drive = Drive::new(slice(ends.0, ends.1, 1), &input, 8);
            while !drive.told_the_end() {
                drive.step(64).unwrap();
                let state = drive.state().unwrap();
                assert!(state.again[0] <= held && state.bytes.len() < 8, "{state:?}");
            }
        }
    }

    #[test]
    fn what_goes_backwards_is_refused() {
        for step in [0, -1, -2, i64::MIN] {
            let error = Slice::new(SliceOptions { start: None, stop: None, step }).unwrap_err();
            assert_eq!(error.get("option"), Some("step"));
            assert!(error.message().contains("not given backwards"), "{error}");
        }
        for (options, option) in [(r#"{"start": -1000000001}"#, "start"), (r#"{"stop": -2e12}"#, "stop")] {
            assert_eq!(SliceOptions::parse(options).unwrap_err().get("option"), Some(option));
        }
        let host = small_host();
        assert!(slice(None, None, 1).restore(&State::default(), &host.context()).is_err());
    }
}
