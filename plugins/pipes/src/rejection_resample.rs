//! `rejection_resample`: leaves out samples of frequent classes, until the classes are as frequent as wanted.
//!
//! ```toml
//! [rejection_resample]
//! page = "choose"
//! examples = ['''forebay run "range 1000 | map 'label = value % 10 == 0 ? 1 : 0' | rejection_resample label target=[1, 1] initial=[9, 1]"''']
//! cases = ["range N | map 'class=value % 3' | rejection_resample class target=[1, 1, 2]"]
//! counted = false
//! ```

use forebay_core::{
    Context, DataPipe, Drops, Error, Io, PipeAudit, PipeInfo, PipeOrder, Randomness, Result, Schema, State,
    StateExt, Step, Stream, options,
};

use crate::{
    plumbing::{class, sift::sift},
    select::place,
};

/// The most classes: a saved position has a number for each.
const MOST: usize = 4096;
/// How often each class counts as seen before the first sample, where that is not known: the first samples say little.
const SMOOTHING: u64 = 10;

options! {
    /// Options of `rejection_resample`.
    pub struct RejectionResampleOptions {
        /// The field that holds a sample's class.
        field: String = required;
        /// The wanted frequency of each class, in proportion to the others; 0 for none of it.
        target: Vec<f64> = required;
        /// The frequency of each class in the input, in proportion to the others; null to count while reading.
        initial: Option<Vec<f64>> = null;
        /// The value of the field for each class, in order; null for the numbers from 0.
        values: Option<Vec<String>> = null;
    }
}

/// Keeps each sample with a probability that depends on its class, so that the classes come out as frequent as `target` says.
///
/// The class that is rarest in what comes, beside what is wanted, is kept whole; of the others as much as goes with it. Draws are keyed by
/// seed, epoch, pass, node and the sample's uid. State: how many samples of each class were seen, where that is counted.
#[derive(Debug)]
pub struct RejectionResample {
    field: String,
    values: Option<Vec<String>>,
    target: Vec<f64>,
    /// How frequent each class is; counted unless it was given.
    seen: Seen,
    /// The class that is kept whole, and what there is of it for each that is wanted.
    rarest: (usize, f64),
    /// The last schema, and where it has the field.
    known: Option<(Schema, usize)>,
}

#[derive(Debug)]
enum Seen {
    Given(Vec<f64>),
    Counted(Vec<u64>),
}

/// The version of a saved position: how many samples of each class were counted.
const VERSION: u32 = 1;

impl DataPipe for RejectionResample {
    const INFO: PipeInfo = PipeInfo {
        name: "rejection_resample",
        summary: "Leaves out samples of frequent classes, until the classes are as frequent as wanted",
        order: PipeOrder { draws: Randomness::Always, ..PipeOrder::DEFAULT },
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RejectionResampleOptions;

    fn new(options: RejectionResampleOptions) -> Result<Self> {
        let RejectionResampleOptions { field, target, initial, values } = options;
        let refuse = |option, message: String| Err(Error::invalid(message).context("option", option));
        let classes = target.len();
        if !(1..=MOST).contains(&classes) {
            return refuse("target", format!("found {classes} classes, expected 1 to {MOST}"));
        }
        for (option, given) in [("target", Some(&target)), ("initial", initial.as_ref())] {
            let wrong =
                given.and_then(|given| given.iter().find(|share| !(share.is_finite() && **share >= 0.0)));
            if let Some(wrong) = wrong {
                return refuse(option, format!("found {wrong}, expected a number from 0"));
            }
        }
        if target.iter().all(|&share| share == 0.0) {
            return refuse("target", "found nothing but 0: nothing would be kept".into());
        }
        let lengths =
            [("initial", initial.as_ref().map(Vec::len)), ("values", values.as_ref().map(Vec::len))];
        for (option, found) in lengths {
            if let Some(found) = found.filter(|&found| found != classes) {
                return refuse(option, format!("found {found} for {classes} classes"));
            }
        }
        let none = initial.iter().flatten().zip(&target).position(|(&have, &want)| have == 0.0 && want > 0.0);
        if let Some(class) = none {
            return refuse("initial", format!("found 0 for class {class}, of which `target` wants some"));
        }
        let seen = match initial {
            Some(initial) => Seen::Given(initial),
            None => Seen::Counted(vec![SMOOTHING; classes]),
        };
        let mut pipe = Self { field, values, target, seen, rarest: (0, 0.0), known: None };
        pipe.find_rarest();
        Ok(pipe)
    }
}

impl Stream for RejectionResample {
    fn reset(&mut self, _: &Context) -> Result<()> {
        if let Seen::Counted(counts) = &mut self.seen {
            counts.fill(SMOOTHING);
            self.find_rarest();
        }
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let rngs = cx.rngs();
        sift(io, |uid, _, schema, values| {
            let value = &values[self.place(schema)?];
            let (names, count) = (self.values.as_deref(), self.target.len());
            let class = class::class(value, names, count)
                .ok_or_else(|| class::none(value, &self.field, names, count))?;
            let probability = self.probability(class);
            // Certainty needs no draw.
            Ok(probability >= 1.0 || probability > 0.0 && rngs.of(uid).bool(probability))
        })
    }

