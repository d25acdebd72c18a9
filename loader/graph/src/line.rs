//! Reads the one-line form; its grammar is in the [module's page](super).

use forebay_core::{Error, Result};
use serde_json::{Map, Number, Value};

use super::builder::{
    Draft, MAX_DEPTH, assemble, check_name, check_option, check_pipe, in_name, in_pipe, is_option,
};
use super::{Graph, Input, POSITIONAL, Settings, excerpt};

impl Graph {
    /// Reads the one-line form.
    ///
    /// # Errors
    /// `Invalid` with the line and a caret under what was found, and what was expected there.
    pub fn from_line(text: &str) -> Result<Self> {
        assemble(Parser { text, at: 0 }.graph()?, Settings::default())
    }
}

/// Whether a character ends a bare word.
pub(super) fn is_special(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "|;'\"=[]{},<>".contains(c)
}

/// What a bare word stands for; `None` for a number that does not fit.
pub(super) fn word_value(word: &str) -> Option<Value> {
    match word {
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        "null" => return Some(Value::Null),
        _ => {}
    }
    let Some(digits) = number_text(word) else { return Some(Value::from(word)) };
    if digits.contains(['.', 'e', 'E']) {
        return digits.parse().ok().and_then(Number::from_f64).map(Value::Number);
    }
    digits.parse::<i64>().map(Value::from).or_else(|_| digits.parse::<u64>().map(Value::from)).ok()
}

