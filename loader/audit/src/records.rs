//! Audit files, read and put together by place.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use forebay_core::{Error, Result};

use super::line::{AuditLine, AuditedNode, Begin, GivenSample, VERSION, read_items, read_keys};

/// More of these is no graph and no training job, but a file that somebody broke.
const MOST_OUTPUTS: usize = 1 << 16;
const MOST_RANKS: u32 = 1 << 20;

/// A run of an epoch, or of a part of one.
pub(super) struct RunOfEpoch {
    pub(super) begin: Begin,
    pub(super) file: PathBuf,
    /// Where its lines are in the file, and the number of the one before them.
    from: u64,
    len: u64,
    number: usize,
    /// The snapshots taken in it, and where the lines before each end.
    snapshots: Vec<(u64, u64)>,
}

/// The last run of each rank, and those that it went on after, as far as each had come at the snapshot. What others did, each
/// in an order of its own, nobody goes on from.
pub(super) fn lineage(runs: Vec<RunOfEpoch>) -> Vec<RunOfEpoch> {
    // For each rank the snapshot that is looked for, once its last run is found.
    let mut wanted: HashMap<u32, Option<u64>> = HashMap::new();
    let mut kept = Vec::new();
    for mut run in runs.into_iter().rev() {
        match wanted.get(&run.begin.rank) {
            None => {}
            Some(None) => continue,
            Some(Some(snapshot)) => {
                let found = run.snapshots.iter().find(|(number, _)| number == snapshot);
                let Some(&(_, len)) = found else { continue };
                run.len = len;
            }
        }
        wanted.insert(run.begin.rank, run.begin.after);
        kept.push(run);
    }
    kept.reverse();
    kept
}

/// The runs in a file.
pub(super) fn runs(path: &Path) -> Result<Vec<RunOfEpoch>> {
    let mut runs: Vec<RunOfEpoch> = Vec::new();
    let (mut file, mut line, mut at) = (BufReader::new(File::open(path)?), Vec::new(), 0);
    for number in 1.. {
        line.clear();
        at += file.read_until(b'\n', &mut line)? as u64;
        // A line without an end is one that a killed run did not finish.
        if !line.ends_with(b"\n") {
            break;
        }
        if !line.starts_with(b"{\"run\"") {
            let run = runs.last_mut();
            let run = run.ok_or_else(|| Error::corrupt("not an audit file: it does not begin with a run"));
            let run = run.map_err(|error| error.context("line", number))?;
            run.len += line.len() as u64;
            if line.starts_with(b"{\"snapshot\"")
                && let AuditLine::Snapshot(snapshot) = parse(&line, number)?
            {
                run.snapshots.push((snapshot, run.len));
            }
            continue;
        }
        let AuditLine::Run(mut begin) = parse(&line, number)? else { continue };
        begin.check().map_err(|error| error.context("line", number))?;
        if let Some(last) = runs.last() {
            if (&last.begin.graph, last.begin.seed) != (&begin.graph, begin.seed) {
                runs.clear(); // Of something else, that was run to the same file before.
            } else {
                begin.begun = begin.begun.max(last.begin.begun); // A clock may be set back.
            }
        }
        runs.push(RunOfEpoch {
            begin: *begin,
            file: path.to_owned(),
            from: at,
            len: 0,
            number,
            snapshots: Vec::new(),
        });
    }
    Ok(runs)
}

fn parse(line: &[u8], number: usize) -> Result<AuditLine> {
    serde_json::from_slice(line).map_err(|error| {
        Error::corrupt(format!("not a line of an audit file: {error}")).context("line", number)
    })
}

impl RunOfEpoch {
    /// Its lines, one after the other.
    fn each(&self, mut each: impl FnMut(AuditLine) -> Result<()>) -> Result<()> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut file = BufReader::new(file.take(self.len));
        let mut line = Vec::new();
        for number in self.number + 1.. {
            line.clear();
            if file.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            each(parse(&line, number)?).map_err(|error| error.context("line", number))?;
        }
        Ok(())
    }
}