    fn state(&self) -> Result<State> {
        match &self.seen {
            Seen::Given(_) => State::json(VERSION, &()),
            Seen::Counted(counts) => State::json(VERSION, counts),
        }
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let Seen::Counted(counts) = &mut self.seen else { return state.parse(VERSION) };
        let saved: Vec<u64> = state.parse(VERSION)?;
        if saved.len() != counts.len() || saved.iter().any(|&count| count < SMOOTHING) {
            let (found, expected) = (saved.len(), counts.len());
            return Err(Error::invalid(format!("found the state of {found} classes, expected {expected}")));
        }
        *counts = saved;
        self.find_rarest();
        Ok(())
    }
}

impl RejectionResample {
    /// Where the field is in samples of a schema.
    fn place(&mut self, schema: &Schema) -> Result<usize> {
        match &self.known {
            Some((known, at)) if known.is(schema) => Ok(*at),
            _ => {
                let at = place(schema, &self.field)?;
                self.known = Some((schema.clone(), at));
                Ok(at)
            }
        }
    }

    /// Counts a sample of a class, and gives the probability with which it is kept.
    fn probability(&mut self, class: usize) -> f64 {
        if let Seen::Counted(counts) = &mut self.seen {
            counts[class] += 1;
            // The others are no rarer than they were.
            if class == self.rarest.0 {
                self.find_rarest();
            }
        }
        let have = self.seen.of(class);
        if class == self.rarest.0 {
            1.0
        } else if have > 0.0 {
            self.target[class] * self.rarest.1 / have
        } else {
            0.0
        }
    }

