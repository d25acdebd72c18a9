//! `forebay explain`: what a graph is after every default is filled in, and how it will be cut for running.

use std::io::{self, Write};

use clap::Args as Arguments;
use forebay_loader::{
    DEFAULT_BUDGET, Error, Executor, Graph, Lint, Plan, Quality, Registry, Segment,
    graph::{Catalog, Node, ON, ON_ERROR, OPTIONS, On, OptionSpec, PipeSpec, UNORDERED},
    lints, quality, without_secrets,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    open,
    outcome::{Result, Stop},
    print::{self, Table, bytes},
    report::near,
    run,
};

/// The most items of a list that are shown, but for TOML.
const SHOWN: usize = 5;

/// What `forebay explain` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// A graph file (.toml or .json), a graph in one line, or a path, of which only the first bytes of each file are read
    graph: String,
    /// Where it is to run: inline, threads, threads:N or processes:N [default: the graph's, else threads]
    #[arg(long)]
    executor: Option<String>,
    /// Explain it as one of several ranks runs it: R/W, or `env`, as `run` takes it
    #[arg(long, value_name = "R/W", value_parser = run::rank)]
    rank: Option<(u32, u32)>,
    /// Measure how well the graph shuffles: what stands before its last shuffle is run twice
    #[arg(long)]
    quality: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// All there is to know of a graph before it runs.
#[derive(Serialize)]
struct Explained<'a> {
    line: String,
    /// The line, with the first items of long lists alone.
    #[serde(skip)]
    shown: String,
    fingerprint: String,
    executor: String,
    seed: u64,
    epochs: u64,
    budget: u64,
    nodes: Vec<Explanation<'a>>,
    #[serde(flatten)]
    plan: &'a Plan,
    lints: Vec<Lint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<Quality>,
    toml: String,
}

/// One node.
#[derive(Serialize)]
struct Explanation<'a> {
    node: &'a str,
    pipe: &'a str,
    summary: &'a str,
    plugin: String,
    file: String,
    inputs: Vec<String>,
    options: Vec<Chosen<'a>>,
}

/// One option of a node.
#[derive(Serialize)]
struct Chosen<'a> {
    name: &'a str,
    value: &'a Value,
    default: bool,
    doc: &'a str,
}

/// Shows what the graph would do.
pub(crate) fn explain(args: &Args, plugins: &open::Plugins) -> Result {
    let registry = open::registry(plugins)?;
    let given = open::input(&args.graph, &registry)?.graph;
    let mut graph = given.check(&registry).map_err(Stop::early)?;
    if args.rank.is_some() {
        graph = graph.for_ranks(&registry).map_err(Stop::early)?;
    }
    let graph = graph.with_folders(&registry).map_err(Stop::early)?;
    let executor = match args.executor.as_ref().or(graph.run.executor.as_ref()) {
        Some(text) => text.parse().map_err(Stop::Usage)?,
        None => Executor::default(),
    };
    let plan = Plan::new(&graph, &registry, executor).map_err(Stop::early)?;
    let mut explained = explained(&graph, &plan, &registry, executor, args.rank.map(|(_, ranks)| ranks));
    if args.quality {
        let found = quality(&given, &registry, explained.seed).map_err(Stop::early)?;
        let none = || Stop::Usage(Error::invalid("--quality: nothing in this graph shuffles"));
        explained.quality = Some(found.ok_or_else(none)?);
    }
    let mut text = Vec::new();
    match args.json {
        true => writeln!(text, "{}", serde_json::to_string(&explained).map_err(io::Error::from)?)?,
        false => explained.write(&mut text)?,
    }
    // What is shown may be passed on: a graph over URLs runs again once their secrets are filled in.
    print::text(|out| out.write_all(without_secrets(&String::from_utf8_lossy(&text)).as_bytes()))
}

fn explained<'a>(
    graph: &'a Graph,
    plan: &'a Plan,
    registry: &'a Registry,
    executor: Executor,
    ranks: Option<u32>,
) -> Explained<'a> {
    let nodes = graph.nodes().iter().filter_map(|node| {
        let spec = registry.pipe(&node.pipe)?;
        let record = registry.plugin_of(&node.pipe)?;
        Some(Explanation {
            node: &node.name,
            pipe: &node.pipe,
            summary: &spec.summary,
            plugin: record.label(),
            file: record.file(),
            inputs: node.inputs.iter().map(ToString::to_string).collect(),
            options: options(node, spec),
        })
    });
    Explained {
        line: graph.to_line(Some(registry)),
        shown: graph.shown(Some(registry), SHOWN),
        fingerprint: graph.fingerprint().to_string(),
        executor: executor.to_string(),
        seed: graph.run.seed.unwrap_or(0),
        epochs: graph.run.epochs.unwrap_or(1),
        budget: graph.run.budget.unwrap_or(DEFAULT_BUDGET),
        nodes: nodes.collect(),
        plan,
        lints: lints(graph, registry, plan, ranks),
        quality: None,
        toml: graph.to_toml(),
    }
}

fn options<'a>(node: &'a Node, spec: &'a PipeSpec) -> Vec<Chosen<'a>> {
    let chosen = |option: &'a OptionSpec| {
        let given = node.options.get(&option.name);
        let value = given.unwrap_or(&option.default);
        Chosen { name: &option.name, value, default: given.is_none(), doc: &option.doc }
    };
    let own = spec.options.iter().map(chosen);
    let is_own = |name: &str| spec.options.iter().any(|option| option.name == name);
    let given = node.options.iter().filter(|(name, _)| !is_own(name)).map(|(name, value)| Chosen {
        name,
        value,
        default: false,
        doc: common(name),
    });
    own.chain(given).collect()
}

/// What an option is for that is no pipe's own.
fn common(name: &str) -> &'static str {
    match name {
        ON => "Where its work is done.",
        ON_ERROR => "What becomes of a sample that it fails on.",
        UNORDERED => "Whether samples come as they are done.",
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

impl Explained<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let budget = bytes(self.budget);
        let mut table = Table::new(&["", ""]);
        for (name, text) in [
            ("graph", self.shown.clone()),
            ("fingerprint", self.fingerprint.clone()),
            ("executor", self.executor.clone()),
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
            writeln!(out, "    {}, {}", node.plugin, near(&node.file))?;
            let mut table = Table::new(&["", "", "", ""]);
            for option in &node.options {
                let origin = if option.default { "default" } else { "given" };
                let cells = [option.name, &short(option.value), origin, option.doc.trim()];
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
        let mut table = Table::new(&["segment", "runs", "nodes", "reads edge", "writes edge"]);
        for (at, segment) in self.plan.segments.iter().enumerate() {
            let nodes: Vec<_> = segment.nodes.iter().filter_map(|&at| self.nodes.get(at)).collect();
            table.row([
                at.to_string(),
                runs(segment),
                nodes.iter().map(|node| node.node).collect::<Vec<_>>().join(" | "),
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
    let mut table = Table::new(&["", "here", "a full shuffle"]);
    let share = |part: f64| format!("{:.2} %", 100.0 * part);
    for (name, found, full) in [
        ("entropy of the distance of neighbours", bits(entropy.found), bits(entropy.full)),
        ("moved by, on average", format!("{:.0} places", moved.found), format!("{:.0} places", moved.full)),
        ("right behind one of the same file", share(together.found), share(together.full)),
    ] {
        table.row([name.to_owned(), found, full]);
    }
    if let Some(read) = before_first {
        table.row(["read before the first comes".to_owned(), count(*read), count(*samples)]);
    }
    table.write(out, "  ")
}

fn count(samples: u64) -> String {
    format!("{samples} samples")
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
