//! Explains a graph to people and programs: all options with their defaults, and how the graph is cut for running.

use std::io::{self, Write};

use forebay_core::{Error, Length, Limits, Noun, Result, without_secrets};
use forebay_engine::{
    Executor,
    host::{Host, Pool},
    plan::{Plan, Segment},
};
use forebay_graph::{Catalog as _, Graph, Node, ON, ON_ERROR, OPTIONS, On, OptionSpec, PipeSpec, UNORDERED};
use forebay_queue::ledger::Ledger;
use forebay_registry::{FoundPlugin, Registry};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    DEFAULT_BUDGET, Lint, Quality,
    folders::with_folders,
    length::Lengths,
    lints,
    text::{TextTable, bytes, count, near},
};

/// The most items of a list that are shown, but for TOML.
const SHOWN: usize = 5;

/// Everything that is known about a graph before it runs. Its JSON is the output of `forebay explain --json`.
///
/// ```no_run
/// use forebay_loader::{Explanation, Graph, Registry};
///
/// let graph = Graph::from_line("range 10 | shuffle 4 | batch 3")?;
/// print!("{}", Explanation::new(&graph, &Registry::from_env()?, None, None)?.text());
/// # Ok::<(), forebay_loader::Error>(())
/// ```
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    line: String,
    /// The line, with the first items of long lists alone.
    #[serde(skip)]
    shown: String,
    fingerprint: String,
    #[serde(serialize_with = "as_text")]
    executor: Executor,
    /// The seed of all random choices.
    pub seed: u64,
    epochs: u64,
    budget: u64,
    nodes: Vec<Explained>,
    #[serde(flatten)]
    plan: Plan,
    /// Lints, in the order of the nodes. A program can add its own.
    pub lints: Vec<Lint>,
    /// How well the graph shuffles, if that was [measured](crate::quality()).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    toml: String,
    #[serde(skip)]
    graph: Graph,
}

fn as_text<S: Serializer>(executor: &Executor, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(executor)
}

/// One node.
#[derive(Debug, Clone, Serialize)]
struct Explained {
    node: String,
    pipe: String,
    summary: String,
    plugin: String,
    file: String,
    inputs: Vec<String>,
    options: Vec<Chosen>,
    /// How many samples the node gives in an epoch, if that is finite and known before anything is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    /// What one of those is called, and several.
    #[serde(skip)]
    unit: (String, String),
}

/// One option of a node.
#[derive(Debug, Clone, Serialize)]
struct Chosen {
    name: String,
    value: Value,
    default: bool,
    doc: String,
}

impl Explanation {
    /// Explains a graph as it is written. `executor` replaces the executor of the graph; with `ranks`, the graph
    /// is explained for one of several ranks.
    ///
    /// Pipes are made and asked how many samples they give, so their plugins are loaded. No data is opened, but a
    /// folder is listed if an option lists its folders.
    ///
    /// # Errors
    /// `Invalid` for every problem of the graph; `Io` for a folder that cannot be listed.
    pub fn new(
        graph: &Graph,
        registry: &Registry,
        executor: Option<Executor>,
        ranks: Option<(u32, u32)>,
    ) -> Result<Self> {
        let mut graph = graph.check(registry)?;
        if let Some((rank, world_size)) = ranks {
            if rank >= world_size {
                let message = format!("rank is {rank}, expected one below the world size {world_size}");
                return Err(Error::invalid(message));
            }
            graph = graph.for_ranks(registry)?;
        }
        let graph = with_folders(graph, registry)?;
        let executor = match (executor, &graph.run.executor) {
            (Some(executor), _) => executor.counted(),
            (None, Some(text)) => text.parse()?,
            (None, None) => Executor::default(),
        };
        let plan = Plan::new(&graph, registry, executor)?;
        let host = Host::new(registry.clone(), Limits::DEFAULT, Pool::new(0, None), Ledger::nobody());
        let seed = graph.run.seed.unwrap_or(0);
        let share = ranks.unwrap_or((0, 1));
        let lengths = Lengths { graph: &graph, registry, host: &host, seed, ranks: share }.told()?;
        let nodes = graph.nodes().iter().zip(&lengths);
        Ok(Self {
            line: graph.to_line(Some(registry)),
            shown: graph.shown(Some(registry), SHOWN),
            fingerprint: graph.fingerprint().to_string(),
            executor,
            seed,
            epochs: graph.run.epochs.unwrap_or(1),
            budget: graph.run.budget.unwrap_or(DEFAULT_BUDGET),
            nodes: nodes.filter_map(|(node, length)| explained(node, *length, registry)).collect(),
            lints: lints(&graph, registry, &plan, ranks.map(|(_, ranks)| ranks)),
            plan,
            quality: None,
            toml: graph.to_toml(),
            graph,
        })
    }

