//! The grammar of CSV: where fields and records end.
//!
//! Source: RFC 4180, section 2; where that leaves something open, as Python's `csv` reads it.

use std::ops::Range;

use forebay_core::{Buffer, Error, Result, Str, Value};

/// What separates and encloses fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Between fields.
    pub separator: u8,
    /// Around fields that hold separators, ends of lines or quotes, which are doubled in there.
    pub quote: Option<u8>,
    /// What lines begin with that are passed over.
    pub comment: Option<u8>,
}

impl Dialect {
    /// Commas and double quotes.
    pub const CSV: Self = Self { separator: b',', quote: Some(b'"'), comment: None };
}

/// A field of a record.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Its text, without the quotes around it.
    pub(crate) text: Range<usize>,
    /// Whether there are quotes in the text that must go.
    mixed: bool,
}

/// How a record ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With its line; the next begins here.
    Line(usize),
    /// With the bytes.
    Bytes,
    /// With the bytes, in quotes that begin here.
    Quotes(usize),
}

impl Dialect {
    /// Walks over the record at `at` and gives each of its fields; a blank line and a comment have none.
    pub(crate) fn record(&self, bytes: &[u8], mut at: usize, mut field: impl FnMut(Field)) -> End {
        let first = bytes.get(at).copied();
        if first.is_some() && first == self.comment {
            let end = memchr::memchr2(b'\n', b'\r', &bytes[at..]);
            return end.map_or(End::Bytes, |end| line_end(bytes, at + end));
        }
        if matches!(first, Some(b'\n' | b'\r')) {
            return line_end(bytes, at);
        }
        loop {
            let quotes =
                if self.quote.is_some() && bytes.get(at).copied() == self.quote { Some(at) } else { None };
            let (text, mixed, end) = match quotes {
                None => (at..self.plain(bytes, at), false, None),
                Some(from) => match self.quoted(bytes, from) {
                    None => return End::Quotes(from),
                    Some((close, doubled)) => {
                        let end = self.plain(bytes, close + 1);
                        let mixed = doubled || end > close + 1;
                        // Text after the closing quote belongs to the field.
                        (from + 1..if end > close + 1 { end } else { close }, mixed, Some(end))
                    }
                },
            };
            at = end.unwrap_or(text.end);
            field(Field { text, mixed });
            match bytes.get(at) {
                None => return End::Bytes,
                Some(byte) if *byte == self.separator => at += 1,
                Some(_) => return line_end(bytes, at),
            }
        }
    }

    /// The end of text that is not in quotes.
    fn plain(&self, bytes: &[u8], at: usize) -> usize {
        let rest = bytes.get(at..).unwrap_or_default();
        memchr::memchr3(self.separator, b'\n', b'\r', rest).map_or(bytes.len(), |end| at + end)
    }

    /// The closing quote of text in quotes, and whether there are doubled ones before it.
    fn quoted(&self, bytes: &[u8], from: usize) -> Option<(usize, bool)> {
        let quote = self.quote?;
        let (mut at, mut doubled) = (from + 1, false);
        loop {
            at += memchr::memchr(quote, bytes.get(at..)?)?;
            if bytes.get(at + 1) != Some(&quote) {
                return Some((at, doubled));
            }
            (at, doubled) = (at + 2, true);
        }
    }

    /// The text of a field, which shares the memory of `bytes` where it stands there as it is.
    pub(crate) fn text(&self, bytes: &Buffer, field: &Field) -> Result<Str> {
        if field.text.is_empty() {
            return Ok(Str::EMPTY);
        }
        let part = bytes.get(field.text.clone()).unwrap_or_default();
        let text =
            if field.mixed { Str::from_utf8(self.unquote(&part).into()) } else { Str::from_utf8(part) };
        text.map_err(|part| {
            let at = std::str::from_utf8(&part).err().map_or(0, |error| error.valid_up_to());
            let byte = part.as_slice().get(at).copied().unwrap_or_default();
            let place = field.text.start.saturating_add(at);
            Error::corrupt(format!("found byte 0x{byte:02x}, expected UTF-8")).context("byte", place)
        })
    }

