//! The order in which unordered maps gave their samples, as a file: written while they run, and read to give the same again.
//!
//! A JSON value a line: first whose record it is, then, as it happens, spans of places in a map's input. A line may go back
//! behind what lines before it say, where a run went on after a snapshot: then it holds from there on.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_audit::{open_to_append, unlock};
use forebay_core::{Error, Result};
use forebay_snapshot::{
    checkpoint_log::StartPoint,
    order::{MapOrder, PlaceSet, Span, after, agree, append, count},
};
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// The version of this form.
const VERSION: u32 = 1;
/// The most spans in one line.
const SPANS: usize = 64;

/// The records of a run.
#[derive(Clone, Default)]
pub struct Records {
    /// Where it writes in which order its maps gave.
    pub written: Option<Arc<Recording>>,
    /// In which order they are to give.
    pub followed: Option<Arc<Recorded>>,
}

/// Whose order a record has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordOwner {
    /// The version of the form.
    order: u32,
    /// The graph's fingerprint.
    graph: String,
    seed: u64,
    rank: u32,
    world_size: u32,
}

/// What a map gave in one pass of an epoch, after the first `at` samples.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordLine {
    map: String,
    epoch: u64,
    pass: u64,
    at: u64,
    gave: Vec<Span>,
}

/// A record that is being written.
pub struct Recording {
    path: PathBuf,
    out: Mutex<RecordFile>,
}

struct RecordFile {
    file: BufWriter<File>,
    /// The line of each map that is not written yet.
    lines: BTreeMap<usize, RecordLine>,
    error: Option<Error>,
}

/// A record, read.
pub struct Recorded(HashMap<(String, u64, u64), Vec<Span>>);

impl Records {
    /// Opens the record that is to be written, and reads the one that is to be followed.
    ///
    /// # Errors
    /// `Io`; `Invalid` for a graph without unordered maps, and those of either file.
    pub fn open(files: (Option<&Path>, Option<&Path>), plan: &Plan, whose: &RecordOwner) -> Result<Self> {
        let (written, followed) = files;
        if let Some(file) = written.or(followed)
            && !plan.segments.iter().any(|segment| segment.unordered)
        {
            let message =
                "no map of the graph is unordered, so the order needs no record; leave the record out";
            return Err(Error::invalid(message).context("record", file.display()));
        }
        // Read first, since the other may be the same file.
        let followed = followed.map(|file| Recorded::read(file, whose).map(Arc::new)).transpose()?;
        let written = written.map(|file| Recording::open(file, whose).map(Arc::new)).transpose()?;
        Ok(Self { written, followed })
    }
}

impl RecordOwner {
    /// A run of the graph with this fingerprint.
    pub fn new(graph: &str, seed: u64, (rank, world_size): (u32, u32)) -> Self {
        Self { order: VERSION, graph: graph.to_owned(), seed, rank, world_size }
    }

    /// Refuses a record of something else.
    fn check(&self, first: Option<&str>) -> Result<()> {
        let found: Self = match first.map(serde_json::from_str) {
            Some(Ok(found)) => found,
            _ => return Err(Error::corrupt("not a record of an order: its first line names no run")),
        };
        for (what, is, was) in [
            ("version", self.order.to_string(), found.order.to_string()),
            ("graph", self.graph.clone(), found.graph),
            ("seed", self.seed.to_string(), found.seed.to_string()),
            ("rank", self.rank.to_string(), found.rank.to_string()),
            ("world size", self.world_size.to_string(), found.world_size.to_string()),
        ] {
            if is != was {
                return Err(Error::invalid(format!(
                    "the record is of a run with {what} {was}, this run has {what} {is}"
                )));
            }
        }
        Ok(())
    }
}

impl Recording {
    /// Opens a file, to add to it what this run does.
    ///
    /// # Errors
    /// `Io`; `Invalid` and `Corrupt` for a file that holds something else, or that another run writes to.
    pub(crate) fn open(path: &Path, whose: &RecordOwner) -> Result<Self> {
        let within = |error: Error| error.context("record", path.display());
        let file = open_to_append(path, "record").map_err(within)?;
        let mut out =
            RecordFile { file: BufWriter::with_capacity(1 << 16, file), lines: BTreeMap::new(), error: None };
        if out.file.get_ref().metadata()?.len() == 0 {
            out.write(whose);
        } else {
            whose.check(fs::read_to_string(path)?.lines().next()).map_err(within)?;
        }
        Ok(Self { path: path.to_owned(), out: Mutex::new(out) })
    }

