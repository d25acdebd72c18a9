//! Counts what came of the files of a format, and judges.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write as _},
    path::Path,
};

use forebay_formats::Corpus;
use forebay_tests::{
    child::{self, Outcome},
    skip,
};

use crate::manifest::{self, Entry, Expect};

/// How many misses that nobody knew of are shown.
const SHOWN: usize = 40;
/// The share of the files that must be refused which are.
const REFUSED: f64 = 0.99;
/// The processor's seconds for one file.
const SECONDS: u64 = 10;

/// Reads the files of each corpus, says what came of them, and gives what is not good enough; or, in a child of this test, reads those that
/// it is asked for.
pub(crate) fn failures(test: &str, corpora: &[&Corpus]) -> Vec<String> {
    if child::is_child() {
        child::serve(
            |asked| {
                let (name, path) = asked.to_str().unwrap().split_once(':').unwrap();
                (corpora.iter().find(|corpus| corpus.name == name).unwrap().digest)(Path::new(path))
            },
            SECONDS,
        );
        return Vec::new();
    }
    let folder = manifest::folder();
    let mut failed = Vec::new();
    for corpus in corpora {
        let Some(folder) = &folder else {
            let what = format!("corpora of {}", corpus.name);
            skip(&what, "no corpora in ../shared/corpora nor in FOREBAY_CORPORA");
            continue;
        };
        let entries = manifest::entries(folder, corpus.name);
        assert!(!entries.is_empty(), "no file of format {}", corpus.name);
        let asked: Vec<_> = entries.iter().map(|entry| format!("{}:{}", corpus.name, entry.path)).collect();
        let asked: Vec<_> = asked.iter().map(String::as_str).collect();
        let found = child::read_all(test, &folder.join("files"), &asked);
        let notes: Notes = toml::from_str(corpus.known).unwrap();
        let mut tally = Tally { notes, ..Tally::default() };
        for (entry, outcome) in entries.iter().zip(found) {
            tally.count(corpus, entry, outcome);
        }
        failed.extend(tally.judge(corpus).into_iter().map(|why| format!("{}: {why}", corpus.name)));
    }
    failed
}

/// What is known of files that do not match, by path, with the reasons; a file that does match fails the test.
#[derive(Default, serde::Deserialize)]
struct Notes {
    /// We are wrong, or cannot.
    #[serde(default)]
    missed: BTreeMap<String, String>,
    /// The reference stands alone among readers: such files are not counted.
    #[serde(default)]
    disputed: BTreeMap<String, String>,
}

#[derive(Default)]
struct Tally<'a> {
    notes: Notes,
    /// Of the valid files: all, and those that match.
    valid: [usize; 2],
    /// Of those that must be refused: all, and those that are.
    reject: [usize; 2],
    /// Of those that may give anything: all, those that were read, and of these such as give what the reference found.
    free: [usize; 3],
    /// The files that were not counted.
    aside: usize,
    crashed: Vec<String>,
    /// What is amiss with a file that had to match or to be refused.
    missed: BTreeMap<&'a str, String>,
}

impl<'a> Tally<'a> {
    fn count(&mut self, corpus: &Corpus, entry: &'a Entry, outcome: Outcome) {
        let extension = entry.path.rsplit('.').next().unwrap_or_default();
        let matches = |found| match &entry.digest {
            Some(expected) => (corpus.compare)(expected, found),
            None => Err("the reference did not read it".to_owned()),
        };
        match (entry.expect, outcome) {
            (_, Outcome::Crashed(why)) => self.crashed.push(format!("{}: {why}", entry.path)),
            _ if corpus.aside.contains(&extension) => self.aside += 1,
            (Expect::Valid, outcome) => {
                let fault = match outcome {
                    Outcome::Read(found) => matches(&found).err(),
                    Outcome::Refused(why) | Outcome::Crashed(why) => Some(format!("refused: {why}")),
                };
                if self.notes.disputed.contains_key(&entry.path) && fault.is_some() {
                    self.aside += 1;
                } else {
                    self.valid[0] += 1;
                    self.valid[1] += usize::from(fault.is_none());
                }
                self.missed.extend(fault.map(|fault| (entry.path.as_str(), fault)));
            }
            (Expect::Reject, outcome) => {
                let fault = matches!(outcome, Outcome::Read(_)).then(|| "read, must be refused".to_owned());
                if self.notes.disputed.contains_key(&entry.path) && fault.is_some() {
                    self.aside += 1;
                } else {
                    self.reject[0] += 1;
                    self.reject[1] += usize::from(fault.is_none());
                }
                self.missed.extend(fault.map(|fault| (entry.path.as_str(), fault)));
            }
            (Expect::Free, outcome) => {
                self.free[0] += 1;
                if let Outcome::Read(found) = outcome {
                    self.free[1] += 1;
                    self.free[2] += usize::from(matches(&found).is_ok());
                }
            }
        }
    }

    /// Says what came of the files, and gives what is not good enough.
    fn judge(&self, corpus: &Corpus) -> Vec<String> {
        let Notes { missed, disputed } = &self.notes;
        let why = |path: &str| missed.get(path).or_else(|| disputed.get(path));
        say(&format!("{}: {self}", corpus.name));
        for (path, fault) in &self.missed {
            if let Some(why) = why(path) {
                say(&format!("  known: {path}: {why} ({fault})"));
            }
        }
        let unknown = || self.missed.iter().filter(|(path, _)| why(path).is_none());
        for (path, fault) in unknown().take(SHOWN) {
            say(&format!("  missed: {path}: {fault}"));
        }
        let more = unknown().count().saturating_sub(SHOWN);
        if more > 0 {
            say(&format!("  and {more} more"));
        }
        let known = missed.keys().chain(disputed.keys());
        let mended: Vec<_> = known.filter(|path| !self.missed.contains_key(path.as_str())).collect();
        let share = |[all, some]: [usize; 2]| if all == 0 { 1.0 } else { some as f64 / all as f64 };
        let crashed = self.crashed.join("\n");
        let faults = [
            (!crashed.is_empty()).then(|| format!("{} crashed:\n{crashed}", self.crashed.len())),
            (!mended.is_empty()).then(|| format!("no longer missed, though listed: {mended:?}")),
            (share(self.valid) < corpus.least).then(|| format!("too few valid files match: {self}")),
            (share(self.reject) < REFUSED).then(|| format!("too few files are refused: {self}")),
        ];
        faults.into_iter().flatten().collect()
    }
}

impl fmt::Display for Tally<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([valid, matched], [reject, refused], [free, read, alike]) = (self.valid, self.reject, self.free);
        let (aside, crashed) = (self.aside, self.crashed.len());
        let percent = 100.0 * matched as f64 / valid.max(1) as f64;
        write!(
            f,
            "of {valid} valid files {matched} match ({percent:.1} %); of {reject} broken ones {refused} are refused; "
        )?;
        write!(
            f,
            "of {free} others {read} are read, {alike} as the reference does; {aside} aside; {crashed} crashed"
        )
    }
}

/// To the screen, also from a test that passes: what is skipped, counted or missed must be seen.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
