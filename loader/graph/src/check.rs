//! Checks a graph whole, before anything opens.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use forebay_core::{Error, Result};

use super::{Catalog, Class, Graph, Input, List, Node, On, PipeSpec, above, decoders, nearest, options};

/// The most unread outputs of one node that an error names.
const SHOWN: usize = 8;

impl Graph {
    /// Checks everything that can be checked without opening anything, and gives the graph with every option under
    /// its name and every number of its option's type.
    ///
    /// # Errors
    /// `Invalid`: the one problem, or a list of all [`problems`](Self::problems).
    pub fn check(&self, catalog: &dyn Catalog) -> Result<Self> {
        self.clone().into_checked(catalog)
    }

    /// As [`check`](Self::check), without a copy of what may be a list of a million paths.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn into_checked(mut self, catalog: &dyn Catalog) -> Result<Self> {
        let mut problems = self.problems(catalog);
        match problems.len() {
            0 => {
                for node in &mut self.nodes {
                    if let Some(spec) = catalog.pipe(&node.pipe) {
                        options::settle(node, spec);
                        decoders::settle(node, spec, catalog);
                    }
                }
                let mut checked = self.with_draws(catalog);
                checked.isolate(catalog);
                // Maps that a sampler stood between follow one another now.
                let order = checked.order()?;
                checked.parted_maps(&order).into_iter().next().map_or(Ok(checked), Err)
            }
            1 => Err(problems.remove(0)),
            count => {
                let mut message = format!("the graph has {count} problems:");
                for (at, problem) in problems.iter().enumerate() {
                    // Writing to a String cannot fail.
                    let node = problem.get("node").map(|node| format!("{node}: ")).unwrap_or_default();
                    let _ = write!(message, "\n  {}. {node}{}", at + 1, problem.message());
                }
                let looked = problems.iter().find_map(|problem| problem.get("plugins"));
                let error = Error::invalid(message);
                Err(looked.map_or(error.clone(), |looked| error.context("plugins", looked)))
            }
        }
    }

    /// Has nodes run where they must.
    pub(crate) fn isolate(&mut self, catalog: &dyn Catalog) {
        for node in &mut self.nodes {
            if let Some(on) = catalog.isolates(node)
                && node.on() != Some(On::Sandboxed)
            {
                node.place(on);
            }
        }
    }

    /// All that is wrong with the graph, in the order of its nodes:
    ///
    /// - unknown pipes and options, missing options, values of the wrong type or out of range;
    /// - names used twice, and circles;
    /// - inputs that do not exist, are read twice, are too many or too few;
    /// - outputs that nobody reads (exactly one may be left, the graph's own).
    #[must_use]
    pub fn problems(&self, catalog: &dyn Catalog) -> Vec<Error> {
        let specs: Vec<Option<&PipeSpec>> = self.nodes.iter().map(|node| catalog.pipe(&node.pipe)).collect();
        let places = self.places();
        let mut problems = Vec::new();
        let mut wired = true;
        let mut read_by = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let mut found = Vec::new();
            if places.get(node.name.as_str()) != Some(&at) {
                found.push(Error::invalid(format!(
                    "two nodes are called `{}`, expected unique names",
                    node.name
                )));
            }
            match specs[at] {
                None => found.push(unknown_pipe(node, catalog)),
                Some(spec) => {
                    found.extend(options::problems(node, spec));
                    found.extend(decoders::problems(node, spec, catalog));
                    found.extend(input_count(node, spec));
                    found.extend(lists_of_inputs(node, spec));
                }
            }
            let before = found.len();
            for input in &node.inputs {
                found.extend(self.input(input, node, &places, &specs, &mut read_by));
            }
            wired &= found.len() == before && places.get(node.name.as_str()) == Some(&at);
            problems.extend(found.into_iter().map(|error| node.locate(error)));
        }
        match self.order() {
            Err(circle) => problems.push(circle),
            Ok(order) if wired => {
                problems.extend(self.open_outputs(&specs));
                problems.extend(self.shared_rewinds(&specs, &order));
                problems.extend(self.parted_maps(&order));
                problems.extend(self.undrawn(&specs));
            }
            // Who reads what is not known while inputs are wrong.
            Ok(_) => {}
        }
        problems
    }

    /// What is wrong with one input of `node`.
    fn input<'a>(
        &'a self,
        input: &'a Input,
        node: &'a Node,
        places: &HashMap<&str, usize>,
        specs: &[Option<&PipeSpec>],
        read_by: &mut HashMap<&'a Input, &'a str>,
    ) -> Option<Error> {
        let Some(&from) = places.get(input.node.as_str()) else {
            let hint = nearest::did_you_mean(&input.node, places.keys().copied());
            return Some(Error::invalid(format!("input `{input}` names no node{hint}")));
        };
        let outputs = specs[from].map_or(u32::MAX, |spec| spec.outputs_of(&self.nodes[from]));
        if input.port >= outputs {
            let has = plural(outputs, "output");
            return Some(Error::invalid(format!("input is `{input}`, but `{}` has {has}", input.node)));
        }
        let other = read_by.insert(input, &node.name)?;
        Some(Error::invalid(format!(
            "output `{input}` is read by `{other}` and by `{}`, expected one reader; \
             put a pipe with several outputs between",
            node.name
        )))
    }

    /// Every output that nobody reads, unless it is the only end of the graph.
    fn open_outputs(&self, specs: &[Option<&PipeSpec>]) -> Option<Error> {
        let read: HashSet<(&str, u32)> = self
            .nodes
            .iter()
            .flat_map(|node| &node.inputs)
            .map(|input| (input.node.as_str(), input.port))
            .collect();
        let mut ends = Vec::new();
        for (node, spec) in self.nodes.iter().zip(specs) {
            let outputs = spec.map_or(1, |spec| spec.outputs_of(node));
            if outputs == 0 {
                ends.push(node.name.clone());
            }
            for port in (0..outputs).filter(|port| !read.contains(&(node.name.as_str(), *port))).take(SHOWN) {
                ends.push(Input { node: node.name.clone(), port }.to_string());
            }
        }
        let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
        let message = format!("the graph ends at {}, expected one end", nearest::quoted(&ends, " and "));
        (ends.len() > 1).then(|| Error::invalid(message))
    }
}

