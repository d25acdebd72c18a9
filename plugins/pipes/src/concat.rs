//! `concat`: one input after the other.
//!
//! ```toml
//! [concat]
//! page = "streams"
//! examples = ['forebay run "range @a 10 ; range @b 10 ; concat <a, b>"']
//! cases = ["range @a N ; range @b N start=-5 ; concat <a, b>"]
//! ```

use forebay_core::{
    Context, DataPipe, Error, Io, Length, NoOptions, PipeAudit, PipeInfo, PipeLayout, Result, State,
    StateExt, Step, Stream, Uids,
};

/// Gives all samples of its first input, then all of the second, and so on.
///
/// An input is not asked for anything before those ahead of it have ended. Samples of the second
/// input and later ones get uids of their own, so that none comes twice.
#[derive(Debug)]
pub struct Concat {
    at: usize,
}

impl DataPipe for Concat {
    const INFO: PipeInfo = PipeInfo {
        name: "concat",
        summary: "One input after the other",
        also: &["chain", "concatenate", "concater"],
        layout: PipeLayout { inputs: (1, u32::MAX), ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Derived, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self { at: 0 })
    }
}

impl Concat {
    fn forward(&mut self, io: &mut Io, cx: &Context) {
        if self.at == 0 {
            io.forward(0, usize::MAX);
            return;
        }
        io.forward_as(self.at, usize::MAX, |uid| cx.uid_of(uid, [self.at as u64, 0]));
    }
}

impl Stream for Concat {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if self.at > io.inputs() {
            let inputs = io.inputs();
            let at = std::mem::replace(&mut self.at, inputs);
            return Err(Error::invalid(format!("found a position in input {at} of {inputs}")));
        }
        while self.at < io.inputs() {
            self.forward(io, cx);
            if !io.ended(self.at) {
                return Ok(if io.room() == 0 { Step::Ready } else { Step::NeedInput(self.at) });
            }
            self.at += 1;
        }
        Ok(Step::End)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        Length::sum(inputs)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.at)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.at = state.parse(1)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Sample, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, ints, numbers, small_host, uid_of};

    fn concat() -> Concat {
        Concat::new(NoOptions).unwrap()
    }

    #[test]
    fn gives_one_input_after_the_other() {
        let (three, none, five) = (numbers(3), numbers(0), numbers(5));
        let cases: [(&[&[Sample]], &[i64]); 5] = [
            (&[&three], &[0, 1, 2]),
            (&[&three, &five], &[0, 1, 2, 0, 1, 2, 3, 4]),
            (&[&none, &five, &none, &three, &none], &[0, 1, 2, 3, 4, 0, 1, 2]),
            (&[&none, &none], &[]),
            (&[&none], &[]),
        ];
        for (inputs, expected) in cases {
            let setup = Setup::new(inputs);
            let out = setup.check(concat).swap_remove(0);
            assert_eq!(ints(&out, "value"), expected);
            let mut uids: Vec<_> = out.iter().map(Sample::uid).collect();
            uids.sort_unstable();
            uids.dedup();
            assert_eq!(uids.len(), out.len(), "uids stay apart");
            setup.check_resume(concat);
        }
        assert_eq!(Setup::new(&[&five]).check(concat)[0], five, "one input stays as it is");
    }

    #[test]
    fn asks_for_an_input_when_its_turn_comes() {
        let input = numbers(3);
        let mut drive = Drive::wide(concat(), &[&input, &input], 1, 1, &small_host());
        drive.run(1, 3).unwrap();
        assert_eq!((drive.taken(0), drive.taken(1)), (3, 0));
    }

    #[test]
    fn a_position_beyond_the_inputs_is_refused() {
        let host = small_host();
        let input = numbers(3);
        let mut pipe = concat();
        pipe.restore(&State::json(1, &2).unwrap(), &host.context()).unwrap();
        let mut drive = Drive::new(concat(), &input, 1);
        drive.replace(pipe);
        assert!(drive.step(1).is_err());
        assert_eq!(drive.step(1).unwrap(), Step::End);
    }

    #[test]
    fn equals_the_definition_for_inputs_of_any_length() {
        let mut rng = Rng::new(34, 0);
        for round in 0..30 {
            let inputs: Vec<_> = (0..1 + round % 5).map(|_| numbers(rng.below(7) as usize)).collect();
            let mut wanted = Vec::new();
            for (at, input) in inputs.iter().enumerate() {
                for sample in input {
                    wanted.push(sample.clone());
                    wanted.last_mut().unwrap().set_uid(uid_of(sample.uid(), [at as u64, 0]));
                }
            }
            let setup = Setup::new(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
            assert_eq!(setup.check(concat)[0], wanted);
            setup.check_resume(concat);
        }
    }
}