    fn out(&self) -> MutexGuard<'_, RecordFile> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A map gives these samples, after the first `at` of this epoch and pass.
    pub(crate) fn add(&self, (node, map): (usize, &str), (epoch, pass): (u64, u64), at: u64, span: Span) {
        let mut out = self.out();
        if let Some(line) = out.lines.get_mut(&node)
            && (line.epoch, line.pass, line.at + count(&line.gave)) == (epoch, pass, at)
            && line.gave.len() < SPANS
        {
            return append(&mut line.gave, span);
        }
        let line = RecordLine { map: map.to_owned(), epoch, pass, at, gave: vec![span] };
        if let Some(full) = out.lines.insert(node, line) {
            out.write(&full);
        }
    }

    /// What went wrong with the file, if anything did; told once.
    pub fn take_error(&self) -> Option<Error> {
        let error = self.out().error.take()?;
        Some(error.context("record", self.path.display()))
    }

    /// Puts all that happened into the file.
    ///
    /// # Errors
    /// `Io`.
    pub fn flush(&self) -> Result<()> {
        let mut out = self.out();
        for line in std::mem::take(&mut out.lines).into_values() {
            out.write(&line);
        }
        let flushed = out.file.flush();
        drop(out);
        self.take_error().map_or(Ok(()), Err)?;
        flushed.map_err(|error| Error::from(error).context("record", self.path.display()))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // A loader that is dropped has nobody to tell; `finish` tells.
        let _ = self.flush();
        unlock(self.out().file.get_ref());
    }
}

impl RecordFile {
    fn write(&mut self, line: &impl Serialize) {
        if self.error.is_some() {
            return;
        }
        let text = serde_json::to_string(line).map_err(|error| Error::bug(error.to_string()));
        let written = text.and_then(|text| Ok(writeln!(self.file, "{text}")?));
        self.error = written.err();
    }
}

impl Recorded {
    /// Reads a record, of which the last line may be missing or cut short.
    ///
    /// # Errors
    /// `Io`; `Invalid` for a record of something else; `Corrupt`, with the line.
    pub(crate) fn read(path: &Path, whose: &RecordOwner) -> Result<Self> {
        let read = || {
            let text = fs::read_to_string(path)?;
            whose.check(text.lines().next())?;
            let mut orders = HashMap::new();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            for (number, line) in whole.lines().enumerate().skip(1) {
                add(&mut orders, line).map_err(|error| error.context("line", number + 1))?;
            }
            Ok(Self(orders))
        };
        read().map_err(|error: Error| error.context("record", path.display()))
    }

    /// In which order a map gave its samples.
    pub(crate) fn order(&self, map: &str, epoch: u64, pass: u64) -> &[Span] {
        self.0.get(&(map.to_owned(), epoch, pass)).map_or(&[], Vec::as_slice)
    }

    /// Refuses a place that the run of this record never was at.
    ///
    /// # Errors
    /// `Invalid`, with what differs.
    pub fn check(&self, map: &str, epoch: u64, origin: &StartPoint) -> Result<()> {
        let (place, nothing) = (&origin.checkpoint.place, MapOrder::default());
        let order = origin.order.as_ref().unwrap_or(&nothing);
        let here = (place.pass, PlaceSet::new(place.taken[0], &order.ahead));
        let others = order.passes.iter().filter(|(pass, _)| *pass != place.pass);
        let others = others.map(|(pass, _)| (*pass, PlaceSet::default()));
        for (pass, gone) in [here].into_iter().chain(others) {
            let again = order.passes.iter().filter(|(of, _)| *of == pass).flat_map(|(_, spans)| spans);
            if !gone.lead(self.order(map, epoch, pass), again) {
                return Err(Error::invalid(format!(
                    "the order of `{map}` differs between the snapshot and the record; replay the record of the same run"
                )));
            }
        }
        Ok(())
    }
}

fn add(orders: &mut HashMap<(String, u64, u64), Vec<Span>>, line: &str) -> Result<()> {
    let line: RecordLine = serde_json::from_str(line)
        .map_err(|error| Error::corrupt(format!("not a line of a record: {error}")))?;
    if !line.gave.iter().all(|span| span.is_sound()) {
        return Err(Error::corrupt("found a span without samples or without an end"));
    }
    let known = orders.entry((line.map, line.epoch, line.pass)).or_default();
    let had = count(known);
    if line.at > had {
        return Err(Error::corrupt(format!(
            "it goes on after {} samples, and the lines before have {had}; a run that goes on after a snapshot adds to the \
             record of the run before",
            line.at
        )));
    }
    // A run that was broken off, and did the same until then, takes nothing away.
    let same = agree(&after(known, line.at), &line.gave);
    if same == count(&line.gave) {
        return Ok(());
    }
    let mut left = line.at + same;
    known.retain_mut(|span| {
        span.1 = span.1.min(left);
        left -= span.1;
        span.1 > 0
    });
    after(&line.gave, same).into_iter().for_each(|span| append(known, span));
    Ok(())
}