impl Begin {
    /// Refuses another version, and what refers to nodes that do not exist.
    fn check(&self) -> Result<()> {
        if self.version != VERSION {
            let found = self.version;
            return Err(Error::invalid(format!("found an audit of version {found}, expected {VERSION}")));
        }
        let known = |&(node, _): &(usize, usize)| node < self.nodes.len();
        let inputs = self.nodes.iter().flat_map(|node| &node.inputs);
        let sound = inputs.chain([&self.output]).all(known)
            && self.from.len() == self.nodes.len()
            && self.nodes.iter().all(|node| node.outputs <= MOST_OUTPUTS)
            && self.rank < self.world_size
            && self.world_size.max(self.resumed_of.unwrap_or(0)) <= MOST_RANKS;
        if sound {
            return Ok(());
        }
        Err(Error::corrupt("not an audit file: its nodes or ranks make no sense"))
    }
}

/// Items with their places, from the first one's on.
fn from(first: u64, items: Vec<GivenSample>) -> impl Iterator<Item = (u64, GivenSample)> {
    items.into_iter().enumerate().map(move |(at, item)| (first.wrapping_add(at as u64), item))
}

/// Samples by their place in one pass of one output.
pub(super) type SamplesByPlace<T> = BTreeMap<u64, T>;

/// A rank, for what only that rank sees; none for what all ranks see alike.
pub(super) type Scope = Option<u32>;

/// An output or input of a node: node, number, scope.
type Port = (usize, usize, Scope);

/// All that is known of one epoch.
#[derive(Default)]
pub(super) struct EpochRecords {
    pub(super) nodes: Vec<AuditedNode>,
    pub(super) output: (usize, usize),
    /// Of the last run.
    pub(super) world_size: u32,
    pub(super) ranks: BTreeMap<u32, Rank>,
    /// The ranks that there must be: those of all runs.
    pub(super) needed: u32,
    /// By node, output and scope, then pass.
    pub(super) gave: HashMap<Port, BTreeMap<u64, SamplesByPlace<GivenSample>>>,
    /// By node, input and scope, then the node's pass and how often it had started the input over.
    pub(super) took: HashMap<Port, BTreeMap<(u64, u64), SamplesByPlace<u64>>>,
    /// By node, scope and pass.
    pub(super) lost: HashMap<(usize, Scope, u64), BTreeMap<u64, Option<u64>>>,
    pub(super) over: HashSet<(usize, Scope, u64)>,
    pub(super) keys: HashMap<u64, String>,
    /// Samples that a node gave on one rank where it had given others on another.
    pub(super) differ: BTreeMap<usize, Vec<u64>>,
    /// By rank, what a run of it went on after and is not here.
    pub(super) absent: BTreeMap<u32, Vec<String>>,
}

/// What one rank was given.
#[derive(Default)]
pub(super) struct Rank {
    pub(super) world_size: u32,
    pub(super) delivered: SamplesByPlace<u64>,
    pub(super) ended: Option<u64>,
    /// Began in the middle, since there were fewer ranks before.
    pub(super) late: bool,
    /// The place of its first delivery, and how many it had when it last ended.
    first: u64,
    all: Option<u64>,
}

impl Rank {
    /// Whether all of its deliveries before this place are known; it may have ended with fewer.
    fn covers(&self, place: u64) -> bool {
        let place = place.min(self.all.unwrap_or(u64::MAX));
        let known = self.delivered.range(self.first..place.max(self.first)).count() as u64;
        known == place.saturating_sub(self.first)
    }
}

impl EpochRecords {
    pub(super) fn add(&mut self, run: &RunOfEpoch) -> Result<()> {
        let begin = &run.begin;
        if begin.resumed_of.is_none() && begin.world_size != self.world_size {
            *self = Self::default(); // The whole epoch again, on another number of ranks.
        }
        self.look_before(begin);
        self.cut(begin);
        (self.output, self.world_size) = (begin.output, begin.world_size);
        self.nodes.clone_from(&begin.nodes);
        self.needed = self.needed.max(begin.world_size).max(begin.resumed_of.unwrap_or(0));
        run.each(|line| self.line(begin.rank, line))
    }

