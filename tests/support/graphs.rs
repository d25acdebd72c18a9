//! Random graphs, each from a seed that is told when one fails.

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use forebay_loader::{Graph, Registry, Rng};
use serde_json::Value;

use crate::{line, registry, within_deadline};

/// How many failing graphs are enough.
const ENOUGH: usize = 10;

/// Checks so many random graphs, each within a deadline of its own, and tells the seeds of those that fail.
///
/// `FOREBAY_GRAPHS` sets how many, `FOREBAY_GRAPH` the seed of the first.
///
/// # Panics
/// When a check does.
pub fn with_random_graphs(count: u64, check: impl Fn(&Graph, &Registry, &mut Rng) + Send + Sync + 'static) {
    let number = |name| env::var(name).ok().and_then(|number| number.parse().ok());
    let first = number("FOREBAY_GRAPH").unwrap_or(0);
    let registry = registry();
    let check = Arc::new(check);
    let mut failed = Vec::new();
    for seed in first..first + number("FOREBAY_GRAPHS").unwrap_or(count) {
        let mut rng = Rng::new(seed, 1);
        let text = random_graph(&mut rng);
        let (check, registry, graph) = (Arc::clone(&check), registry.clone(), text.clone());
        let checked = move || within_deadline(move || check(&line(&graph), &registry, &mut rng));
        if catch_unwind(AssertUnwindSafe(checked)).is_err() {
            failed.push(format!("FOREBAY_GRAPH={seed} FOREBAY_GRAPHS=1: {text}"));
        }
        if failed.len() == ENOUGH {
            break;
        }
    }
    assert!(failed.is_empty(), "these fail, each to be run alone with\n{}", failed.join("\n"));
}

/// A random graph in one line: several sources, pipes with several inputs and outputs, any options, at times with
/// samples that fail, forgiven or not. It ends, and passes the graph's check.
#[must_use]
pub fn random_graph(rng: &mut Rng) -> String {
    let mut maker = Maker { rng, nodes: Vec::new(), open: Vec::new(), groups: 0 };
    for _ in 0..=maker.below(3) {
        maker.source();
    }
    for _ in 0..maker.below(9) {
        maker.grow();
    }
    while maker.open.len() > 1 {
        maker.merge();
    }
    for _ in 0..maker.below(3) {
        maker.chain(0);
    }
    maker.nodes.join(" ; ")
}

/// The same graph with some of its nodes told where to run.
///
/// # Panics
/// When a node cannot be told so.
#[must_use]
pub fn placed(graph: &Graph, rng: &mut Rng) -> Graph {
    let mut text: Value = serde_json::from_str(&graph.to_json().unwrap()).unwrap();
    let nodes = text["node"].as_array_mut().unwrap();
    for node in nodes {
        let ordered = !["increment", "rogue_map", "rogue_burst"].contains(&node["pipe"].as_str().unwrap());
        let place = match (rng.below(6), ordered) {
            (0, false) | (1, _) => "process",
            (0, true) => "own_thread",
            (2 | 3, _) => "threads",
            _ => continue,
        };
        node["on"] = place.into();
    }
    Graph::from_json(&text.to_string()).unwrap()
}

/// The same graph with most of its maps unordered; `None` if there is none that may be.
///
/// # Panics
/// When a node cannot be told so.
#[must_use]
pub fn unordered(graph: &Graph, rng: &mut Rng) -> Option<Graph> {
    let mut text: Value = serde_json::from_str(&graph.to_json().unwrap()).unwrap();
    let mut told = Vec::new();
    for (at, node) in graph.nodes().iter().enumerate() {
        let replaces = node
            .options
            .get("on_error")
            .and_then(Value::as_str)
            .is_some_and(|text| text.starts_with("replace"));
        if !["increment", "rogue_map"].contains(&node.pipe.as_str()) || replaces || rng.bool(0.3) {
            continue;
        }
        let node_text = text["node"][at].as_object_mut().unwrap();
        node_text.insert("unordered".to_owned(), true.into());
        if node.inputs.iter().any(|input| told.contains(&input.node)) {
            node_text.remove("on"); // It runs with the one before.
        }
        told.push(node.name.clone());
    }
    (!told.is_empty()).then(|| Graph::from_json(&text.to_string()).unwrap())
}

