//! Keys that stand in an object more than once.

use std::collections::HashMap;

use forebay_core::{Str, Value};

/// Up to so many keys are compared with each other.
const FEW: usize = 8;

/// The fields with each name once, at its first place, with its last value.
pub(crate) fn last_wins(fields: Vec<(Str, Value)>) -> Vec<(Str, Value)> {
    let twice = |at: usize| fields[..at].iter().any(|(name, _)| *name == fields[at].0);
    if fields.len() <= FEW && !(1..fields.len()).any(twice) {
        return fields;
    }
    let mut places = HashMap::with_capacity(fields.len());
    let mut kept = Vec::with_capacity(fields.len());
    for (at, (name, _)) in fields.iter().enumerate() {
        let place = *places.entry(name.as_str()).or_insert(kept.len());
        if place == kept.len() {
            kept.push((at, at));
        } else {
            kept[place].1 = at;
        }
    }
    if kept.len() == fields.len() {
        return fields;
    }
    kept.into_iter().map(|(first, last)| (fields[first].0.clone(), fields[last].1.clone())).collect()
}