/// Nodes that start an input over, where that input shares something with others, which would start over too.
impl Graph {
    fn shared_rewinds(&self, specs: &[Option<&PipeSpec>], order: &[usize]) -> Vec<Error> {
        let read = self.edges();
        let mut problems = Vec::new();
        let rewinding = |at: &&usize| specs[**at].is_some_and(|spec| spec.order.rewinds);
        for &at in order.iter().filter(rewinding) {
            for (port, &input) in read[at].iter().enumerate() {
                let above = above(&read, input);
                // Every reader of what lies above must lie above as well, but for this one input.
                let shared = read.iter().enumerate().find_map(|(reader, inputs)| {
                    let other = |&(other, from): &(usize, &usize)| {
                        above.contains(from) && !above.contains(&reader) && (reader, other) != (at, port)
                    };
                    inputs.iter().enumerate().find(other).map(|(_, &from)| (from, reader))
                });
                if let Some((from, reader)) = shared {
                    let [node, from, reader] = [at, from, reader].map(|at| &self.nodes[at]);
                    let error = Error::invalid(format!(
                        "`{}` starts its input over, and with it `{}`, which `{}` reads too; \
                         put `{}` where nothing else reads from the same nodes",
                        node.name, from.name, reader.name, node.name
                    ));
                    problems.push(node.locate(error));
                    break;
                }
            }
        }
        problems
    }
}

/// Unordered maps that follow one another and are told to run in different places.
impl Graph {
    fn parted_maps(&self, order: &[usize]) -> Vec<Error> {
        let read = self.edges();
        let mut told: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut problems = Vec::new();
        for &at in order.iter().filter(|&&at| self.nodes[at].is_unordered()) {
            let node = &self.nodes[at];
            let before = read[at].first().and_then(|&from| told[from]);
            told[at] = before.or_else(|| node.on().map(|_| at));
            if let (Some(on), Some(other)) = (node.on(), before.map(|before| &self.nodes[before]))
                && let Some(was) = other.on().filter(|was| *was != on)
            {
                problems.push(node.locate(Error::invalid(format!(
                    "option `on` is {on}, and that of `{}` is {was}; unordered maps that follow one another run together, \
                     expected one place",
                    other.name
                ))));
            }
        }
        problems
    }
}

fn unknown_pipe(node: &Node, catalog: &dyn Catalog) -> Error {
    let names = catalog.names();
    let called = catalog.called(&node.pipe);
    let hint = match called.as_slice() {
        [] => nearest::did_you_mean(&node.pipe, names.iter().map(String::as_str)),
        here => format!("; here that is {}", nearest::quoted(here, " or ")),
    };
    Error::invalid(format!("unknown pipe `{}`{hint}", node.pipe)).context("plugins", catalog.looked())
}

fn input_count(node: &Node, spec: &PipeSpec) -> Option<Error> {
    let found = u32::try_from(node.inputs.len()).unwrap_or(u32::MAX);
    let (min, max) = if spec.class == Class::Source { (0, 0) } else { spec.layout.inputs };
    if (min..=max).contains(&found) {
        return None;
    }
    let expected = match (min, max) {
        (0, 0) => "none, since it is a source".to_owned(),
        (min, max) if min == max => min.to_string(),
        (min, u32::MAX) => format!("at least {min}"),
        (min, max) => format!("{min} to {max}"),
    };
    Some(Error::invalid(format!("it has {}, expected {expected}", plural(found, "input"))))
}

/// Lists that have not one value for each input.
fn lists_of_inputs(node: &Node, spec: &PipeSpec) -> Vec<Error> {
    let inputs = node.inputs.len();
    let lists = spec.layout.per_input.iter().filter_map(|option| Some((*option, spec.given(node, option)?)));
    // One value where a list must stand is told as that.
    let one =
        |option: &str| spec.options.iter().any(|known| known.name == option && known.list == List::Either);
    let lens = lists.filter_map(|(option, value)| match value.as_array() {
        Some(list) => Some((option, list.len())),
        None => one(option).then_some((option, 1)),
    });
    let wrong = lens.filter(|&(_, len)| len != inputs);
    let told = |(option, len)| {
        let found = plural(u32::try_from(len).unwrap_or(u32::MAX), "value");
        Error::invalid(format!("option `{option}` has {found}, expected one for each of {inputs} inputs"))
    };
    wrong.map(told).collect()
}

fn plural(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
