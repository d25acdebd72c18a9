//! `mix`: samples of several inputs, drawn by weight.

use std::mem;

use forebay_core::{
    Context, DataPipe, Error, Io, PipeInfo, Result, Sample, Schema, State, StateExt, Step, Str, Stream, Uids,
    Value, options, random::uid_from,
};

options! {
    /// Options of `mix`.
    pub struct MixOptions {
        /// How often each input is drawn, in proportion to the others; null for all alike.
        weights: Option<Vec<f64>> = null;
        /// When to stop: `cycle_until_all_exhausted` starts inputs that have ended over, until each has ended once; `all_exhausted` gives each sample once; `first_exhausted` stops with the first input that has ended; `cycle_forever` never does.
        stop: String = "cycle_until_all_exhausted",
            one_of ["cycle_until_all_exhausted", "all_exhausted", "first_exhausted", "cycle_forever"];
        /// A new field that says which input a sample came from; null for none.
        tag: Option<String> = null;
        /// What `tag` calls the inputs; null for their numbers, from 0.
        names: Option<Vec<String>> = null;
    }
}

/// Draws, for each sample, the input to take it from.
///
/// The draws depend on seed, epoch, pass, node and their number, never on which input is ready. That
/// an input has ended is noticed when it is drawn the next time.
#[derive(Debug)]
pub struct Mix {
    weights: Option<Vec<f64>>,
    stop: Stop,
    tag: Option<Str>,
    names: Option<Vec<String>>,
    /// How many draws were settled.
    drawn: u64,
    inputs: Vec<Input>,
    /// Whether an error ended the stream.
    failed: bool,
    sample: Sample,
    /// The last schema without the tag, and with it.
    tagged: Option<(Schema, Schema)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stop {
    UntilAll,
    All,
    First,
    Never,
}

/// What is known of an input; a saved position holds the draws and the same four for each.
#[derive(Debug, Clone, Copy, Default)]
struct Input {
    pass: u64,
    /// Whether this pass has given a sample.
    gave: bool,
    /// Whether it has ended once.
    exhausted: bool,
    /// Whether it is drawn no more.
    out: bool,
}

/// A saved position: how many draws were settled, and each input's fields.
type Position = (u64, Vec<(u64, bool, bool, bool)>);

impl DataPipe for Mix {
    const INFO: PipeInfo = PipeInfo {
        name: "mix",
        summary: "Samples of several inputs, drawn by weight",
        inputs: (1, u32::MAX),
        rewinds: true,
        uids: Uids::Derived,
        ..PipeInfo::DEFAULT
    };
    type Options = MixOptions;

    fn new(options: MixOptions) -> Result<Self> {
        let MixOptions { weights, stop, tag, names } = options;
        let wrong = weights.iter().flatten().find(|weight| !(weight.is_finite() && **weight > 0.0));
        if let Some(wrong) = wrong {
            return Err(Error::invalid(format!("found a weight of {wrong}, expected one above 0"))
                .context("option", "weights"));
        }
        if names.is_some() && tag.is_none() {
            return Err(
                Error::invalid("found names without `tag`, the field for them").context("option", "names")
            );
        }
        let stop = match stop.as_str() {
            "all_exhausted" => Stop::All,
            "first_exhausted" => Stop::First,
            "cycle_forever" => Stop::Never,
            _ => Stop::UntilAll,
        };
        let (inputs, sample) = (Vec::new(), Sample::default());
        let tag = tag.map(Str::from);
        Ok(Self { weights, stop, tag, names, drawn: 0, inputs, failed: false, sample, tagged: None })
    }
}

impl Stream for Mix {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.drawn, self.failed) = (0, false);
        self.inputs.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if self.failed {
            return Ok(Step::End);
        }
        if let Err(error) = self.count(io.inputs()) {
            self.failed = true;
            return Err(error);
        }
        while io.room() > 0 {
            let Some(input) = self.draw(cx) else { return Ok(Step::End) };
            if io.pop_into(input, &mut self.sample) {
                self.inputs[input].gave = true;
                self.drawn += 1;
                self.give(input, io)?;
            } else if !io.ended(input) {
                return Ok(Step::NeedInput(input));
            } else if let Some(step) = self.exhaust(input) {
                return Ok(step);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        let inputs = self.inputs.iter().map(|input| (input.pass, input.gave, input.exhausted, input.out));
        let position: Position = (self.drawn, inputs.collect());
        State::json(1, &position)
    }

    /// The weights are not part of the state: others apply from here on.
    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (drawn, inputs): Position = state.parse(1)?;
        let inputs = inputs.into_iter();
        self.inputs =
            inputs.map(|(pass, gave, exhausted, out)| Input { pass, gave, exhausted, out }).collect();
        self.drawn = drawn;
        Ok(())
    }
}

