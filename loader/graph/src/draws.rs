//! What stands for a sampler and the source behind which it is written: the source's count, the sampler, and what gets the
//! samples that it draws.
//!
//! `range 10 | random_sampler | batch 4` runs as `range.len 10 | random_sampler | range.get 10 | batch 4`: pipes like all
//! others, so that order, state, placement and audits are those of any graph. A plugin has the two pipes for each of its sources
//! with random access. A stream that is collected has them too: `a | collect | sampler` runs as
//! `a | collect.len | sampler ; collect.get <collect.len.1, sampler>`.
//!
//! Maps between the two give a sample for each and have no state, so the sampler draws before them:
//! `range 10 | cast value=f32 | random_sampler` is `range 10 | random_sampler | cast value=f32`.

use std::collections::BTreeMap;

use forebay_core::{
    Error,
    sampling::{COUNTS, GETS},
};

use super::{Catalog, Class, Graph, Input, Node, PipeSpec};

impl PipeSpec {
    /// Whether it stands for a part of a source with random access, behind a sampler, and is not for people.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.is_indexed() && (self.name.ends_with(COUNTS) || self.name.ends_with(GETS))
    }
}

impl Graph {
    /// Samplers that stand behind what has no random access.
    pub(super) fn undrawn(&self, specs: &[Option<&PipeSpec>]) -> Vec<Error> {
        let places = self.places();
        let sampler = |at: &usize| specs[*at].is_some_and(|spec| spec.is_sampler());
        let mut problems = Vec::new();
        for node in (0..self.nodes.len()).filter(sampler).map(|at| &self.nodes[at]) {
            let read =
                |node: &Node| node.inputs.first().and_then(|input| places.get(input.node.as_str())).copied();
            let Some(mut from) = read(node) else { continue };
            while let Some(before) =
                specs[from].filter(|spec| spec.class == Class::Map).and_then(|_| read(&self.nodes[from]))
            {
                from = before;
            }
            if specs[from].is_some_and(|spec| spec.is_indexed() && !spec.name.ends_with(GETS)) {
                continue;
            }
            problems.push(node.locate(Error::invalid(format!(
                "`{}` draws from `{}`, which has no random access; put it behind a source that has it, or a pipe that collects, with only \
                 maps between",
                node.name, self.nodes[from].name
            ))));
        }
        problems
    }

    /// The checked graph with what stands for each sampler and its source.
    pub(super) fn with_draws(mut self, catalog: &dyn Catalog) -> Self {
        let samples = |node: &Node| catalog.pipe(&node.pipe).is_some_and(|spec| spec.is_sampler());
        let samplers: Vec<String> =
            self.nodes.iter().filter(|node| samples(node)).map(|node| node.name.clone()).collect();
        for sampler in samplers {
            self.hoist(&sampler, catalog);
            self.draw(&sampler, catalog);
        }
        self
    }

    /// Puts a sampler before the maps that it stands behind.
    fn hoist(&mut self, sampler: &str, catalog: &dyn Catalog) {
        let first = |node: &Node| node.inputs.first().cloned();
        let Some(last) = self.node(sampler).and_then(first) else { return };
        let (mut from, mut map) = (last.clone(), None);
        while let Some(node) = self.node(&from.node)
            && catalog.pipe(&node.pipe).is_some_and(|spec| spec.class == Class::Map)
            && let Some(before) = first(node)
        {
            map = Some(std::mem::replace(&mut from, before).node);
        }
        let Some(map) = map else { return };
        for node in &mut self.nodes {
            let name = node.name.as_str();
            for input in &mut node.inputs {
                if name == sampler {
                    input.clone_from(&from);
                } else if name == map {
                    sampler.clone_into(&mut input.node);
                } else if input.node == sampler {
                    input.clone_from(&last);
                }
            }
        }
        let place = |name: &str| self.nodes.iter().position(|node| node.name == name);
        if let (Some(at), Some(to)) = (place(sampler), place(&map))
            && to < at
        {
            self.nodes[to..=at].rotate_right(1);
        }
    }

    fn draw(&mut self, sampler: &str, catalog: &dyn Catalog) {
        let at = |nodes: &[Node], name: &str| nodes.iter().position(|node| node.name == name);
        let Some(source) =
            self.node(sampler).and_then(|node| node.inputs.first()).map(|input| input.node.clone())
        else {
            return;
        };
        let Some(from) = at(&self.nodes, &source) else { return };
        // Without them it is the count already: this graph was checked before.
        let parts = [COUNTS, GETS].map(|end| format!("{}{end}", self.nodes[from].pipe));
        if parts.iter().any(|part| catalog.pipe(part).is_none()) {
            return;
        }
        let [counts, gets] = parts;
        let mut count = format!("{source}-len");
        while self.node(&count).is_some() {
            count.push('_');
        }
        let output = |name: &str| Input { node: name.to_owned(), port: 0 };
        let mut get = self.nodes.remove(from);
        let own = |(name, _): &(&String, &serde_json::Value)| !super::COMMON.contains(&name.as_str());
        let mut options: BTreeMap<_, _> =
            get.options.iter().filter(own).map(|(name, value)| (name.clone(), value.clone())).collect();
        // They run together, so that a sampler goes on only where the count is still what it was.
        let place = self.node(sampler).and_then(|node| node.options.get(super::ON)).cloned();
        options.extend(place.filter(|_| get.inputs.is_empty()).map(|place| (super::ON.to_owned(), place)));
        // A source has none; a stream's count is known at its end, and its samples come by another way.
        let inputs = std::mem::take(&mut get.inputs);
        let mut reads: Vec<Input> =
            inputs.iter().take(1).map(|_| Input { node: count.clone(), port: 1 }).collect();
        self.nodes.insert(from, Node { name: count.clone(), pipe: counts, options, inputs });
        for input in self.nodes.iter_mut().flat_map(|node| &mut node.inputs) {
            match input.node.as_str() {
                name if name == sampler => input.node.clone_from(&source),
                name if name == source => input.node.clone_from(&count),
                _ => {}
            }
        }
        // What is worked on by many has no thread of its own.
        let parallel = catalog.pipe(&gets).is_some_and(PipeSpec::is_parallel);
        if parallel && get.on() == Some(super::On::OwnThread) {
            get.options.remove(super::ON);
        }
        reads.push(output(sampler));
        (get.pipe, get.inputs) = (gets, reads);
        let behind = at(&self.nodes, sampler).map_or(self.nodes.len(), |at| at + 1);
        self.nodes.insert(behind, get);
    }
}
