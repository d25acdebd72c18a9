//! The answers of a stream, as a host asks for them.

use std::iter;

use forebay_core::{Context, Items, Result, Sample};

/// The samples and errors of a stream. After an error it continues, as long as the stream says that there can be
/// more.
///
/// A stream that never ends has endless answers, so take a limited number.
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
