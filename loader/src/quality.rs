//! Measures how well a graph shuffles: runs it with and without its shuffles, and compares the two orders.

use std::collections::HashMap;

use forebay_core::{Error, Result, Rng};
use forebay_engine::Executor;
use forebay_graph::{Catalog as _, Graph, Node};
use forebay_registry::Registry;
use serde::Serialize;

use crate::Loader;

/// What makes a flat map change the order of what it gives.
const INTERLEAVE: [&str; 2] = ["interleave", "interleave_block"];

/// How far the order of samples is from the order of the data, compared with one full shuffle.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Quality {
    /// The last node that shuffles. Its output is measured.
    pub node: String,
    /// How many samples there are.
    pub samples: u64,
    /// The entropy, in bits, of the distance in the data between two samples that follow each other.
    pub entropy: Measure,
    /// By how many places a sample is moved, on average.
    pub moved: Measure,
    /// The share of samples that follow a sample of the same file.
    pub together: Measure,
    /// How many samples that node takes before it gives the first one. The start of an epoch waits for these. Not
    /// measured if plugins are isolated, because those run ahead.
    pub before_first: Option<u64>,
}

/// One figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measure {
    /// For the graph.
    pub found: f64,
    /// For one random order of the same samples.
    pub full: f64,
}

/// Measures the order of epoch 0; `None` if no node shuffles.
///
/// The entropy is that of the distances between neighbours, modulo the number of samples; the last and the first
/// sample are neighbours too. It is 0 for samples in their own order, and about `log2(n) - 0.83` for a random
/// order. The streaming simulator of MosaicML compares shuffles by it too.
///
/// Pipes that keep samples or start over (`cache`, `repeat`) are left out.
///
/// Cost: runs everything up to the last node that shuffles twice, and starts a third run; 40 bytes of memory a
/// sample.
///
/// # Errors
/// The errors of a run; `Invalid` if samples come that do not come without a shuffle.
pub fn quality(graph: &Graph, registry: &Registry, seed: u64) -> Result<Option<Quality>> {
    let shuffles =
        |node: &Node| registry.pipe(&node.pipe).is_some_and(|spec| spec.reorders() || spec.is_sampler());
    let Some(last) = graph.order()?.into_iter().rfind(|&at| shuffles(&graph.nodes()[at])) else {
        return Ok(None);
    };
    let node = graph.nodes()[last].name.clone();
    // What keeps samples would keep those of both runs, and what starts over might never end.
    let apart =
        |node: &Node| registry.pipe(&node.pipe).is_some_and(|spec| spec.order.keeps || spec.order.rewinds);
    let part = graph.up_to(last).without(apart);
    let plain = part.clone().without(shuffles).with_options(|_, option| !INTERLEAVE.contains(&option));
    let alone = |error: Error| error.context("measured", format!("the graph up to `{node}`, run by itself"));
    let lie = uids(&plain, registry, seed).map_err(alone)?;
    let come = uids(&part, registry, seed).map_err(alone)?;
    let places: HashMap<u64, usize> = lie.uids.iter().enumerate().map(|(place, &uid)| (uid, place)).collect();
    let order: Vec<usize> = come.uids.iter().filter_map(|uid| places.get(uid).copied()).collect();
    if order.len() < come.uids.len() {
        let others = come.uids.len() - order.len();
        let message = format!(
            "{others} of {} samples do not come without the shuffle, expected the same samples",
            come.uids.len()
        );
        return Err(Error::invalid(message).context("node", node));
    }
    let mut full: Vec<usize> = (0..lie.uids.len()).collect();
    shuffle(&mut full, &mut Rng::new(seed, 0));
    let before_first = before_first(part, &node, registry, seed)?;
    let measure = |of: &dyn Fn(&[usize]) -> f64| Measure { found: of(&order), full: of(&full) };
    Ok(Some(Quality {
        node,
        samples: order.len() as u64,
        entropy: measure(&|order| entropy(order, lie.uids.len())),
        moved: measure(&moved),
        together: measure(&|order| together(order, &lie.files)),
        before_first,
    }))
}