/// The most samples that an output may be thought to have, for pipes that make more of them.
const MOST: u64 = 300;

struct Maker<'a> {
    rng: &'a mut Rng,
    nodes: Vec<String>,
    /// The outputs that nobody reads yet.
    open: Vec<Open>,
    groups: usize,
}

/// An output that nobody reads yet.
#[derive(Clone)]
struct Open {
    /// What a reader calls it.
    input: String,
    /// Outputs of one group have some node above them in common.
    group: usize,
    /// About how many samples it has, at most.
    len: u64,
    kind: Kind,
}

/// What the field `value` holds.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    /// A tensor of numbers, in a field of its own.
    Batch,
    /// Anything, or nothing.
    Mixed,
}

impl Maker<'_> {
    fn below(&mut self, most: u64) -> u64 {
        self.rng.below(most)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let at = self.below(of.len() as u64);
        of[at as usize]
    }

    /// Adds a node that reads these, and gives its name.
    fn node(&mut self, pipe: &str, inputs: &[String], options: &str) -> String {
        let name = format!("n{}", self.nodes.len());
        let inputs = if inputs.is_empty() { String::new() } else { format!(" <{}>", inputs.join(", ")) };
        self.nodes.push(format!("{pipe} @{name}{inputs} {options}").trim_end().to_owned());
        name
    }

    fn source(&mut self) {
        let len = if self.rng.bool(0.1) { 0 } else { self.below(70) };
        let input = match self.below(8) {
            5 | 6 => self.sampled(len),
            0 => {
                // Far more than anybody takes.
                let range = self.node("range", &[], "1000000000");
                let map = self.node("rogue_map", &[range], "spin=500 at=-1");
                self.node("take", &[map], &len.to_string())
            }
            1 => {
                let at = self.below(90);
                let state = self.rng.bool(0.5);
                let policy = self.policy(0.8);
                let fault = self.one(&["error", "none"]);
                let options = format!("count={len} fault={fault} at={at} state={state}{policy}");
                self.node("rogue_source", &[], &options)
            }
            2 => self.node("range", &[], &format!("{len} start=0 step=3")),
            _ => self.node("range", &[], &len.to_string()),
        };
        self.groups += 1;
        self.open.push(Open { input, group: self.groups, len, kind: Kind::Number });
    }

    /// So many samples, drawn from a source.
    fn sampled(&mut self, len: u64) -> String {
        let of = match self.below(3) {
            0 => 1_000_000_000_000,
            1 => 1 + len,
            _ => 1 + self.below(40),
        };
        let range = self.node("range", &[], &of.to_string());
        let shuffle = self.rng.bool(0.5);
        let sampler = match self.below(4) {
            0 if len > 0 => {
                return self.node(
                    "random_sampler",
                    &[range],
                    &format!("num_samples={len} replacement={shuffle}"),
                );
            }
            1 if of < 100 => {
                let weights: Vec<_> = (0..of).map(|at| (1 + at % 3).to_string()).collect();
                self.node("weighted_sampler", &[range], &format!("[{}]", weights.join(", ")))
            }
            2 => {
                let (start, step) =
                    (-1 - self.below(30).cast_signed(), [-3, -1, 1, 2][self.below(4) as usize]);
                self.node("subset_sampler", &[range], &format!("start={start} step={step} shuffle={shuffle}"))
            }
            _ if of < 100 => self.node("sequential_sampler", &[range], ""),
            _ => self.node("random_sampler", &[range], ""),
        };
        self.node("take", &[sampler], &len.to_string())
    }

    /// An option for what becomes of failures: they are forgiven with this probability.
    fn policy(&mut self, forgiven: f64) -> String {
        if !self.rng.bool(forgiven) {
            return self.one(&["", " on_error=fail"]).to_owned();
        }
        let action = self.one(&["skip", "quarantine"]);
        self.budget(action)
    }

    /// As [`policy`](Maker::policy), for maps.
    fn map_policy(&mut self, forgiven: f64) -> String {
        if self.rng.bool(0.4) { self.budget("replace") } else { self.policy(forgiven) }
    }

    fn budget(&mut self, action: &str) -> String {
        match self.below(8) {
            0 => format!(" on_error={action}:{}", self.below(4)),
            1 => format!(" on_error={action}:{}%", 5 + self.below(60)),
            _ => format!(" on_error={action}"),
        }
    }

    fn grow(&mut self) {
        let at = self.below(self.open.len() as u64) as usize;
        match self.below(10) {
            0 | 1 if self.open.len() < 6 => self.split(at),
            2 | 3 if self.open.len() > 1 => self.merge(),
            _ => self.chain(at),
        }
    }

    /// Puts a pipe with one input and one output behind an output.
    fn chain(&mut self, at: usize) {
        let Open { group, len, kind, .. } = self.open[at].clone();
        let sole = self.open.iter().filter(|open| open.group == group).count() == 1;
        let number = 1 + self.below(30);
        let (pipe, options, len, kind) = match self.below(18) {
            0 => ("take", number.to_string(), number.min(len), kind),
            1 => ("skip", (number / 4).to_string(), len, kind),
            2 | 3 => ("shuffle", number.to_string(), len, kind),
            4 if sole && len < MOST => self.repeat(at),
            5 => {
                let (hold, state) = (self.below(20), self.rng.bool(0.7));
                ("rogue_lag", format!("hold={hold} state={state}"), len, kind)
            }
            6 => {
                let (hold, state) = (self.below(5), self.rng.bool(0.7));
                let (refuse, policy) = (5 + self.below(20), self.policy(0.9));
                ("rogue_lag", format!("hold={hold} state={state} refuse={refuse}{policy}"), len, kind)
            }
            7 if sole => {
                let fault = self.one(&["pending", "none"]);
                ("rogue_stream", format!("fault={fault}"), len, kind)
            }
            8 | 9 if len < MOST => self.expand(len, kind),
            10 | 11 if kind == Kind::Number => ("increment", String::new(), len, kind),
            12 => {
                let (refuse, policy) = (2 + self.below(20), self.map_policy(0.9));
                ("rogue_map", format!("at=-1 refuse={refuse} spin={}{policy}", 50 * number), len, kind)
            }
            13 => {
                let policy = self.map_policy(0.5);
                ("rogue_map", format!("fault=error at={}{policy}", 3 * number), len, kind)
            }
            14 | 15 if kind == Kind::Number => {
                let (drop, policy) = (self.rng.bool(0.5), self.policy(0.1));
                ("batch", format!("{number} drop_last={drop}{policy}"), len, Kind::Batch)
            }
            14 if kind == Kind::Mixed => {
                let policy = self.policy(1.0);
                ("batch", format!("{number}{policy}"), len, Kind::Mixed)
            }
            15 | 16 if kind == Kind::Batch && len < MOST => {
                ("unbatch", format!("interleave={}", 1 + self.below(3)), len, Kind::Number)
            }
            _ => ("rogue_map", format!("at=-1 spin={}", 100 * number), len, kind),
        };
        let input = self.open[at].input.clone(); // `repeat` may have put something there.
        let input = self.node(pipe, &[input], &options);
        self.open[at] = Open { input, group, len, kind };
    }

    fn repeat(&mut self, at: usize) -> (&'static str, String, u64, Kind) {
        let Open { input, len, kind, .. } = self.open[at].clone();
        if self.rng.bool(0.2) {
            let end = self.below(MOST);
            self.open[at].input = self.node("repeat", &[input], "");
            // The pipe that `chain` puts behind it.
            return ("take", end.to_string(), end, kind);
        }
        let times = 1 + self.below(3);
        ("repeat", times.to_string(), len * times, kind)
    }

    fn expand(&mut self, len: u64, kind: Kind) -> (&'static str, String, u64, Kind) {
        let (most, option) = (self.below(5), self.rng.bool(0.5));
        let (pipe, name) =
            if self.rng.bool(0.5) { ("rogue_burst", "goes_on") } else { ("rogue_expand", "state") };
        let mut options = format!("most={most} {name}={option}");
        if pipe == "rogue_expand" && self.rng.bool(0.4) {
            options += &format!(" interleave={} interleave_block={}", 1 + self.below(4), 1 + self.below(3));
        }
        if self.rng.bool(0.4) {
            let refuse = 5 + self.below(20);
            options += &format!(" refuse={refuse}{}", self.policy(0.9));
        }
        (pipe, options, len * most, kind)
    }

    /// Puts a pipe with several outputs behind an output.
    fn split(&mut self, at: usize) {
        let Open { input, group, len, kind } = self.open.remove(at);
        let count = 2 + self.below(2);
        let name = match self.below(4) {
            0 => self.node("demux", &[input], &format!("count={count}")),
            1 if kind == Kind::Number => {
                let policy = self.policy(0.7);
                let other = self.one(&["drop", "fail"]);
                self.node("demux", &[input], &format!("field=value count={count} other={other}{policy}"))
            }
            _ => self.node("fork", &[input], &count.to_string()),
        };
        let port = |port| if port == 0 { name.clone() } else { format!("{name}.{port}") };
        let ports = (0..count).map(port);
        self.open.extend(ports.map(|input| Open { input, group, len, kind }));
    }

    /// Puts a pipe with several inputs behind some outputs.
    fn merge(&mut self) {
        let count = 2 + self.below(2.min(self.open.len() as u64 - 1));
        let mut read = Vec::new();
        for _ in 0..count.min(self.open.len() as u64) {
            let at = self.below(self.open.len() as u64) as usize;
            read.push(self.open.remove(at));
        }
        let groups: Vec<_> = read.iter().map(|open| open.group).collect();
        let kinds_differ = read.iter().any(|open| open.kind != read[0].kind);
        let kind = if kinds_differ { Kind::Mixed } else { read[0].kind };
        let lens = || read.iter().map(|open| open.len);
        let inputs: Vec<_> = read.iter().map(|open| open.input.clone()).collect();
        // What is read twice over must have nothing above it that others read too.
        let alone = |(at, group): (usize, &usize)| {
            !groups[..at].contains(group) && !self.open.iter().any(|open| open.group == *group)
        };
        let may_rewind = groups.iter().enumerate().all(alone);
        let sum: u64 = lens().sum();
        let (name, len, kind) = match self.below(8) {
            0 | 1 => (self.node("concat", &inputs, ""), sum, kind),
            2 | 3 => {
                let stop = self.one(&["shortest", "longest"]);
                (self.node("mux", &inputs, &format!("stop={stop}")), sum, kind)
            }
            4 | 5 if may_rewind => self.mix(&inputs, sum, kind),
            _ => (self.zip(&inputs), lens().max().unwrap_or(0), Kind::Mixed),
        };
        self.open
            .iter_mut()
            .filter(|open| groups.contains(&open.group))
            .for_each(|open| open.group = groups[0]);
        self.open.push(Open { input: name, group: groups[0], len, kind });
    }

    fn mix(&mut self, inputs: &[String], len: u64, kind: Kind) -> (String, u64, Kind) {
        let stops = ["cycle_until_all_exhausted", "all_exhausted", "first_exhausted", "cycle_forever"];
        let stop = self.one(&stops);
        let weights = match self.rng.bool(0.5) {
            true => String::new(),
            false => {
                let weights: Vec<_> = inputs.iter().map(|_| (1 + self.below(3)).to_string()).collect();
                format!(" weights=[{}]", weights.join(", "))
            }
        };
        let name = self.node("mix", inputs, &format!("stop={stop}{weights}"));
        if stop == "cycle_forever" || len > MOST {
            let end = self.below(MOST);
            return (self.node("take", &[name], &end.to_string()), end, kind);
        }
        (name, 4 * len, kind)
    }

    fn zip(&mut self, inputs: &[String]) -> String {
        let mode = self.one(&["shortest", "longest", "longest", "shortest", "strict"]);
        let at = self.nodes.len();
        let prefix = |input| if input == 0 { "''".to_owned() } else { format!("'z{at}-{input}-'") };
        let prefixes: Vec<_> = (0..inputs.len()).map(prefix).collect();
        let policy = if mode == "strict" { self.policy(0.8) } else { String::new() };
        self.node("zip", inputs, &format!("mode={mode} prefix=[{}]{policy}", prefixes.join(", ")))
    }
}