    /// Finds the class of which there is least for each that is wanted; the first of several.
    fn find_rarest(&mut self) {
        let wanted = (0..self.target.len()).filter(|&class| self.target[class] > 0.0);
        let each = wanted.map(|class| (class, self.seen.of(class) / self.target[class]));
        self.rarest = each.reduce(|one, other| if other.1 < one.1 { other } else { one }).unwrap_or_default();
    }
}

impl Seen {
    #[inline]
    fn of(&self, class: usize) -> f64 {
        match self {
            Self::Given(shares) => shares[class],
            Self::Counted(counts) => counts[class] as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Sample, Value, random::Rng};

    use super::*;
    use crate::testing::{Drive, Host, check, check_resume, errors, ints, sample, small_host};

    fn resample(options: &str) -> RejectionResample {
        RejectionResample::new(RejectionResampleOptions::parse(options).unwrap()).unwrap()
    }

    /// So many samples whose classes come with these weights.
    fn classes(count: u64, weights: &[u64]) -> Vec<Sample> {
        let mut rng = Rng::new(21, 0);
        let mut class = || {
            let mut point = rng.below(weights.iter().sum());
            let reaches = |weight: &u64| {
                let within = point < *weight;
                point = point.saturating_sub(*weight);
                within
            };
            weights.iter().position(reaches).unwrap() as i64
        };
        (0..count).map(|at| sample(at, &[("label", class().into())])).collect()
    }

    fn run(options: &str, input: &[Sample], host: &Host) -> Vec<i64> {
        let mut drive = Drive::with_host(resample(options), input, 7, host);
        drive.run(9, usize::MAX).unwrap();
        ints(drive.out(), "label")
    }

    const GIVEN: &str = r#"{"field": "label", "target": [1, 1, 2], "initial": [6, 3, 1]}"#;
    const COUNTED: &str = r#"{"field": "label", "target": [1, 1, 2]}"#;

    #[test]
    fn equals_the_definition_and_goes_on_from_every_moment() {
        for options in [GIVEN, COUNTED] {
            for count in [0, 1, 25] {
                let input = classes(count, &[6, 3, 1]);
                let (target, mut seen) = ([1.0, 1.0, 2.0], [10.0; 3]);
                let wanted = input.iter().filter(|sample| {
                    let class = sample.get("label").unwrap().as_i64().unwrap() as usize;
                    seen[class] += 1.0;
                    let have = if options == GIVEN { [6.0, 3.0, 1.0] } else { seen };
                    let ratio = |class: usize| target[class] / have[class];
                    let most = (0..3).map(ratio).fold(0.0, f64::max);
                    small_host().context().rng(sample.uid()).f64() < ratio(class) / most
                });
                let wanted: Vec<_> = wanted.cloned().collect();
                assert_eq!(check(|| resample(options), &input), wanted);
                check_resume(|| resample(options), &input);
            }
        }
    }

    #[test]
    fn classes_come_out_as_frequent_as_wanted() {
        for options in [GIVEN, COUNTED] {
            let out = run(options, &classes(60_000, &[6, 3, 1]), &small_host());
            let total = out.len() as f64;
            let chi: f64 = [0.25, 0.25, 0.5]
                .into_iter()
                .zip(0..)
                .map(|(share, class)| {
                    let found = out.iter().filter(|&&found| found == class).count() as f64;
                    (found - total * share).powi(2) / (total * share)
                })
                .sum();
            assert!(chi < 13.82, "chi-square with 2 degrees of freedom is {chi}, above the 99.9 % bound");
            // All of the last class, a tenth of what comes, is kept, and makes half of what is given.
            assert!((11_000.0..13_000.0).contains(&total), "{total}");
        }
    }

    #[test]
    fn seed_and_epoch_decide() {
        let input = classes(300, &[5, 1, 1]);
        let base = run(COUNTED, &input, &small_host());
        assert_eq!(base, run(COUNTED, &input, &small_host()));
        assert_ne!(base, run(COUNTED, &input, &small_host().seed(2)));
        assert_ne!(base, run(COUNTED, &input, &small_host().epoch(1)));
    }

    #[test]
    fn a_class_may_be_unwanted_and_have_a_name() {
        let names = ["cat", "dog", "cow", "dog", "cat"];
        let input: Vec<_> =
            names.iter().zip(0..).map(|(&name, at)| sample(at, &[("animal", name.into())])).collect();
        let options = r#"{"field": "animal", "target": [1, 0, 0], "initial": [1, 1, 0], "values": ["cat", "dog", "cow"]}"#;
        let out = check(|| resample(options), &input);
        assert_eq!(out.iter().map(Sample::uid).collect::<Vec<_>>(), [0, 4]);
    }

    #[test]
    fn a_sample_of_no_class_is_named_and_counts_for_none() {
        let mut input = classes(20, &[1, 1, 1]);
        input[3] = sample(3, &[("label", 3_i64.into())]);
        input[7] = sample(7, &[("label", "x".into())]);
        input[8] = sample(8, &[("other", Value::NULL)]);
        let mut drive = Drive::new(resample(COUNTED), &input, 4);
        let found = errors(&mut drive);
        let names: Vec<_> = found.iter().map(|error| (error.get("sample"), error.get("field"))).collect();
        assert_eq!(names, ["test#3", "test#7", "test#8"].map(|name| (Some(name), Some("label"))));
        check_resume(|| resample(COUNTED), &input);
        let counts: Vec<u64> = drive.state().unwrap().parse(VERSION).unwrap();
        assert_eq!(counts.iter().sum::<u64>(), 3 * SMOOTHING + 17);
    }

    #[test]
    fn bad_options_are_refused_by_name() {
        for (rest, option) in [
            (r#""target": []"#, "target"),
            (r#""target": [0, 0]"#, "target"),
            (r#""target": [1, -1]"#, "target"),
            (r#""target": [1, 1], "initial": [1]"#, "initial"),
            (r#""target": [1, 1], "initial": [1, -1]"#, "initial"),
            (r#""target": [1, 1], "initial": [1, 0]"#, "initial"),
            (r#""target": [1, 1], "values": ["a"]"#, "values"),
        ] {
            let options = RejectionResampleOptions::parse(&format!(r#"{{"field": "x", {rest}}}"#)).unwrap();
            let error = RejectionResample::new(options).unwrap_err();
            assert_eq!(error.get("option"), Some(option), "{rest}");
        }
        let error = RejectionResampleOptions::parse(r#"{"field": "x"}"#).unwrap_err();
        assert_eq!(error.get("option"), Some("target"));
        let wide = format!(r#"{{"field": "x", "target": {:?}}}"#, vec![1.0; MOST + 1]);
        let error = RejectionResample::new(RejectionResampleOptions::parse(&wide).unwrap()).unwrap_err();
        assert_eq!(error.get("option"), Some("target"));
        let host = small_host();
        for other in [vec![10_u64, 10], vec![0, 10, 10]] {
            let state = State::json(VERSION, &other).unwrap();
            assert!(resample(COUNTED).restore(&state, &host.context()).is_err());
        }
    }
}
