//! Lints: parts of a graph that run, but are slower, larger or less random than they look.

use std::sync::Arc;

use forebay_core::{Drops, Length, Limits, random::Rng};
use forebay_engine::{
    host::{Host, Pool},
    plan::Plan,
    prepared::Prepared,
};
use forebay_graph::{Action, Catalog, Class, Graph, Kind, Node, On, PipeSpec, Uids};
use forebay_queue::ledger::Ledger;
use forebay_registry::Registry;
use serde::Serialize;

use crate::{Loader, length::Lengths};

/// As many samples as a source may have, where it does not matter how many.
const ANY: u64 = 1_000_003;
/// How often each source is taken to have another number of them, so that nothing comes out even by chance.
const ROUNDS: u64 = 8;

/// One finding: something that the author of a graph may not have meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lint {
    /// The node that the lint is about.
    pub node: String,
    /// What the node does, and what would be better.
    pub message: String,
    /// Whether the graph asks for it explicitly, such as by `on=process`. `explain` lists it, but it is no
    /// warning.
    pub chosen: bool,
}

impl Lint {
    /// A lint of a program, about a node of its own.
    #[must_use]
    pub fn new(node: impl Into<String>, message: impl Into<String>, chosen: bool) -> Self {
        Self { node: node.into(), message: message.into(), chosen }
    }
}

impl Loader {
    /// The lints of the graph that this loader runs: see [`lints`]. With `counts`, sources are asked how many
    /// samples they have, as in [`len`](Self::len), so that even ranks are known to be even.
    #[must_use]
    pub fn lints(&self, counts: bool) -> Vec<Lint> {
        let Prepared { graph, registry, plan, settings, .. } = &self.prepared;
        Look { graph, registry, plan, ranks: settings.ranks.1, counts, above: above(&graph.edges()) }.all()
    }
}

/// Checks a graph for lints, in the order of its nodes. `ranks` is the number of ranks, or two if it is not known.
///
/// If the graph has a pipe that shards, pipes are made and asked how many samples they give, which loads their
/// plugins. No data is opened.
#[must_use]
pub fn lints(graph: &Graph, registry: &Registry, plan: &Plan, ranks: Option<u32>) -> Vec<Lint> {
    let above = above(&graph.edges());
    Look { graph, registry, plan, ranks: ranks.unwrap_or(2), counts: false, above }.all()
}

/// For each node all nodes that it reads from, near ones first.
fn above(read: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let of = |at: usize| {
        let mut found: Vec<usize> = read[at].clone();
        let mut next = 0;
        while let Some(&from) = found.get(next) {
            for &far in &read[from] {
                if !found.contains(&far) {
                    found.push(far);
                }
            }
            next += 1;
        }
        found
    };
    (0..read.len()).map(of).collect()
}

struct Look<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    plan: &'a Plan,
    ranks: u32,
    /// Whether sources may be asked for what they do not know without a look.
    counts: bool,
    above: Vec<Vec<usize>>,
}

