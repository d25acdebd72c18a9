//! A pipe as the JSON of a manifest spells it: one flat object, in which lists of words are texts.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use forebay_core::{
    Access, Class, Condition, Drops, FoldersOption, Noun, On, PipeAudit, PipeLayout, PipeOrder,
    PipePlacement, Randomness, Uids,
};
use serde::{Deserialize, Deserializer, Serialize};

use super::{OpensSpec, OptionSpec, PipeSpec};

/// What a manifest says of one pipe; [`PipeSpec`] is what it means.
#[derive(Serialize, Deserialize)]
pub(crate) struct Wire {
    name: String,
    class: Class,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    also: String,
    #[serde(default)]
    options: Vec<OptionSpec>,
    #[serde(default)]
    inputs: (u32, u32),
    #[serde(default = "one")]
    outputs: u32,
    #[serde(default)]
    outputs_option: String,
    #[serde(default)]
    per_input: String,
    #[serde(default)]
    stacks: String,
    #[serde(default)]
    uids_option: String,
    #[serde(default)]
    gives: String,
    #[serde(default)]
    uids: Uids,
    #[serde(default)]
    drops: String,
    #[serde(default)]
    takes: String,
    #[serde(default)]
    writes: bool,
    #[serde(default)]
    parallel: bool,
    #[serde(default)]
    indexed: bool,
    #[serde(default)]
    samples: bool,
    #[serde(default)]
    shuffles: bool,
    #[serde(default)]
    draws: String,
    #[serde(default)]
    keeps: bool,
    #[serde(default)]
    identity_option: String,
    #[serde(default)]
    folders_option: String,
    #[serde(default)]
    rewinds: bool,
    #[serde(default)]
    shards: bool,
    #[serde(default)]
    decodes: bool,
    #[serde(default, deserialize_with = "hint")]
    on: On,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opens: Option<OpensSpec>,
}

fn one() -> u32 {
    1
}

/// A hint may be one that only later loaders know of.
fn hint<'de, D: Deserializer<'de>>(from: D) -> Result<On, D::Error> {
    Ok(String::deserialize(from)?.parse().unwrap_or_default())
}

impl From<Wire> for PipeSpec {
    fn from(wire: Wire) -> Self {
        let layout = PipeLayout {
            inputs: wire.inputs,
            outputs: wire.outputs,
            outputs_option: option(&wire.outputs_option),
            per_input: words(&wire.per_input),
            stacks: option(&wire.stacks),
            gives: wire.gives.split_once(' ').map(|(one, many)| Noun { one: text(one), many: text(many) }),
            access: match (wire.indexed, wire.samples) {
                (_, true) => Access::Sampler,
                (true, false) => Access::Indexed,
                (false, false) => Access::InOrder,
            },
            folders_option: wire
                .folders_option
                .split_once(' ')
                .map(|(names, root)| FoldersOption { names: text(names), root: text(root) }),
        };
        let order = PipeOrder {
            shuffles: wire.shuffles,
            draws: draws(&wire.draws),
            takes: option(&wire.takes),
            shards: wire.shards,
            keeps: wire.keeps,
            identity_option: option(&wire.identity_option),
            rewinds: wire.rewinds,
        };
        let drops = match wire.drops.as_str() {
            "" => Drops::Never,
            "*" => Drops::Always,
            options => Drops::With(words(options)),
        };
        let audit =
            PipeAudit { uids: wire.uids, uids_option: option(&wire.uids_option), drops, writes: wire.writes };
        let placement = PipePlacement { on: wire.on, parallel: wire.parallel, decodes: wire.decodes };
        Self {
            name: wire.name,
            class: wire.class,
            summary: wire.summary,
            also: wire.also.split_whitespace().map(str::to_owned).collect(),
            options: wire.options,
            layout,
            order,
            audit,
            placement,
            opens: wire.opens,
        }
    }
}

