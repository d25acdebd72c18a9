//! Checks one node's options against its pipe's schema, and makes them canonical.

use forebay_core::{Error, FoldersOption};
use serde_json::{Number, Value};

use super::{
    Action, COMMON, Class, Kind, List, Node, ON_ERROR, OPTIONS, On, OnError, OptionSpec, POSITIONAL,
    PipeSpec, UNORDERED, nearest, print,
};

/// The most characters of a wrong value that an error shows.
const SHOWN: usize = 60;

/// What is wrong with the node's options.
pub(super) fn problems(node: &Node, spec: &PipeSpec) -> Vec<Error> {
    let mut problems = Vec::new();
    for (given, value) in &node.options {
        if COMMON.contains(&given.as_str()) {
            problems.extend(common(given, value, spec).err());
            continue;
        }
        if given == OPTIONS && spec.configures() {
            continue;
        }
        if let Some(unquoted) = unquoted(given, value, node, spec) {
            return vec![unquoted];
        }
        let fits = find(given, value, node, spec).and_then(|option| fit(value, option));
        problems.extend(fits.err().map(Error::invalid));
    }
    if node.is_unordered() && node.on_error().action == Action::Replace {
        problems.push(Error::invalid(format!(
            "option `{UNORDERED}` is true, so no sample is before another, but `{ON_ERROR}` is replace; \
             expected skip or quarantine, or a second map behind this one"
        )));
    }
    let given = |option: &OptionSpec, at: usize| {
        node.options.contains_key(&option.name) || at == 0 && node.options.contains_key(POSITIONAL)
    };
    for (at, option) in spec.options.iter().enumerate() {
        if option.required && !given(option, at) {
            problems.push(Error::invalid(format!(
                "option `{}` is missing, expected {}",
                option.name,
                wanted(option)
            )));
        }
    }
    problems.extend(folders(node, spec));
    problems
}

/// The text of the first option, taken for an option since it has a `=` in it and no quotes: `rename a=b`.
fn unquoted(given: &str, value: &Value, node: &Node, spec: &PipeSpec) -> Option<Error> {
    let first = spec.options.first().filter(|first| first.kind == Kind::Str)?;
    let is_known = given == POSITIONAL || spec.options.iter().any(|option| option.name == given);
    let is_near = !nearest::nearest(given, spec.options.iter().map(|option| option.name.as_str())).is_empty();
    if is_known || is_near || spec.given(node, &first.name).is_some() {
        return None;
    }
    let mut text = format!("{given}=");
    match value {
        Value::String(value) => text.push_str(value),
        value => text.push_str(&show(value)),
    }
    let mut quoted = String::new();
    print::push_value(&mut quoted, &Value::from(text), true);
    let known: Vec<&str> = spec.options.iter().map(|option| option.name.as_str()).collect();
    let message = format!(
        "unknown option `{given}`; known are: {}; as the text of `{}`, write {} {quoted}",
        nearest::quoted(&known, ", "),
        first.name,
        spec.name
    );
    Some(Error::invalid(message))
}

/// An option that lists folders, where neither it nor the folder that they lie in is given.
fn folders(node: &Node, spec: &PipeSpec) -> Option<Error> {
    let FoldersOption { names: option, root } = spec.layout.folders_option?;
    let given = |option| spec.given(node, option).is_some();
    (!given(option) && !given(root)).then(|| {
        Error::invalid(format!(
            "option `{option}` is missing, expected a list; or give `{root}`, the folder that holds a folder of each name"
        ))
    })
}

/// Gives every option of a node without problems its name, and every number its option's type.
pub(super) fn settle(node: &mut Node, spec: &PipeSpec) {
    if let (Some(value), Some(first)) = (node.options.remove(POSITIONAL), spec.options.first()) {
        node.options.insert(first.name.clone(), value);
    }
    for option in &spec.options {
        node.options.get_mut(&option.name).into_iter().for_each(|value| settle_value(value, option));
    }
}

/// Gives a number its option's type.
pub(super) fn settle_value(value: &mut Value, option: &OptionSpec) {
    match value {
        _ if option.kind != Kind::Float => {}
        Value::Array(items) if option.list != List::No => items.iter_mut().for_each(settle_float),
        value => settle_float(value),
    }
}

/// 1 and 1.0 are one value here, and so are 0.0 and -0.0.
fn settle_float(value: &mut Value) {
    if let Some(number) = value.as_f64() {
        *value = Value::from(number + 0.0);
    }
}

