//! Options of decoders, which a node that asks for them gives by their names: checked as those of pipes are.

use forebay_core::{Error, nearest};
use serde_json::{Map, Value};

use super::{Catalog, Node, OPTIONS, OptionSpec, PipeSpec, options};

impl PipeSpec {
    /// Whether it takes options for decoders.
    pub fn configures(&self) -> bool {
        self.placement.decodes && self.options.iter().all(|option| option.name != OPTIONS)
    }
}

impl Node {
    /// The options of decoders, by the decoder; of a checked graph, and of a pipe that takes them.
    pub fn decoder_options(&self) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
        let given = self.options.get(OPTIONS).and_then(Value::as_object).into_iter().flatten();
        given.filter_map(|(decoder, options)| Some((decoder.as_str(), options.as_object()?)))
    }
}

/// What is wrong with the options that a node gives decoders.
pub(super) fn problems(node: &Node, spec: &PipeSpec, catalog: &dyn Catalog) -> Vec<Error> {
    let Some(given) = node.options.get(OPTIONS).filter(|_| spec.configures()) else { return Vec::new() };
    let expected = |what: String, found: &Value| {
        Error::invalid(format!(
            "{what} is {}, expected a table, as in {{NAME={{option=value}}}}",
            options::show(found)
        ))
    };
    let Some(given) = given.as_object() else {
        return vec![expected(format!("option `{OPTIONS}`"), given)];
    };
    let mut problems = Vec::new();
    for (decoder, options) in given {
        let specs = catalog.decoders(decoder);
        match options.as_object() {
            _ if specs.is_empty() => problems.push(unknown(decoder, catalog)),
            None => problems.push(expected(format!("`{decoder}` in option `{OPTIONS}`"), options)),
            Some(given) => problems.extend(specs.iter().flat_map(|specs| wrong(decoder, given, specs))),
        }
    }
    problems
}

fn wrong(decoder: &str, given: &Map<String, Value>, specs: &[OptionSpec]) -> Vec<Error> {
    let one = |(name, value): (&String, &Value)| {
        let fits = options::named(name, specs).and_then(|option| options::fit(value, option));
        fits.err().map(|message| Error::invalid(format!("decoder `{decoder}`: {message}")))
    };
    given.iter().filter_map(one).collect()
}

fn unknown(decoder: &str, catalog: &dyn Catalog) -> Error {
    let names = catalog.decoder_names();
    let hint = nearest::did_you_mean(decoder, names.iter().map(String::as_str));
    let message = format!("option `{OPTIONS}`: no decoder is called `{decoder}`{hint}");
    Error::invalid(message).context("plugins", catalog.looked())
}

/// Gives every number its option's type, as of options of pipes.
pub(super) fn settle(node: &mut Node, spec: &PipeSpec, catalog: &dyn Catalog) {
    let given = node.options.get_mut(OPTIONS).filter(|_| spec.configures()).and_then(Value::as_object_mut);
    for (decoder, options) in given.into_iter().flatten() {
        for specs in catalog.decoders(decoder) {
            for spec in specs {
                options.get_mut(&spec.name).into_iter().for_each(|value| options::settle_value(value, spec));
            }
        }
    }
}
