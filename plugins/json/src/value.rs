//! JSON text to values, which share its memory.

use forebay_core::{Buffer, Error, Result, Schema, Str, Value};

use crate::{
    scan::{Scan, Text, deeper},
    shapes::{NOWHERE, Shapes},
    unique::once_each,
};

/// What counts of keys that stand in an object twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// The last value, at the place of the first.
    Last,
    /// The first value.
    First,
    /// They are an error.
    Refuse,
}

/// What becomes of that which JSON leaves open, or forbids.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Of equal keys.
    pub duplicates: Duplicates,
    /// Whether U+FFFD stands for bytes that are not UTF-8 and for halves of surrogate pairs; else they are an error.
    pub replace_invalid: bool,
    /// Whether integers beyond 64 bits become their digits as text; else the nearest float64.
    pub big_as_text: bool,
}

impl Rules {
    /// The last of equal keys counts, all that is not UTF-8 is an error, big integers become floats.
    pub const DEFAULT: Self =
        Self { duplicates: Duplicates::Last, replace_invalid: false, big_as_text: false };
}

/// Reads values from a place in JSON text.
pub(crate) struct Reader<'a> {
    pub(crate) scan: Scan<'a>,
    /// What the scan walks over.
    pub(crate) source: &'a Buffer,
    pub(crate) shapes: &'a mut Shapes,
    pub(crate) rules: Rules,
    /// The bytes that values may still take.
    pub(crate) left: u64,
    /// How many objects were looked into for what is selected.
    pub(crate) objects: u64,
}