impl Mix {
    /// Checks that what was given for each input is as many as there are.
    fn count(&mut self, inputs: usize) -> Result<()> {
        let of = |name, found: Option<usize>| match found {
            Some(found) if found != inputs => {
                Err(Error::invalid(format!("found {found} {name} for {inputs} inputs"))
                    .context("option", name))
            }
            _ => Ok(()),
        };
        of("weights", self.weights.as_ref().map(Vec::len))?;
        of("names", self.names.as_ref().map(Vec::len))?;
        if self.inputs.is_empty() {
            self.inputs.resize(inputs, Input::default());
        }
        if self.inputs.len() != inputs {
            let found = self.inputs.len();
            return Err(Error::invalid(format!(
                "found the state of a mix of {found} inputs, expected {inputs}"
            )));
        }
        Ok(())
    }

    /// The input that the next draw gives; `None` at the end. It gives the same until the draw is settled.
    fn draw(&self, cx: &Context) -> Option<usize> {
        if self.stop == Stop::UntilAll && self.inputs.iter().all(|input| input.exhausted) {
            return None;
        }
        let weight = |input: usize| self.weights.as_ref().map_or(1.0, |weights| weights[input]);
        let left = || (0..self.inputs.len()).filter(|&input| !self.inputs[input].out);
        let mut point = cx.rng(self.drawn).f64() * left().map(weight).sum::<f64>();
        let drawn = left().find(|&input| {
            point -= weight(input);
            point < 0.0
        });
        drawn.or_else(|| left().next_back()) // Rounding may leave the point at the very end.
    }

    /// What follows when an input that was drawn has ended; `None` when others go on.
    fn exhaust(&mut self, drawn: usize) -> Option<Step> {
        let input = &mut self.inputs[drawn];
        if self.stop == Stop::First {
            return Some(Step::End);
        }
        input.exhausted = true;
        if self.stop == Stop::All || !input.gave {
            input.out = true;
            self.drawn += 1;
        } else if self.stop == Stop::Never || self.inputs.iter().any(|input| !input.exhausted) {
            let input = &mut self.inputs[drawn];
            (input.pass, input.gave) = (input.pass + 1, false);
            return Some(Step::Rewind(drawn));
        }
        None
    }

