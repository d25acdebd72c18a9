//! `subsample`: some of the samples, drawn at random.
//!
//! ```toml
//! [subsample]
//! page = "choose"
//! examples = ['forebay run "range 1000 | subsample 0.1 seed=7"']
//! cases = ["range N | subsample 0.5"]
//! counted = false
//! ```

use forebay_core::{
    Condition, Context, DataPipe, Drops, Error, Io, PipeAudit, PipeInfo, PipeOrder, Randomness, Result,
    State, StateExt, Step, Stream, options,
};

use crate::plumbing::{
    lasting::{self, Who},
    sift::sift,
};

options! {
    /// Options of `subsample`.
    pub struct SubsampleOptions {
        /// The probability with which each sample is kept, from 0 to 1.
        keep: f64 = required, in 0..=1;
        /// Make the `same` choice in every epoch, or choose `anew` for each epoch and pass.
        epochs: String = "same", one_of ["same", "anew"];
        /// The seed of a choice that stays the same; null for the run's seed.
        seed: Option<u64> = null;
    }
}

/// Keeps each sample with a probability, in their order, by a draw that depends on the sample's uid.
///
/// What is kept with a lower probability is kept with a higher one, too. How many are kept differs by chance. State: nothing.
#[derive(Debug)]
pub struct Subsample {
    keep: f64,
    anew: bool,
    seed: Option<u64>,
}

/// The version of a saved position, which holds nothing.
const VERSION: u32 = 1;

impl DataPipe for Subsample {
    const INFO: PipeInfo = PipeInfo {
        name: "subsample",
        summary: "Some of the samples, drawn at random",
        order: PipeOrder { draws: Randomness::If(&[Condition::Is("epochs", "anew")]), ..PipeOrder::DEFAULT },
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = SubsampleOptions;

    fn new(options: SubsampleOptions) -> Result<Self> {
        let SubsampleOptions { keep, epochs, seed } = options;
        let anew = epochs == "anew";
        if anew && seed.is_some() {
            let message = "found a seed for a choice that is made anew, which depends on the run's";
            return Err(Error::invalid(message).context("option", "seed"));
        }
        Ok(Self { keep, anew, seed })
    }
}

impl Stream for Subsample {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let key = lasting::key(Who::Subsample, self.seed, cx);
        let rngs = cx.rngs();
        sift(io, |uid, _, _, _| {
            let draw = if self.anew { rngs.of(uid).f64() } else { lasting::draw(key, uid) };
            Ok(draw < self.keep)
        })
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &())
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        state.parse(VERSION)
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::Options;

    use super::*;
    use crate::testing::{Drive, Host, check, check_resume, ints, numbers, small_host};

    fn subsample(options: &str) -> Subsample {
        Subsample::new(SubsampleOptions::parse(options).unwrap()).unwrap()
    }

    fn kept(options: &str, count: usize, host: &Host) -> Vec<i64> {
        let input = numbers(count);
        let mut drive = Drive::with_host(subsample(options), &input, 7, host);
        drive.run(5, usize::MAX).unwrap();
        ints(drive.out(), "value")
    }

    const ANEW: &str = r#"{"keep": 0.4, "epochs": "anew"}"#;
    const SAME: &str = r#"{"keep": 0.4}"#;

    #[test]
    fn all_none_or_about_so_many_b143() {
        for seed in 0..20 {
            let found = |keep: &str| {
                kept(&format!(r#"{{"keep": {keep}, "epochs": "anew"}}"#), 1000, &small_host().seed(seed))
                    .len()
            };
            assert_eq!((found("1"), found("0")), (1000, 0));
        }
        let found = kept(r#"{"keep": 0.1, "epochs": "anew"}"#, 1000, &small_host()).len();
        assert!((80..=120).contains(&found), "{found}");
        let found = kept(r#"{"keep": 0.1}"#, 1000, &small_host()).len();
        assert!((80..=120).contains(&found), "{found}");
    }

    #[test]
    fn goes_on_from_every_moment() {
        for options in [ANEW, SAME] {
            for count in [0, 1, 20] {
                let out = check(|| subsample(options), &numbers(count));
                assert_eq!(ints(&out, "value"), kept(options, count, &small_host()));
                assert!(out.is_sorted_by_key(forebay_core::Sample::uid));
                check_resume(|| subsample(options), &numbers(count));
            }
        }
    }

    #[test]
    fn the_choice_lasts_or_is_made_anew() {
        let base = |options: &str| kept(options, 300, &small_host());
        for (options, lasts) in [(ANEW, false), (SAME, true), (r#"{"keep": 0.4, "seed": 3}"#, true)] {
            for host in [small_host().epoch(1), small_host().pass(1)] {
                assert_eq!(kept(options, 300, &host) == base(options), lasts, "{options}");
            }
            let other_seed = kept(options, 300, &small_host().seed(5)) == base(options);
            assert_eq!(other_seed, options.contains("seed"), "{options}");
        }
        let more = base(r#"{"keep": 0.6}"#);
        assert!(base(SAME).iter().all(|value| more.contains(value)));
    }

    #[test]
    fn each_is_kept_as_often() {
        let (epochs, count) = (2000, 20);
        let mut counts = vec![0_u32; count];
        for epoch in 0..epochs {
            kept(ANEW, count, &small_host().epoch(epoch))
                .iter()
                .for_each(|&value| counts[value as usize] += 1);
        }
        let (expected, spread) = (epochs as f64 * 0.4, epochs as f64 * 0.4 * 0.6);
        let chi: f64 = counts.iter().map(|&found| (f64::from(found) - expected).powi(2) / spread).sum();
        assert!(chi < 45.31, "chi-square with 20 degrees of freedom is {chi}, above the 99.9 % bound");
    }

    #[test]
    fn bad_options_are_refused_by_name() {
        for (options, option) in [
            ("{}", "keep"),
            (r#"{"keep": 1.1}"#, "keep"),
            (r#"{"keep": -0.1}"#, "keep"),
            (r#"{"keep": 0.5, "epochs": "never"}"#, "epochs"),
        ] {
            assert_eq!(SubsampleOptions::parse(options).unwrap_err().get("option"), Some(option));
        }
        let both = SubsampleOptions::parse(r#"{"keep": 0.5, "epochs": "anew", "seed": 1}"#).unwrap();
        assert_eq!(Subsample::new(both).unwrap_err().get("option"), Some("seed"));
    }
}
