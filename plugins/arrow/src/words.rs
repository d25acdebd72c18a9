//! Reading the text of a filter.

use forebay_core::{Error, Result};

use crate::predicate::{Literal, Op, Term, Test};

/// The text of a predicate, and how far it was read.
pub(crate) struct Words<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn left(&mut self) -> &'a str {
        let left = self.text.get(self.at..).unwrap_or_default();
        let trimmed = left.trim_start();
        self.at = self.text.len() - trimmed.len();
        trimmed
    }

    pub(crate) fn expected(&mut self, what: &str) -> Error {
        let found: String = self.left().chars().take(20).collect();
        let found = if found.is_empty() { "the end".to_owned() } else { format!("`{found}`") };
        Error::invalid(format!("found {found} in a filter, expected {what}")).context("byte", self.at)
    }

    /// Takes this word, in capitals or not, if it comes next.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        let left = self.left();
        let is = left.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            && !left[word.len()..].starts_with(is_of_name);
        self.at += if is { word.len() } else { 0 };
        is
    }

    pub(crate) fn term(&mut self) -> Result<Term> {
        let column = self.column()?;
        if self.word("is") {
            let test = if self.word("not") { Test::NotNull } else { Test::IsNull };
            return if self.word("null") { Ok(Term { column, test }) } else { Err(self.expected("`null`")) };
        }
        let left = self.left();
        let op = Op::NAMES.into_iter().find(|(name, _)| left.starts_with(name));
        let (name, op) = op.ok_or_else(|| self.expected("an operator: ==, !=, <, <=, >, >= or is"))?;
        self.at += name.len();
        Ok(Term { column, test: Test::Compare(op, self.literal()?) })
    }

    fn column(&mut self) -> Result<String> {
        let left = self.left();
        let (name, len) = match left.strip_prefix('`') {
            Some(quoted) => match quoted.find('`') {
                Some(end) => (&quoted[..end], end + 2),
                None => return Err(self.expected("a closing backtick")),
            },
            None => {
                let end = left.find(|sign| !is_of_name(sign)).unwrap_or(left.len());
                (&left[..end], end)
            }
        };
        if name.is_empty() {
            return Err(self.expected("a column's name"));
        }
        self.at += len;
        Ok(name.to_owned())
    }

    fn literal(&mut self) -> Result<Literal> {
        let left = self.left();
        for (word, value) in [("true", true), ("false", false)] {
            if self.word(word) {
                return Ok(Literal::Bool(value));
            }
        }
        if let Some(quote) = left.chars().next().filter(|sign| matches!(sign, '\'' | '"')) {
            let Some(end) = left[1..].find(quote) else { return Err(self.expected("a closing quote")) };
            self.at += end + 2;
            return Ok(Literal::Text(left[1..=end].to_owned()));
        }
        let end = left.find(|sign| !is_of_name(sign) && !matches!(sign, '+' | '-')).unwrap_or(left.len());
        let number = &left[..end];
        let found = number.parse().map(Literal::Int).or_else(|_| number.parse().map(Literal::Float));
        let found = found.map_err(|_| self.expected("a number, text in quotes, true or false"))?;
        self.at += end;
        Ok(found)
    }
}

pub(crate) fn is_of_name(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '_' | '.')
}
