//! Errors that show their place in a text: the line, and a caret under what was found.

use forebay_core::Error;

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
    let mut shown = String::new();
    if column - 1 > WINDOW {
        shown.push('…');
    }
    shown.extend(before.chars().skip((column - 1).saturating_sub(WINDOW)).map(plain));
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
        let error = super::error("aé|\tb\nnext", 4, "bad");
        assert_eq!(error.message(), "bad\n  aé| b\n     ^");
        assert_eq!((error.get("line"), error.get("column")), (Some("1"), Some("4")));
        let long = "x".repeat(500);
        assert!(super::error(&long, 250, "bad").message().len() < 300);
    }
}
