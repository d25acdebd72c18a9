//! `random_split`: the stream in parts, drawn by weight, each sample always in the same one.
//!
//! ```toml
//! [random_split]
//! page = "choose"
//! examples = ['forebay run "range 1000 | random_split [0.9, 0.1] take=1 seed=1"']
//! cases = [
//!     "range N | random_split [3, 1] take=0",
//!     "range N | random_split @s [3, 1] count=2 ; concat <s.1, s>",
//! ]
//! counted = false
//! ```

use forebay_core::{
    Context, DataPipe, Drops, Error, Io, OneOrMany, PipeAudit, PipeInfo, PipeLayout, Result, Sample, State,
    StateExt, Step, Stream, options,
};

use crate::plumbing::{
    lasting::{self, Who},
    sift::sift,
};

options! {
    /// Options of `random_split`.
    pub struct RandomSplitOptions {
        /// The size of each part, in proportion to the others: numbers above 0.
        weights: Vec<f64> = required;
        /// Give only this part, by its number from 0, or these parts as one stream; null to give all.
        take: Option<OneOrMany<usize>> = null;
        /// How many outputs there are: one for each part, or one in all with `take`.
        count: usize = 1, in 1..=1024;
        /// The seed of the draws; null for the run's seed.
        seed: Option<u64> = null;
    }
}

/// Gives each sample to one of its outputs, or to none, by a draw that depends on a seed and the sample's uid alone.
///
/// So a sample is in the same part in every epoch, wherever it comes, and in every graph that splits by these weights, where pipes before
/// it that make uids ([`Context::uid_of`]) have the same names. How many samples a part gets differs by chance. State: nothing.
#[derive(Debug)]
pub struct RandomSplit {
    /// Up to where the draws of each part reach, as shares of the whole.
    bounds: Vec<f64>,
    /// Whether each part is given, where they are one stream.
    take: Option<Vec<bool>>,
    seed: Option<u64>,
    sample: Sample,
}

/// The version of a saved position, which holds nothing.
const VERSION: u32 = 1;

impl DataPipe for RandomSplit {
    const INFO: PipeInfo = PipeInfo {
        name: "random_split",
        summary: "The stream in parts, drawn by weight, each sample always in the same one",
        layout: PipeLayout { outputs_option: Some("count"), ..PipeLayout::DEFAULT },
        audit: PipeAudit { drops: Drops::With(&["take"]), ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RandomSplitOptions;

    fn new(options: RandomSplitOptions) -> Result<Self> {
        let RandomSplitOptions { weights, take, count, seed } = options;
        let refuse = |option, message: String| Err(Error::invalid(message).context("option", option));
        if let Some(wrong) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return refuse("weights", format!("found a weight of {wrong}, expected one above 0"));
        }
        let (parts, total) = (weights.len(), weights.iter().sum::<f64>());
        if !(1..=1024).contains(&parts) || !total.is_finite() {
            let found =
                if total.is_finite() { format!("{parts} weights") } else { "a sum beyond all".into() };
            return refuse("weights", format!("found {found}, expected 1 to 1024 of a finite sum"));
        }
        let take = take.map(|OneOrMany(taken)| taken);
        match &take {
            Some(taken) if taken.is_empty() => {
                return refuse("take", "found no part, expected at least one".into());
            }
            Some(taken) if taken.iter().any(|&part| part >= parts) => {
                return refuse("take", format!("found {taken:?}, expected parts below {parts}"));
            }
            Some(_) if count != 1 => {
                return refuse("count", format!("found {count} outputs, expected 1 for what `take` names"));
            }
            None if count != parts => {
                let message = format!(
                    "found {count} outputs for {parts} parts: expected `count={parts}`, or `take` for one of them"
                );
                return refuse("count", message);
            }
            _ => {}
        }
        let mut sum = 0.0;
        let bound = |weight| {
            sum += weight;
            sum / total
        };
        let bounds = weights.into_iter().map(bound).collect();
        let take = take.map(|taken| (0..parts).map(|part| taken.contains(&part)).collect());
        Ok(Self { bounds, take, seed, sample: Sample::default() })
    }
}

impl Stream for RandomSplit {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let key = lasting::key(Who::RandomSplit, self.seed, cx);
        if let Some(wanted) = &self.take {
            return sift(io, |uid, _, _, _| Ok(wanted[self.part(lasting::draw(key, uid))]));
        }
        while io.room() > 0 {
            if !io.pop_into(0, &mut self.sample) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            let part = self.part(lasting::draw(key, self.sample.uid()));
            io.push_to(part, &mut self.sample);
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &())
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        state.parse(VERSION)
    }
}

