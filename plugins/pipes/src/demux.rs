//! `demux`: each sample to one of several outputs.
//!
//! ```toml
//! [demux]
//! page = "streams"
//! examples = ['''forebay head "range 10 | demux @halves ; take @even <halves.0> 3 ; map @odd <halves.1> 'value = value * 100' ; concat <even, odd>"''']
//! cases = ["range N | demux @d count=3 ; take @e <d.1> 4 ; mux <d, e, d.2> stop=longest"]
//! counted = false
//! ```

use forebay_core::{
    Context, DataPipe, Drops, Error, Io, PipeAudit, PipeInfo, PipeLayout, Result, Sample, State, StateExt,
    Step, Stream, options,
};

use crate::plumbing::class;

options! {
    /// Options of `demux`.
    pub struct DemuxOptions {
        /// The field that chooses a sample's output; null to deal samples out in turn.
        field: Option<String> = null;
        /// How many outputs there are.
        count: usize = 2, in 1..=1024;
        /// The value of the field for each output, in order; null for the numbers from 0.
        values: Option<Vec<String>> = null;
        /// What to do with a sample whose field has another value.
        other: String = "fail", one_of ["fail", "drop"];
        /// Without `field`: how many samples an output gets before it is the next one's turn.
        block: u64 = 1, in 1..=1_000_000_000;
    }
}

/// Gives each sample to the output that a field names, or to its outputs in turn, so many at a time.
#[derive(Debug)]
pub struct Demux {
    options: DemuxOptions,
    /// The output whose turn it is, and how many samples of its block were given.
    turn: usize,
    given: u64,
    sample: Sample,
}

impl DataPipe for Demux {
    const INFO: PipeInfo = PipeInfo {
        name: "demux",
        summary: "Each sample to one of several outputs",
        also: &["demultiplexer"],
        layout: PipeLayout { outputs: 2, outputs_option: Some("count"), ..PipeLayout::DEFAULT },
        audit: PipeAudit { drops: Drops::With(&["other"]), ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = DemuxOptions;

    fn new(options: DemuxOptions) -> Result<Self> {
        let count = options.count;
        if let Some(values) = &options.values {
            let message = if options.field.is_none() {
                Some("found values without `field`, which would hold them".to_owned())
            } else {
                (values.len() != count).then(|| format!("found {} values for {count} outputs", values.len()))
            };
            if let Some(message) = message {
                return Err(Error::invalid(message).context("option", "values"));
            }
        }
        if options.block > 1 && options.field.is_some() {
            let error =
                Error::invalid("found a length of blocks and `field`, which says the output of each sample");
            return Err(error.context("option", "block"));
        }
        Ok(Self { options, turn: 0, given: 0, sample: Sample::default() })
    }
}

impl Stream for Demux {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.turn, self.given) = (0, 0);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if !io.pop_into(0, &mut self.sample) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            let output = match &self.options.field {
                Some(field) => {
                    self.named(field).map_err(|error| error.context("sample", self.sample.key()))?
                }
                None => Some(self.next_turn()),
            };
            if let Some(output) = output {
                io.push_to(output, &mut self.sample);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        State::json(2, &(self.turn, self.given))
    }

    /// Another length of the blocks applies from here on.
    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (turn, given) = state.parse(2)?;
        let count = self.options.count;
        if turn >= count {
            return Err(Error::invalid(format!("found a position at output {turn} of {count}")));
        }
        (self.turn, self.given) = (turn, given);
        Ok(())
    }
}

impl Demux {
    fn next_turn(&mut self) -> usize {
        let turn = self.turn;
        self.given += 1;
        if self.given >= self.options.block {
            (self.turn, self.given) = ((turn + 1) % self.options.count, 0);
        }
        turn
    }

    /// The output that the field of the sample names; `None` to drop the sample.
    fn named(&self, field: &str) -> Result<Option<usize>> {
        let Some(value) = self.sample.get(field) else {
            return Err(Error::invalid("no such field").context("field", field));
        };
        let (values, count) = (self.options.values.as_deref(), self.options.count);
        let found = class::class(value, values, count);
        if found.is_some() || self.options.other == "drop" {
            return Ok(found);
        }
        Err(class::none(value, field, values, count))
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Value, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, errors, ints, numbers, sample, small_host};

    fn demux(options: &str) -> Demux {
        Demux::new(DemuxOptions::parse(options).unwrap()).unwrap()
    }

    fn labelled(labels: &[Value]) -> Vec<Sample> {
        let labels = labels.iter().zip(0_i64..);
        labels
            .map(|(label, at)| sample(at as u64, &[("value", at.into()), ("label", label.clone())]))
            .collect()
    }

    fn check(options: &str, input: &[Sample], outputs: usize) -> Vec<Vec<i64>> {
        let setup = Setup { outputs, ..Setup::new(&[input]) };
        setup.check_resume(|| demux(options));
        setup.check(|| demux(options)).iter().map(|out| ints(out, "value")).collect()
    }

