//! How many samples a filter drops, and when that is too many.

use forebay_core::{Context, Error, Level, Result};

/// The share of samples that may be dropped.
#[derive(Debug)]
pub(super) struct Share {
    raise: Option<f64>,
    warn: Option<f64>,
    /// From how many samples on it is judged.
    least: u64,
    pub(super) counts: Counts,
}

/// Counts in a saved position.
pub(super) type Saved = (u64, u64, bool, bool);

/// What was seen in a pass, and whether that was told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    kept: u64,
    dropped: u64,
    raised: bool,
    warned: bool,
}

impl Counts {
    /// As they are saved.
    pub(super) fn saved(self) -> Saved {
        (self.kept, self.dropped, self.raised, self.warned)
    }

    pub(super) fn of((kept, dropped, raised, warned): Saved) -> Self {
        Self { kept, dropped, raised, warned }
    }

    /// How many there were.
    fn seen(self) -> u64 {
        self.kept.saturating_add(self.dropped)
    }

    /// Says how many were dropped, if they are more than this share of all.
    fn above(self, most: Option<f64>) -> Option<String> {
        let (dropped, seen) = (self.dropped, self.seen());
        // A quotient of counts is rounded as the number is that a person writes for it, so 900 of 1000 are not above 0.9.
        let share = dropped as f64 / seen as f64;
        let most = most.filter(|&most| share > most)?;
        let percent = |share: f64| (share * 1e4).round() / 1e2;
        let (share, most) = (percent(share), percent(most));
        Some(format!("{share} % of the samples were dropped, {dropped} of {seen}; at most {most} % may be"))
    }
}

impl Share {
    /// None where there is no threshold.
    pub(super) fn new(raise: Option<f64>, warn: Option<f64>, least: u64) -> Option<Self> {
        (raise.is_some() || warn.is_some()).then(|| Self { raise, warn, least, counts: Counts::default() })
    }

    /// How many samples may be counted together: no more than up to the first judgement.
    pub(super) fn left(&self) -> usize {
        match self.least.saturating_sub(self.counts.seen()) {
            0 => usize::MAX,
            left => usize::try_from(left).unwrap_or(usize::MAX),
        }
    }

    /// Counts samples.
    #[inline]
    pub(super) fn count(&mut self, kept: usize, dropped: u64) {
        self.counts.kept = self.counts.kept.saturating_add(kept as u64);
        self.counts.dropped = self.counts.dropped.saturating_add(dropped);
    }

    /// Whether there were enough samples to judge.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.counts.seen() >= self.least
    }

    /// Warns and fails, once in a pass, if too many were dropped.
    pub(super) fn judge(&mut self, cx: &Context) -> Result<()> {
        if !self.counts.warned
            && let Some(found) = self.counts.above(self.warn)
        {
            self.counts.warned = true;
            cx.log(Level::Warning, &format!("{found} (warn_threshold_ratio)"));
        }
        if !self.counts.raised
            && let Some(found) = self.counts.above(self.raise)
        {
            self.counts.raised = true;
            return Err(Error::invalid(found).context("option", "raise_threshold_ratio"));
        }
        Ok(())
    }
}
