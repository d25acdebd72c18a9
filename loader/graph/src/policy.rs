//! What happens to samples that fail.

use std::{fmt, str::FromStr};

use forebay_core::{Error, ErrorKind, Result};

/// What happens to samples that fail in a pipe, and how many can fail.
///
/// If a flat map fails within the stream of one sample, the rest of that stream is lost, unless the stream [goes
/// on](forebay_core::Items::goes_on). Each failure counts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct OnError {
    /// What happens to the sample.
    pub action: Action,
    /// How many samples can fail in one pass of the node.
    pub most: Most,
    /// From how many samples on a share is judged. At the end of a pass it is always judged.
    pub min_samples: u64,
}

/// From how many samples on a share is judged, unless something is said: as `filter` has it.
const MIN_SAMPLES: u64 = 1000;
/// How that is written behind a share.
const MIN: &str = "min_samples=";

/// What happens to a sample that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Action {
    /// It ends the run.
    #[default]
    Fail,
    /// It is left out, and counted.
    Skip,
    /// For maps: the sample before it takes its place, with its uid and key. At the start of a pass there is none
    /// before it, so it is left out.
    Replace,
    /// It is left out, and listed by key with its error: see `Loader::quarantine`.
    Quarantine,
    /// It is left out and listed, as with `Quarantine`. The epoch delivers everything else, and then ends with an
    /// error: see `Loader::failure`.
    FailAtEnd,
}

/// How many samples can fail.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Most {
    /// Any number.
    #[default]
    Any,
    /// This many.
    Count(u64),
    /// This share of the samples so far, from [`min_samples`](OnError::min_samples) on. One sample can always
    /// fail.
    Share(f64),
}

impl Default for OnError {
    fn default() -> Self {
        Self { action: Action::default(), most: Most::default(), min_samples: MIN_SAMPLES }
    }
}

impl OnError {
    /// Whether the run can go on after an error of this kind. It cannot after an error of the loader or of the
    /// plugin as a whole, nor after a panic of a pipe with state, which takes no more calls.
    #[must_use]
    pub fn forgives(&self, kind: ErrorKind, map: bool) -> bool {
        let lasting = matches!(kind, ErrorKind::Cancelled | ErrorKind::Bug | ErrorKind::Abi);
        self.action != Action::Fail && !lasting && (map || kind != ErrorKind::Panic)
    }

    /// Why the run must end, if one more of `seen` samples fails after `failed` others.
    #[must_use]
    pub fn exceeded(&self, failed: u64, seen: u64) -> Option<String> {
        let failed = failed + 1;
        match self.most {
            Most::Count(most) if failed > most => {
                Some(format!("{failed} samples failed, at most {most} may"))
            }
            Most::Share(share) if seen >= self.min_samples => above(share, failed, seen),
            _ => None,
        }
    }

    /// The error at the end of a pass if `failed` of all `seen` samples are too many.
    pub fn error_at_end(&self, failed: u64, seen: u64) -> Option<Error> {
        let Most::Share(share) = self.most else { return None };
        above(share, failed, seen).map(|reason| Error::invalid(reason).context("option", "on_error"))
    }
}

/// Says that more than this share failed. One always may.
fn above(share: f64, failed: u64, seen: u64) -> Option<String> {
    (failed > 1 && failed as f64 > share * seen as f64)
        .then(|| format!("{failed} of {seen} samples failed, at most {} % may", share * 100.0))
}

impl FromStr for OnError {
    type Err = Error;