impl Reader<'_> {
    /// The next value, which is that of the key `under`.
    #[inline]
    pub(crate) fn value(&mut self, under: u32, levels: usize) -> Result<Value> {
        match self.scan.white() {
            b'"' => {
                let text = self.scan.text()?;
                self.text(text).map(Value::from)
            }
            b'{' => {
                let start = self.shapes.inner(under);
                let (schema, values) = self.object(start, levels)?;
                Ok(Value::with_schema(schema, values))
            }
            b'[' => self.array(under, levels),
            b't' => self.scan.word("true").map(|()| true.into()),
            b'f' => self.scan.word("false").map(|()| false.into()),
            b'n' => self.scan.word("null").map(|()| Value::NULL),
            _ => {
                let big_as_text = self.rules.big_as_text;
                self.scan.number(|scan, text| {
                    if big_as_text { Ok(text.into()) } else { scan.float(text, scan.at - text.len()) }
                })
            }
        }
    }

    fn array(&mut self, under: u32, levels: usize) -> Result<Value> {
        let levels = deeper(levels, &self.scan)?;
        self.scan.at += 1;
        let mut values = Vec::new();
        if self.scan.white() == b']' {
            self.scan.at += 1;
            return Ok(Value::list(values));
        }
        loop {
            self.take(size_of::<Value>())?;
            values.push(self.value(under, levels)?);
            if !self.scan.another(b']', "a comma or the end of an array")? {
                return Ok(Value::list(values));
            }
        }
    }

    /// The object that begins here, and whose keys are those after `start`.
    pub(crate) fn object(&mut self, start: u32, levels: usize) -> Result<(Schema, Vec<Value>)> {
        let levels = deeper(levels, &self.scan)?;
        self.scan.at += 1;
        let mut values = Vec::with_capacity(self.shapes.width(start));
        let mut node = start;
        if self.scan.white() == b'}' {
            self.scan.at += 1;
            return Ok((Schema::empty(), values));
        }
        loop {
            let place = self.scan.at;
            node = match self.key(node)? {
                Ok(next) => next,
                Err(name) => {
                    let fields = self.shapes.names(node).into_iter().zip(values).collect();
                    return self.rest(fields, name, levels);
                }
            };
            self.take(size_of::<(Str, Value)>())?;
            let value = self.value(node, levels)?;
            match values.get_mut(self.shapes.slot(node)) {
                None => values.push(value),
                Some(_) if self.rules.duplicates == Duplicates::Refuse => return Err(self.twice(place)),
                Some(first) if self.rules.duplicates == Duplicates::Last => *first = value,
                Some(_) => {}
            }
            if !self.scan.another(b'}', "a comma or the end of an object")? {
                self.shapes.ended(start, values.len());
                return Ok((self.shapes.schema(node), values));
            }
            self.scan.white();
        }
    }

    /// Passes over a key after that of `node`, and its colon: its node, or its name when the tree is full.
    #[inline]
    pub(crate) fn key(&mut self, node: u32) -> Result<Result<u32, Str>> {
        if let Some((next, len)) = self.shapes.next(node, self.scan.rest()) {
            self.scan.at += len;
            return Ok(Ok(next));
        }
        self.new_key(node)
    }

    fn new_key(&mut self, node: u32) -> Result<Result<u32, Str>> {
        let from = self.scan.at;
        let name = self.name()?;
        self.scan.expect(b':', "a colon")?;
        self.scan.at += usize::from(self.scan.peek() == b' ');
        let raw = self.scan.bytes.get(from..self.scan.at).unwrap_or_default();
        Ok(self.shapes.learn(node, raw, &name).ok_or(name))
    }

    /// Reads a key. It has memory of its own, as it outlives the text.
    pub(crate) fn name(&mut self) -> Result<Str> {
        if self.scan.peek() != b'"' {
            return Err(self.scan.refuse("a key"));
        }
        let text = self.scan.text()?;
        let name = self.text(text)?;
        Ok(Str::from(&*name))
    }

    /// The rest of an object, of which `fields` and the key `name` were read, without the tree.
    fn rest(
        &mut self,
        mut fields: Vec<(Str, Value)>,
        mut name: Str,
        levels: usize,
    ) -> Result<(Schema, Vec<Value>)> {
        loop {
            self.take(size_of::<(Str, Value)>().saturating_add(name.len()))?;
            fields.push((name, self.value(NOWHERE, levels)?));
            if !self.scan.another(b'}', "a comma or the end of an object")? {
                break;
            }
            self.scan.white();
            name = self.name()?;
            self.scan.expect(b':', "a colon")?;
        }
        let count = fields.len();
        let fields = once_each(fields, self.rules.duplicates == Duplicates::Last);
        if fields.len() < count && self.rules.duplicates == Duplicates::Refuse {
            return Err(self.twice(self.scan.at));
        }
        let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        Ok((Schema::new(names), values))
    }

    #[cold]
    pub(crate) fn twice(&self, at: usize) -> Error {
        self.scan.refuse_at(at, "each key of an object once")
    }

    /// Counts memory that is about to be taken.
    #[inline]
    fn take(&mut self, bytes: usize) -> Result<()> {
        match self.left.checked_sub(bytes as u64) {
            Some(left) => self.left = left,
            None => return Err(self.scan.limit("more values than the limit of memory for one allows")),
        }
        Ok(())
    }

    /// A string's text: shared where it stands as it is, else a copy.
    #[inline]
    fn text(&mut self, text: Text) -> Result<Str> {
        if text.escapes {
            return self.unescape(text);
        }
        if text.from == text.to {
            return Ok(Str::EMPTY);
        }
        let shared = self.source.get(text.from..text.to).unwrap_or_default();
        match Str::from_utf8(shared) {
            Ok(text) => Ok(text),
            Err(bytes) if self.rules.replace_invalid => Ok(Str::from(&*String::from_utf8_lossy(&bytes))),
            Err(_) => self.scan.utf8(text).map(Str::from),
        }
    }

    fn unescape(&mut self, text: Text) -> Result<Str> {
        self.take(text.to - text.from)?;
        let raw = self.scan.bytes.get(text.from..text.to).unwrap_or_default();
        let mut plain = Vec::with_capacity(raw.len());
        let mut at = 0;
        while let Some(&byte) = raw.get(at) {
            if byte != b'\\' {
                let rest = &raw[at..];
                let run = rest.iter().position(|byte| *byte == b'\\').unwrap_or(rest.len());
                plain.extend_from_slice(&rest[..run]);
                at += run;
                continue;
            }
            let (letter, len) = escaped(raw.get(at + 1..).unwrap_or_default());
            match letter {
                Some(letter) => plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
                None if self.rules.replace_invalid => plain.extend_from_slice("\u{fffd}".as_bytes()),
                None => return Err(self.scan.refuse_at(text.from + at, "both halves of a surrogate pair")),
            }
            at += 1 + len;
        }
        match String::from_utf8(plain) {
            Ok(plain) => Ok(plain.into()),
            Err(error) if self.rules.replace_invalid => {
                Ok(Str::from(&*String::from_utf8_lossy(error.as_bytes())))
            }
            Err(_) => self.scan.utf8(text).map(Str::from),
        }
    }
}

/// The character of an escape, without its backslash, and how long that is; none for half of a surrogate pair.
fn escaped(raw: &[u8]) -> (Option<char>, usize) {
    let unit = |at: usize| {
        let digits = raw.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok())?;
        u32::from_str_radix(digits, 16).ok()
    };
    let letter = match raw.first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let high = unit(1).unwrap_or_default();
            let low = unit(7).filter(|low| raw.get(5..7) == Some(b"\\u") && (0xdc00..0xe000).contains(low));
            return match low {
                Some(low) if (0xd800..0xdc00).contains(&high) => {
                    (char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 11)
                }
                _ => (char::from_u32(high), 5),
            };
        }
        Some(&same) => char::from(same),
        None => return (None, 0),
    };
    (Some(letter), 1)
}