impl From<PipeSpec> for Wire {
    fn from(spec: PipeSpec) -> Self {
        let PipeSpec { name, class, summary, also, options, layout, order, audit, placement, opens } = spec;
        let text = |option: Option<&str>| option.unwrap_or_default().to_owned();
        Self {
            name,
            class,
            summary,
            also: also.join(" "),
            options,
            inputs: layout.inputs,
            outputs: layout.outputs,
            outputs_option: text(layout.outputs_option),
            per_input: layout.per_input.join(" "),
            stacks: text(layout.stacks),
            uids_option: text(audit.uids_option),
            gives: layout.gives.map_or_else(String::new, |noun| format!("{} {}", noun.one, noun.many)),
            uids: audit.uids,
            drops: match audit.drops {
                Drops::Never => String::new(),
                Drops::Always => "*".to_owned(),
                Drops::With(options) => options.join(" "),
            },
            takes: text(order.takes),
            writes: audit.writes,
            parallel: placement.parallel,
            indexed: layout.access == Access::Indexed,
            samples: layout.access == Access::Sampler,
            shuffles: order.shuffles,
            draws: match order.draws {
                Randomness::Never => String::new(),
                Randomness::Always => "*".to_owned(),
                Randomness::If(conditions) => conditions.iter().map(condition).collect::<Vec<_>>().join(" "),
            },
            keeps: order.keeps,
            identity_option: text(order.identity_option),
            folders_option: layout
                .folders_option
                .map_or_else(String::new, |option| format!("{} {}", option.names, option.root)),
            rewinds: order.rewinds,
            shards: order.shards,
            decodes: placement.decodes,
            on: placement.on,
            opens,
        }
    }
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Is(option, value) => format!("{option}={value}"),
        Condition::Contains(option, text) => format!("{option}~{text}"),
    }
}

fn draws(text: &str) -> Randomness {
    let condition = |word: &str| match (word.split_once('='), word.split_once('~')) {
        (_, Some((option, part))) => Some(Condition::Contains(self::text(option), self::text(part))),
        (Some((option, value)), None) => Some(Condition::Is(self::text(option), self::text(value))),
        (None, None) => None,
    };
    let words = || text.split_whitespace();
    let conditions: Box<[Condition]> = words().filter_map(condition).collect();
    match words().any(|word| word == "*") {
        true => Randomness::Always,
        false if conditions.is_empty() => Randomness::Never,
        false => Randomness::If(kept(&CONDITIONS, conditions)),
    }
}

/// An option's name; none for an empty text.
fn option(name: &str) -> Option<&'static str> {
    (!name.is_empty()).then(|| text(name))
}

fn text(text: &str) -> &'static str {
    kept(&TEXTS, Box::from(text))
}

fn words(words: &str) -> &'static [&'static str] {
    kept(&LISTS, words.split_whitespace().map(text).collect())
}

/// Every text, list and condition that a manifest named, once, for as long as the program runs: so the groups that a plugin declares as
/// constants are the ones that a loader reads. Manifests name few words, and mostly the same ones.
static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
static LISTS: Mutex<BTreeSet<&'static [&'static str]>> = Mutex::new(BTreeSet::new());
static CONDITIONS: Mutex<BTreeSet<&'static [Condition]>> = Mutex::new(BTreeSet::new());

fn kept<T: Ord + ?Sized>(known: &Mutex<BTreeSet<&'static T>>, value: Box<T>) -> &'static T {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&found) = known.get(&*value) {
        return found;
    }
    let kept = Box::leak(value);
    known.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_pipe_is_written_as_it_was_read() {
        let manifest = json!({
            "name": "mix", "class": "stream", "summary": "Several", "also": "one two", "options": [],
            "inputs": [1, 4], "outputs": 2, "outputs_option": "count", "per_input": "weights names",
            "stacks": "size", "uids_option": "uids", "gives": "batch batches", "uids": "derived",
            "drops": "join drop_last", "takes": "count", "writes": true, "parallel": true, "indexed": true,
            "samples": false, "shuffles": true, "draws": "draw=sampled fields~random(", "keeps": true,
            "identity_option": "identity", "folders_option": "classes root", "rewinds": true, "shards": true,
            "decodes": true, "on": "own_thread",
        });
        let spec: PipeSpec = serde_json::from_value(manifest.clone()).unwrap();
        assert_eq!(spec.audit.drops, Drops::With(&["join", "drop_last"]));
        const CONDITIONS: &[Condition] =
            &[Condition::Is("draw", "sampled"), Condition::Contains("fields", "random(")];
        assert_eq!(spec.order.draws, Randomness::If(CONDITIONS));
        assert_eq!(serde_json::to_value(&spec).unwrap(), manifest);
    }

    #[test]
    fn a_manifest_that_says_little_means_the_usual() {
        let spec: PipeSpec =
            serde_json::from_value(json!({"name": "a", "class": "map", "inputs": [1, 1]})).unwrap();
        assert_eq!(spec, PipeSpec::map("a", ""));
        let written = serde_json::to_value(&spec).unwrap();
        assert_eq!((&written["drops"], &written["stacks"]), (&Value::from(""), &Value::from("")));
    }

    #[test]
    fn words_that_were_read_before_are_kept_once() {
        assert!(std::ptr::eq(text("size"), text(&String::from("size"))));
        assert!(std::ptr::eq(words("a  b"), words("a b")));
    }
}
