//! Lists of uids.

use std::collections::{HashMap, HashSet};

use super::line::GivenSample;

/// Samples and how many of each.
pub(super) type UidCounts = HashMap<u64, u64>;

/// How many there are of each.
pub(super) fn counts(uids: impl IntoIterator<Item = u64>) -> UidCounts {
    let mut counts = UidCounts::new();
    uids.into_iter().for_each(|uid| *counts.entry(uid).or_default() += 1);
    counts
}

/// The samples in a delivery: those that were stacked into it, level by level.
pub(super) fn resolve(levels: &[HashMap<u64, &[u64]>], uid: u64) -> Vec<u64> {
    levels.iter().fold(vec![uid], |uids, level| {
        uids.into_iter().flat_map(|uid| level.get(&uid).copied().unwrap_or_default().to_vec()).collect()
    })
}

/// The samples in these, without those that go on in a later one than they began in.
pub(super) fn first_pieces<'a>(items: impl Iterator<Item = &'a GivenSample>) -> Vec<u64> {
    let (mut begun, mut samples) = (HashSet::<u64>::new(), Vec::new());
    for GivenSample { members, .. } in items {
        let mut within = HashSet::new();
        // In one of them no sample is twice.
        samples.extend(members.iter().filter(|&uid| !within.insert(uid) || !begun.contains(uid)));
        begun.extend(members);
    }
    samples
}

/// Each uid once, in order.
pub(super) fn once_each(uids: &[u64]) -> impl Iterator<Item = u64> {
    let mut seen = HashSet::new();
    uids.iter().copied().filter(move |uid| seen.insert(*uid))
}

/// Where a uid stands.
pub(super) fn positions(uids: &[u64], uid: u64) -> Vec<u64> {
    let found = uids.iter().enumerate().filter(|(_, other)| **other == uid);
    found.map(|(at, _)| at as u64).collect()
}
