//! Python literals, as far as the headers of npy files have them.
//!
//! <https://docs.python.org/3/reference/lexical_analysis.html#literals>

use forebay_core::{Error, Result};

/// The most brackets that may lie within each other.
const DEPTH: usize = 32;

/// A value written in Python.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Str(String),
    Int(u64),
    Bool(bool),
    /// A tuple or a list.
    Row(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
}

/// Reads the one literal that `text` is, apart from white space.
pub(crate) fn parse(text: &str) -> Result<Literal> {
    let mut reader = Reader { text, at: 0 };
    let literal = reader.literal(0).and_then(|literal| match reader.peek() {
        None => Ok(literal),
        Some(_) => Err(reader.expected("the end of the header")),
    });
    literal.map_err(|error| error.context("header byte", reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    /// The next character after white space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let (next, skipped) = (trimmed.chars().next(), rest.len() - trimmed.len());
        self.at += skipped;
        next
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next_char(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes `mark`, if it comes next.
    fn take(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(mark);
        if found {
            self.at += mark.len_utf8();
        }
        found
    }

    fn expected(&self, what: &str) -> Error {
        match self.rest().chars().next() {
            Some(found) => Error::corrupt(format!("found {found:?}, expected {what}")),
            None => Error::corrupt(format!("the header ends, expected {what}")),
        }
    }

    fn literal(&mut self, depth: usize) -> Result<Literal> {
        if depth > DEPTH {
            return Err(Error::limit(format!("more than {DEPTH} brackets within each other")));
        }
        match self.peek() {
            Some('(') => self.row(')', depth),
            Some('[') => self.row(']', depth),
            Some('{') => self.dict(depth),
            Some('0'..='9') => self.int(),
            Some('\'' | '"') => self.text(),
            Some(_) => self.word(),
            None => Err(self.expected("a value")),
        }
    }

    fn row(&mut self, end: char, depth: usize) -> Result<Literal> {
        let begin = self.next_char();
        let mut items = Vec::new();
        let mut comma = false;
        while !self.take(end) {
            if !items.is_empty() && !comma {
                return Err(self.expected("a comma"));
            }
            items.push(self.literal(depth + 1)?);
            comma = self.take(',');
        }
        match (begin, items.len(), comma) {
            // Brackets alone do not make a tuple.
            (Some('('), 1, false) => items.pop().ok_or_else(|| self.expected("a value")),
            _ => Ok(Literal::Row(items)),
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Literal> {
        self.next_char();
        let mut entries = Vec::new();
        let mut comma = true;
        while !self.take('}') {
            if !comma {
                return Err(self.expected("a comma"));
            }
            let key = self.literal(depth + 1)?;
            if !self.take(':') {
                return Err(self.expected("a colon"));
            }
            entries.push((key, self.literal(depth + 1)?));
            comma = self.take(',');
        }
        Ok(Literal::Dict(entries))
    }

    fn int(&mut self) -> Result<Literal> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = rest.get(..digits).and_then(|digits| digits.parse().ok());
        let number = number.ok_or_else(|| self.expected("an integer of 64 bits"))?;
        self.at += digits;
        // Python 2 wrote long integers with an L.
        if self.rest().starts_with('L') {
            self.at += 1;
        }
        Ok(Literal::Int(number))
    }

    fn word(&mut self) -> Result<Literal> {
        for (word, value) in [("True", true), ("False", false)] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(Literal::Bool(value));
            }
        }
        let mut ahead = self.rest().chars();
        if matches!((ahead.next(), ahead.next()), (Some('u' | 'b'), Some('\'' | '"'))) {
            self.at += 1;
            return self.text();
        }
        Err(self.expected("a string, a number, True, False or a bracket"))
    }

    fn text(&mut self) -> Result<Literal> {
        let quote = self.next_char();
        let mut text = String::new();
        loop {
            match self.next_char() {
                None => return Err(self.expected("a closing quote")),
                found if found == quote => return Ok(Literal::Str(text)),
                Some('\\') => text.push(self.escape()?),
                Some('\n') => return Err(self.expected("a closing quote before the end of the line")),
                Some(plain) => text.push(plain),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let digits = match self.next_char() {
            Some('\\') => return Ok('\\'),
            Some('\'') => return Ok('\''),
            Some('"') => return Ok('"'),
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => return Err(self.expected("a known escape")),
        };
        let code = self.rest().get(..digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let found =
            code.and_then(char::from_u32).ok_or_else(|| self.expected("the digits of a character"))?;
        self.at += digits;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::ErrorKind;

    use super::*;

    #[test]
    fn reads_what_headers_have() {
        let read =
            parse(" {'a': (3L, ), \"b\": [u'x', True,], b'\\x41\\u00fc\\'': (7), 'd': (), } \n").unwrap();
        let text = |text: &str| Literal::Str(text.into());
        let expected = vec![
            (text("a"), Literal::Row(vec![Literal::Int(3)])),
            (text("b"), Literal::Row(vec![text("x"), Literal::Bool(true)])),
            (text("Aü'"), Literal::Int(7)),
            (text("d"), Literal::Row(vec![])),
        ];
        assert_eq!(read, Literal::Dict(expected));
    }

    #[test]
    fn refuses_the_rest_and_says_where() {
        let cases = [
            ("", "0"),
            ("{", "1"),
            ("(1 2)", "3"),
            ("'ab", "3"),
            ("{1}", "2"),
            ("1 1", "2"),
            ("-1", "0"),
            ("None", "0"),
            ("'\\q'", "3"),
            ("'\\ud800'", "3"),
            ("99999999999999999999", "0"),
            ("__import__('os')", "0"),
            ("{,}", "1"),
        ];
        for (text, at) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(
                (error.kind(), error.get("header byte")),
                (ErrorKind::Corrupt, Some(at)),
                "{text}: {error}"
            );
        }
        assert_eq!(parse(&"(".repeat(100_000)).unwrap_err().kind(), ErrorKind::Limit);
    }
}
