//! Reads TOML and JSON, writes JSON; TOML is written in `print.rs`.

use std::fmt;

use forebay_core::{Error, Result};
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeStruct as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::builder::{Draft, assemble, check_name, check_option, check_pipe};
use super::{Graph, Input, Node, Settings, excerpt};

/// How the TOML reader hands on a date.
const DATE: &str = "$__toml_private_datetime";

impl Graph {
    /// Reads TOML.
    ///
    /// # Errors
    /// `Invalid` with the line and a caret under what was found.
    pub fn from_toml(text: &str) -> Result<Self> {
        let document: Document = ::toml::from_str(text).map_err(|error| match error.span() {
            Some(span) => excerpt::error(text, span.start, error.message()),
            None => Error::invalid(error.message()),
        })?;
        assemble(document.node, document.run)
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// `Invalid` with the line and a caret near what was found.
    pub fn from_json(text: &str) -> Result<Self> {
        let document: Document = serde_json::from_str(text).map_err(|error| {
            let place = format!(" at line {} column {}", error.line(), error.column());
            let message = error.to_string();
            let message = message.strip_suffix(&place).unwrap_or(&message);
            excerpt::error(text, excerpt::offset(text, error.line(), error.column()), message)
        })?;
        assemble(document.node, document.run)
    }

    /// The graph as indented JSON, with all names and inputs.
    ///
    /// # Errors
    /// None for a graph that one of the forms here made.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|error| Error::bug(error.to_string()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    run: Settings,
    #[serde(default)]
    node: Vec<Draft>,
}

impl<'de> Deserialize<'de> for Graph {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let document = Document::deserialize(from)?;
        assemble(document.node, document.run).map_err(D::Error::custom)
    }
}

impl Serialize for Graph {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let run = !self.run.is_empty();
        let mut graph = to.serialize_struct("Graph", 1 + usize::from(run))?;
        if run {
            graph.serialize_field("run", &self.run)?;
        }
        graph.serialize_field("node", &self.nodes)?;
        graph.end()
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut node = to.serialize_map(Some(3 + self.options.len()))?;
        node.serialize_entry("name", &self.name)?;
        node.serialize_entry("pipe", &self.pipe)?;
        node.serialize_entry("inputs", &self.inputs)?;
        self.options.iter().try_for_each(|(option, value)| node.serialize_entry(option, value))?;
        node.end()
    }
}

impl Serialize for Input {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Draft {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(DraftVisitor)
    }
}

struct DraftVisitor;

impl<'de> Visitor<'de> for DraftVisitor {
    type Value = Draft;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node: a table with `pipe` and its options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Draft, A::Error> {
        let mut draft = Draft::default();
        let mut pipe = None;
        while let Some(key) = map.next_key::<String>()? {
            let repeated = match key.as_str() {
                "name" => draft.name.replace(text(&mut map, check_name)?).is_some(),
                "pipe" => pipe.replace(text(&mut map, check_pipe)?).is_some(),
                "inputs" => draft.inputs.replace(inputs(map.next_value()?)?).is_some(),
                _ => {
                    check_option(&key).map_err(|error| A::Error::custom(error.message()))?;
                    let Plain(value) = map.next_value()?;
                    let repeated = draft.options.iter().any(|(other, _)| *other == key);
                    draft.options.push((key.clone(), value));
                    repeated
                }
            };
            if repeated {
                return Err(A::Error::custom(format!("`{key}` is given twice")));
            }
        }
        draft.pipe = pipe.ok_or_else(|| A::Error::custom("the node has no `pipe`"))?;
        Ok(draft)
    }
}

fn text<'de, A: MapAccess<'de>>(map: &mut A, check: fn(&str) -> Result<()>) -> Result<String, A::Error> {
    let text: String = map.next_value()?;
    check(&text).map_err(|error| A::Error::custom(error.message()))?;
    Ok(text)
}

fn inputs<E: serde::de::Error>(Plain(value): Plain) -> Result<Vec<String>, E> {
    let items = match value {
        Value::Array(items) => items,
        one => vec![one],
    };
    let read = |item: &Value| {
        let text = item
            .as_str()
            .ok_or_else(|| E::custom(format!("input is {item}, expected a node's name as text")))?;
        Input::parse(text).map_err(|error| E::custom(error.message()))?;
        Ok(text.to_owned())
    };
    items.iter().map(read).collect()
}

/// A value that every form can write: no date, no NaN or infinity, no key twice.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PlainVisitor).map(Plain)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean, number, text, list or table")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom(format!("found {value}, expected a finite number")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Plain(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == DATE {
                return Err(A::Error::custom("found a date, expected a value; put quotes around it"));
            }
            let Plain(value) = map.next_value()?;
            if entries.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("`{key}` is given twice")));
            }
        }
        Ok(Value::Object(entries))
    }
}
