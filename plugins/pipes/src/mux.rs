//! `mux`: samples of each input in turn.
//!
//! ```toml
//! [mux]
//! page = "streams"
//! examples = ['forebay head -n 4 "range @a 10 ; range @b 10 start=5 ; mux <a, b> longest"']
//! cases = [
//!     "range @a N ; range @b N start=-5 step=3 ; mux <a, b>",
//!     "range @a N ; range @b N start=-5 ; mux <a, b> block=3",
//! ]
//! ```

use forebay_core::{
    Context, DataPipe, Error, Io, Length, PipeAudit, PipeInfo, PipeLayout, Result, State, StateExt, Step,
    Stream, Uids, options,
};

options! {
    /// Options of `mux`.
    pub struct MuxOptions {
        /// When to stop. `shortest`: as soon as the input whose turn it is has ended. `longest`: when all inputs
        /// have ended; ended inputs lose their turn.
        stop: String = "shortest", one_of ["shortest", "longest"];
        /// How many samples an input gives before it is the next one's turn.
        block: u64 = 1, in 1..=1_000_000_000;
    }
}

/// Gives a sample of each input in turn, or a block of them, always in the same order, whichever is ready first.
///
/// An input that ends within its block leaves the rest of it out. Samples of the second input and later ones get uids of their own, so that none comes twice.
#[derive(Debug)]
pub struct Mux {
    longest: bool,
    block: u64,
    /// The input whose turn it is, and how many samples of its block were given.
    turn: usize,
    given: u64,
    /// Whether an error ended the stream.
    failed: bool,
}

impl DataPipe for Mux {
    const INFO: PipeInfo = PipeInfo {
        name: "mux",
        summary: "Samples of each input in turn",
        also: &["round_robin", "mux_longest", "multiplexer"],
        layout: PipeLayout { inputs: (1, u32::MAX), ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Derived, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = MuxOptions;

    fn new(options: MuxOptions) -> Result<Self> {
        let (longest, block) = (options.stop == "longest", options.block);
        Ok(Self { longest, block, turn: 0, given: 0, failed: false })
    }
}

impl Stream for Mux {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.turn, self.given, self.failed) = (0, 0, false);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
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
            let left = usize::try_from(self.block.saturating_sub(self.given).max(1)).unwrap_or(usize::MAX);
            let moved = io.forward_as(input, left, |uid| cx.uid_of(uid, [input as u64, 0]));
            if moved > 0 {
                self.given += moved as u64;
                if self.given < self.block {
                    continue;
                }
            } else if !io.ended(input) {
                return Ok(Step::NeedInput(input));
            } else if !self.longest || (0..inputs).all(|input| io.ended(input)) {
                return Ok(Step::End);
            }
            (self.turn, self.given) = (if input + 1 < inputs { input + 1 } else { 0 }, 0);
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        if self.longest {
            return Length::sum(inputs);
        }
        // What was given when the turn comes to an input that has no more, or not the rest of its block.
        let mut shortest = Length::ENDLESS;
        for (input, &length) in (0..).zip(inputs) {
            let ended = |count: u64| {
                let (rounds, rest) = (count / self.block, count % self.block);
                let before = rounds.saturating_mul(inputs.len() as u64).saturating_add(input);
                before.saturating_mul(self.block).saturating_add(rest)
            };
            shortest = shortest.min(length?.map(ended));
        }
        Some(shortest)
    }

    fn state(&self) -> Result<State> {
        State::json(2, &(self.turn, self.given))
    }

    /// Another length of the blocks applies from here on.
    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        (self.turn, self.given) = state.parse(2)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Sample, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, ints, numbers, small_host, uid_of};

    fn mux(stop: &str) -> Mux {
        blocks(stop, 1)
    }

    fn blocks(stop: &str, block: u64) -> Mux {
        Mux::new(MuxOptions { stop: stop.into(), block }).unwrap()
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
        check_blocks(stop, 1, lengths, expected);
    }

    fn check_blocks(stop: &str, block: u64, lengths: &[usize], expected: &[i64]) {
        let inputs = inputs(lengths);
        let inputs: Vec<_> = inputs.iter().map(Vec::as_slice).collect();
        let setup = Setup::new(&inputs);
        assert_eq!(ints(&setup.check(|| blocks(stop, block))[0], "value"), expected, "{stop} {lengths:?}");
        setup.check_resume(|| blocks(stop, block));
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
    fn goes_round_by_blocks() {
        check_blocks("longest", 2, &[3, 1, 5], &[0, 1, 10, 20, 21, 2, 22, 23, 24]);
        check_blocks("longest", 9, &[2, 0, 1], &[0, 1, 20]);
        check_blocks("shortest", 2, &[4, 3, 9], &[0, 1, 10, 11, 20, 21, 2, 3, 12]);
        check_blocks("shortest", 2, &[4, 4], &[0, 1, 10, 11, 2, 3, 12, 13]);
        check_blocks("shortest", 2, &[0, 4], &[]);
        assert_eq!(MuxOptions::parse(r#"{"block": 0}"#).unwrap_err().get("option"), Some("block"));
    }

    #[test]
    fn all_inputs_at_once_interleave_b103() {
        let lists: [&[i64]; 4] = [&[1, 1, 1], &[2], &[3, 3, 3, 3], &[4, 4]];
        let inputs = lists.map(|list| {
            let one =
                |(at, &value): (usize, &i64)| crate::testing::sample(at as u64, &[("value", value.into())]);
            list.iter().enumerate().map(one).collect::<Vec<_>>()
        });
        let setup = Setup::new(&inputs.each_ref().map(Vec::as_slice));
        assert_eq!(ints(&setup.check(|| mux("longest"))[0], "value"), [1, 2, 3, 4, 1, 3, 4, 1, 3, 3]);
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
            pipe.restore(&State::json(2, &(1, 0)).unwrap(), &host.context()).unwrap();
            let mut drive = Drive::new(mux(stop), &input, 1);
            drive.replace(pipe);
            assert!(drive.step(1).is_err());
            assert_eq!(drive.step(1).unwrap(), Step::End);
        }
    }

    /// The turns, written out plainly: the input and the number of each sample.
    fn reference(stop: &str, block: usize, lengths: &[usize]) -> Vec<(usize, usize)> {
        let (mut at, mut out) = (vec![0; lengths.len()], Vec::new());
        while at != lengths {
            for (input, &length) in lengths.iter().enumerate() {
                let (start, end) = (at[input], length.min(at[input] + block));
                out.extend((start..end).map(|number| (input, number)));
                at[input] = end;
                if stop == "shortest" && end < start + block {
                    return out;
                }
            }
        }
        out
    }

    #[test]
    fn equals_the_definition_for_inputs_of_any_length() {
        let mut rng = Rng::new(32, 0);
        for round in 0..40 {
            let lengths: Vec<_> = (0..1 + round % 4).map(|_| rng.below(8) as usize).collect();
            let (inputs, block) = (inputs(&lengths), 1 + rng.below(4) as usize);
            let setup = Setup::new(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
            for stop in ["shortest", "longest"] {
                let wanted = reference(stop, block, &lengths).into_iter().map(|(input, number)| {
                    let mut sample = inputs[input][number].clone();
                    sample.set_uid(uid_of(sample.uid(), [input as u64, 0]));
                    sample
                });
                let make = || blocks(stop, block as u64);
                assert_eq!(setup.check(make)[0], wanted.collect::<Vec<_>>(), "{stop} {block} {lengths:?}");
                setup.check_resume(make);
            }
        }
    }
}
