//! Where a run writes its audit.

use std::{
    fs::{self, File},
    io::{BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use forebay_core::{Error, ErrorKind, Result};
use forebay_graph::{Catalog, Graph, Node, Uids};
use forebay_registry::Registry;
use forebay_snapshot::{NodeResume, ResumePlan, checkpoint_log::StartPoint};
#[cfg(unix)]
use rustix::fs::{FlockOperation, flock};

use super::line::{AuditLine, AuditedNode, Begin, UidRole, VERSION, write_uids};

/// How many deliveries go into one line.
const DELIVERIES: usize = 64;
/// How far back the last whole line is looked for.
const BLOCK: u64 = 4096;

/// An audit file that is open for one loader, and whose audit it is; or, in a worker, the lines for that file.
pub struct AuditLog {
    path: PathBuf,
    out: Mutex<Out>,
    /// Which start of the loader this is: what an earlier one still does is not of interest.
    turn: AtomicU64,
    whose: AuditOwner,
}

/// What all runs of one loader have in common.
struct AuditOwner {
    graph: String,
    seed: u64,
    rank: (u32, u32),
    nodes: Vec<AuditedNode>,
    output: (usize, usize),
}

/// Where lines go.
enum Sink {
    File(BufWriter<File>),
    /// To be taken.
    Lines(Vec<u8>),
}

struct Out {
    sink: Sink,
    /// Deliveries that are not written yet, and the place of the first.
    delivered: (u64, Vec<u64>),
    /// The number of the last snapshot.
    snapshot: u64,
    error: Option<Error>,
}

impl AuditLog {
    /// Opens a file, to add to it.
    ///
    /// # Errors
    /// `Io`; `Invalid` for a graph that cannot be followed, and when another run writes to the file.
    pub fn open(
        path: &Path,
        (graph, registry, resume_plan): (&Graph, &Registry, &ResumePlan),
        seed: u64,
        rank: (u32, u32),
    ) -> Result<Self> {
        let nodes = parts(graph, registry, resume_plan)?;
        let file = open_to_append(path, "audit").map_err(|error| error.context("file", path.display()))?;
        let graph = resume_plan.words(graph).graph.clone();
        let whose = AuditOwner { graph, seed, rank, nodes, output: resume_plan.output };
        Ok(Self::new(path, Sink::File(BufWriter::with_capacity(1 << 16, file)), whose))
    }

    /// For a worker, whose lines its loader [takes](AuditLog::take_lines).
    ///
    /// # Errors
    /// `Invalid` for a graph that cannot be followed.
    pub fn elsewhere((graph, registry, resume_plan): (&Graph, &Registry, &ResumePlan)) -> Result<Self> {
        let nodes = parts(graph, registry, resume_plan)?;
        let whose =
            AuditOwner { graph: String::new(), seed: 0, rank: (0, 1), nodes, output: resume_plan.output };
        Ok(Self::new(Path::new(""), Sink::Lines(Vec::new()), whose))
    }

    fn new(path: &Path, sink: Sink, whose: AuditOwner) -> Self {
        let out = Out { sink, delivered: (0, Vec::new()), snapshot: 0, error: None };
        Self { path: path.to_owned(), out: Mutex::new(out), turn: AtomicU64::new(0), whose }
    }

    /// Takes what was written, where that goes to no file.
    pub fn take_lines(&self) -> String {
        match &mut self.out().sink {
            Sink::File(_) => String::new(),
            // Invariant: lines are JSON.
            Sink::Lines(lines) => String::from_utf8(std::mem::take(lines)).unwrap_or_default(),
        }
    }

    /// Writes lines that a worker made for this start of the loader.
    pub(super) fn write_lines(&self, turn: u64, lines: &str) {
        let mut out = self.out();
        if turn == self.turn() && !lines.is_empty() {
            out.write_all(lines.as_bytes());
        }
    }

    /// What the node at this place does.
    pub(super) fn part(&self, node: usize) -> &AuditedNode {
        &self.whose.nodes[node]
    }

    /// Which start of the loader this is.
    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// An epoch begins after so many deliveries, each node at its origin; `resumed_of` is the snapshot's world size, `after`
    /// its number.
    pub fn begin(
        &self,
        (epoch, delivered): (u64, u64),
        origins: &[StartPoint],
        (resumed_of, after): (Option<u32>, Option<u64>),
    ) {
        let given = |origin: &StartPoint| {
            let place = &origin.checkpoint.place;
            let given = place.given.iter().zip(&origin.skip).map(|(given, skip)| given + skip);
            (place.pass, given.collect())
        };
        let begin = Begin {
            version: VERSION,
            graph: self.whose.graph.clone(),
            seed: self.whose.seed,
            rank: self.whose.rank.0,
            world_size: self.whose.rank.1,
            epoch,
            delivered,
            resumed_of,
            from: origins.iter().map(given).collect(),
            after,
            begun: now(),
            output: self.whose.output,
            nodes: self.whose.nodes.clone(),
        };
        let mut out = self.out();
        out.write_delivered();
        self.turn.fetch_add(1, Ordering::AcqRel);
        out.delivered = (delivered, Vec::new());
        out.write(&AuditLine::Run(Box::new(begin)));
    }

    /// Writes a line that belongs to this start of the loader.
    pub(super) fn write(&self, turn: u64, line: &AuditLine) {
        let mut out = self.out();
        if turn == self.turn() {
            out.write(line);
        }
    }

    /// Takes a snapshot by `locate`, and gives its number, where one is needed. Meanwhile nobody leaves word, so a checkpoint that is
    /// found is of what was written before.
    pub fn snapshot<T>(&self, locate: impl FnOnce() -> T) -> (Option<u64>, T) {
        // Before a run has begun there is nothing to go on after.
        if self.turn() == 0 || !self.whose.nodes.iter().any(|part| part.unordered) {
            return (None, locate());
        }
        let mut out = self.out();
        out.write_delivered();
        out.snapshot = now().max(out.snapshot + 1);
        let number = out.snapshot;
        out.write(&AuditLine::Snapshot(number));
        (Some(number), locate())
    }

    /// The consumer has the next sample.
    pub fn delivered(&self, uid: u64) {
        let mut out = self.out();
        out.delivered.1.push(uid);
        if out.delivered.1.len() >= DELIVERIES {
            out.write_delivered();
        }
    }

    /// The consumer has all of the epoch: so many.
    pub fn ended(&self, delivered: u64) {
        let mut out = self.out();
        out.write_delivered();
        out.write(&AuditLine::Ended(delivered));
        let flushed = out.sink.flush();
        out.error = out.error.take().or(flushed.err().map(Error::from));
    }

    /// What went wrong with the file, if anything did; told once.
    pub fn take_error(&self) -> Option<Error> {
        let error = self.out().error.take()?;
        Some(error.context("audit", self.path.display()))
    }

    /// Puts all that was written into the file.
    ///
    /// # Errors
    /// `Io`.
    pub fn flush(&self) -> Result<()> {
        let mut out = self.out();
        out.write_delivered();
        let flushed = out.sink.flush();
        drop(out);
        self.take_error().map_or(Ok(()), Err)?;
        flushed.map_err(|error| Error::from(error).context("audit", self.path.display()))
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // A loader that is dropped has nobody to tell; `finish` tells.
        let _ = self.flush();
        if let Sink::File(file) = &self.out().sink {
            unlock(file.get_ref());
        }
    }
}

impl Sink {
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Lines(lines) => lines.write_all(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Lines(_) => Ok(()),
        }
    }
}

impl Out {
    fn write(&mut self, line: &AuditLine) {
        if self.error.is_some() {
            return;
        }
        match serde_json::to_string(line) {
            Ok(mut text) => {
                text.push('\n');
                self.write_all(text.as_bytes());
            }
            Err(error) => self.error = Some(Error::bug(error.to_string())),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.sink.write_all(bytes).err().map(Error::from);
        }
    }

    fn write_delivered(&mut self) {
        let (at, uids) = &mut self.delivered;
        if uids.is_empty() {
            return;
        }
        let line = AuditLine::Delivered(*at, write_uids(uids.iter().copied()));
        *at += uids.len() as u64;
        uids.clear();
        self.write(&line);
    }
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Lets other runs write to the file. By closing it alone it would stay locked while a worker is being spawned, which has it
/// for a moment.
pub fn unlock(file: &File) {
    #[cfg(unix)]
    let _ = flock(file, FlockOperation::Unlock);
}

/// Opens a file for more lines of `what` a run writes. A run that was killed may have left half of one, which goes.
///
/// # Errors
/// `Io`; `Invalid` for what is no file, and when another run writes to it.
pub fn open_to_append(path: &Path, what: &str) -> Result<File> {
    // It is read again, and cut where a line ends.
    if fs::metadata(path).is_ok_and(|there| !there.is_file() || is_stream(&there)) {
        return Err(Error::invalid(format!(
            "found a folder, pipe, device or standard stream, expected a regular file for the {what}"
        )));
    }
    let mut file = File::options().create(true).read(true).append(true).open(path)?;
    #[cfg(unix)]
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Error::invalid(format!(
            "another run writes its {what} to this file; give each run its own file"
        )));
    }
    let mut end = file.metadata()?.len();
    let mut block = Vec::new();
    while end > 0 {
        let from = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(from))?;
        block.clear();
        (&file).take(end - from).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|&byte| byte == b'\n') {
            end = from + at as u64 + 1;
            break;
        }
        end = from;
    }
    file.set_len(end)?;
    Ok(file)
}

