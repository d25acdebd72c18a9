//! Brace expansion: `{000..099}` and `{a,b}`, any of them nested; counted first, then made one by one.

use forebay_core::{Error, Result};

/// More names than this in one pattern are refused.
pub(crate) const NAMES_LIMIT: u64 = 10_000_000;
/// Braces within braces deeper than this are refused.
const DEPTH_LIMIT: usize = 16;

/// A text with braces, as the list of texts that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Braces {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Whole numbers, both ends included, padded with zeros to `width`; `from` may be above `to`.
    Range {
        from: u64,
        to: u64,
        width: usize,
    },
    Choice(Vec<Braces>),
}

impl Braces {
    /// Reads `text`. Braces without a partner, a comma or a range stay as they are, as in a shell.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let this = Self::parse_at(text, 0)?;
        match this.count() {
            Some(count) if count <= NAMES_LIMIT => Ok(this),
            _ => Err(Error::limit(format!("the braces stand for more than {NAMES_LIMIT} names"))
                .context("pattern", text)),
        }
    }

    fn parse_at(text: &str, depth: usize) -> Result<Self> {
        if depth > DEPTH_LIMIT {
            return Err(Error::limit(format!("braces are nested deeper than {DEPTH_LIMIT}")));
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let (before, from_brace) = rest.split_at(start);
            plain.push_str(before);
            let alone = before.ends_with('[') && from_brace.starts_with("{]");
            let Some((inside, after)) = inside(from_brace).filter(|_| !alone) else {
                plain.push('{');
                rest = from_brace.get(1..).unwrap_or_default();
                continue;
            };
            let part = match (Part::range(inside), split(inside)) {
                (Some(range), _) => range,
                (None, choices) if choices.len() > 1 => Part::Choice(
                    choices
                        .into_iter()
                        .map(|choice| Self::parse_at(choice, depth + 1))
                        .collect::<Result<_>>()?,
                ),
                _ => {
                    plain.push('{');
                    rest = from_brace.get(1..).unwrap_or_default();
                    continue;
                }
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(part);
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// How many texts it stands for, if that is not beyond counting.
    pub(crate) fn count(&self) -> Option<u64> {
        self.parts.iter().try_fold(1_u64, |count, part| count.checked_mul(part.count()?))
    }

    /// The text with this number, from 0; the last brace turns fastest.
    pub(crate) fn get(&self, mut index: u64) -> String {
        let mut pieces = Vec::with_capacity(self.parts.len());
        for part in self.parts.iter().rev() {
            let count = part.count().unwrap_or(1).max(1);
            pieces.push(part.get(index % count));
            index /= count;
        }
        pieces.reverse();
        pieces.concat()
    }
}

impl Part {
    fn range(inside: &str) -> Option<Self> {
        let (from, to) = inside.split_once("..")?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(from) || !digits(to) {
            return None;
        }
        let padded = [from, to].iter().any(|text| text.len() > 1 && text.starts_with('0'));
        let width = if padded { from.len().max(to.len()) } else { 0 };
        Some(Self::Range { from: from.parse().ok()?, to: to.parse().ok()?, width })
    }

    fn count(&self) -> Option<u64> {
        match self {
            Self::Text(_) => Some(1),
            Self::Range { from, to, .. } => from.abs_diff(*to).checked_add(1),
            Self::Choice(choices) => {
                choices.iter().try_fold(0_u64, |sum, choice| sum.checked_add(choice.count()?))
            }
        }
    }

    fn get(&self, mut index: u64) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Range { from, to, width } => {
                let number = if from <= to { from + index } else { from - index };
                format!("{number:0width$}")
            }
            Self::Choice(choices) => {
                for choice in choices {
                    let count = choice.count().unwrap_or(0);
                    if index < count {
                        return choice.get(index);
                    }
                    index -= count;
                }
                String::new()
            }
        }
    }
}

/// What stands between the brace that `text` begins with and its partner, and what follows.
fn inside(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return Some((text.get(1..at)?, text.get(at + 1..)?));
        }
    }
    None
}

/// Splits at the commas that are not within inner braces.
fn split(inside: &str) -> Vec<&str> {
    let mut depth = 0_i64;
    let at_comma = |letter: char| {
        depth += i64::from(letter == '{') - i64::from(letter == '}');
        letter == ',' && depth == 0
    };
    inside.split(at_comma).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Vec<String> {
        let braces = Braces::parse(text).unwrap();
        (0..braces.count().unwrap()).map(|index| braces.get(index)).collect()
    }

    #[test]
    fn braces_expand_as_in_a_shell() {
        assert_eq!(expand("a-{08..11}.tar"), ["a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"]);
        assert_eq!(expand("{9..11}"), ["9", "10", "11"]);
        assert_eq!(expand("{2..0}"), ["2", "1", "0"]);
        assert_eq!(expand("{a,b{1..2},}x"), ["ax", "b1x", "b2x", "x"]);
        assert_eq!(expand("{a,b}/{0..1}"), ["a/0", "a/1", "b/0", "b/1"]);
        for plain in ["", "a", "a{b}c", "a{b", "a}b", "{x..y}", "{}", "{1..}", "{-1..2}"] {
            assert_eq!(expand(plain), [plain]);
        }
        assert_eq!(expand("{{a,b}"), ["{a", "{b"]);
        // As `[*]` stands for a star.
        assert_eq!(expand("x[{]a,b}{1..2}"), ["x[{]a,b}1", "x[{]a,b}2"]);
    }

    #[test]
    fn more_than_ten_million_names_are_refused_and_fewer_are_not_made_at_once() {
        assert_eq!(Braces::parse("{0..9999999}").unwrap().count(), Some(NAMES_LIMIT));
        for text in ["{0..10000000}", "{0..9999}{0..9999}", "{0..18446744073709551615}", "{0..9999999}{a,b}"]
        {
            assert_eq!(Braces::parse(text).unwrap_err().kind(), forebay_core::ErrorKind::Limit, "{text}");
        }
        let deep = "{a,".repeat(1000) + &"}".repeat(1000);
        assert_eq!(Braces::parse(&deep).unwrap_err().kind(), forebay_core::ErrorKind::Limit);
    }
}
