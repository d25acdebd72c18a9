//! What became of each sample, node by node: what went in must have come out, once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use forebay_core::random::uid_of;
use forebay_snapshot::checkpoint_log::pass_of_input;

use super::{
    line::{AuditedNode, GivenSample, UidRole},
    records::{EpochRecords, SamplesByPlace, Scope},
    uids::{UidCounts, counts, first_pieces, once_each, positions, resolve},
    verdict::{EpochAudit, LeftOut, NAMED, Named, Offence, What},
};
use forebay_graph::node_hash;

/// The most reasons that are told why not all is known.
const REASONS: usize = 20;

/// Judges one epoch.
pub(super) fn judge(epoch: u64, records: &EpochRecords) -> EpochAudit {
    let mut judge =
        Judge { records, offences: BTreeMap::new(), left_out: BTreeMap::new(), unfinished: Vec::new() };
    let absent = records.absent.values().flatten();
    absent.for_each(|what| judge.not_known(what.clone()));
    if !judge.unfinished.is_empty() {
        // What came before would seem to be lost, or to come from nowhere.
        return judge.verdict(epoch, false);
    }
    judge.ranks();
    for node in 0..records.nodes.len() {
        judge.node(node);
    }
    judge.consumer();
    for (&node, uids) in &records.differ {
        judge.blame(What::Ranks, Some(node), "", uids, |_| Vec::new());
    }
    judge.verdict(epoch, true)
}

struct Judge<'a> {
    records: &'a EpochRecords,
    /// By node, the consumer last.
    offences: BTreeMap<(usize, What), Offence>,
    /// By node, and whether it failed.
    left_out: BTreeMap<(usize, bool), u64>,
    unfinished: Vec<String>,
}

/// What came to an input in one pass.
struct Incoming {
    uids: Vec<u64>,
    /// Whether that is all.
    over: bool,
    /// The nodes that had it last.
    from: String,
}

