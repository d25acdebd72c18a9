//! `mux`: one sample of each input in turn.

use forebay_core::{
    Context, DataPipe, Error, Io, PipeInfo, Result, Sample, State, StateExt, Step, Stream, Uids, options,
    random::uid_from,
};

options! {
    /// Options of `mux`.
    pub struct MuxOptions {
        /// When to stop: `shortest` as soon as the input whose turn it is has ended, `longest` when all have, leaving out those that have.
        stop: String = "shortest", one_of ["shortest", "longest"];
    }
}

/// Gives one sample of each input in turn, always in the same order, whichever is ready first.
///
/// Samples of the second input and later ones get uids of their own, so that none comes twice.
#[derive(Debug)]
pub struct Mux {
    longest: bool,
    /// The input whose turn it is.
    turn: usize,
    /// Whether an error ended the stream.
    failed: bool,
    sample: Sample,
}

impl DataPipe for Mux {
    const INFO: PipeInfo = PipeInfo {
        name: "mux",
        summary: "One sample of each input in turn",
        inputs: (1, u32::MAX),
        uids: Uids::Derived,
        ..PipeInfo::DEFAULT
    };
    type Options = MuxOptions;

    fn new(options: MuxOptions) -> Result<Self> {
        Ok(Self { longest: options.stop == "longest", turn: 0, failed: false, sample: Sample::default() })
    }
}

impl Stream for Mux {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.turn, self.failed) = (0, false);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        let inputs = io.inputs();
        if self.failed {
            return Ok(Step::End);
        }
        if self.turn >= inputs {
            self.failed = true;
            let turn = self.turn;
            return Err(Error::invalid(format!("found a position at input {turn} of {inputs}")));
        }
        while io.room() > 0 {
            let input = self.turn;
            if io.pop_into(input, &mut self.sample) {
                self.sample.set_uid(uid_from(self.sample.uid(), input, 0));
                io.push(&mut self.sample);
            } else if !io.ended(input) {
                return Ok(Step::NeedInput(input));
            } else if !self.longest || (0..inputs).all(|input| io.ended(input)) {
                return Ok(Step::End);
            }
            self.turn = if input + 1 < inputs { input + 1 } else { 0 };
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.turn)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.turn = state.parse(1)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::Options;

    use super::*;
    use crate::testing::{Drive, Setup, ints, numbers, small_host};

    fn mux(stop: &str) -> Mux {
        Mux::new(MuxOptions { stop: stop.into() }).unwrap()
    }

    /// The tens say which input, the units which sample.
    fn inputs(lengths: &[usize]) -> Vec<Vec<Sample>> {
        let input = |(input, &length): (usize, &usize)| {
            let mut samples = numbers(length);
            for sample in &mut samples {
                let value = sample.get("value").unwrap().as_i64().unwrap() + 10 * input as i64;
                sample.set("value", value);
            }
            samples
        };
        lengths.iter().enumerate().map(input).collect()
    }

    fn check(stop: &str, lengths: &[usize], expected: &[i64]) {
        let inputs = inputs(lengths);
        let inputs: Vec<_> = inputs.iter().map(Vec::as_slice).collect();
        let setup = Setup::new(&inputs);
        assert_eq!(ints(&setup.check(|| mux(stop))[0], "value"), expected, "{stop} {lengths:?}");
        setup.check_resume(|| mux(stop));
    }

    #[test]
    fn goes_round_until_all_have_ended_b084_b099() {
        check("longest", &[1, 2, 3], &[0, 10, 20, 11, 21, 22]);
        check("longest", &[2, 1, 3], &[0, 10, 20, 1, 21, 22]);
        check("longest", &[0, 2, 0], &[10, 11]);
        check("longest", &[3], &[0, 1, 2]);
        check("longest", &[0, 0], &[]);
    }

    #[test]
    fn stops_at_the_turn_of_an_input_that_has_ended_b085() {
        check("shortest", &[1, 2, 3], &[0, 10, 20]);
        check("shortest", &[3, 1, 2], &[0, 10, 20, 1]);
        check("shortest", &[2, 2], &[0, 10, 1, 11]);
        check("shortest", &[5, 0], &[0]);
        check("shortest", &[0, 5], &[]);
    }

    #[test]
    fn the_order_does_not_depend_on_who_is_ready() {
        let input = numbers(4);
        let mut drive = Drive::wide(mux("shortest"), &[&input, &input], 1, 4, &small_host());
        assert_eq!(drive.step(8).unwrap(), Step::NeedInput(0));
        assert_eq!(
            drive.step(8).unwrap(),
            Step::NeedInput(1),
            "waits for the second, with four of the first there"
        );
        assert_eq!(drive.out().len(), 1);
        assert!(MuxOptions::parse(r#"{"stop": "greedy"}"#).is_err());
    }

    #[test]
    fn a_position_beyond_the_inputs_is_refused() {
        let host = small_host();
        let input = numbers(3);
        for stop in ["shortest", "longest"] {
            let mut pipe = mux(stop);
            pipe.restore(&State::json(1, &1).unwrap(), &host.context()).unwrap();
            let mut drive = Drive::new(mux(stop), &input, 1);
            drive.replace(pipe);
            assert!(drive.step(1).is_err());
            assert_eq!(drive.step(1).unwrap(), Step::End);
        }
    }
}