    /// Reads `fail`, `fail_at_end`, `skip`, `replace` or `quarantine`. All but `fail` can have `:COUNT` or
    /// `:SHARE%` behind them, and a share can have ` min_samples=COUNT` behind it.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "on_error is `{text}`, expected fail, fail_at_end, skip, replace or quarantine, and after a colon \
                 the most that may fail, as in skip:100, skip:1% or 'skip:1% min_samples=200'"
            ))
        };
        let whole = text;
        let (text, min_samples) = match whole.split_once(' ') {
            None => (whole, None),
            Some((text, rest)) => (text, Some(rest.trim().strip_prefix(MIN).ok_or_else(bad)?)),
        };
        let min_samples = min_samples.map(str::parse).transpose().map_err(|_| bad())?;
        let (action, most) = text.split_once(':').map_or((text, None), |(action, most)| (action, Some(most)));
        let action = match action {
            "fail" if most.is_none() => Action::Fail,
            "fail_at_end" => Action::FailAtEnd,
            "skip" => Action::Skip,
            "replace" => Action::Replace,
            "quarantine" => Action::Quarantine,
            _ => return Err(bad()),
        };
        let most = match most.map(|most| most.strip_suffix('%').ok_or(most)) {
            None => Most::Any,
            Some(Err(count)) => Most::Count(count.parse().map_err(|_| bad())?),
            Some(Ok(share)) => {
                let share: f64 = share.trim().parse().map_err(|_| bad())?;
                Most::Share(Some(share / 100.0).filter(|share| (0.0..=1.0).contains(share)).ok_or_else(bad)?)
            }
        };
        // Counts are judged at once.
        if min_samples.is_some_and(|least| least == 0 || !matches!(most, Most::Share(_))) {
            return Err(bad());
        }
        Ok(Self { action, most, min_samples: min_samples.unwrap_or(MIN_SAMPLES) })
    }
}

impl fmt::Display for OnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.action {
            Action::Fail => "fail",
            Action::FailAtEnd => "fail_at_end",
            Action::Skip => "skip",
            Action::Replace => "replace",
            Action::Quarantine => "quarantine",
        })?;
        match self.most {
            Most::Any => Ok(()),
            Most::Count(count) => write!(f, ":{count}"),
            Most::Share(share) => write!(f, ":{}%", share * 100.0),
        }?;
        match self.min_samples {
            MIN_SAMPLES => Ok(()),
            least => write!(f, " {MIN}{least}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_and_printed() {
        for text in [
            "fail",
            "fail_at_end",
            "fail_at_end:5",
            "skip",
            "skip:10",
            "replace:1%",
            "quarantine:0",
            "skip:2.5%",
            "skip:1% min_samples=1",
        ] {
            assert_eq!(text.parse::<OnError>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "fail:1",
            "skip:",
            "skip:-1",
            "skip:101%",
            "drop",
            "skip:x%",
            "skip:5 min_samples=3",
            "skip min_samples=3",
            "skip:1% min_samples=0",
            "skip:1% 5",
        ] {
            assert!(text.parse::<OnError>().is_err(), "{text}");
        }
    }

    #[test]
    fn budgets_end_runs() {
        let exceeded = |text: &str, failed, seen| text.parse::<OnError>().unwrap().exceeded(failed, seen);
        assert!(exceeded("skip", 1_000_000, 1_000_000).is_none());
        assert!(exceeded("skip:2", 1, 5).is_none());
        assert!(exceeded("skip:2", 2, 5).is_some());
        assert!(exceeded("skip:1% min_samples=1", 0, 1).is_none(), "one always may");
        assert!(exceeded("skip:1% min_samples=100", 1, 150).is_some());
        assert!(exceeded("skip:1% min_samples=100", 1, 200).is_none());
        assert!(exceeded("skip:1%", 500, 999).is_none(), "too few to judge");
        assert!(exceeded("skip:1%", 10, 1000).is_some());
        let at_end = |text: &str, failed, seen| text.parse::<OnError>().unwrap().error_at_end(failed, seen);
        assert!(at_end("skip:1%", 2, 150).is_some(), "the end always judges");
        assert!(at_end("skip:1%", 2, 200).is_none());
        assert!(at_end("skip:1%", 1, 2).is_none() && at_end("skip", 9, 9).is_none());
    }
}
