//! Whether a snapshot fits a graph, and how they differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use forebay_core::{Error, Result};
use forebay_graph::{Graph, above};
use forebay_registry::{FoundPlugin, Registry};

use super::{FileMark, NodeMark, NodeWords, ResumePlan, Snapshot};
use crate::checkpoint_log::StartPoint;

/// What goes on after a snapshot.
pub struct Now<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its nodes.
    pub resume_plan: &'a ResumePlan,
    /// The plugins that there are.
    pub registry: &'a Registry,
    /// The plugins that the snapshot names.
    pub plugins: &'a BTreeMap<String, &'a FoundPlugin>,
    /// The seed.
    pub seed: u64,
    /// This rank and how many there are.
    pub ranks: (u32, u32),
    /// The nodes, plugins and files that may differ, by name.
    pub allowed: &'a [String],
}

/// Where each node of a graph begins, to go on after `snapshot`.
///
/// # Errors
/// `Invalid`, with every difference that is not allowed.
pub fn origins(snapshot: &Snapshot, now: &Now<'_>) -> Result<Vec<StartPoint>> {
    let mut differences = Vec::new();
    if snapshot.seed != now.seed {
        differences.push(format!("seed: was {}, is {}", snapshot.seed, now.seed));
    }
    now.plugins_differ(snapshot, &mut differences)?;
    let origins = now.nodes_differ(snapshot, &mut differences)?;
    let gone = snapshot.nodes.iter().filter(|node| now.graph.node(&node.name).is_none());
    differences.extend(gone.map(|node| format!("node {}: was `{}`, is gone", node.name, node.what)));
    let lenient = now.files_differ(snapshot, &mut differences) || !now.allowed.is_empty();
    if !snapshot.ended {
        differences.extend(ranks_differ(snapshot, now));
    }
    if differences.is_empty() {
        return Ok(origins.into_iter().map(|origin| StartPoint { lenient, ..origin }).collect());
    }
    let mut message = String::from("the snapshot does not fit this run:");
    for difference in differences {
        let _ = write!(message, "\n  {difference}"); // Writing to a String cannot fail.
    }
    message.push_str("\nYou can allow a node, plugin or file that is still there to differ, by its name.");
    Err(Error::invalid(message))
}

