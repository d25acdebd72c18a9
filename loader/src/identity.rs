//! Identities of what nodes read, for pipes that keep something from run to run.

use std::{collections::BTreeMap, env};

use forebay_core::Limits;
use xxhash_rust::xxh3::Xxh3;

use crate::{
    Registry,
    graph::{COMMON, Catalog as _, Graph},
    registry::Record,
};

/// All but the graph that says which samples there are.
pub(crate) struct Setting<'a> {
    pub(crate) seed: u64,
    /// This rank and how many there are, where there are ranks.
    pub(crate) ranks: Option<(u32, u32)>,
    /// Of each node whether it sees one rank's samples.
    pub(crate) dealt: &'a [bool],
    pub(crate) limits: Limits,
}

/// For each node whose pipe asks for it and that has an option, by place: the identity of all that stands before it.
/// One without options keeps nothing from run to run, and to hash the plugins takes milliseconds.
///
/// It is the 128-bit XXH3 of the seed, the limits and the folder that relative paths begin at; how many ranks there are, and which this is where
/// samples are dealt out before; the outputs that the node reads; each node before it, in the order of the graph: its fingerprint and its
/// plugin; and all plugins with decoders or stores, since a pipe may call any of them. A plugin is its name, version and hash.
pub(crate) fn identities(
    graph: &Graph,
    registry: &Registry,
    setting: &Setting<'_>,
) -> BTreeMap<usize, String> {
    let asks = |at: &usize| {
        let node = &graph.nodes()[*at];
        let has_options = node.options.keys().any(|option| !COMMON.contains(&option.as_str()));
        has_options && registry.pipe(&node.pipe).is_some_and(|spec| !spec.identity_option.is_empty())
    };
    (0..graph.nodes().len()).filter(asks).map(|at| (at, identity(graph, at, registry, setting))).collect()
}

fn identity(graph: &Graph, at: usize, registry: &Registry, setting: &Setting<'_>) -> String {
    let mut hash = Xxh3::new();
    let mut add = |text: &str| {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    let Setting { seed, ranks, dealt, limits } = setting;
    add(&format!("{seed} {} {}", limits.bytes, limits.pixels));
    // Where that is not known, relative paths lead nowhere.
    add(&env::current_dir().unwrap_or_default().to_string_lossy());
    if let Some((rank, world_size)) = ranks {
        let rank = if dealt.get(at) == Some(&true) { rank.to_string() } else { String::new() };
        add(&format!("{rank}/{world_size}"));
    }
    let node = &graph.nodes()[at];
    node.inputs.iter().for_each(|input| add(&input.to_string()));
    for before in graph.up_to(at).nodes().iter().filter(|before| before.name != node.name) {
        add(&before.fingerprint().to_string());
        add(&registry.plugin_of(&before.pipe).map(plugin).unwrap_or_default());
    }
    let called =
        |record: &&Record| !record.manifest().decoders.is_empty() || !record.manifest().stores.is_empty();
    registry.plugins().iter().filter(called).for_each(|record| add(&plugin(record)));
    format!("{:032x}", hash.digest128())
}

fn plugin(record: &Record) -> String {
    // One that cannot be read any more was loaded, or will not be.
    format!("{} {}", record.label(), record.hash().unwrap_or_default())
}