impl Look<'_> {
    fn all(&self) -> Vec<Lint> {
        let read = self.graph.edges();
        let each = |at: usize| self.at(at).into_iter().map(move |lint| (at, lint));
        let mut found: Vec<(usize, Lint)> = (0..read.len()).flat_map(each).collect();
        found.extend(self.uneven(&read));
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, lint)| lint).collect()
    }

    fn node(&self, at: usize) -> &Node {
        &self.graph.nodes()[at]
    }

    fn spec(&self, at: usize) -> Option<&PipeSpec> {
        self.registry.pipe(&self.node(at).pipe)
    }

    /// The nearest node above that `is` so.
    fn nearest(&self, at: usize, is: impl Fn(&PipeSpec) -> bool) -> Option<&str> {
        let found = self.above[at].iter().find(|&&from| self.spec(from).is_some_and(&is));
        found.map(|&from| self.node(from).name.as_str())
    }

    fn at(&self, at: usize) -> Vec<Lint> {
        let Some(spec) = self.spec(at) else { return Vec::new() };
        let (name, mut found) = (&self.node(at).name, Vec::new());
        let mut say = |message: String| found.push(Lint::new(name, message, false));
        if spec.reorders() && !spec.is_sampler() {
            self.shuffle(at, &mut say);
        }
        if spec.order.shards
            && let Some(dealt) = self.nearest(at, |spec| spec.order.shards)
        {
            say(format!(
                "`{dealt}` already gives each rank its share, and `{name}` takes a share of that share; remove one of them"
            ));
        }
        if spec.order.shards
            && let Some(batch) = self.nearest(at, |spec| spec.stacks())
        {
            say(format!(
                "every rank makes all batches of `{batch}`, and keeps its share of them; put `{name}` before `{batch}`"
            ));
        }
        if spec.order.keeps {
            self.keep(at, &mut say);
        }
        let mut note = |message: String, chosen| found.push(Lint::new(name, message, chosen));
        if spec.class == Class::Stream
            && let Some(&from) = self.above[at].iter().find(|&&from| self.node(from).is_unordered())
        {
            let from = &self.node(from).name;
            let message = format!(
                "`{from}` is unordered, so this node sees another order in each run; `run --record` writes the order down"
            );
            note(message, true);
        }
        if self.place(at).is_some_and(On::is_elsewhere)
            && let Some(&from) = self.above[at].first()
            && !self.place(from).is_some_and(On::is_elsewhere)
            && self.spec(from).is_some_and(|spec| spec.stacks())
        {
            let from = &self.node(from).name;
            let message = format!(
                "each worker process gets whole batches of `{from}`; put `{name}` before `{from}`, so that workers share \
                 the samples of a batch, and write them into the batch without a copy"
            );
            note(message, self.node(at).on().is_some());
        }
        found
    }

    /// What a pipe that gives samples in random order stands behind.
    fn shuffle(&self, at: usize, say: &mut impl FnMut(String)) {
        let name = &self.node(at).name;
        if let Some(shard) = self.nearest(at, |spec| spec.order.shards && !spec.is_sampler()) {
            say(format!(
                "each rank shuffles its own share, which has the same samples in every epoch; put `{name}` before `{shard}`"
            ));
        }
        if let Some(batch) = self.nearest(at, |spec| spec.stacks()) {
            say(format!(
                "it shuffles the batches of `{batch}`, whose samples stay together; put `{name}` before it"
            ));
        } else if let Some(&from) = self.above[at].first()
            && self.spec(from).is_some_and(|spec| spec.class == Class::Map && spec.opens.is_none())
        {
            let from = &self.node(from).name;
            say(format!(
                "it holds samples as `{from}` gives them; put `{name}` before `{from}`, to hold them as small as they were read"
            ));
        }
        // What is drawn may hold many samples, which lie side by side once they are taken out.
        let expands = |spec: &PipeSpec| spec.class == Class::FlatMap && !spec.is_even();
        let nearest = self.nearest(at, |spec| expands(spec) || spec.is_sampler() && spec.order.shuffles);
        if let Some(sampler) = nearest
            && self
                .graph
                .node(sampler)
                .and_then(|node| self.registry.pipe(&node.pipe))
                .is_some_and(|spec| spec.is_sampler())
        {
            say(format!("`{sampler}` gives samples in random order already"));
        }
    }

    /// What stands before a pipe that keeps what it reads.
    fn keep(&self, at: usize, say: &mut impl FnMut(String)) {
        let name = &self.node(at).name;
        let is_random = |at: usize| self.spec(at).is_some_and(|spec| spec.is_random(self.node(at)));
        if let Some(&random) = self.above[at].iter().find(|&&from| is_random(from)) {
            let orders = self.spec(random).is_some_and(PipeSpec::reorders);
            let (random, what) = (&self.node(random).name, if orders { "one order" } else { "one draw" });
            say(format!(
                "`{name}` keeps {what} of `{random}` for all epochs; put `{random}` behind `{name}`"
            ));
        }
        if let Some(repeat) = self.nearest(at, |spec| spec.order.rewinds && spec.layout.inputs == (1, 1)) {
            say(format!("`{name}` keeps every pass of `{repeat}` by itself; put `{repeat}` behind `{name}`"));
        }
        if let Some(&from) =
            self.above[at].iter().find(|&&from| self.node(from).on_error().action != Action::Fail)
        {
            let from = &self.node(from).name;
            say(format!(
                "a sample that fails once in `{from}`, as a read can, stays missing from `{name}` as long as it keeps its \
                 samples; fill `{name}` without `on_error`, or clear it once the cause is gone"
            ));
        }
    }

    /// The first pipe behind one that shards that may make ranks differ in how much they give, if nothing behind it makes them alike again.
    fn uneven(&self, read: &[Vec<usize>]) -> Option<(usize, Lint)> {
        if self.ranks < 2 {
            return None;
        }
        let edge = self.plan.output().ok()?;
        let last = *self.plan.segments[self.plan.edges[edge].from].nodes.last()?;
        let at = self.unlike(read)?[last]?;
        let wait = "so one may end before the others, and ranks that train together wait for it";
        if self.shards(at) {
            let (name, spec) = (&self.node(at).name, self.spec(at)?);
            let named =
                |name: &str| matches!(spec.audit.drops, Drops::With(options) if options.contains(&name));
            let drops = spec.options.iter().find(|option| named(&option.name) && option.kind == Kind::Bool);
            let leave = drops.map(|drops| format!("give `{name}` {}=true, ", drops.name)).unwrap_or_default();
            let message = format!(
                "a rank may get one more than another, {wait}; {leave}pad before it so that all get as many, or end the graph with \
                 `repeat | take N`"
            );
            return Some((at, Lint::new(name, message, false)));
        }
        let shard = *self.above[at].iter().find(|&&from| self.shards(from))?;
        let (name, dealt) = (&self.node(at).name, &self.node(shard).name);
        let what = if self.loses(at) { "how many it leaves out" } else { "how many it gives" };
        // What stacks, or draws by number, cannot change places with it.
        let between = |from: usize| self.above[from].contains(&shard);
        let fixed = |from: usize| self.spec(from).is_some_and(|spec| spec.is_sampler() || spec.stacks());
        let moves = !fixed(shard) && !self.above[at].iter().any(|&from| between(from) && fixed(from));
        let put = if moves { format!("put `{name}` before `{dealt}`, or ") } else { String::new() };
        let message = format!(
            "{what} may depend on the samples, which differ from rank to rank, {wait}; {put}end the graph with as many \
             for each rank: `repeat | take N`"
        );
        Some((at, Lint::new(name, message, false)))
    }

    /// For each node which one has made ranks differ in how much it gives.
    fn unlike(&self, read: &[Vec<usize>]) -> Option<Vec<Option<usize>>> {
        let dealt = |at: usize| self.above[at].iter().any(|&from| self.shards(from));
        let mut found = vec![None; read.len()];
        if !(0..read.len()).any(|at| self.shards(at)) {
            return Some(found);
        }
        let host = Host::new(self.registry.clone(), Limits::DEFAULT, Pool::new(0, None), Ledger::nobody());
        let order = self.graph.order().ok()?;
        for at in self.unequal(read, &order, &host) {
            found[at] = Some(at);
        }
        // Before samples are dealt out, all ranks see the same.
        for &at in order.iter().filter(|&&at| dealt(at) && !self.shards(at)) {
            let of = |inputs: &[_]| self.lengths(&host, 0).of(at, inputs);
            let before = read[at].iter().find_map(|&from| found[from]);
            // A plugin that cannot be asked is no reason to say something.
            let knows = |inputs: &[_]| !matches!(of(inputs), Some(Ok(None)));
            let writes = self
                .spec(at)
                .is_some_and(|spec| spec.placement.on == On::OwnThread && spec.audit.uids == Uids::Made);
            // What combines several does so alike on all ranks, unless it may leave some out.
            let drops = self.spec(at).is_some_and(|spec| spec.may_drop(self.node(at)));
            let even = vec![Some(Length::new(ANY)); read[at].len()];
            let guesses = || (even.len() == 1 || drops) && !knows(&even);
            let unlike = |&from: &usize| found[from].is_none().then_some(Length::new(ANY));
            found[at] = match before {
                _ if self.loses(at) => Some(at),
                // Nobody waits for it.
                _ if writes => None,
                None => guesses().then_some(at),
                // Of two causes the one that is not mended by a sample less.
                Some(before) if self.shards(before) && guesses() => Some(at),
                Some(before) => (!knows(&read[at].iter().map(unlike).collect::<Vec<_>>())).then_some(before),
            };
        }
        Some(found)
    }

    /// The nodes that deal samples out, and may give one rank more than another.
    fn unequal(&self, read: &[Vec<usize>], order: &[usize], host: &Arc<Host>) -> Vec<usize> {
        let mut found = Vec::new();
        let own = |at: usize| {
            let (lengths, node) = (self.lengths(host, 0), self.node(at));
            match (read[at].is_empty(), self.counts) {
                (false, _) => None,
                (true, false) => lengths.own(node),
                (true, true) => lengths.counted(node).ok().flatten(),
            }
        };
        let own: Vec<_> = (0..read.len()).map(own).collect();
        for round in 0..ROUNDS {
            // How many come before samples are dealt out; where a source does not know, or it depends on them, any number will do.
            let any = |at: usize| Length::new(ANY + Rng::new(round, at as u64).below(ANY));
            let mut whole: Vec<_> =
                (0..read.len()).map(|at| Some(own[at].unwrap_or_else(|| any(at)))).collect();
            for &at in order.iter().filter(|&&at| !read[at].is_empty()) {
                let inputs: Vec<_> = read[at].iter().map(|&from| whole[from]).collect();
                let of = |rank| match self.lengths(host, rank).of(at, &inputs) {
                    Some(Ok(length)) => length,
                    // One that cannot be asked is no reason to say something.
                    _ => None,
                };
                if !self.shards(at) {
                    whole[at] = of(0).or(whole[at]);
                } else if of(0).zip(of(self.ranks - 1)).is_some_and(|(first, last)| first != last)
                    && !found.contains(&at)
                {
                    found.push(at);
                }
            }
        }
        found
    }

    fn lengths<'h>(&'h self, host: &'h Arc<Host>, rank: u32) -> Lengths<'h> {
        let Self { graph, registry, ranks, .. } = *self;
        Lengths { graph, registry, host, seed: 0, ranks: (rank, ranks) }
    }

    fn shards(&self, at: usize) -> bool {
        self.spec(at).is_some_and(|spec| spec.order.shards)
    }

    /// Whether it goes on without a sample that fails.
    fn loses(&self, at: usize) -> bool {
        self.node(at).on_error().action != Action::Fail
    }

    /// Where the work of a node is done.
    fn place(&self, at: usize) -> Option<On> {
        self.plan.segments.iter().find(|segment| segment.nodes.contains(&at)).map(|segment| segment.on)
    }
}