impl Now<'_> {
    fn allows(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == name)
    }

    /// Adds the plugins that cannot go on from what those of the snapshot saved.
    fn plugins_differ(&self, snapshot: &Snapshot, differences: &mut Vec<String>) -> Result<()> {
        for (name, before) in snapshot.plugins.iter().filter(|(name, _)| !self.allows(name)) {
            let Some(record) = self.plugins.get(name) else {
                differences.push(format!("plugin {name}: was {}, is gone", before.version));
                continue;
            };
            let (was, is) = (&before.version, &record.manifest().version);
            let difference = match (before.state_version, record.manifest().state_version) {
                (Some(saved), Some(reads)) if saved == reads => continue,
                (Some(saved), Some(reads)) => {
                    format!(
                        "was {was} with states of version {saved}, is {is} with states of version {reads}"
                    )
                }
                (Some(saved), None) => {
                    format!(
                        "was {was} with states of version {saved}, is {is}, which declares no version of its states"
                    )
                }
                // The snapshot knows the file, or that there was none.
                (None, _) if was != is => format!("was {was}, is {is}"),
                (None, _) if before.hash.is_empty() || record.path().is_none() => continue,
                (None, _) if before.hash == record.hash()? => continue,
                (None, _) => format!(
                    "was {was}, is {is} of another build, and the snapshot has no version of its states"
                ),
            };
            differences.push(format!("plugin {name}: {difference}"));
        }
        Ok(())
    }

    /// Where each node begins; adds those that are others.
    fn nodes_differ(&self, snapshot: &Snapshot, differences: &mut Vec<String>) -> Result<Vec<StartPoint>> {
        let saved: BTreeMap<&str, &NodeMark> =
            snapshot.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let mut origins = Vec::new();
        for (node, resume) in self.resume_plan.words(self.graph).nodes.iter().zip(&self.resume_plan.nodes) {
            let NodeWords { name, what, fingerprint, .. } = node;
            let Some(before) = saved.get(name.as_str()) else {
                differences.push(format!("node {name}: new, is `{what}`"));
                continue;
            };
            if before.fingerprint != *fingerprint && !self.allows(name) {
                differences.push(format!("node {name}: {}", node.difference(before)));
            }
            if resume.map && !resume.replaces && before.skip.iter().any(|&count| count > 0) {
                differences.push(format!(
                    "node {name}: was `{}`, which repeated samples that this map would give twice",
                    before.what
                ));
            }
            if resume.handoff_log.is_some() != before.order.is_some() {
                differences.push(format!(
                    "node {name}: was `{}`, is `{what}`: an ordered node cannot become unordered, nor the reverse",
                    before.what
                ));
            }
            let mut origin = before.origin(resume.inputs.len(), resume.outputs, resume.map)?;
            // What is allowed to be another file is looked at anew.
            origin.files.retain(|file| !self.allows_file(name, file));
            origins.push(origin);
        }
        Ok(origins)
    }

    /// Adds the files in which a node goes on that are not what they were. Says whether one differs that may.
    fn files_differ(&self, snapshot: &Snapshot, differences: &mut Vec<String>) -> bool {
        let mut seen = BTreeSet::new();
        let mut allowed = false;
        let files = snapshot.nodes.iter().flat_map(|node| node.files.iter().map(move |file| (node, file)));
        for (node, file) in files.filter(|(_, file)| seen.insert(file.path.as_str())) {
            match file.difference(self.registry) {
                Some(_) if self.allows_file(&node.name, file) => allowed = true,
                difference => differences.extend(difference),
            }
        }
        allowed
    }

    /// Whether a file of this node may differ: by its own name, that of the node, or that of a source before it.
    fn allows_file(&self, node: &str, file: &FileMark) -> bool {
        if self.allowed.is_empty() {
            return false;
        }
        let nodes = self.graph.nodes();
        let at = nodes.iter().position(|known| known.name == node);
        let before = at.map(|at| above(&self.graph.edges(), at)).unwrap_or_default();
        let mut sources = before.into_iter().filter(|&at| nodes[at].inputs.is_empty());
        self.allows(&file.path) || self.allows(node) || sources.any(|at| self.allows(&nodes[at].name))
    }
}

/// Why this rank cannot go on after a snapshot of another: behind what deals samples out, every node must have given as many as any
/// other rank's would have, and hold none.
fn ranks_differ(snapshot: &Snapshot, now: &Now<'_>) -> Option<String> {
    let Now { graph, resume_plan, ranks: (rank, world_size), .. } = now;
    let (was, of) = (snapshot.rank, snapshot.world_size);
    if (was, of) == (*rank, *world_size) {
        return None;
    }
    let refuse = |why: String| Some(format!("rank: was {was} of {of}, is {rank} of {world_size}: {why}"));
    if !resume_plan.nodes.iter().any(|resume| resume.dealt) {
        return refuse("no pipe shards".to_owned());
    }
    for (node, resume) in graph.nodes().iter().zip(&resume_plan.nodes).filter(|(_, resume)| resume.dealt) {
        let Some(mark) = snapshot.nodes.iter().find(|mark| mark.name == node.name) else { continue };
        let holds = mark.again.iter().any(|&count| count > 0) && !resume.deals;
        let even = match resume.map {
            true => mark.taken == mark.given,
            false => (resume.deals || resume.stacks) && mark.lost == 0,
        };
        if resume.writes {
            let name = &node.name;
            return refuse(format!("`{name}` wrote other samples on each rank; resume with the same ranks"));
        }
        if !even {
            let name = &node.name;
            return refuse(format!(
                "at this place `{name}` has taken another number of samples on each rank; shard after it"
            ));
        }
        if resume.handoff_log.is_some() {
            return refuse(format!(
                "`{}` is unordered and gave its samples in another order on each rank",
                node.name
            ));
        }
        if resume.replaces && mark.taken != [0] {
            return refuse(format!(
                "`{}` replaces a failed sample by the one before on the same rank; \
                 shard after it",
                node.name
            ));
        }
        if holds || mark.skip.iter().any(|&count| count > 0) {
            return refuse(format!("`{}` holds samples of one rank; shard after it", node.name));
        }
    }
    None
}