/// How many samples `node`, the last of `part`, takes before it gives its first. A sampler takes none: what it is told is their number.
fn before_first(part: Graph, node: &str, registry: &Registry, seed: u64) -> Result<Option<u64>> {
    let node = part.nodes().iter().find(|found| found.name == node);
    let node =
        node.cloned().ok_or_else(|| Error::bug("what is measured is not in its own part of the graph"))?;
    if registry.pipe(&node.pipe).is_some_and(|spec| spec.is_sampler()) {
        return Ok(Some(0));
    }
    let executor = Executor::modest(registry);
    if executor != Executor::Inline {
        return Ok(None);
    }
    let mut loader = Loader::builder(part).executor(executor).chunk(1).seed(seed).build(registry)?;
    loader.epoch(0).next().transpose()?;
    Ok(Some(loader.taken_by(&node.name)))
}

/// What a run gives: the uids of its samples, and the number of the file that each is of.
struct Given {
    uids: Vec<u64>,
    files: Vec<u32>,
}

fn uids(graph: &Graph, registry: &Registry, seed: u64) -> Result<Given> {
    let mut given = Given { uids: Vec::new(), files: Vec::new() };
    let mut known: HashMap<String, u32> = HashMap::new();
    let loader =
        Loader::builder(graph.clone()).executor(Executor::modest(registry)).seed(seed).allow_failures(true);
    let mut loader = loader.build(registry)?;
    for sample in loader.epoch(0) {
        let sample = sample?;
        let origin = sample.key().origin.as_str();
        let next = known.len() as u32;
        let file =
            known.get(origin).copied().unwrap_or_else(|| *known.entry(origin.to_owned()).or_insert(next));
        given.uids.push(sample.uid());
        given.files.push(file);
    }
    Ok(given)
}

/// A random order (Durstenfeld, 1964).
fn shuffle(order: &mut [usize], rng: &mut Rng) {
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

fn entropy(order: &[usize], count: usize) -> f64 {
    let next = order.iter().cycle().skip(1);
    let mut apart: Vec<usize> =
        order.iter().zip(next).map(|(one, next)| (next + count - one) % count).collect();
    apart.sort_unstable();
    let parts =
        apart.chunk_by(|one, other| one == other).map(|alike| alike.len() as f64 / apart.len() as f64);
    // Without the sign of nothing at all.
    0.0 - parts.map(|part| part * part.log2()).sum::<f64>()
}

fn moved(order: &[usize]) -> f64 {
    let sum: f64 = order.iter().enumerate().map(|(place, &from)| place.abs_diff(from) as f64).sum();
    sum / order.len().max(1) as f64
}

fn together(order: &[usize], files: &[u32]) -> f64 {
    let file = |at: usize| files.get(at);
    let pairs = order.windows(2).filter(|pair| file(pair[0]) == file(pair[1])).count();
    pairs as f64 / order.len().saturating_sub(1).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_as_it_was_has_none_and_a_random_one_nearly_all() {
        let mut order: Vec<usize> = (0..1 << 16).collect();
        assert_eq!((entropy(&order, 1 << 16), moved(&order)), (0.0, 0.0));
        let files: Vec<u32> = (0..1 << 16).map(|at| at / 64).collect();
        assert!((together(&order, &files) - 63.0 / 64.0).abs() < 1e-3);
        shuffle(&mut order, &mut Rng::new(1, 2));
        let (bits, far) = (entropy(&order, 1 << 16), moved(&order));
        assert!((15.1..15.25).contains(&bits), "{bits}");
        assert!((far / 65536.0 - 1.0 / 3.0).abs() < 0.01, "{far}");
        assert!(together(&order, &files) < 0.002);
        // Half of the samples are moved by one place.
        let pairs: Vec<usize> = (0..100).map(|at: usize| at ^ 1).collect();
        assert!((entropy(&pairs, 100) - 1.0).abs() < 0.1 && moved(&pairs) == 1.0);
        assert_eq!((entropy(&[], 0), moved(&[]), together(&[], &[])), (0.0, 0.0, 0.0));
    }
}
