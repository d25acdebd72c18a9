//! The uids of samples that several inputs, or several passes of one, may give alike.

use forebay_core::random::mix;

/// The uid of a sample from input number `input`, in that input's pass number `pass`.
///
/// The first pass of the first input keeps its uids, so that a pipe with one input changes nothing.
#[inline]
pub(crate) fn uid_from(uid: u64, input: usize, pass: u64) -> u64 {
    if input == 0 && pass == 0 { uid } else { mix(&[uid, input as u64, pass]) }
}