    /// Notes what a run goes on after and is not in these files: its own rank's deliveries before, or those of all ranks if there were others.
    fn look_before(&mut self, begin: &Begin) {
        let Some(of) = begin.resumed_of else {
            self.absent.remove(&begin.rank);
            return;
        };
        let ranks = if of == begin.world_size { begin.rank..begin.rank + 1 } else { 0..of };
        let lacks =
            ranks.filter(|rank| !self.ranks.get(rank).is_some_and(|known| known.covers(begin.delivered)));
        let count = begin.delivered;
        let lacks = lacks.map(|rank| {
            format!("the first {count} deliveries of rank {rank} of {of} are not in these files")
        });
        self.absent.insert(begin.rank, lacks.collect());
    }

    /// Forgets what was delivered after the place that a run begins at, and on whichever other number of ranks that was, what
    /// they did for it.
    fn cut(&mut self, begin: &Begin) {
        let (rank, world_size) = (begin.rank, begin.world_size);
        let of = begin.resumed_of.filter(|&of| of != world_size);
        self.ranks.entry(rank).or_insert_with(|| Rank {
            world_size,
            late: of.is_some_and(|of| rank >= of),
            first: if of.is_some_and(|of| rank >= of) { begin.delivered } else { 0 },
            ..Rank::default()
        });
        let others: Vec<u32> = self
            .ranks
            .iter()
            .filter(|(_, other)| other.world_size != world_size)
            .map(|(rank, _)| *rank)
            .collect();
        for (&other, known) in &mut self.ranks {
            if other == rank || others.contains(&other) {
                known.delivered.split_off(&begin.delivered);
                known.ended = None;
            }
            if other == rank {
                known.world_size = world_size;
            }
        }
        let is_other = |scope: &Scope| scope.is_some_and(|scope| others.contains(&scope));
        for (&(node, port, scope), passes) in &mut self.gave {
            let Some((pass, given)) = begin.from.get(node).filter(|_| is_other(&scope)) else { continue };
            let given = given.get(port).copied().unwrap_or(0);
            passes.retain(|at, _| at == pass);
            passes.values_mut().for_each(|places| drop(places.split_off(&given)));
        }
        self.over.retain(|(_, scope, _)| !is_other(scope));
    }

    fn line(&mut self, rank: u32, line: AuditLine) -> Result<()> {
        let scope = |nodes: &[AuditedNode], node: usize| {
            let part = nodes
                .get(node)
                .ok_or_else(|| Error::corrupt(format!("found a node {node}, which the run does not have")))?;
            Ok::<_, Error>(part.dealt.then_some(rank))
        };
        match line {
            AuditLine::Gave(node, port, pass, first, uids, keys) => {
                let (scope, items) = (scope(&self.nodes, node)?, read_items(&uids)?);
                let keys = items.iter().zip(read_keys(&keys)).map(|(item, key)| (item.uid, key));
                self.keys.extend(keys);
                let places = self.gave.entry((node, port, scope)).or_default().entry(pass).or_default();
                for (at, item) in from(first, items) {
                    let uid = item.uid;
                    if places.insert(at, item).is_some_and(|before| before.uid != uid) && scope.is_none() {
                        self.differ.entry(node).or_default().push(uid);
                    }
                }
            }
            AuditLine::Took(node, input, pass, rewound, first, uids) => {
                let key = (node, input, scope(&self.nodes, node)?);
                let places = self.took.entry(key).or_default().entry((pass, rewound)).or_default();
                places.extend(from(first, read_items(&uids)?).map(|(at, item)| (at, item.uid)));
            }
            AuditLine::Lost(node, pass, number, uid) => {
                let uid = uid.map(|uid| read_items(&uid)).transpose()?;
                let uid = uid.and_then(|items| items.first().map(|item| item.uid));
                let losses = self.lost.entry((node, scope(&self.nodes, node)?, pass)).or_default();
                losses.insert(number, uid);
            }
            AuditLine::Over(node, pass) => drop(self.over.insert((node, scope(&self.nodes, node)?, pass))),
            AuditLine::Delivered(first, uids) => {
                let known = self.ranks.entry(rank).or_default();
                known.delivered.extend(from(first, read_items(&uids)?).map(|(at, item)| (at, item.uid)));
            }
            AuditLine::Ended(count) => {
                let known = self.ranks.entry(rank).or_default();
                (known.ended, known.all) = (Some(count), Some(count));
            }
            AuditLine::Run(_) | AuditLine::Snapshot(_) => {}
        }
        Ok(())
    }
}