/// The word without `+` and `_` if it has the shape of a number: `-1`, `1_000`, `0.5`, `1e-5`, but not `007`.
fn number_text(word: &str) -> Option<String> {
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |part: &str| {
        let digit = |piece: &str| !piece.is_empty() && piece.bytes().all(|byte| byte.is_ascii_digit());
        part.split('_').all(digit)
    };
    let octal = whole.len() > 1 && whole.starts_with('0');
    let fits = digits(whole) && !octal && fraction.is_none_or(digits) && exponent.is_none_or(digits);
    fits.then(|| word.trim_start_matches('+').replace('_', ""))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn graph(mut self) -> Result<Vec<Draft>> {
        let mut drafts = vec![self.node(true)?];
        loop {
            match self.peek() {
                None => return Ok(drafts),
                Some(checkpoint @ ('|' | ';')) => {
                    self.bump();
                    drafts.push(self.node(checkpoint == ';')?);
                }
                Some(_) => return Err(self.expected("`|`, `;` or the end")),
            }
        }
    }

    /// One node; `apart` when it does not read the node before.
    fn node(&mut self, apart: bool) -> Result<Draft> {
        let pipe = self.named("the name of a pipe", in_pipe, check_pipe)?;
        let mut draft = Draft::new(pipe);
        if self.eat('@') {
            draft = draft.name(self.named("the node's name", in_name, check_name)?);
        }
        self.space();
        if apart {
            let inputs = if self.eat('<') { self.inputs()? } else { Vec::new() };
            draft = draft.inputs(inputs);
        } else if self.peek() == Some('<') {
            return Err(
                self.fail("a node after `|` reads the node before; write `;` instead to name its inputs")
            );
        }
        while !matches!(self.peek(), None | Some('|' | ';')) {
            let start = self.at;
            let (option, value) = self.option(draft.options.is_empty())?;
            if draft.options.iter().any(|(other, _)| *other == option) {
                self.at = start;
                return Err(self.fail(&format!("option `{option}` is given twice")));
            }
            draft.options.push((option, value));
        }
        Ok(draft)
    }

    fn inputs(&mut self) -> Result<Vec<String>> {
        let mut inputs = Vec::new();
        while !self.eat('>') {
            if !inputs.is_empty() && !self.eat(',') {
                return Err(self.expected("`,` or `>`"));
            }
            let check = |text: &str| Input::parse(text).map(drop);
            inputs.push(self.named("the name of a node", |c| in_name(c) || c == '.', check)?.to_owned());
        }
        Ok(inputs)
    }

    /// `name=value`, or for the first option its value alone.
    fn option(&mut self, first: bool) -> Result<(String, Value)> {
        let start = self.at;
        let name = self.take(in_name);
        if is_option(name) && self.eat('=') {
            if let Err(error) = check_option(name) {
                self.at = start;
                return Err(self.fail(error.message()));
            }
            return Ok((name.to_owned(), self.separate_value()?));
        }
        self.at = start;
        let value = self.separate_value()?;
        if !first {
            self.at = start;
            return Err(self.fail("found a value without a name, expected name=value after the first option"));
        }
        Ok((POSITIONAL.to_owned(), value))
    }

    /// A value that something other than more letters follows.
    fn separate_value(&mut self) -> Result<Value> {
        let value = self.value(0)?;
        match self.text[self.at..].chars().next() {
            Some(c) if !c.is_whitespace() && !matches!(c, '|' | ';') => Err(self.fail(&format!(
                "found `{c}` inside a value, expected a space; put quotes around a value that holds it"
            ))),
            _ => Ok(value),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        let found = self.peek();
        if depth > MAX_DEPTH {
            return Err(self.fail(&format!("value nests deeper than {MAX_DEPTH} lists and maps")));
        }
        match found {
            Some(quote @ ('\'' | '"')) => self.string(quote).map(Value::String),
            Some('[') => self.list(depth),
            Some('{') => self.map(depth),
            Some(c) if !is_special(c) => self.word(depth),
            _ => Err(self.expected("a value")),
        }
    }

    fn word(&mut self, depth: usize) -> Result<Value> {
        let start = self.at;
        let word = self.take(|c| !is_special(c));
        if word.starts_with('@') {
            self.at = start;
            return Err(self.fail(&format!(
                "found `{word}`; a node's name stands right behind its pipe, text in quotes"
            )));
        }
        match word_value(word) {
            Some(Value::Null) if depth > 0 => {
                self.at = start;
                Err(self.fail("found null inside a list or map"))
            }
            Some(value) => Ok(value),
            None => {
                self.at = start;
                Err(self.fail(&format!("found `{word}`, expected a number that fits in 64 bits")))
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        self.bump();
        let mut items = Vec::new();
        while !self.eat(']') {
            items.push(self.value(depth + 1)?);
            if !self.eat(',') && self.peek() != Some(']') {
                return Err(self.expected("`,` or `]`"));
            }
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, depth: usize) -> Result<Value> {
        self.bump();
        let mut entries = Map::new();
        while !self.eat('}') {
            self.space();
            let start = self.at;
            let key = match self.peek() {
                Some(quote @ ('\'' | '"')) => self.string(quote)?,
                _ => self.named("a name", in_name, |_| Ok(()))?.to_owned(),
            };
            if !self.eat('=') {
                return Err(self.expected("`=`"));
            }
            let value = self.value(depth + 1)?;
            if entries.contains_key(&key) {
                self.at = start;
                return Err(self.fail(&format!("`{key}` is given twice")));
            }
            entries.insert(key, value);
            if !self.eat(',') && self.peek() != Some('}') {
                return Err(self.expected("`,` or `}`"));
            }
        }
        Ok(Value::Object(entries))
    }

    fn string(&mut self, quote: char) -> Result<String> {
        let start = self.at;
        self.bump();
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.bump() {
                None => {
                    self.at = start;
                    return Err(self.fail(&format!("this {quote} is never closed")));
                }
                Some('\\') => match self.escape() {
                    Some(c) => text.push(c),
                    None => {
                        self.at = at;
                        return Err(
                            self.fail(r#"unknown escape, expected \\ \' \" \n \r \t \0 or \u{1F600}"#)
                        );
                    }
                },
                Some(c) if c == quote => return Ok(text),
                Some(c) => text.push(c),
            }
        }
    }

    /// The character that stands behind a backslash.
    fn escape(&mut self) -> Option<char> {
        Some(match self.bump()? {
            c @ ('\\' | '\'' | '"') => c,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            'u' => {
                let (digits, _) = self.text[self.at..].strip_prefix('{')?.split_once('}')?;
                let code = (digits.len() <= 6).then(|| u32::from_str_radix(digits, 16).ok())??;
                self.at += digits.len() + 2;
                char::from_u32(code)?
            }
            _ => return None,
        })
    }

    /// A name made of `allowed` characters that passes `check`.
    fn named(
        &mut self,
        what: &str,
        allowed: fn(char) -> bool,
        check: fn(&str) -> Result<()>,
    ) -> Result<&'a str> {
        self.space();
        let start = self.at;
        let name = self.take(allowed);
        if name.is_empty() {
            return Err(self.expected(what));
        }
        if let Err(error) = check(name) {
            self.at = start;
            return Err(self.fail(error.message()));
        }
        Ok(name)
    }

    fn take(&mut self, allowed: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !allowed(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn space(&mut self) {
        self.take(char::is_whitespace);
    }

    /// The next character that is not space.
    fn peek(&mut self) -> Option<char> {
        self.space();
        self.text[self.at..].chars().next()
    }

    /// Steps over space and `c`, or stays where it is.
    fn eat(&mut self, c: char) -> bool {
        let start = self.at;
        let found = self.peek() == Some(c);
        self.at = if found { self.at + c.len_utf8() } else { start };
        found
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.text[self.at..].chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn expected(&mut self, what: &str) -> Error {
        let found = self.peek().map_or("the end".to_owned(), |c| format!("`{c}`"));
        self.fail(&format!("found {found}, expected {what}"))
    }

    fn fail(&self, message: &str) -> Error {
        excerpt::error(self.text, self.at, message)
    }
}

/// Whether a text may stand without quotes and means itself.
pub(super) fn is_bare(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('@')
        && !text.contains(is_special)
        && word_value(text).is_some_and(|value| value.is_string())
}
