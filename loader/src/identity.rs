//! Identities of what nodes read, for pipes that keep something from run to run.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::Xxh3;

use crate::{
    Registry,
    graph::{Catalog as _, Graph},
};

/// For each node whose pipe asks for it, by place: the identity of all that stands before it.
///
/// It is the 128-bit XXH3 of the seed, of the rank and how many there are where samples are dealt out before it, and of each node
/// before it, in the order of the graph: its fingerprint and its plugin with version.
pub(crate) fn identities(
    graph: &Graph,
    registry: &Registry,
    seed: u64,
    ranks: (u32, u32),
    dealt: &[bool],
) -> BTreeMap<usize, String> {
    let read = graph.edges();
    let asks = |at: usize| {
        registry.pipe(&graph.nodes()[at].pipe).is_some_and(|spec| !spec.identity_option.is_empty())
    };
    let identity = |at: usize| {
        let mut hash = Xxh3::new();
        hash.update(&seed.to_le_bytes());
        if dealt.get(at) == Some(&true) {
            hash.update(&ranks.0.to_le_bytes());
            hash.update(&ranks.1.to_le_bytes());
        }
        for before in before(&read, at) {
            let node = &graph.nodes()[before];
            hash.update(&node.fingerprint().value().to_le_bytes());
            let plugin = registry.plugin_of(&node.pipe).map(|record| record.label());
            hash.update(plugin.unwrap_or_default().as_bytes());
        }
        format!("{:032x}", hash.digest128())
    };
    (0..read.len()).filter(|&at| asks(at)).map(|at| (at, identity(at))).collect()
}

/// The nodes whose samples come to a node, in the order of the graph.
fn before(read: &[Vec<usize>], at: usize) -> Vec<usize> {
    let mut todo = read[at].clone();
    let mut found = std::collections::BTreeSet::new();
    while let Some(before) = todo.pop() {
        if found.insert(before) {
            todo.extend(&read[before]);
        }
    }
    found.into_iter().collect()
}
