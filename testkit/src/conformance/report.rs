//! The results of the checks.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::subject::Subject;

/// The results of all checks.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The plugin's name and version.
    pub plugin: String,
    /// Its file.
    pub file: String,
    /// One row for each check of each part.
    pub rows: Vec<Row>,
}

/// The result of one check of one part of the plugin.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The part that was checked: the plugin, one of its decoders, a graph, or a store.
    pub subject: String,
    /// The check's name.
    pub check: String,
    /// The result.
    pub verdict: Verdict,
    /// Details, for people.
    pub detail: String,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should.
    Passed,
    /// It does not apply, as the detail says.
    Skipped,
    /// The plugin broke a promise.
    Failed,
    /// Its process crashed, hung, or took more than it may.
    Died,
    /// There is nothing to test it with.
    Untested,
}

impl Verdict {
    pub(super) fn is_good(self) -> bool {
        matches!(self, Self::Passed | Self::Skipped)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Skipped => "skipped",
            Self::Failed => "FAILED",
            Self::Died => "DIED",
            Self::Untested => "UNTESTED",
        }
    }
}

impl Row {
    pub(super) fn new(subject: &Subject, check: &str, verdict: Verdict, detail: String) -> Self {
        Self { subject: subject.to_string(), check: check.to_owned(), verdict, detail }
    }
}

impl Report {
    /// Whether all that the plugin has was tested and nothing failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.rows.iter().all(|row| row.verdict.is_good())
            && self.rows.iter().any(|row| row.verdict == Verdict::Passed)
    }

    /// The rows of what went wrong.
    pub fn failures(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.verdict.is_good())
    }
}

/// A table: each thing, and below it a line for each check.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} in {}", self.plugin, self.file)?;
        let mut subject = "";
        for row in &self.rows {
            if row.subject != subject {
                subject = &row.subject;
                writeln!(f, "\n{subject}")?;
            }
            let Row { check, detail, .. } = row;
            let detail = detail.replace('\n', "\n    ");
            let line = format!("  {:<9} {check:<10} {detail}", row.verdict.word());
            writeln!(f, "{}", line.trim_end())?;
        }
        let ran = self.rows.iter().filter(|row| row.verdict != Verdict::Skipped).count();
        match self.failures().count() {
            0 => write!(f, "\nall {ran} checks passed"),
            failed => write!(f, "\n{failed} of {ran} checks failed"),
        }
    }
}
