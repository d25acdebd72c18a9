//! What the costs of damage are made of: where the samples of a file lie, found by other means than its plugin's.

use std::ops::Range;

use forebay_testkit::Costs;

/// The end of a file.
pub(crate) const END: usize = usize::MAX;

/// Nothing is promised: one sample a file, or one packed stream.
pub(crate) const fn nothing(_: &[u8]) -> Costs {
    Costs::new()
}

/// What lies in the file one after the other, each to be found without the others: these bytes, and the samples that they are of.
pub(crate) fn apart(parts: &[(Range<usize>, Range<usize>)]) -> Costs {
    parts.iter().fold(Costs::new(), |costs, (bytes, samples)| costs.part(bytes.clone(), samples.clone()))
}

/// A number in little-endian bytes.
pub(crate) fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}
