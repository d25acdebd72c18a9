//! Keys that stand in an object more than once.

use std::collections::HashMap;

use forebay_core::{Str, Value};

/// The fields with each name once, at its first place, with its last value or its first.
pub(crate) fn once_each(fields: Vec<(Str, Value)>, last: bool) -> Vec<(Str, Value)> {
    let mut places = HashMap::with_capacity(fields.len());
    let mut kept: Vec<(usize, usize)> = Vec::with_capacity(fields.len());
    for (at, (name, _)) in fields.iter().enumerate() {
        let place = *places.entry(name.as_str()).or_insert(kept.len());
        match kept.get_mut(place) {
            None => kept.push((at, at)),
            Some(one) if last => one.1 = at,
            Some(_) => {}
        }
    }
    if kept.len() == fields.len() {
        return fields;
    }
    kept.into_iter().map(|(name, value)| (fields[name].0.clone(), fields[value].1.clone())).collect()
}
