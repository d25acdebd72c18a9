//! Identities of what nodes read, for pipes that keep something from run to run.

mod stamps;

use std::{collections::BTreeMap, env};

use forebay_engine::prepared::RunSettings;
use forebay_graph::{COMMON, Catalog as _, Graph, Node};
use forebay_registry::{FoundPlugin, Registry};
use xxhash_rust::xxh3::Xxh3;

/// The option by which a pipe has a seed of its own.
const SEED: &str = "seed";

/// For each node whose pipe asks for it and that has an option, by place: the identity of all that stands before it. Then what
/// people should know of it.
/// One without options keeps nothing from run to run, and to hash the plugins takes milliseconds.
///
/// It is the 128-bit XXH3 of:
///
/// - the limits, and the folder that relative paths begin at;
/// - the seed, unless nothing before the node draws;
/// - the number of ranks and, behind the node that shards, this rank;
/// - the outputs that the node reads;
/// - each node before it, in the order of the graph: its fingerprint, its plugin, and its
///   [files](stamps::add_files);
/// - all plugins with decoders or stores, since a pipe may call any of them.
///
/// A plugin is its name, version and hash.
///
/// Cost: where the node has a text among its options, as one that keeps something in a folder has, the system is asked for each file.
pub(crate) fn identities(
    graph: &Graph,
    registry: &Registry,
    settings: &RunSettings,
) -> (BTreeMap<usize, String>, Vec<String>) {
    let asks = |at: &usize| {
        let node = &graph.nodes()[*at];
        let has_options = node.options.keys().any(|option| !COMMON.contains(&option.as_str()));
        has_options && registry.pipe(&node.pipe).is_some_and(|spec| spec.order.identity_option.is_some())
    };
    let mut told = Vec::new();
    let identity = |at| (at, identity(graph, at, registry, settings, &mut told));
    ((0..graph.nodes().len()).filter(asks).map(identity).collect(), told)
}

/// Whether what a node gives may depend on the seed: what is not known may.
fn draws(node: &Node, registry: &Registry) -> bool {
    let (Some(spec), Some(record)) = (registry.pipe(&node.pipe), registry.plugin_of(&node.pipe)) else {
        return true;
    };
    // A pipe with a seed of its own draws from the run's where it is given none.
    let takes_seed = spec.options.iter().any(|option| option.name == SEED);
    spec.is_random(node) || record.manifest().c || takes_seed && !node.options.contains_key(SEED)
}

fn identity(
    graph: &Graph,
    at: usize,
    registry: &Registry,
    settings: &RunSettings,
    told: &mut Vec<String>,
) -> String {
    let mut hash = Xxh3::new();
    let mut add_bytes = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let node = &graph.nodes()[at];
    let above = graph.up_to(at);
    let above: Vec<&Node> = above.nodes().iter().filter(|before| before.name != node.name).collect();
    // Where it is to be kept, say. What is kept in memory is of this run alone.
    let has_text =
        node.options.iter().any(|(name, value)| !COMMON.contains(&name.as_str()) && value.is_string());
    if has_text {
        for before in &above {
            let found = stamps::add_files(before, registry, &mut add_bytes);
            told.extend(found.map(|found| format!("{}: {found}", node.name)));
        }
    }
    let mut add = |text: &str| add_bytes(text.as_bytes());
    let RunSettings { seed, ranks: (rank, world_size), dealt, limits, .. } = settings;
    if above.iter().any(|node| draws(node, registry)) {
        add(&format!("seed {seed}"));
    }
    add(&format!("{} {}", limits.bytes, limits.pixels));
    // Where that is not known, relative paths lead nowhere.
    add(&env::current_dir().unwrap_or_default().to_string_lossy());
    if !dealt.is_empty() {
        let rank = if dealt.get(at) == Some(&true) { rank.to_string() } else { String::new() };
        add(&format!("{rank}/{world_size}"));
    }
    node.inputs.iter().for_each(|input| add(&input.to_string()));
    for before in above {
        add(&before.fingerprint().to_string());
        add(&registry.plugin_of(&before.pipe).map(plugin).unwrap_or_default());
    }
    let called = |record: &&FoundPlugin| {
        !record.manifest().decoders.is_empty() || !record.manifest().stores.is_empty()
    };
    registry.plugins().iter().filter(called).for_each(|record| add(&plugin(record)));
    format!("{:032x}", hash.digest128())
}

fn plugin(record: &FoundPlugin) -> String {
    // One that cannot be read any more was loaded, or will not be.
    format!("{} {}", record.label(), record.hash().unwrap_or_default())
}
