//! What a run tells at its end, for people and as JSON.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use forebay_loader::{EpochAudit, Error, Loader, NodeStats};
use rustix::{
    param::clock_ticks_per_second,
    time::{ClockId, clock_gettime},
};
use serde::Serialize;

use crate::{
    audit,
    coverage::Covered,
    outcome::{self, Stop},
    preview::Field,
    print::{TextTable, bytes, count, counted, near, rate},
    run::{Settings, Tally},
};

/// So many lost samples a loader lists at most: see [`Loader::quarantine`].
const LISTED: usize = 10_000;

/// What came out of a run.
#[derive(Serialize)]
pub(crate) struct Report {
    /// Samples delivered, those in batches and files counted one by one.
    samples: u64,
    /// Batches delivered; 0 for a graph that makes none.
    batches: u64,
    /// How many things were delivered, and what one is: `sample`, `batch`, `file` and the like.
    delivered: u64,
    unit: String,
    /// So many of them, in words.
    #[serde(skip)]
    units: String,
    /// From the start of the first epoch to the end of the last.
    seconds: f64,
    /// Processor time of this process and of its workers.
    cpu_seconds: f64,
    /// From the start of the process to the first delivery.
    first_batch_ms: Option<f64>,
    /// The most memory that this process and its workers had, each at its own peak; what they share counts once. None where the
    /// system does not say.
    peak_rss_bytes: Option<u64>,
    /// The stage that limits the rate.
    limiting: String,
    /// One number for all that was delivered, if it was asked for.
    pub(crate) digest: Option<String>,
    /// What the first delivery held.
    first: Option<Vec<Field>>,
    /// Who served each node.
    plugins: Vec<Served>,
    /// What each node did.
    nodes: Vec<NodeStats>,
    seed: u64,
    executor: String,
    /// The number of the first epoch, and of the one after the last.
    first_epoch: u64,
    epochs: u64,
    fingerprint: String,
    /// Where lost samples are listed, if that was asked for.
    quarantine: Option<PathBuf>,
    /// What came exactly once, if that was asked for.
    pub(crate) audit: Option<Audited>,
    /// How many of the lost samples the loader listed.
    #[serde(skip)]
    listed: usize,
    /// What became of the files, where a path was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) coverage: Option<Covered>,
    /// What failed and was not allowed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<serde_json::Value>,
}

/// What the audit of a run's own file found.
#[derive(Serialize)]
pub(crate) struct Audited {
    file: PathBuf,
    /// None for one of several ranks, whose files must all be there, and where nothing was run.
    epochs: Option<Vec<EpochAudit>>,
    #[serde(skip)]
    none: &'static str,
}

impl Audited {
    /// Reads the file of a run that has ended.
    pub(crate) fn new(file: &Path, rank: Option<(u32, u32)>) -> Result<Self, Error> {
        let nothing = fs::metadata(file).is_ok_and(|file| file.is_file() && file.len() == 0);
        let alone = rank.is_none_or(|(_, world_size)| world_size == 1);
        let epochs = (alone && !nothing).then(|| forebay_loader::audit(&[file])).transpose()?;
        let none =
            if nothing { "nothing was run" } else { "run `forebay audit` with the files of all ranks" };
        Ok(Self { file: file.to_owned(), epochs, none })
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        match &self.epochs {
            Some(epochs) => audit::write(epochs, out),
            None => writeln!(out, "audit in {}: {}", self.file.display(), self.none),
        }
    }

    /// The run fails, if its audit found an offence; one that is not finished may go on.
    pub(crate) fn end(self) -> outcome::Result {
        let epochs = self.epochs.unwrap_or_default();
        match epochs.iter().find(|epoch| !epoch.offences.is_empty()) {
            Some(epoch) => {
                let message = format!("not every sample of epoch {} came exactly once", epoch.epoch);
                Err(Stop::Told(Error::corrupt(message).context("audit", self.file.display())))
            }
            None => Ok(()),
        }
    }
}

/// Who served a node.
#[derive(Serialize)]
pub(crate) struct Served {
    pub(crate) node: String,
    pub(crate) pipe: String,
    pub(crate) plugin: String,
    pub(crate) file: String,
}

impl Report {
    /// Takes down what `loader` did.
    pub(crate) fn new(
        loader: &Loader,
        settings: &Settings,
        tally: &Tally,
        quarantine: Option<&Path>,
    ) -> Self {
        let stats = loader.stats();
        let served = |node: &NodeStats| Served {
            node: node.node.clone(),
            pipe: node.pipe.clone(),
            plugin: node.plugin.clone(),
            file: node.file.clone(),
        };
        Self {
            samples: tally.unit.samples(tally.samples, &stats),
            batches: tally.batches(),
            delivered: tally.delivered,
            unit: tally.unit.name().to_owned(),
            units: tally.unit.counted(tally.delivered),
            seconds: tally.seconds,
            cpu_seconds: cpu_seconds(loader, tally.children),
            first_batch_ms: tally.first.as_ref().map(|(_, after)| *after),
            peak_rss_bytes: peak_rss(loader),
            limiting: stats.limiting(),
            digest: tally.digest(),
            first: tally.first.as_ref().map(|(fields, _)| fields.clone()),
            plugins: stats.nodes.iter().map(served).collect(),
            nodes: stats.nodes,
            seed: settings.seed,
            executor: settings.executor.to_string(),
            first_epoch: settings.epochs.0,
            epochs: settings.epochs.1,
            fingerprint: loader.graph().fingerprint().to_string(),
            quarantine: quarantine.map(Path::to_owned),
            audit: None,
            listed: loader.quarantine().len(),
            coverage: None,
            error: None,
        }
    }

