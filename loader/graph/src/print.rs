//! Prints graphs for people: TOML and the one-line form, without what a reader of them fills in.

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::Value;

use super::builder::{is_option, may_be_default, name_all};
use super::{Catalog, Graph, Input, Node, POSITIONAL, line};

/// A list that is longer than this in TOML has a line for each item.
const WIDTH: usize = 100;

impl Graph {
    /// The graph as TOML, without the names and inputs that are the defaults.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let default_names = self.default_names();
        let mut tables = vec![self.run_table()];
        for (at, node) in self.nodes.iter().enumerate() {
            let mut table = String::from("[[node]]\n");
            if !default_names[at] {
                entry(&mut table, "name", &Value::from(node.name.as_str()));
            }
            entry(&mut table, "pipe", &Value::from(node.pipe.as_str()));
            if !self.reads_before(at) && (at > 0 || !node.inputs.is_empty()) {
                entry(&mut table, "inputs", &node.inputs.iter().map(Input::to_string).collect());
            }
            node.options.iter().for_each(|(option, value)| entry(&mut table, option, value));
            tables.push(table);
        }
        tables.retain(|table| !table.is_empty());
        tables.join("\n")
    }

    /// The graph in the one-line form, without [`run`](Self::run). With a catalog, the first option of each pipe
    /// stands by position. Without one, only options that were given by position do.
    #[must_use]
    pub fn to_line(&self, catalog: Option<&dyn Catalog>) -> String {
        let default_names = self.default_names();
        let mut text = String::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let joined = self.reads_before(at);
            if at > 0 {
                text.push_str(if joined { " | " } else { " ; " });
            }
            text.push_str(&node.pipe);
            if !default_names[at] {
                text.extend([" @", &node.name]);
            }
            if !joined && !node.inputs.is_empty() {
                let inputs: Vec<String> = node.inputs.iter().map(Input::to_string).collect();
                text.extend([" <", &inputs.join(", "), ">"]);
            }
            line_options(&mut text, node, catalog);
        }
        text
    }

    /// As [`to_line`](Self::to_line), for people: shows the first `most` items of each list, and how many more
    /// there are.
    #[must_use]
    pub fn shown(&self, catalog: Option<&dyn Catalog>, most: usize) -> String {
        let (mut short, mut cut) = (self.clone(), BTreeSet::new());
        for value in short.nodes.iter_mut().flat_map(|node| node.options.values_mut()) {
            if let Value::Array(items) = value
                && items.len() > most + 1
            {
                let more = items.len() - most;
                items.truncate(most);
                items.push(Value::from(format!("…{more}")));
                cut.insert(more);
            }
        }
        let line = short.to_line(catalog);
        cut.into_iter()
            .fold(line, |line, more| line.replace(&format!("…{more}]"), &format!("… {more} more]")))
    }

    fn run_table(&self) -> String {
        let mut table = String::new();
        let run = &self.run;
        let settings = [
            ("executor", run.executor.as_deref().map(Value::from)),
            ("seed", run.seed.map(Value::from)),
            ("epochs", run.epochs.map(Value::from)),
            ("budget", run.budget.map(Value::from)),
            ("ahead", run.ahead.map(Value::from)),
        ];
        for (name, value) in settings {
            if let Some(value) = value {
                entry(&mut table, name, &value);
            }
        }
        if table.is_empty() { table } else { format!("[run]\n{table}") }
    }

    /// Whether a node reads the first output of the node before, and nothing else.
    fn reads_before(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| &self.nodes[before].name);
        matches!(self.nodes[at].inputs.as_slice(), [Input { node, port: 0 }] if Some(node) == before)
    }

    /// For each node whether it would get its name when none is written.
    fn default_names(&self) -> Vec<bool> {
        let mut left_out: Vec<bool> =
            self.nodes.iter().map(|node| may_be_default(&node.name, &node.pipe)).collect();
        loop {
            let written = self.nodes.iter().zip(&left_out).map(|(node, &out)| {
                let name = (!out).then_some(node.name.as_str());
                (name, node.pipe.as_str())
            });
            let names = name_all(written);
            let before = left_out.clone();
            for (at, node) in self.nodes.iter().enumerate() {
                left_out[at] &= names[at] == node.name;
            }
            if left_out == before {
                return left_out;
            }
        }
    }
}

/// One node in the one-line form, with its inputs, without its name.
impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = self.pipe.clone();
        if self.inputs.len() > 1 {
            let inputs: Vec<String> = self.inputs.iter().map(Input::to_string).collect();
            text.extend([" <", &inputs.join(", "), ">"]);
        }
        line_options(&mut text, self, None);
        f.write_str(&text)
    }
}

fn line_options(text: &mut String, node: &Node, catalog: Option<&dyn Catalog>) {
    let spec = catalog.and_then(|catalog| catalog.pipe(&node.pipe));
    let known = spec.and_then(|spec| spec.options.first()).map(|option| option.name.as_str());
    let first = if node.options.contains_key(POSITIONAL) { Some(POSITIONAL) } else { known };
    if let Some(value) = first.and_then(|first| node.options.get(first)) {
        text.push(' ');
        push_value(text, value, true);
    }
    for (option, value) in node.options.iter().filter(|(option, _)| Some(option.as_str()) != first) {
        text.extend([" ", option, "="]);
        push_value(text, value, true);
    }
}

fn entry(table: &mut String, name: &str, value: &Value) {
    push_key(table, name, false);
    table.push_str(" = ");
    let start = table.len();
    push_value(table, value, false);
    if let Value::Array(items) = value
        && table.len() - start > WIDTH
    {
        table.truncate(start);
        table.push('[');
        for item in items {
            table.push_str("\n    ");
            push_value(table, item, false);
            table.push(',');
        }
        table.push_str("\n]");
    }
    table.push('\n');
}

fn push_key(text: &mut String, key: &str, line: bool) {
    if is_option(key) { text.push_str(key) } else { push_string(text, key, line) }
}

/// Writes a value for the one-line form, or for TOML.
pub(super) fn push_value(text: &mut String, value: &Value, line: bool) {
    let (open, close) = match value {
        Value::String(string) if line && line::is_bare(string) => return text.push_str(string),
        Value::String(string) => return push_string(text, string, line),
        Value::Array(_) => ('[', ']'),
        Value::Object(_) => ('{', '}'),
        other => return text.push_str(&other.to_string()),
    };
    text.push(open);
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        text.push_str(if at > 0 { ", " } else { "" });
        push_value(text, item, line);
    }
    for (at, (key, item)) in value.as_object().into_iter().flatten().enumerate() {
        text.push_str(if at > 0 { ", " } else { "" });
        push_key(text, key, line);
        text.push_str(" = ");
        push_value(text, item, line);
    }
    text.push(close);
}

/// Writes a string in single quotes for a shell's sake, or as a TOML basic string.
fn push_string(text: &mut String, string: &str, line: bool) {
    let quote = if line { '\'' } else { '"' };
    text.push(quote);
    for c in string.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c == quote => text.extend(['\\', c]),
            c if c.is_control() => {
                let code = u32::from(c);
                // Writing to a String cannot fail.
                let _ = if line { write!(text, "\\u{{{code:x}}}") } else { write!(text, "\\u{code:04x}") };
            }
            c => text.push(c),
        }
    }
    text.push(quote);
}
