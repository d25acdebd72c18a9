//! `fork`: every sample to several outputs.
//!
//! ```toml
//! [fork]
//! page = "streams"
//! examples = ['''forebay head -n 2 "range 10 | fork @both ; map @squares <both.1> 'square = value * value' ; zip <both.0, squares> prefix=[a_, b_]"''']
//! cases = ["range N | fork @f 2 ; filter @g <f.1> 'value % 2 == 0' ; concat <f, g>"]
//! ```

use forebay_core::{
    Context, DataPipe, Io, Length, PipeInfo, PipeLayout, Result, State, Step, Stream, options,
};

options! {
    /// Options of `fork`.
    pub struct ForkOptions {
        /// How many outputs there are.
        count: usize = 2, in 1..=1024;
    }
}

/// Gives every sample to each of its outputs, in order. The values are shared, not copied.
///
/// How far one output may run ahead of another is for the host to say: it gives the pipe room
/// only while none is too far behind.
#[derive(Debug)]
pub struct Fork;

impl DataPipe for Fork {
    const INFO: PipeInfo = PipeInfo {
        name: "fork",
        summary: "Every sample to several outputs",
        also: &["multiply", "tee", "forker"],
        layout: PipeLayout { outputs: 2, outputs_option: Some("count"), ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = ForkOptions;

    fn new(_: ForkOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Stream for Fork {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        io.forward_to_all(0, usize::MAX);
        Ok(match io.room() {
            0 => Step::Ready,
            _ if io.ended(0) => Step::End,
            _ => Step::NeedInput(0),
        })
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    /// Saves nothing: whatever was taken was given, to every output.
    fn state(&self) -> Result<State> {
        Ok(State::default())
    }

    fn restore(&mut self, _: &State, _: &Context) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, Options, random::Rng};

    use super::*;
    use crate::testing::{Setup, numbers, sample};

    fn fork(count: usize) -> Fork {
        Fork::new(ForkOptions { count }).unwrap()
    }

    #[test]
    fn every_output_gets_every_sample_in_order() {
        for outputs in [1, 2, 5] {
            for count in [0, 1, 10] {
                let input = numbers(count);
                let setup = Setup { outputs, ..Setup::new(&[&input]) };
                assert_eq!(setup.check(|| fork(outputs)), vec![input.clone(); outputs]);
                setup.check_resume(|| fork(outputs));
            }
        }
        assert_eq!(ForkOptions::parse("{}").unwrap().count, 2);
        assert_eq!(ForkOptions::parse(r#"{"count": 0}"#).unwrap_err().get("option"), Some("count"));
    }

    #[test]
    fn values_are_shared() {
        let bytes = Buffer::from(vec![1, 2, 3]);
        let input = [sample(1, &[("bytes", bytes.clone().into())])];
        for out in (Setup { outputs: 3, ..Setup::new(&[&input]) }).check(|| fork(3)) {
            let given = out[0].get("bytes").and_then(forebay_core::Value::as_bytes).unwrap();
            assert_eq!(given.as_ptr(), bytes.as_ptr());
        }
    }

    #[test]
    fn equals_the_definition_for_any_samples() {
        let mut rng = Rng::new(52, 0);
        for round in 0..30 {
            let outputs = 1 + round % 5;
            let mut one = |uid| sample(uid, &[(["a", "b", "c"][rng.below(3) as usize], (uid as i64).into())]);
            let input: Vec<_> = (0..round as u64 % 11).map(&mut one).collect();
            let setup = Setup { outputs, ..Setup::new(&[&input]) };
            assert_eq!(setup.check(|| fork(outputs)), vec![input.clone(); outputs]);
            setup.check_resume(|| fork(outputs));
        }
    }
}