/// Checks an option that every pipe has.
fn common(given: &str, value: &Value, spec: &PipeSpec) -> Result<(), Error> {
    if given == UNORDERED {
        return match (value.as_bool(), spec.class == Class::Map) {
            (None, _) => Err(Error::invalid(format!(
                "option `{UNORDERED}` is {}, expected true or false",
                show(value)
            ))),
            (Some(true), false) => Err(Error::invalid(format!(
                "option `{UNORDERED}` is for maps; {} sees samples in order; set it at a map before this one",
                spec.name
            ))),
            _ => Ok(()),
        };
    }
    let text = value.as_str();
    let text =
        text.ok_or_else(|| Error::invalid(format!("option `{given}` is {}, expected text", show(value))))?;
    let map = spec.class == Class::Map;
    if given == ON_ERROR {
        return match text.parse::<OnError>()?.action {
            Action::Replace if !map => Err(Error::invalid(format!(
                "option `{ON_ERROR}` is {text}, which is for maps; {} is not a map, expected fail, fail_at_end, skip or quarantine",
                spec.name
            ))),
            _ => Ok(()),
        };
    }
    match (text.parse::<On>()?, spec.is_parallel()) {
        (On::OwnThread, true) => Err(Error::invalid(format!(
            "option `on` is own_thread, which is for pipes that see samples in order; {} works on several at once, on threads \
             or in processes",
            spec.name
        ))),
        _ => Ok(()),
    }
}

fn find<'a>(given: &str, value: &Value, node: &Node, spec: &'a PipeSpec) -> Result<&'a OptionSpec, String> {
    if given == POSITIONAL {
        let first =
            spec.options.first().ok_or_else(|| format!("found {}, expected no options", show(value)))?;
        if node.options.contains_key(&first.name) {
            return Err(format!("option `{}` is given twice, by position and by name", first.name));
        }
        return Ok(first);
    }
    named(given, &spec.options)
}

/// The option of this name.
pub(super) fn named<'a>(given: &str, specs: &'a [OptionSpec]) -> Result<&'a OptionSpec, String> {
    specs.iter().find(|option| option.name == given).ok_or_else(|| {
        let names: Vec<&str> = specs.iter().map(|option| option.name.as_str()).collect();
        let hint = nearest::did_you_mean(given, names.iter().copied());
        let known = if names.is_empty() { "none".to_owned() } else { nearest::quoted(&names, ", ") };
        format!("unknown option `{given}`{hint}; known are: {known}")
    })
}

/// Whether the option takes the value.
///
/// # Errors
/// What values it takes, as words that follow "expected".
pub fn fit(value: &Value, option: &OptionSpec) -> Result<(), String> {
    let fits = match (option.list, value) {
        (List::Yes | List::Either, Value::Array(items)) => items.iter().all(|item| fits_one(item, option)),
        (List::Yes, _) => false,
        (List::No | List::Either, one) => fits_one(one, option),
    };
    if fits {
        return Ok(());
    }
    let hint = match option.list {
        List::Yes if fits_one(value, option) => format!(": {}=[{}]", option.name, show(value)),
        _ if option.kind == Kind::Str && (value.is_number() || value.is_boolean()) => {
            "; put it in quotes if it is text".to_owned()
        }
        _ => String::new(),
    };
    Err(format!("option `{}` is {}, expected {}{hint}", option.name, show(value), wanted(option)))
}

fn fits_one(value: &Value, option: &OptionSpec) -> bool {
    let fits = match option.kind {
        Kind::Bool => value.is_boolean(),
        Kind::Int => value.is_i64(),
        Kind::Uint => value.is_u64(),
        Kind::Float => value.is_number(),
        Kind::Str => value.is_string(),
        Kind::Any => true,
    };
    let above = |number: &Number| option.min.as_ref().is_none_or(|min| at_most(min, number));
    let below = |number: &Number| option.max.as_ref().is_none_or(|max| at_most(number, max));
    let in_range = value.as_number().is_none_or(|number| above(number) && below(number));
    let chosen = value
        .as_str()
        .is_none_or(|text| option.choices.is_empty() || option.choices.iter().any(|c| c == text));
    fits && in_range && chosen
}

/// Whether `a <= b`, exactly for whole numbers.
fn at_most(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a <= b,
        _ => a.as_f64() <= b.as_f64(),
    }
}

/// What an option takes, in words.
fn wanted(option: &OptionSpec) -> String {
    let (one, many) = match option.kind {
        Kind::Bool => ("true or false", "booleans"),
        Kind::Int => ("a whole number", "whole numbers"),
        Kind::Uint => ("a whole number", "whole numbers"),
        Kind::Float => ("a number", "numbers"),
        Kind::Str => ("text", "texts"),
        Kind::Any => ("a value", "values"),
    };
    let kind = match option.list {
        List::No => one.to_owned(),
        List::Yes => format!("a list of {many}"),
        List::Either => format!("{one} or a list of {many}"),
    };
    let least = option.min.clone().or_else(|| (option.kind == Kind::Uint).then(|| Number::from(0)));
    let range = match (&least, &option.max) {
        (None, None) => String::new(),
        (Some(min), None) => format!(" from {min}"),
        (None, Some(max)) => format!(" up to {max}"),
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
    };
    let choices: Vec<&str> = option.choices.iter().map(String::as_str).collect();
    let choices =
        if choices.is_empty() { String::new() } else { format!(": {}", nearest::quoted(&choices, ", ")) };
    format!("{kind}{range}{choices}")
}

pub(super) fn show(value: &Value) -> String {
    let mut text = String::new();
    print::push_value(&mut text, value, false);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
