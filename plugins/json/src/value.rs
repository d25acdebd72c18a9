//! JSON text to values, which share its memory.

use forebay_core::{Arena, Error, Result, Schema, Str, Value};

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

/// The names of an object's values.
pub(crate) enum Names {
    /// Those on the way to this key in the tree; none when it is nowhere.
    Known(u32),
    Own(Schema),
}

impl Names {
    #[inline]
    pub(crate) fn schema<'a>(&'a self, shapes: &'a mut Shapes) -> &'a Schema {
        match self {
            Self::Known(node) => shapes.schema(*node),
            Self::Own(schema) => schema,
        }
    }
}

/// Reads values from a place in JSON text.
pub(crate) struct Reader<'a> {
    pub(crate) scan: Scan<'a>,
    /// Over what the scan walks over.
    pub(crate) arena: &'a mut Arena,
    /// The values of what is not yet whole, the outermost first.
    pub(crate) stack: &'a mut Vec<Value>,
    pub(crate) shapes: &'a mut Shapes,
    pub(crate) rules: Rules,
    /// The bytes that values may still take.
    pub(crate) left: u64,
    /// How many objects were looked into for what is selected.
    pub(crate) objects: u64,
}

impl Reader<'_> {
    /// The next value, which is that of the key `under`, goes to the stack.
    #[inline]
    pub(crate) fn value(&mut self, under: u32, levels: usize) -> Result<()> {
        let value = match self.scan.white() {
            b'"' => {
                let text = self.scan.text()?;
                if text.escapes || !self.arena.push_text(text.from..text.to, self.stack) {
                    let text = self.odd(text)?;
                    self.stack.push(text.into());
                }
                return Ok(());
            }
            b'{' => {
                let (start, from) = (self.shapes.inner(under), self.stack.len());
                let names = self.object(start, levels)?;
                self.arena.structure(names.schema(self.shapes), self.stack, from)
            }
            b'[' => self.array(under, levels)?,
            b't' => self.scan.word("true").map(|()| true.into())?,
            b'f' => self.scan.word("false").map(|()| false.into())?,
            b'n' => self.scan.word("null").map(|()| Value::NULL)?,
            _ => {
                let big_as_text = self.rules.big_as_text;
                return self.scan.number(self.stack, |scan, text| match big_as_text {
                    true => Ok(text.into()),
                    false => scan.float(text, scan.at - text.len()).map(Value::from),
                });
            }
        };
        self.stack.push(value);
        Ok(())
    }

    fn array(&mut self, under: u32, levels: usize) -> Result<Value> {
        let levels = deeper(levels, &self.scan)?;
        self.scan.at += 1;
        let from = self.stack.len();
        if self.scan.white() == b']' {
            self.scan.at += 1;
            return Ok(self.arena.list(self.stack, from));
        }
        loop {
            self.take(size_of::<Value>())?;
            self.value(under, levels)?;
            if !self.scan.another(b']', "a comma or the end of an array")? {
                return Ok(self.arena.list(self.stack, from));
            }
        }
    }

    /// The object that begins here, and whose keys are those after `start`: its values go to the stack.
    pub(crate) fn object(&mut self, start: u32, levels: usize) -> Result<Names> {
        let levels = deeper(levels, &self.scan)?;
        self.scan.at += 1;
        let from = self.stack.len();
        let mut node = start;
        if self.scan.white() == b'}' {
            self.scan.at += 1;
            return Ok(Names::Known(NOWHERE));
        }
        loop {
            let place = self.scan.at;
            node = match self.key(node)? {
                Ok(next) => next,
                Err(name) => {
                    let fields = self.shapes.names(node).into_iter().zip(self.stack.drain(from..)).collect();
                    return self.rest(fields, name, levels);
                }
            };
            self.take(size_of::<(Str, Value)>())?;
            let (slot, place_of_new) = (from + self.shapes.slot(node), self.stack.len());
            self.value(node, levels)?;
            if slot < place_of_new {
                self.again(slot, place)?;
            }
            if !self.scan.another(b'}', "a comma or the end of an object")? {
                return Ok(Names::Known(node));
            }
            self.scan.white();
        }
    }

    /// What becomes of a value that was read for a key that the object had before, at `slot`.
    #[cold]
    fn again(&mut self, slot: usize, place: usize) -> Result<()> {
        match self.rules.duplicates {
            Duplicates::Refuse => return Err(self.twice(place)),
            Duplicates::Last => drop(self.stack.swap_remove(slot)),
            Duplicates::First => drop(self.stack.pop()),
        }
        Ok(())
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
        let plain = self.scan.bytes.get(text.from..text.to).filter(|_| !text.escapes);
        match plain.and_then(|plain| std::str::from_utf8(plain).ok()) {
            Some(name) => Ok(name.into()),
            None => self.odd(text),
        }
    }

    /// The rest of an object, of which `fields` and the key `name` were read, without the tree.
    fn rest(&mut self, mut fields: Vec<(Str, Value)>, mut name: Str, levels: usize) -> Result<Names> {
        loop {
            self.take(size_of::<(Str, Value)>().saturating_add(name.len()))?;
            self.value(NOWHERE, levels)?;
            fields.push((name, self.stack.pop().unwrap_or_default()));
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
        self.stack.extend(values);
        Ok(Names::Own(Schema::new(names)))
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

    /// The text of a string that does not stand there as it is, or is not UTF-8.
    #[cold]
    fn odd(&mut self, text: Text) -> Result<Str> {
        if text.escapes {
            return self.unescape(text);
        }
        match self.rules.replace_invalid {
            true => {
                let bytes = self.scan.bytes.get(text.from..text.to).unwrap_or_default();
                Ok(Str::from(&*String::from_utf8_lossy(bytes)))
            }
            false => self.scan.utf8(text).map(Str::from),
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