    /// The graph as it would run, with every option under its name.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// How the graph is cut.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where the graph would run.
    #[must_use]
    pub fn executor(&self) -> Executor {
        self.executor
    }

    /// The explanation as text. Secrets of URLs are left out, so the text can be shared; fill them in before you
    /// run the graph.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        let _ = self.write(&mut text); // Memory takes all.
        without_secrets(&String::from_utf8_lossy(&text)).into_owned()
    }

    /// The explanation as JSON, without secrets.
    ///
    /// # Errors
    /// `Invalid` for a number that JSON cannot express.
    pub fn json(&self) -> Result<String> {
        let text = serde_json::to_string(self).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(without_secrets(&text).into_owned())
    }
}

fn explained(node: &Node, length: Option<Length>, registry: &Registry) -> Option<Explained> {
    let spec = registry.pipe(&node.pipe)?;
    let record = registry.plugin_of(&node.pipe);
    let Noun { one, many: several } = spec.layout.gives.unwrap_or(Noun::SAMPLE);
    Some(Explained {
        node: node.name.clone(),
        pipe: node.pipe.clone(),
        summary: spec.summary.clone(),
        plugin: record.map_or_else(|| "this program".to_owned(), FoundPlugin::label),
        file: record.map_or_else(|| "a closure".to_owned(), FoundPlugin::file),
        inputs: node.inputs.iter().map(ToString::to_string).collect(),
        options: options(node, spec),
        length: length.and_then(Length::count),
        unit: (one.to_owned(), several.to_owned()),
    })
}

fn options(node: &Node, spec: &PipeSpec) -> Vec<Chosen> {
    let chosen = |option: &OptionSpec| {
        let given = node.options.get(&option.name);
        let value = given.unwrap_or(&option.default).clone();
        Chosen { name: option.name.clone(), value, default: given.is_none(), doc: option.doc.clone() }
    };
    let own = spec.options.iter().map(chosen);
    let is_own = |name: &str| spec.options.iter().any(|option| option.name == name);
    let given = node.options.iter().filter(|(name, _)| !is_own(name)).map(|(name, value)| Chosen {
        name: name.clone(),
        value: value.clone(),
        default: false,
        doc: common(name).to_owned(),
    });
    own.chain(given).collect()
}

/// What an option is for that is no pipe's own.
fn common(name: &str) -> &'static str {
    match name {
        ON => "Where its work is done.",
        ON_ERROR => "What happens to a sample that fails.",
        UNORDERED => "Whether samples come as they are done, in any order.",
        OPTIONS => "The options of decoders, by their names.",
        _ => "",
    }
}

/// A value, of a long list no more than its first items.
fn short(value: &Value) -> String {
    match value {
        Value::Array(items) if items.len() > SHOWN + 1 => {
            let first: Vec<_> = items.iter().take(SHOWN).map(Value::to_string).collect();
            format!("[{},… {} more]", first.join(","), items.len() - SHOWN)
        }
        value => value.to_string(),
    }
}