    /// Gives the sample that was taken from an input.
    fn give(&mut self, from: usize, io: &mut Io) -> Result<()> {
        let pass = self.inputs[from].pass;
        self.sample.set_uid(uid_from(self.sample.uid(), from, pass));
        let Some(tag) = &self.tag else {
            io.push(&mut self.sample);
            return Ok(());
        };
        let schema = self.sample.schema();
        let known = self.tagged.take().filter(|(plain, _)| plain == schema);
        let tagged = match known {
            Some((_, tagged)) => tagged,
            None if schema.position(tag).is_some() => {
                let error = Error::invalid("the field for the tag is there already").context("field", tag);
                return Err(error.context("sample", self.sample.key()));
            }
            None => Schema::new(schema.names().iter().chain([tag]).cloned()),
        };
        self.tagged = Some((schema.clone(), tagged.clone()));
        let name = match &self.names {
            Some(names) => names[from].as_str().into(),
            None => (from as i64).into(),
        };
        let values: Vec<Value> = self.sample.values_mut().iter_mut().map(mem::take).chain([name]).collect();
        let (uid, key) = (self.sample.uid(), self.sample.key().clone());
        io.push(&mut Sample::with_schema(uid, key, tagged, values));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use forebay_core::Options;

    use super::*;
    use crate::testing::{Drive, Host, Setup, ints, numbers, small_host};

    fn mix(options: &str) -> Mix {
        Mix::new(MixOptions::parse(options).unwrap()).unwrap()
    }

    const CYCLING: [&str; 2] = ["cycle_until_all_exhausted", "cycle_forever"];

    fn stop(stop: &str) -> String {
        format!(r#"{{"stop": "{stop}", "tag": "from"}}"#)
    }

    /// How often each input was drawn.
    fn counts(out: &[Sample], inputs: usize) -> Vec<usize> {
        let from = ints(out, "from");
        (0..inputs).map(|input| from.iter().filter(|&&from| from == input as i64).count()).collect()
    }

    fn run(options: &str, inputs: &[&[Sample]], most: usize, host: &Host) -> Vec<Sample> {
        let mut drive = Drive::wide(mix(options), inputs, 1, 3, host);
        drive.run(4, most).unwrap();
        drive.out()[..drive.out().len().min(most)].to_vec()
    }

    fn host(seed: u64, epoch: u64) -> Host {
        small_host().seed(seed).epoch(epoch)
    }

    #[test]
    fn all_four_ends_b089() {
        let ten = numbers(10);
        let inputs = [&ten[..]; 4];
        for seed in 0..10 {
            let run = |stop_at: &str| counts(&run(&stop(stop_at), &inputs, 256, &host(seed, 0)), 4);
            assert_eq!(run("first_exhausted").iter().max(), Some(&10));
            assert_eq!(run("all_exhausted"), [10; 4]);
            assert!(run("cycle_until_all_exhausted").iter().all(|&count| count >= 10));
            assert_eq!(run("cycle_forever").iter().sum::<usize>(), 256);
        }
    }

    /// What the pipe is defined to give, written out plainly: the input and the number of each sample.
    fn reference(
        stop: &str,
        lengths: &[usize],
        weights: &[f64],
        host: &Host,
        most: usize,
    ) -> Vec<(usize, i64)> {
        let (mut at, mut done) = (vec![0; lengths.len()], vec![false; lengths.len()]);
        let mut left: Vec<usize> = (0..lengths.len()).collect();
        let mut out = Vec::new();
        let mut draws = 0;
        while out.len() < most && !left.is_empty() {
            if stop == "cycle_until_all_exhausted" && done.iter().all(|&done| done) {
                break;
            }
            let point =
                host.context().rng(draws).f64() * left.iter().map(|&input| weights[input]).sum::<f64>();
            let mut sum = 0.0;
            let drawn = *left
                .iter()
                .find(|&&input| {
                    sum += weights[input];
                    point < sum
                })
                .unwrap();
            if at[drawn] < lengths[drawn] {
                out.push((drawn, at[drawn] as i64));
                at[drawn] += 1;
                draws += 1;
                continue;
            }
            done[drawn] = true;
            match stop {
                "first_exhausted" => break,
                stop if stop == "all_exhausted" || lengths[drawn] == 0 => {
                    left.retain(|&input| input != drawn);
                    draws += 1;
                }
                _ => at[drawn] = 0,
            }
        }
        out
    }

    #[test]
    fn equals_the_definition_and_goes_on_from_every_moment() {
        let weights = [1.0, 2.0, 0.5];
        for lengths in [&[10, 20][..], &[3, 1, 2], &[0, 4, 1], &[0, 0], &[5]] {
            let inputs: Vec<_> = lengths.iter().map(|&length| numbers(length)).collect();
            let inputs: Vec<_> = inputs.iter().map(Vec::as_slice).collect();
            let weights = &weights[..lengths.len()];
            for stop in ["cycle_until_all_exhausted", "all_exhausted", "first_exhausted", "cycle_forever"] {
                let options = format!(r#"{{"stop": "{stop}", "tag": "from", "weights": {weights:?}}}"#);
                let most = if stop == "cycle_forever" && *lengths != [0, 0] { 25 } else { usize::MAX };
                let setup = Setup { most, ..Setup::new(&inputs) };
                let out = setup.check(|| mix(&options)).swap_remove(0);
                let found: Vec<_> = ints(&out, "from")
                    .into_iter()
                    .map(|from| from as usize)
                    .zip(ints(&out, "value"))
                    .collect();
                assert_eq!(
                    found,
                    reference(stop, lengths, weights, &small_host(), most),
                    "{stop} {lengths:?}"
                );
                if lengths.iter().sum::<usize>() < 12 {
                    setup.check_resume(|| mix(&options));
                }
            }
        }
    }

    #[test]
    fn weights_are_met_n1() {
        let (weights, total) = ([0.5, 2.0, 1.0], 20_000);
        let one = numbers(1);
        let options = format!(r#"{{"stop": "cycle_forever", "tag": "from", "weights": {weights:?}}}"#);
        let found = counts(&run(&options, &[&one, &one, &one], total, &host(3, 0)), 3);
        for (count, weight) in found.into_iter().zip(weights) {
            let share = weight / 3.5;
            let sigma = (total as f64 * share * (1.0 - share)).sqrt();
            assert!((count as f64 - total as f64 * share).abs() < 3.0 * sigma, "{count} of weight {weight}");
        }
    }

    #[test]
    fn seed_and_epoch_decide_b090() {
        let ten = numbers(10);
        let order =
            |seed, epoch| ints(&run(&stop("cycle_forever"), &[&ten, &ten], 60, &host(seed, epoch)), "from");
        assert_eq!(order(1, 0), order(1, 0));
        assert_ne!(order(1, 0), order(2, 0));
        assert_ne!(order(1, 0), order(1, 1));
    }

    #[test]
    fn inputs_without_samples_end() {
        for stop_at in CYCLING {
            assert!(run(&stop(stop_at), &[&[], &[]], 9, &small_host()).is_empty());
            let one = numbers(1);
            let out = run(&stop(stop_at), &[&[], &one, &[]], 9, &small_host());
            assert!(counts(&out, 3)[1] == out.len() && !out.is_empty());
        }
    }

    #[test]
    fn every_pass_of_every_input_has_uids_of_its_own() {
        let ten = numbers(10);
        let out = run(&stop("cycle_forever"), &[&ten, &ten, &ten], 200, &small_host());
        let mut seen = HashMap::new();
        for sample in &out {
            *seen.entry(sample.uid()).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 200);
    }

    #[test]
    fn tags_say_where_from_n4() {
        let ten = numbers(10);
        let names = r#"{"tag": "from", "names": ["web", "books"]}"#;
        let out = run(names, &[&ten, &ten], 20, &small_host());
        let numbered = run(r#"{"tag": "from"}"#, &[&ten, &ten], 20, &small_host());
        for (named, numbered) in out.iter().zip(&numbered) {
            let at = numbered.get("from").unwrap().as_i64().unwrap() as usize;
            assert_eq!(named.get("from").unwrap().as_str(), Some(["web", "books"][at]));
        }
        assert!(out[0].schema().is(out[5].schema()) || out[0].schema() == out[5].schema());
        let mut drive = Drive::new(mix(r#"{"tag": "value"}"#), &ten, 1);
        assert_eq!(drive.run(1, 10).unwrap_err().get("field"), Some("value"));
    }

    #[test]
    fn other_weights_apply_from_a_saved_position_on() {
        let ten = numbers(10);
        let inputs = [&ten[..], &ten];
        let with =
            |weights| mix(&format!(r#"{{"stop": "cycle_forever", "tag": "from", "weights": {weights}}}"#));
        let mut drive = Drive::wide(with("[1, 1]"), &inputs, 1, 3, &small_host());
        drive.run(1, 20).unwrap();
        let mut other = drive.resume(with("[1, 1e-9]"));
        other.run(1, 120).unwrap();
        assert_eq!(counts(other.out(), 2), [100, 0]);
    }

    #[test]
    fn what_does_not_go_together_is_refused_n7() {
        for (options, option) in [
            (r#"{"weights": [1, 0]}"#, "weights"),
            (r#"{"weights": [1, -2.5]}"#, "weights"),
            (r#"{"names": ["a", "b"]}"#, "names"),
        ] {
            let error = Mix::new(MixOptions::parse(options).unwrap()).unwrap_err();
            assert_eq!(error.get("option"), Some(option));
        }
        assert_eq!(MixOptions::parse(r#"{"stop": "sometime"}"#).unwrap_err().get("option"), Some("stop"));
        let one = numbers(1);
        for (options, option) in
            [(r#"{"weights": [1]}"#, "weights"), (r#"{"tag": "from", "names": ["a", "b", "c"]}"#, "names")]
        {
            let mut drive = Drive::wide(mix(options), &[&one, &one], 1, 1, &small_host());
            assert_eq!(drive.run(1, 1).unwrap_err().get("option"), Some(option));
            assert_eq!(drive.step(1).unwrap(), Step::End, "the error comes once");
        }
    }
}
