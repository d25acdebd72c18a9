//! `enumerate`: the number of each sample in the stream.
//!
//! ```toml
//! [enumerate]
//! page = "fields"
//! examples = ['''forebay head -n 2 "range 5 | map 'value = value * value' | enumerate at start=1"''']
//! cases = ["range N | enumerate start=3"]
//! ```

use forebay_core::{
    Context, DataPipe, Error, Io, Length, PipeInfo, Result, Sample, Schema, State, StateExt, Step, Stream,
    options,
};

options! {
    /// Options of `enumerate`.
    pub struct EnumerateOptions {
        /// The name of the new field, an int64.
        field: String = "index";
        /// The number of the first sample.
        start: i64 = 0;
    }
}

/// Adds to each sample its number in the stream, as a new field behind the others.
///
/// Each pass counts anew. A sample that already has such a field fails, and has its number none the less. State: how many there were.
#[derive(Debug)]
pub struct Enumerate {
    field: String,
    start: i64,
    counted: u64,
    /// The last schema, and with the new field.
    known: Option<(Schema, Schema)>,
}

impl DataPipe for Enumerate {
    const INFO: PipeInfo = PipeInfo {
        name: "enumerate",
        summary: "Adds the number of each sample in the stream",
        also: &["add_index", "with_index", "zip_with_index"],
        ..PipeInfo::DEFAULT
    };
    type Options = EnumerateOptions;

    fn new(options: EnumerateOptions) -> Result<Self> {
        let EnumerateOptions { field, start } = options;
        Ok(Self { field, start, counted: 0, known: None })
    }
}

impl Stream for Enumerate {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.counted = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        let mut sample = Sample::default();
        while io.room() > 0 {
            if !io.pop_into(0, &mut sample) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            self.number(&mut sample).map_err(|error| error.context("sample", sample.key()))?;
            io.push(&mut sample);
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.counted)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.counted = state.parse(1)?;
        Ok(())
    }
}

impl Enumerate {
    fn number(&mut self, sample: &mut Sample) -> Result<()> {
        let number = self.start.checked_add_unsigned(self.counted);
        self.counted += 1;
        let number = number.ok_or_else(|| Error::limit("its number is beyond 64 bits"))?;
        let wider = match &mut self.known {
            Some((known, wider)) if known.is(sample.schema()) => wider,
            known => {
                let wider = wider(sample.schema(), &self.field)?;
                &mut known.insert((sample.schema().clone(), wider)).1
            }
        };
        sample.reshape(wider, |_, _, values| {
            values.push(number.into());
            Ok(())
        })
    }
}

/// A schema with one more name.
fn wider(schema: &Schema, name: &str) -> Result<Schema> {
    if schema.position(name).is_some() {
        return Err(Error::invalid("the field for the number is there already").context("field", name));
    }
    Ok(Schema::new(schema.names().iter().cloned().chain([name.into()])))
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, check, check_resume, ints, numbers, sample};

    fn enumerate(start: i64) -> Enumerate {
        Enumerate::new(EnumerateOptions { field: "index".into(), start }).unwrap()
    }

    #[test]
    fn numbers_from_the_start_on() {
        for (count, start) in [(0, 0), (1, 7), (13, 0), (13, -4), (3, i64::MIN), (3, i64::MAX - 2)] {
            let input = numbers(count);
            let out = check(|| enumerate(start), &input);
            let wanted: Vec<_> = (0..count as i64).map(|at| start + at).collect();
            assert_eq!(ints(&out, "index"), wanted);
            let came = out.iter().map(|sample| {
                let mut sample = sample.clone();
                sample.take("index");
                sample
            });
            assert_eq!(came.collect::<Vec<_>>(), input, "all else stays");
            check_resume(|| enumerate(start), &input);
        }
    }

    #[test]
    fn counts_on_behind_repeat() {
        let input = numbers(3);
        let pipe = || crate::Repeat::new(crate::RepeatOptions { count: None }).unwrap();
        let endless = Setup { most: 8, ..Setup::new(&[&input]) }.check(pipe).swap_remove(0);
        let out = check(|| enumerate(0), &endless);
        assert_eq!(ints(&out, "index"), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn samples_of_other_fields_get_theirs_too_and_one_that_fails_keeps_its_number() {
        let input: Vec<_> =
            (0..7).map(|at| sample(at, &[(["a", "b", "index"][at as usize % 3], at.into())])).collect();
        let mut drive = Drive::new(enumerate(10), &input, 2);
        let (mut failed, mut end) = (Vec::new(), false);
        while !end {
            match drive.step(4) {
                Ok(step) => end = step == Step::End,
                Err(error) => {
                    assert_eq!(error.get("field"), Some("index"));
                    failed.push(error.get("sample").unwrap().to_owned());
                }
            }
        }
        assert_eq!(failed, ["test#2", "test#5"]);
        assert_eq!(ints(drive.out(), "index"), [10, 11, 13, 14, 16]);
        check_resume(|| enumerate(10), &input);
        let mut beyond = Drive::new(enumerate(i64::MAX), &input, 7);
        let error = beyond.run(64, 9).unwrap_err();
        assert_eq!((error.message(), error.get("sample")), ("its number is beyond 64 bits", Some("test#1")));
    }

    #[test]
    fn options_have_the_fields_names() {
        let options = EnumerateOptions::parse("{}").unwrap();
        assert_eq!((&*options.field, options.start), ("index", 0));
        assert_eq!(EnumerateOptions::parse(r#"{"start": 0.5}"#).unwrap_err().get("option"), Some("start"));
    }

    #[test]
    fn equals_the_definition_for_any_samples() {
        let mut rng = Rng::new(49, 0);
        for round in 0..40 {
            let start = rng.u64() as i64 >> 1;
            let mut one = |uid| sample(uid, &[(["a", "b", "c"][rng.below(3) as usize], (uid as i64).into())]);
            let input: Vec<_> = (0..round % 12).map(&mut one).collect();
            let mut wanted = input.clone();
            for (sample, at) in wanted.iter_mut().zip(0..) {
                sample.set("index", start + at);
            }
            assert_eq!(check(|| enumerate(start), &input), wanted);
            check_resume(|| enumerate(start), &input);
        }
    }
}