    #[test]
    fn deals_out_in_turn() {
        assert_eq!(check("{}", &numbers(5), 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(check(r#"{"count": 4}"#, &numbers(3), 4), [vec![0], vec![1], vec![2], vec![]]);
        assert_eq!(check(r#"{"count": 1}"#, &numbers(3), 1), [[0, 1, 2]]);
        assert_eq!(check("{}", &[], 2), [[0_i64; 0]; 2]);
        assert_eq!(check(r#"{"block": 2}"#, &numbers(7), 2), [vec![0, 1, 4, 5], vec![2, 3, 6]]);
        assert_eq!(check(r#"{"block": 3, "count": 3}"#, &numbers(2), 3), [vec![0, 1], vec![], vec![]]);
    }

    #[test]
    fn a_field_names_the_output() {
        let input = labelled(&[1_i64, 0, 0, 2, 1].map(Value::from));
        let options = r#"{"field": "label", "count": 3}"#;
        assert_eq!(check(options, &input, 3), [vec![1, 2], vec![0, 4], vec![3]]);
        let input = labelled(&["dog", "cat", "cow", "cat"].map(Value::from));
        let options = r#"{"field": "label", "values": ["cat", "dog"], "other": "drop"}"#;
        assert_eq!(check(options, &input, 2), [vec![1, 3], vec![0]]);
        let input = labelled(&[true.into(), 7_u8.into(), false.into()]);
        let options = r#"{"field": "label", "values": ["7", "true", "false"], "count": 3}"#;
        assert_eq!(check(options, &input, 3), [[1], [0], [2]]);
    }

    #[test]
    fn what_names_no_output_is_an_error_and_the_next_goes_on() {
        let input = labelled(&[2_i64.into(), (-1_i64).into(), "x".into(), 1_i64.into()]);
        let mut drive = Drive::wide(demux(r#"{"field": "label"}"#), &[&input], 2, 9, &small_host());
        for found in ["Int(2)", "Int(-1)", "`x`"] {
            let error = drive.run(4, 9).unwrap_err();
            assert_eq!(error.message(), format!("found {found}, expected a number below 2"));
            assert_eq!(error.get("field"), Some("label"));
        }
        drive.run(4, 9).unwrap();
        assert!(drive.out().is_empty());
        let mut drive = Drive::wide(demux(r#"{"field": "none"}"#), &[&input], 2, 9, &small_host());
        assert_eq!(drive.run(4, 9).unwrap_err().get("field"), Some("none"));
    }

    #[test]
    fn options_and_states_that_do_not_fit_are_refused() {
        for options in [r#"{"values": ["a", "b"]}"#, r#"{"field": "x", "values": ["a"]}"#] {
            let error = Demux::new(DemuxOptions::parse(options).unwrap()).unwrap_err();
            assert_eq!(error.get("option"), Some("values"));
        }
        let options = DemuxOptions::parse(r#"{"field": "x", "block": 2}"#).unwrap();
        assert_eq!(Demux::new(options).unwrap_err().get("option"), Some("block"));
        let host = small_host();
        assert!(demux("{}").restore(&State::json(2, &(2, 0)).unwrap(), &host.context()).is_err());
    }

    /// The output of a sample, by its place in the input.
    type Rule<'a> = &'a dyn Fn(usize) -> usize;

    #[test]
    fn equals_the_definition_whatever_comes() {
        const NAMES: [&str; 5] = ["ant", "bee", "cow", "dog", "elk"];
        let mut rng = Rng::new(33, 0);
        for round in 0..40 {
            let (outputs, block) = (1 + round % 4, 1 + rng.below(3) as usize);
            let labels: Vec<usize> = (0..rng.below(12)).map(|_| rng.below(5) as usize).collect();
            let numbers = labelled(&labels.iter().map(|&label| (label as i64).into()).collect::<Vec<_>>());
            let words = labelled(&labels.iter().map(|&label| NAMES[label].into()).collect::<Vec<_>>());
            // To each output the samples for which `to` gives its number.
            let dealt = |input: &[Sample], to: Rule<'_>| -> Vec<Vec<Sample>> {
                let of =
                    |output| (0..input.len()).filter(move |&at| to(at) == output).map(|at| input[at].clone());
                (0..outputs).map(|output| of(output).collect()).collect()
            };
            let values: Vec<_> = NAMES.iter().rev().take(outputs).collect();
            let by_name = format!(r#""field": "label", "other": "drop", "values": {values:?}"#);
            let in_turn = format!(r#""block": {block}"#);
            let cases: [(&str, &[Sample], Rule<'_>); 3] = [
                (&in_turn, &numbers, &|at| at / block % outputs),
                (r#""field": "label", "other": "drop""#, &numbers, &|at| labels[at]),
                (&by_name, &words, &|at| 4 - labels[at]),
            ];
            for (options, input, to) in cases {
                let make = || demux(&format!(r#"{{"count": {outputs}, {options}}}"#));
                let setup = Setup { outputs, ..Setup::new(&[input]) };
                assert_eq!(setup.check(make), dealt(input, to), "{options} {labels:?}");
                setup.check_resume(make);
            }
            let make = || demux(&format!(r#"{{"count": {outputs}, "field": "label"}}"#));
            let mut drive = Drive::wide(make(), &[&numbers], outputs, 2, &small_host());
            let failed: Vec<_> =
                errors(&mut drive).iter().map(|error| error.get("sample").unwrap().to_owned()).collect();
            let beyond = (0..labels.len()).filter(|&at| labels[at] >= outputs);
            assert_eq!(failed, beyond.map(|at| format!("test#{at}")).collect::<Vec<_>>());
            for (output, wanted) in dealt(&numbers, &|at| labels[at]).iter().enumerate() {
                assert_eq!(drive.out_of(output), wanted, "{outputs} {labels:?}");
            }
            Setup { outputs, ..Setup::new(&[&numbers]) }.check_resume(make);
        }
    }
}