    /// Doubled quotes as one, up to the closing one, which goes; what is behind it stays as it is.
    fn unquote(&self, text: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((quote, at)) = self.quote.and_then(|quote| Some((quote, memchr::memchr(quote, rest)?)))
        {
            plain.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            if rest.first() != Some(&quote) {
                break;
            }
            plain.push(quote);
            rest = &rest[1..];
        }
        plain.extend_from_slice(rest);
        plain
    }
}

/// Behind the line feed, the carriage return, or both, at `at`.
fn line_end(bytes: &[u8], at: usize) -> End {
    let both = bytes.get(at..at + 2) == Some(b"\r\n");
    End::Line(at + if both { 2 } else { 1 })
}

/// All records of a CSV file as they stand there, the header too; a blank line is a record without fields.
///
/// ```
/// use forebay_json::{Dialect, records};
///
/// let rows = records(&b"name,note\nheron,\"grey, \"\"tall\"\"\"\n".to_vec().into(), Dialect::CSV)?;
/// assert_eq!(&*rows[1][1], "grey, \"tall\"");
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with the byte, for quotes that do not close and for text that is not UTF-8.
pub fn records(bytes: &Buffer, dialect: Dialect) -> Result<Vec<Vec<Str>>> {
    let mut at = if bytes.starts_with(crate::MARK) { crate::MARK.len() } else { 0 };
    let mut records = Vec::new();
    let mut fields = Vec::new();
    while at < bytes.len() {
        fields.clear();
        let end = dialect.record(bytes, at, |field| fields.push(field));
        at = closed(end, bytes.len(), 0)?;
        records.push(fields.iter().map(|field| dialect.text(bytes, field)).collect::<Result<_>>()?);
    }
    Ok(records)
}

/// Where the next record begins.
///
/// # Errors
/// `Corrupt`, when quotes do not close; `base` is where the bytes begin in their file.
pub(crate) fn closed(end: End, len: usize, base: u64) -> Result<usize> {
    match end {
        End::Line(next) => Ok(next),
        End::Bytes => Ok(len),
        End::Quotes(at) => Err(Error::corrupt("found the end of the file, expected a closing quote")
            .context("byte", base.saturating_add(at as u64))),
    }
}

/// A cell as a value of this type; an empty one is null, but as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// As it stands there.
    Text,
    /// Int64, else float64, else truth, else text: by its own looks alone.
    Auto,
    /// Int64, or uint64 above that.
    Int,
    /// Float64.
    Float,
    /// `true` or `false`, in small letters, capitals, or with one.
    Bool,
}

impl Cell {
    /// The type with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let types = [
            ("text", Self::Text),
            ("auto", Self::Auto),
            ("int", Self::Int),
            ("float", Self::Float),
            ("bool", Self::Bool),
        ];
        types.into_iter().find(|(known, _)| *known == name).map(|(_, cell)| cell)
    }

    /// The value; the text and what was expected when it is none of this type.
    pub(crate) fn value(self, text: Str) -> std::result::Result<Value, (Str, &'static str)> {
        if self != Self::Text && text.is_empty() {
            return Ok(Value::NULL);
        }
        let int = || {
            let unsigned = || text.parse::<u64>().ok().map(Value::from);
            text.parse::<i64>().ok().map(Value::from).or_else(unsigned)
        };
        let float = || text.parse::<f64>().ok().map(Value::from);
        let truth = || match text.as_str() {
            "true" | "True" | "TRUE" => Some(true.into()),
            "false" | "False" | "FALSE" => Some(false.into()),
            _ => None,
        };
        let numeric = || text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        let (value, expected) = match self {
            Self::Text => return Ok(text.into()),
            Self::Auto => {
                let number = if numeric() { int().or_else(float) } else { truth() };
                return Ok(number.unwrap_or_else(|| text.into()));
            }
            Self::Int => (int(), "an integer of 64 bits"),
            Self::Float => (float(), "a float"),
            Self::Bool => (truth(), "true or false"),
        };
        value.ok_or((text, expected))
    }
}
