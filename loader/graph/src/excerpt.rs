//! Errors that show their place in a text: the line, and a caret under what was found.

use std::borrow::Cow;

use forebay_core::{Error, without_secrets};

/// The most characters shown on either side of the caret.
const WINDOW: usize = 60;

/// An error about the byte `offset` of `text`: the message, the line with a caret, and line and column.
pub(super) fn error(text: &str, offset: usize, message: &str) -> Error {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let (before, after) = text.split_at(offset);
    let line = before.matches('\n').count() + 1;
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = after.lines().next().unwrap_or_default();
    let column = before.chars().count() + 1;
    // What an error shows has no secrets of URLs; the caret follows.
    let clean = without_secrets(&text[offset - before.len()..offset + after.len()]);
    let (before, after) = match &clean {
        Cow::Borrowed(_) => (before, after),
        Cow::Owned(clean) => clean.split_at_checked(without_secrets(before).len()).unwrap_or((clean, "")),
    };
    let start = before.chars().count().saturating_sub(WINDOW);
    let mut shown = String::new();
    if start > 0 {
        shown.push('…');
    }
    shown.extend(before.chars().skip(start).map(plain));
    let caret = shown.chars().count();
    shown.extend(after.chars().take(WINDOW).map(plain));
    if after.chars().nth(WINDOW).is_some() {
        shown.push('…');
    }
    let message = format!("{message}\n  {}\n  {:caret$}^", shown.trim_end(), "");
    let error = Error::invalid(message);
    let error = if text.trim_end().contains('\n') { error.context("line", line) } else { error };
    error.context("column", column)
}

/// The byte offset of a line and column as parsers count them, from 1.
pub(super) fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column.saturating_sub(1)).min(text.len())
}

/// One cell wide, whatever it was, so that the caret stands right.
fn plain(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_caret_stands_under_its_character() {
        let secret = super::error("files http://me:pw@host/a?sig=x | nope", 34, "bad");
        assert_eq!(secret.message(), "bad\n  files http://host/a?… | nope\n                          ^");
        let error = super::error("aé|\tb\nnext", 4, "bad");
        assert_eq!(error.message(), "bad\n  aé| b\n     ^");
        assert_eq!((error.get("line"), error.get("column")), (Some("1"), Some("4")));
        let long = "x".repeat(500);
        assert!(super::error(&long, 250, "bad").message().len() < 300);
    }
}