impl Judge<'_> {
    /// Notes which ranks are not here, or did not end.
    fn ranks(&mut self) {
        let EpochRecords { needed, world_size, .. } = *self.records;
        for rank in 0..needed {
            let of = if needed > 1 { format!("rank {rank} of {world_size}: ") } else { String::new() };
            let why = match self.records.ranks.get(&rank) {
                None => "its file is missing".to_owned(),
                Some(_) if rank >= world_size => continue,
                Some(known) if known.world_size != world_size => {
                    "did not resume a snapshot as others did".to_owned()
                }
                Some(known) if known.ended.is_none() => {
                    format!("did not end, after {} deliveries", known.delivered.len())
                }
                Some(_) => continue,
            };
            self.not_known(of + &why);
        }
    }

    fn part(&self, node: usize) -> &AuditedNode {
        &self.records.nodes[node]
    }

    /// `scope` as this node has it.
    fn scope(&self, node: usize, scope: Scope) -> Scope {
        scope.filter(|_| self.part(node).dealt)
    }

    /// What a node gave in a pass.
    fn gave(
        &self,
        node: usize,
        output: usize,
        scope: Scope,
        pass: u64,
    ) -> Option<&SamplesByPlace<GivenSample>> {
        self.records.gave.get(&(node, output, scope))?.get(&pass)
    }

    /// The output that leads to `at` by way of maps, and those maps, upstream first.
    fn up(&self, mut at: (usize, usize)) -> ((usize, usize), Vec<usize>) {
        let mut maps = Vec::new();
        while self.part(at.0).role == UidRole::Map && maps.len() < self.records.nodes.len() {
            maps.insert(0, at.0);
            let Some(&input) = self.part(at.0).inputs.first() else { break };
            at = input;
        }
        (at, maps)
    }

    /// What came by way of an output in a pass; nothing where a part of it is not known.
    fn incoming(&mut self, output: (usize, usize), scope: Scope, pass: u64) -> Option<Incoming> {
        let ((node, port), maps) = self.up(output);
        let of = self.scope(node, scope);
        let late = of.is_some_and(|rank| self.records.ranks.get(&rank).is_some_and(|rank| rank.late));
        let places = self.gave(node, port, of, pass);
        if let Some(hole) = places.and_then(|places| hole(places, late)) {
            let name = &self.part(node).name;
            let why = format!("what `{name}` gave at {hole} is not in these files");
            self.not_known(why);
            return None;
        }
        let mut uids: Vec<u64> = places.into_iter().flat_map(BTreeMap::values).map(|item| item.uid).collect();
        for &map in &maps {
            let losses = self.records.lost.get(&(map, self.scope(map, scope), pass));
            let mut lost = counts(losses.into_iter().flat_map(BTreeMap::values).filter_map(|uid| *uid));
            uids.retain(|uid| match lost.get_mut(uid) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            });
        }
        let names =
            [node].iter().chain(&maps).map(|&node| format!("`{}`", self.part(node).name)).collect::<Vec<_>>();
        let over = self.records.over.contains(&(node, of, pass));
        Some(Incoming { uids, over, from: names.join(", ") })
    }

    fn not_known(&mut self, why: String) {
        match self.unfinished.len() {
            ..REASONS if !self.unfinished.contains(&why) => self.unfinished.push(why),
            REASONS => self.unfinished.push("and more".to_owned()),
            _ => {}
        }
    }

    /// Judges one node.
    fn node(&mut self, node: usize) {
        let part = self.part(node).clone();
        let ranks: Vec<Scope> = self.records.ranks.keys().map(|&rank| Some(rank)).collect();
        let scopes = if part.dealt { ranks } else { vec![None] };
        if part.role == UidRole::Map {
            let lost = self.records.lost.iter().filter(|((of, ..), _)| *of == node);
            self.leave_out(node, true, lost.map(|(_, losses)| losses.len() as u64).sum());
            return;
        }
        if part.deals {
            return self.deals(node, &scopes);
        }
        for scope in scopes {
            for pass in self.passes(node, scope) {
                let ended = self.records.over.contains(&(node, scope, pass));
                match part.role {
                    UidRole::Keeps => self.keeps(node, scope, pass, ended),
                    _ => self.makes(node, scope, pass, ended),
                }
            }
        }
    }

    /// The passes in which a node did something.
    fn passes(&self, node: usize, scope: Scope) -> BTreeSet<u64> {
        let part = self.part(node);
        let gave = (0..part.outputs).filter_map(|port| self.records.gave.get(&(node, port, scope)));
        let took = (0..part.inputs.len()).filter_map(|input| self.records.took.get(&(node, input, scope)));
        let over = self.records.over.iter().filter(|(of, at, _)| (*of, *at) == (node, scope));
        gave.flat_map(|passes| passes.keys().copied())
            .chain(took.flat_map(|passes| passes.keys().map(|(pass, _)| *pass)))
            .chain(over.map(|(_, _, pass)| *pass))
            .collect()
    }

    /// A node that gives the uids it takes.
    fn keeps(&mut self, node: usize, scope: Scope, pass: u64, ended: bool) {
        let Some(&input) = self.part(node).inputs.first() else { return };
        let Some(came) = self.incoming(input, scope, pass) else { return };
        if ended && !came.over && !self.part(node).drops {
            self.blame(What::Early, Some(node), &came.from, &[], |_| Vec::new());
        }
        self.compare(node, &[scope], pass, &came.uids, &came.from, ended);
        if self.part(node).pieces {
            self.once(node, scope, pass, &came.uids, &came.from);
        }
    }

    /// A node that gives each rank its share: all together they give what comes.
    fn deals(&mut self, node: usize, scopes: &[Scope]) {
        let passes: BTreeSet<u64> = scopes.iter().flat_map(|&scope| self.passes(node, scope)).collect();
        let all = (0..self.records.needed).all(|rank| self.records.ranks.contains_key(&rank));
        for pass in passes {
            let over = |rank| self.records.over.contains(&(node, self.scope(node, Some(rank)), pass));
            let ended = all && (0..self.records.world_size).all(over);
            let Some(&input) = self.part(node).inputs.first() else { return };
            let Some(came) = self.incoming(input, None, pass) else { continue };
            self.compare(node, scopes, pass, &came.uids, &came.from, ended);
        }
    }

    /// A node that gives other uids than it takes.
    fn makes(&mut self, node: usize, scope: Scope, pass: u64, ended: bool) {
        let part = self.part(node).clone();
        let hash = node_hash(&part.name);
        let mut taken = Vec::new();
        let mut came_from = Vec::new();
        for (input, &output) in part.inputs.iter().enumerate() {
            let took = self.records.took.get(&(node, input, scope));
            let mut times: BTreeMap<u64, Vec<u64>> = took
                .into_iter()
                .flat_map(|took| took.range((pass, 0)..=(pass, u64::MAX)))
                .map(|(&(_, rewound), places)| (rewound, places.values().copied().collect()))
                .collect();
            times.entry(0).or_default();
            for (rewound, uids) in times {
                let of = if part.rewinds { pass_of_input(pass, rewound) } else { pass };
                let Some(came) = self.incoming(output, scope, of) else { return };
                let whole = ended && part.role == UidRole::Expands;
                self.follows(Some(node), &came, &uids, whole);
                came_from.push(came.from);
                let derived = uids.into_iter().map(|uid| match part.role {
                    UidRole::Derives => uid_of(hash, uid, [input as u64, rewound]),
                    _ => uid,
                });
                taken.extend(derived);
            }
        }
        came_from.dedup();
        if part.role == UidRole::Derives {
            return self.compare(node, &[scope], pass, &taken, &came_from.join(", "), ended);
        }
        self.once(node, scope, pass, &taken, &came_from.join(", "));
    }

    /// What a node made of what it took has uids of its own.
    fn once(&mut self, node: usize, scope: Scope, pass: u64, taken: &[u64], from: &str) {
        let distinct: HashSet<&u64> = taken.iter().collect();
        if distinct.len() < taken.len() {
            return; // What follows from one uid comes as often as that did.
        }
        for port in 0..self.part(node).outputs {
            let places = self.gave(node, port, scope, pass);
            let uids: Vec<u64> = places.into_iter().flat_map(BTreeMap::values).map(|item| item.uid).collect();
            let seen = counts(uids.iter().copied());
            let twice: Vec<u64> = once_each(&uids).filter(|uid| seen[uid] > 1).collect();
            let at = |uid| positions(&uids, uid);
            self.blame(What::Twice, Some(node), from, &twice, at);
        }
    }

    /// What is given for what came: no more, and all of it if the node has `ended` and drops nothing.
    fn compare(&mut self, node: usize, scopes: &[Scope], pass: u64, came: &[u64], from: &str, ended: bool) {
        let part = self.part(node).clone();
        let came = if part.pieces { once_each(came).collect() } else { came.to_vec() };
        let expected = counts(came.iter().copied());
        let mut all = UidCounts::new();
        for port in 0..part.outputs {
            let mut given = Vec::new();
            for &scope in scopes {
                let items = self.gave(node, port, scope, pass).into_iter().flat_map(BTreeMap::values);
                match (part.stacks, part.pieces) {
                    (false, _) => given.extend(items.map(|item| item.uid)),
                    (true, false) => given.extend(items.flat_map(|item| &item.members)),
                    (true, true) => given.extend(first_pieces(items)),
                }
            }
            let found = counts(given.iter().copied());
            let times = |uid: &u64| expected.get(uid).copied().unwrap_or(0);
            let over = |known: bool| {
                let more =
                    once_each(&given).filter(|uid| found[uid] > times(uid) && (times(uid) > 0) == known);
                more.collect::<Vec<_>>()
            };
            let at = |uid| positions(&given, uid);
            self.blame(What::Twice, Some(node), from, &over(true), at);
            self.blame(What::Unknown, Some(node), from, &over(false), at);
            for (uid, count) in found {
                *all.entry(uid).or_default() += count;
            }
        }
        if !ended {
            return;
        }
        let mut left = all;
        let mut missing = came;
        missing.retain(|uid| match left.get_mut(uid) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        self.not_given(node, scopes, pass, &missing, from);
    }

    /// What came to a node and was not given: left out on purpose, or lost.
    fn not_given(&mut self, node: usize, scopes: &[Scope], pass: u64, missing: &[u64], from: &str) {
        let losses = scopes.iter().filter_map(|&scope| self.records.lost.get(&(node, scope, pass)));
        let failed = losses.map(|losses| losses.len() as u64).sum::<u64>().min(missing.len() as u64);
        self.leave_out(node, true, failed);
        let rest = missing.len() as u64 - failed;
        let part = self.part(node);
        match (part.drops, part.inputs.len()) {
            // Which of them were joined with others is not known, unless they have the uids of one input.
            (true, 2..) if part.role != UidRole::Keeps => {}
            (true, _) => self.leave_out(node, false, rest),
            (false, _) if rest > 0 => {
                self.blame(What::Missing, Some(node), from, missing, |_| Vec::new());
            }
            (false, _) => {}
        }
    }

    fn leave_out(&mut self, node: usize, failed: bool, count: u64) {
        if count > 0 {
            *self.left_out.entry((node, failed)).or_default() += count;
        }
    }

    /// What was taken must be what came, in order, from the first on; and all of it if it is to be `whole`.
    fn follows(&mut self, node: Option<usize>, came: &Incoming, found: &[u64], whole: bool) {
        if whole && !came.over {
            self.blame(What::Early, node, &came.from, &[], |_| Vec::new());
        }
        if came.uids.starts_with(found) {
            let rest = came.uids.get(found.len()..).unwrap_or_default();
            if whole && came.over {
                self.blame(What::Missing, node, &came.from, rest, |_| Vec::new());
            }
            return;
        }
        let (expected, seen) = (counts(came.uids.iter().copied()), counts(found.iter().copied()));
        let times = |uid: &u64| expected.get(uid).copied().unwrap_or(0);
        let more = |known: bool| {
            let more = once_each(found).filter(|uid| seen[uid] > times(uid) && (times(uid) > 0) == known);
            more.collect::<Vec<_>>()
        };
        let (twice, unknown) = (more(true), more(false));
        let reach = if whole { came.uids.len() } else { found.len().min(came.uids.len()) };
        let missing: Vec<u64> =
            once_each(&came.uids[..reach]).filter(|uid| !seen.contains_key(uid)).collect();
        let at = |uid| positions(found, uid);
        if twice.is_empty() && unknown.is_empty() && missing.is_empty() {
            let moved = found.iter().zip(&came.uids).filter(|(one, other)| one != other).map(|(one, _)| *one);
            return self.blame(What::Order, node, &came.from, &moved.collect::<Vec<_>>(), at);
        }
        self.blame(What::Twice, node, &came.from, &twice, at);
        self.blame(What::Unknown, node, &came.from, &unknown, at);
        self.blame(What::Missing, node, &came.from, &missing, |_| Vec::new());
    }

    /// What the consumer was given must be what leaves the graph.
    fn consumer(&mut self) {
        if self.records.nodes.is_empty() {
            return;
        }
        for (&rank, known) in &self.records.ranks {
            if let Some(hole) = hole(&known.delivered, known.late) {
                self.not_known(format!("what rank {rank} delivered at {hole} is not in these files"));
                continue;
            }
            let Some(came) = self.incoming(self.records.output, Some(rank), 0) else { continue };
            let found: Vec<u64> = known.delivered.values().copied().collect();
            self.follows(None, &came, &found, known.ended.is_some());
        }
    }

    /// Notes what `node` did to samples; `at` gives the places of one.
    fn blame(
        &mut self,
        what: What,
        node: Option<usize>,
        from: &str,
        uids: &[u64],
        at: impl Fn(u64) -> Vec<u64>,
    ) {
        if uids.is_empty() && what != What::Early {
            return;
        }
        let name = node.map_or_else(String::new, |node| self.part(node).name.clone());
        let offence = self.offences.entry((node.unwrap_or(usize::MAX), what)).or_insert_with(|| Offence {
            what,
            node: name,
            last_seen: from.to_owned(),
            samples: 0,
            named: Vec::new(),
        });
        offence.samples += uids.len() as u64;
        let room = NAMED.saturating_sub(offence.named.len());
        let keys = &self.records.keys;
        offence.named.extend(uids.iter().take(room).map(|&uid| Named {
            uid: format!("{uid:x}"),
            key: keys.get(&uid).cloned(),
            delivered: Vec::new(),
            given: at(uid),
        }));
    }

    fn verdict(mut self, epoch: u64, judged: bool) -> EpochAudit {
        let (given, levels) = self.source();
        let (mut delivered, mut deliveries) = (0, 0);
        let pieces = levels.iter().any(|&node| self.part(node).pieces);
        let mut begun = HashSet::new();
        let mut wanted: HashMap<String, Vec<(u32, u64)>> = HashMap::new();
        for offence in self.offences.values() {
            wanted.extend(offence.named.iter().map(|named| (named.uid.clone(), Vec::new())));
        }
        for (&rank, known) in &self.records.ranks {
            let members = self.members(&levels, rank);
            for (&at, &uid) in &known.delivered {
                let samples = resolve(&members, uid);
                deliveries += 1;
                let new = samples.iter().filter(|&&uid| !pieces || begun.insert(uid));
                delivered += new.count() as u64;
                if wanted.is_empty() {
                    continue;
                }
                for uid in samples.iter().chain([&uid]) {
                    if let Some(places) = wanted.get_mut(&format!("{uid:x}"))
                        && places.last() != Some(&(rank, at))
                    {
                        places.push((rank, at));
                    }
                }
            }
        }
        for named in self.offences.values_mut().flat_map(|offence| &mut offence.named) {
            named.delivered = wanted.get(&named.uid).cloned().unwrap_or_default();
        }
        let left_out = self.left_out.iter().map(|(&(node, failed), &samples)| LeftOut {
            node: self.part(node).name.clone(),
            samples,
            failed,
        });
        EpochAudit {
            epoch,
            judged,
            exactly_once: self.offences.is_empty() && self.unfinished.is_empty(),
            given,
            delivered,
            deliveries,
            left_out: left_out.collect(),
            unfinished: self.unfinished,
            offences: self.offences.into_values().collect(),
        }
    }

    /// How many samples the last node gave that makes uids, and the nodes after it that stack, downstream first.
    fn source(&self) -> (u64, Vec<usize>) {
        let (mut levels, mut at) = (Vec::new(), self.records.output);
        for _ in &self.records.nodes {
            let ((node, port), _) = self.up(at);
            let part = self.part(node);
            match part.inputs.first() {
                Some(&input) if part.role == UidRole::Keeps => {
                    levels.extend(part.stacks.then_some(node));
                    at = input;
                }
                _ => {
                    let of = |scope| self.gave(node, port, scope, 0).map_or(0, |places| places.len() as u64);
                    let ranks = self.records.ranks.keys().map(|&rank| of(Some(rank)));
                    return (if part.dealt { ranks.sum() } else { of(None) }, levels);
                }
            }
        }
        (0, levels)
    }

    /// For each of these nodes, what is in the samples that it stacked.
    fn members(&self, levels: &[usize], rank: u32) -> Vec<HashMap<u64, &[u64]>> {
        let level = |&node: &usize| {
            let items = self.gave(node, 0, self.scope(node, Some(rank)), 0);
            items.into_iter().flat_map(BTreeMap::values).map(|item| (item.uid, &item.members[..])).collect()
        };
        levels.iter().map(level).collect()
    }
}

/// The first place that is not known before one that is.
fn hole<T>(places: &SamplesByPlace<T>, late: bool) -> Option<u64> {
    let first = if late { places.keys().next().copied().unwrap_or(0) } else { 0 };
    let expected = (0..).map(|at: u64| first.wrapping_add(at));
    expected.zip(places.keys()).find(|(expected, found)| expected != *found).map(|(expected, _)| expected)
}