impl Explanation {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let budget = bytes(self.budget);
        let mut table = TextTable::new(&["", ""]);
        for (name, text) in [
            ("graph", self.shown.clone()),
            ("fingerprint", self.fingerprint.clone()),
            ("executor", self.executor.to_string()),
            ("seed", self.seed.to_string()),
            ("epochs", self.epochs.to_string()),
            ("budget", budget),
        ] {
            table.row([name.to_owned(), text]);
        }
        table.write(out, "")?;
        self.write_nodes(out)?;
        self.write_plan(out)?;
        self.write_lints(out)?;
        self.quality.iter().try_for_each(|quality| write_quality(quality, out))?;
        writeln!(out, "\nas TOML")?;
        self.toml.lines().try_for_each(|line| writeln!(out, "{}", format!("  {line}").trim_end()))
    }

    fn write_nodes(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nnodes")?;
        for node in &self.nodes {
            let called = if node.node == node.pipe { String::new() } else { format!(" ({})", node.pipe) };
            writeln!(out, "  {}{called}: {}", node.node, node.summary)?;
            let gives = |length: u64| {
                let unit = if length == 1 { &node.unit.0 } else { &node.unit.1 };
                format!("; {} {unit} an epoch", count(length))
            };
            let gives = node.length.map(gives).unwrap_or_default();
            writeln!(out, "    {}, {}{gives}", node.plugin, near(&node.file))?;
            let mut table = TextTable::new(&["", "", "", ""]);
            for option in &node.options {
                let origin = if option.default { "default" } else { "given" };
                let cells = [option.name.as_str(), &short(&option.value), origin, option.doc.trim()];
                table.row(cells.map(str::to_owned));
            }
            table.write(out, "    ")?;
        }
        Ok(())
    }

    fn write_lints(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.lints.is_empty() {
            writeln!(out, "\nmay not be meant")?;
        }
        self.lints.iter().try_for_each(|lint| writeln!(out, "  {}: {}", lint.node, lint.message))
    }

    fn write_plan(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = |edges: &[usize]| match edges {
            [] => "-".to_owned(),
            edges => edges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        let mut table = TextTable::new(&["segment", "runs", "nodes", "reads edge", "writes edge"]);
        for (at, segment) in self.plan.segments.iter().enumerate() {
            let nodes: Vec<_> = segment.nodes.iter().filter_map(|&at| self.nodes.get(at)).collect();
            table.row([
                at.to_string(),
                runs(segment),
                nodes.iter().map(|node| node.node.as_str()).collect::<Vec<_>>().join(" | "),
                name(&segment.inputs),
                name(&segment.outputs),
            ]);
        }
        writeln!(out)?;
        table.write(out, "")
    }
}

fn write_quality(quality: &Quality, out: &mut dyn Write) -> io::Result<()> {
    let Quality { node, samples, entropy, moved, together, before_first, .. } = quality;
    writeln!(out, "\nshuffle quality, of the {samples} samples that `{node}` gives in epoch 0")?;
    let mut table = TextTable::new(&["", "here", "a full shuffle"]);
    let share = |part: f64| format!("{:.2} %", 100.0 * part);
    for (name, found, full) in [
        ("entropy of the distance of neighbours", bits(entropy.found), bits(entropy.full)),
        ("moved by, on average", format!("{:.0} places", moved.found), format!("{:.0} places", moved.full)),
        ("follow one of the same file", share(together.found), share(together.full)),
    ] {
        table.row([name.to_owned(), found, full]);
    }
    if let Some(read) = before_first {
        table.row(["read before the first sample".to_owned(), samples_of(*read), samples_of(*samples)]);
    }
    table.write(out, "  ")
}

fn samples_of(number: u64) -> String {
    format!("{number} samples")
}

fn bits(entropy: f64) -> String {
    format!("{entropy:.2} bits")
}

/// How a segment runs, and where.
fn runs(segment: &Segment) -> String {
    let how = match (segment.parallel, segment.unordered) {
        (true, true) => "in parallel, unordered",
        (true, false) => "in parallel",
        (false, _) => "in order",
    };
    let place = match segment.on {
        On::Caller => "the caller's thread",
        On::OwnThread => "a thread of its own",
        On::Process if segment.parallel => "processes",
        On::Process => "a process of its own",
        On::Sandboxed if segment.parallel => "sandboxed processes",
        On::Sandboxed => "a sandboxed process of its own",
        _ => "threads",
    };
    format!("{how}, {place}")
}
