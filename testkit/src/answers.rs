//! What a stream answers, as a host asks it.

use std::iter;

use forebay_core::{Context, Items, Result, Sample};

/// The samples of a stream and its errors, on behind an error for as long as the stream says that there may be more.
///
/// A stream that never ends is asked for ever: take so many.
pub fn answers(items: &mut impl Items, cx: &Context<'_>) -> impl Iterator<Item = Result<Sample>> {
    let mut done = false;
    iter::from_fn(move || {
        if done {
            return None;
        }
        let answer = items.next(cx).transpose();
        done = match &answer {
            Some(Ok(_)) => false,
            Some(Err(_)) => !items.goes_on(),
            None => true,
        };
        answer
    })
}