impl RandomSplit {
    /// The part that a draw stands for.
    fn part(&self, draw: f64) -> usize {
        // Rounding may leave the draw beyond the last bound.
        self.bounds.iter().position(|&bound| draw < bound).unwrap_or(self.bounds.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::Options;

    use super::*;
    use crate::testing::{Drive, Host, Setup, ints, numbers, small_host};

    fn split(options: &str) -> RandomSplit {
        RandomSplit::new(RandomSplitOptions::parse(options).unwrap()).unwrap()
    }

    /// The numbers in each output.
    fn parts(options: &str, outputs: usize, input: &[Sample], host: &Host) -> Vec<Vec<i64>> {
        let mut drive = Drive::wide(split(options), &[input], outputs, 7, host);
        drive.run(5, usize::MAX).unwrap();
        (0..outputs).map(|output| ints(drive.out_of(output), "value")).collect()
    }

    const THREE: &str = r#"{"weights": [1, 2, 0.5], "count": 3}"#;

    #[test]
    fn each_sample_is_in_one_part_in_its_order() {
        for count in [0, 1, 30] {
            let input = numbers(count);
            let setup = Setup { outputs: 3, ..Setup::new(&[&input]) };
            let outs = setup.check(|| split(THREE));
            setup.check_resume(|| split(THREE));
            assert!(outs.iter().all(|out| out.is_sorted_by_key(Sample::uid)));
            let mut all: Vec<_> = outs.concat();
            all.sort_by_key(Sample::uid);
            assert_eq!(all, input);
        }
        let one = Setup::new(&[&numbers(5)]).check(|| split(r#"{"weights": [3]}"#)).swap_remove(0);
        assert_eq!(one, numbers(5));
    }

    #[test]
    fn a_part_can_be_taken_alone() {
        let input = numbers(200);
        let all = parts(THREE, 3, &input, &small_host());
        for (part, wanted) in all.iter().enumerate() {
            let options = format!(r#"{{"weights": [1, 2, 0.5], "take": {part}}}"#);
            assert_eq!(parts(&options, 1, &input, &small_host())[0], *wanted);
            Setup::new(&[&input[..20]]).check_resume(|| split(&options));
        }
        let mut others = [all[0].clone(), all[2].clone()].concat();
        others.sort_unstable();
        let options = r#"{"weights": [1, 2, 0.5], "take": [2, 0]}"#;
        assert_eq!(parts(options, 1, &input, &small_host())[0], others);
    }

    #[test]
    fn the_sample_and_the_seed_decide_and_nothing_else() {
        let input = numbers(300);
        let base = parts(THREE, 3, &input, &small_host());
        assert_eq!(base, parts(THREE, 3, &input, &small_host().epoch(3).pass(2)));
        assert_ne!(base, parts(THREE, 3, &input, &small_host().seed(5)));
        let own = r#"{"weights": [1, 2, 0.5], "count": 3, "seed": 8}"#;
        assert_eq!(parts(own, 3, &input, &small_host()), parts(own, 3, &input, &small_host().seed(5)));
        assert_ne!(base, parts(own, 3, &input, &small_host()));
        let backwards: Vec<_> = input.iter().rev().cloned().collect();
        let mut other = parts(THREE, 3, &backwards, &small_host());
        other.iter_mut().for_each(|part| part.reverse());
        assert_eq!(base, other);
        let wider = parts(r#"{"weights": [1.5, 1.5, 0.5], "count": 3}"#, 3, &input, &small_host());
        assert!(base[0].iter().all(|value| wider[0].contains(value)) && base[2] == wider[2]);
    }

    #[test]
    fn weights_are_met() {
        let count = 30_000;
        let found = parts(THREE, 3, &numbers(count), &small_host());
        let chi: f64 = found
            .iter()
            .zip([1.0, 2.0, 0.5])
            .map(|(part, weight)| {
                let expected = count as f64 * weight / 3.5;
                (part.len() as f64 - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 13.82, "chi-square with 2 degrees of freedom is {chi}, above the 99.9 % bound");
    }

    #[test]
    fn bad_options_are_refused_by_name() {
        for (options, option) in [
            (r#"{"weights": [1, 0]}"#, "weights"),
            (r#"{"weights": [1, -1]}"#, "weights"),
            (r#"{"weights": []}"#, "weights"),
            (r#"{"weights": [1e308, 1e308], "count": 2}"#, "weights"),
            (r#"{"weights": [1, 1]}"#, "count"),
            (r#"{"weights": [1, 1], "count": 3}"#, "count"),
            (r#"{"weights": [1, 1], "count": 2, "take": 1}"#, "count"),
            (r#"{"weights": [1, 1], "take": 2}"#, "take"),
            (r#"{"weights": [1, 1], "take": [0, 2]}"#, "take"),
            (r#"{"weights": [1, 1], "take": []}"#, "take"),
        ] {
            let error = RandomSplit::new(RandomSplitOptions::parse(options).unwrap()).unwrap_err();
            assert_eq!(error.get("option"), Some(option), "{options}");
        }
        for (options, option) in [("{}", "weights"), (r#"{"weights": [1], "count": 0}"#, "count")] {
            assert_eq!(RandomSplitOptions::parse(options).unwrap_err().get("option"), Some(option));
        }
    }
}