    /// Writes it for people.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_first(out)?;
        self.write_nodes(out)?;
        let samples = counted(self.samples, "sample", "samples");
        let delivered = match self.unit.as_str() {
            "sample" => samples,
            _ => format!("{samples} in {}", self.units),
        };
        let mut table = TextTable::new(&["", ""]);
        let mut line = |name: &str, text: String| table.row([name.to_owned(), text]);
        let rate = rate(self.samples, self.seconds);
        line("delivered", format!("{delivered}, in {:.2} s: {rate} samples/s", self.seconds));
        if let Some(lost) = self.lost() {
            line("lost", lost);
        }
        if let Some(after) = self.first_batch_ms {
            line(&format!("first {}", self.unit), format!("after {after:.0} ms"));
        }
        let memory = self.peak_rss_bytes.map(|peak| format!(", {} of memory at most", bytes(peak)));
        line("used", format!("{:.2} s of CPU{}", self.cpu_seconds, memory.unwrap_or_default()));
        line("limited by", self.limiting.clone());
        if let Some(digest) = &self.digest {
            line("digest", digest.clone());
        }
        writeln!(out)?;
        table.write(out, "")?;
        self.audit.as_ref().map_or(Ok(()), |audit| audit.write(out))
    }

    /// How many samples were left out, and where; `None` if none was.
    fn lost(&self) -> Option<String> {
        let nodes = || self.nodes.iter().filter(|node| node.lost > 0);
        let all: u64 = nodes().map(|node| node.lost).sum();
        let each: Vec<_> = nodes().map(|node| format!("{} at {}", count(node.lost), node.node)).collect();
        let first = if self.listed < LISTED { "quarantine" } else { "the first 10,000" };
        let listed = self.quarantine.as_ref().map(|file| format!("; {first} in {}", file.display()));
        let text = format!("{}: {}", counted(all, "sample", "samples"), each.join(", "));
        (all > 0).then(|| text + &listed.unwrap_or_default())
    }

    fn write_first(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(fields) = &self.first else { return Ok(()) };
        let mut table = TextTable::new(&[&format!("first {}", self.unit), "type", "shape"]);
        for field in fields {
            table.row([field.name.clone(), field.dtype.clone(), field.shape()]);
        }
        writeln!(out)?;
        table.write(out, "")
    }

    fn write_nodes(&self, out: &mut dyn Write) -> io::Result<()> {
        // By the clock on the wall, all of them: a disk that is waited for counts.
        let heads = ["node", ">gave", ">busy s (wall)", ">wait in", ">wait out", "plugin", "file"];
        let mut table = TextTable::new(&heads);
        for node in &self.nodes {
            let named = node.node == node.pipe;
            table.row([
                if named { node.node.clone() } else { format!("{} ({})", node.node, node.pipe) },
                match node.unit.as_str() {
                    "sample" => count(node.samples),
                    _ => counted(node.samples, &node.unit, &node.units),
                },
                format!("{:.3}", node.busy),
                format!("{:.3}", node.wait_input),
                format!("{:.3}", node.wait_room),
                node.plugin.clone(),
                near(&node.file),
            ]);
        }
        writeln!(out)?;
        table.write(out, "")
    }
}

/// Processor time of all threads so far, and of the worker processes, those that are gone included. `before` is that of the
/// children which a shell had before it became this program.
fn cpu_seconds(loader: &Loader, before: u64) -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let living = loader.worker_processes().into_iter().filter_map(|worker| {
        let [user, system, ..] = ticks(&format!("/proc/{worker}/stat"))?;
        Some(user + system)
    });
    let gone = children_ticks().saturating_sub(before);
    let workers = (living.sum::<u64>() + gone) as f64 / clock_ticks_per_second() as f64;
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9 + workers
}

/// Time of all children of this process that ended, in clock ticks.
pub(crate) fn children_ticks() -> u64 {
    ticks("/proc/self/stat").map_or(0, |[_, _, user, system]| user + system)
}

/// Time in user code and in the system, of a process and of its children that ended: the fields from 14 on of proc(5).
fn ticks(stat: &str) -> Option<[u64; 4]> {
    let text = fs::read_to_string(stat).ok()?;
    // The second field is a name in parentheses, which may hold spaces.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse);
    let mut next = || fields.next()?.ok();
    Some([next()?, next()?, next()?, next()?])
}

/// The most memory that this process and the worker processes that live had, files they mapped included, as Linux says it.
fn peak_rss(loader: &Loader) -> Option<u64> {
    let workers = loader.worker_processes().into_iter().filter_map(|id| peak_of(&id.to_string()));
    Some(peak_of("self")? + workers.sum::<u64>())
}

/// The most memory that a process had, and of what it shares with others now its part.
fn peak_of(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let shared = kilobytes(&status, "RssShmem:").unwrap_or(0);
    // Each page is divided by how many map it. Without that number, all of them count.
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok();
    let part = rollup.and_then(|rollup| kilobytes(&rollup, "Pss_Shmem:")).unwrap_or(shared);
    Some((kilobytes(&status, "VmHWM:")?.saturating_sub(shared) + part) * 1024)
}

/// The number behind `name` in a file of `/proc`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