/// Whether this file is the standard output or error of the process, sent to a file.
#[cfg(unix)]
fn is_stream(there: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let mut streams = ["/dev/stdout", "/dev/stderr"].into_iter().filter_map(|path| fs::metadata(path).ok());
    streams.any(|stream| (stream.dev(), stream.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_stream(_: &fs::Metadata) -> bool {
    false
}

/// The nodes of a graph, as an audit sees them.
fn parts(graph: &Graph, registry: &Registry, resume_plan: &ResumePlan) -> Result<Vec<AuditedNode>> {
    let nodes = graph.nodes();
    let read_unordered = |node: &Node| {
        nodes
            .iter()
            .any(|other| other.is_unordered() && other.inputs.iter().any(|input| input.node == node.name))
    };
    let part = |(node, stop): (&Node, &NodeResume)| {
        let spec = registry.pipe(&node.pipe).ok_or_else(|| Error::bug(format!("no pipe {}", node.pipe)))?;
        if stop.stacks && spec.audit.uids_option.is_none() {
            let message =
                format!("`{}` stacks samples but cannot say which, so it cannot be audited", node.name);
            return Err(Error::new(ErrorKind::Invalid, message).context("pipe", &node.pipe));
        }
        // Who says which samples are in each that it gives, gives their uids, whatever it calls the whole.
        let stacks = spec.audit.uids_option.is_some();
        let pieces = stacks && spec.audit.uids == Uids::Made;
        Ok(AuditedNode {
            name: node.name.clone(),
            role: match node.is_unordered() && !read_unordered(node) || pieces {
                true => UidRole::Keeps,
                false => UidRole::new(spec.class, spec.audit.uids, spec.order.rewinds),
            },
            inputs: stop.inputs.clone(),
            outputs: stop.outputs,
            rewinds: spec.order.rewinds,
            stacks,
            pieces,
            drops: spec.may_drop(node),
            deals: stop.deals,
            dealt: stop.dealt,
            unordered: node.is_unordered(),
        })
    };
    nodes.iter().zip(&resume_plan.nodes).map(part).collect()
}
