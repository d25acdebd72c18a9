//! Draws for samples that are the same in every epoch and pass.

use forebay_core::{
    Context,
    random::{Rng, mix},
};

/// Who draws, so that pipes of different kinds choose independently of each other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who {
    RandomSplit = 0x7370_6c69,
    Subsample = 0x7375_6273,
}

/// The key of lasting draws: of this seed, or of the run's.
///
/// Not of the node: the parts of one split may be taken by different graphs.
pub(crate) fn key(who: Who, seed: Option<u64>, cx: &Context) -> u64 {
    mix(&[who as u64, seed.unwrap_or(cx.seed())])
}

/// A uniform number in `[0, 1)` for the sample with this uid.
#[inline]
pub(crate) fn draw(key: u64, uid: u64) -> f64 {
    Rng::new(key, uid).f64()
}
