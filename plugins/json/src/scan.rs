//! The grammar of JSON, walked over bytes: strings eight bytes at a time.
//!
//! Source: RFC 8259, sections 2 to 7.

use forebay_core::{Error, ErrorKind, Result};

/// The most arrays and objects that may lie within each other.
pub const DEPTH: usize = 512;

/// So many bytes of a string are looked at together, in one register.
const LANES: usize = 8;

/// A string that is longer than this is looked at in blocks of so many bytes, for which the compiler takes wide registers.
const BLOCK: usize = 64;

/// A place in JSON text.
pub(crate) struct Scan<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    /// Where in the file the bytes start, for errors.
    pub(crate) base: u64,
    /// Whether values end at the end of a line: then a line feed is no white space.
    pub(crate) by_line: bool,
    /// Whether text that is not UTF-8 is left to who takes it.
    pub(crate) lenient: bool,
}

/// Where a string's text lies, without its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Whether it has an escape.
    pub(crate) escapes: bool,
    pub(crate) ascii: bool,
}

impl<'a> Scan<'a> {
    /// One document.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, base: 0, by_line: false, lenient: false }
    }

    /// The next byte; 0, which no value begins with, at the end.
    #[inline]
    pub(crate) fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Passes over white space, and gives the next byte.
    #[inline]
    pub(crate) fn white(&mut self) -> u8 {
        loop {
            match self.peek() {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' if !self.by_line => self.at += 1,
                other => return other,
            }
        }
    }

    /// What is left.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Passes over this byte, after white space.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, expected: &str) -> Result<()> {
        if self.white() != byte {
            return Err(self.refuse(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// Passes over the comma before another item, or over `end`; says whether there is another.
    #[inline]
    pub(crate) fn another(&mut self, end: u8, expected: &str) -> Result<bool> {
        let found = self.white();
        if found != b',' && found != end {
            return Err(self.refuse(expected));
        }
        self.at += 1;
        Ok(found == b',')
    }

    /// Passes over `true`, `false` or `null`.
    #[inline]
    pub(crate) fn word(&mut self, word: &str) -> Result<()> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.refuse("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Passes over a string.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<Text> {
        self.at += 1;
        let mut text = Text { from: self.at, to: self.at, escapes: false, ascii: true };
        loop {
            let Some(lanes) = self.rest().first_chunk::<LANES>() else { return self.text_end(text) };
            let (stops, high) = look(lanes);
            if stops == 0 {
                text.ascii &= high == 0;
                self.at += LANES;
                if self.at - text.from >= BLOCK {
                    text.ascii &= self.blocks();
                }
                continue;
            }
            text.ascii &= high & (stops & stops.wrapping_neg()).wrapping_sub(1) == 0;
            self.at += stops.trailing_zeros() as usize / 8;
            if self.peek() == b'"' {
                text.to = self.at;
                self.at += 1;
                return Ok(text);
            }
            if self.stop(&mut text)? {
                return Ok(text);
            }
        }
    }

    /// Passes over the blocks in which no string stops; says whether all of them are ASCII.
    fn blocks(&mut self) -> bool {
        let mut ascii = true;
        while let Some(block) = self.rest().first_chunk::<BLOCK>() {
            // No way out of the loop: so it is done in wide registers.
            let stops = block
                .iter()
                .fold(false, |stops, &byte| stops | (byte == b'"') | (byte == b'\\') | (byte < b' '));
            if stops {
                break;
            }
            ascii &= block.iter().fold(true, |ascii, byte| ascii & byte.is_ascii());
            self.at += BLOCK;
        }
        ascii
    }

    /// The rest of a string that is near the end of the bytes.
    fn text_end(&mut self, mut text: Text) -> Result<Text> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte < b' ' || matches!(byte, b'"' | b'\\') {
                if self.stop(&mut text)? {
                    return Ok(text);
                }
            } else {
                text.ascii &= byte.is_ascii();
                self.at += 1;
            }
        }
        Err(self.refuse("the end of a string"))
    }

    /// Passes over a quote or an escape; says whether the string has ended.
    fn stop(&mut self, text: &mut Text) -> Result<bool> {
        match self.peek() {
            b'"' => {
                text.to = self.at;
                self.at += 1;
                Ok(true)
            }
            b'\\' => {
                text.escapes = true;
                self.escape().map(|()| false)
            }
            _ => Err(self.refuse("a character of a string; below a space they must be escaped")),
        }
    }

    fn escape(&mut self) -> Result<()> {
        let len = match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.refuse("an escape with four hex digits"));
                }
                6
            }
            _ => return Err(self.refuse("an escape of JSON")),
        };
        self.at += len;
        Ok(())
    }

    /// Passes over any value that lies within at most `levels` more arrays and objects.
    pub(crate) fn skip(&mut self, levels: usize) -> Result<()> {
        match self.white() {
            b'"' => self.skip_text(),
            b'{' => self.skip_object(deeper(levels, self)?),
            b'[' => self.skip_array(deeper(levels, self)?),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.skip_number(),
        }
    }

    /// Passes over a string whose text nobody wants.
    #[inline]
    pub(crate) fn skip_text(&mut self) -> Result<()> {
        if !self.lenient {
            let text = self.text()?;
            return if text.ascii { Ok(()) } else { self.utf8(text).map(drop) };
        }
        let from = self.at;
        self.at += 1;
        while let Some(lanes) = self.rest().first_chunk::<LANES>() {
            let (stops, _) = look(lanes);
            self.at += stops.trailing_zeros() as usize / 8;
            if stops != 0 {
                if self.peek() == b'"' {
                    self.at += 1;
                    return Ok(());
                }
                break;
            }
        }
        self.at = from;
        self.text().map(drop)
    }

    /// The text of a string as it stands there.
    pub(crate) fn utf8(&self, text: Text) -> Result<&'a str> {
        let bytes = self.bytes.get(text.from..text.to).unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|error| self.refuse_at(text.from + error.valid_up_to(), "UTF-8"))
    }

    fn skip_object(&mut self, levels: usize) -> Result<()> {
        self.at += 1;
        if self.white() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.white() != b'"' {
                return Err(self.refuse("a key"));
            }
            self.skip_text()?;
            self.expect(b':', "a colon")?;
            self.skip(levels)?;
            if !self.another(b'}', "a comma or the end of an object")? {
                return Ok(());
            }
        }
    }

    fn skip_array(&mut self, levels: usize) -> Result<()> {
        self.at += 1;
        if self.white() == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip(levels)?;
            if !self.another(b']', "a comma or the end of an array")? {
                return Ok(());
            }
        }
    }

    pub(crate) fn place(&self, at: usize) -> u64 {
        self.base.saturating_add(at as u64)
    }

    /// That something else stands here than is expected.
    #[cold]
    pub(crate) fn refuse(&self, expected: &str) -> Error {
        self.refuse_at(self.at, expected)
    }

    #[cold]
    pub(crate) fn refuse_at(&self, at: usize, expected: &str) -> Error {
        let found = match self.bytes.get(at) {
            Some(byte @ b'!'..=b'~') => format!("`{}`", char::from(*byte)),
            Some(byte) => format!("byte 0x{byte:02x}"),
            None => "the end".to_owned(),
        };
        Error::corrupt(format!("unreadable JSON: found {found}, expected {expected}"))
            .context("byte", self.place(at))
    }

    #[cold]
    pub(crate) fn limit(&self, message: &str) -> Error {
        Error::new(ErrorKind::Limit, message).context("byte", self.place(self.at))
    }
}

/// The levels left within an array or object.
#[inline]
pub(crate) fn deeper(levels: usize, scan: &Scan<'_>) -> Result<usize> {
    levels.checked_sub(1).ok_or_else(|| scan.limit(&format!("nested deeper than {DEPTH} levels")))
}

/// The highest bit of each byte that ends a run of plain text (quotes, backslashes, control characters), where only the lowest
/// such bit is sure; and of each byte beyond ASCII.
///
/// Source: Mycroft's test for a zero byte, comp.lang.c, 8 April 1987.
#[inline]
fn look(lanes: &[u8; LANES]) -> (u64, u64) {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let bytes = u64::from_le_bytes(*lanes);
    let below = |bytes: u64, bound: u8| bytes.wrapping_sub(ONES * u64::from(bound)) & !bytes;
    let quotes = below(bytes ^ (ONES * u64::from(b'"')), 1);
    let slashes = below(bytes ^ (ONES * u64::from(b'\\')), 1);
    ((quotes | slashes | below(bytes, b' ')) & HIGH, bytes & HIGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_seen_in_every_lane() {
        for byte in 0..=u8::MAX {
            for lane in 0..LANES {
                let mut lanes = *b"xyz \x7f[}!";
                lanes[lane] = byte;
                let (stops, high) = look(&lanes);
                let is_stop = byte < b' ' || matches!(byte, b'"' | b'\\');
                let found = (stops != 0).then(|| stops.trailing_zeros() as usize / 8);
                assert_eq!(found, is_stop.then_some(lane), "byte {byte} in lane {lane}");
                assert_eq!(high != 0, !byte.is_ascii());
            }
        }
    }

    #[test]
    fn passes_over_just_what_is_json() {
        let good = [
            "0",
            "-0",
            "1e5",
            "1.5E-3",
            "[]",
            "{}",
            "[1, [2 ], {\"a\":null}]",
            "\"\\u00e9\\n\"",
            "true",
            "\"grün\"",
        ];
        for text in good {
            let mut scan = Scan::new(text.as_bytes());
            assert!(scan.skip(DEPTH).is_ok() && scan.at == text.len(), "{text}");
        }
        let bad: [&[u8]; 22] = [
            b"",
            b"01",
            b"-",
            b"1.",
            b".5",
            b"1e",
            b"1e+",
            b"+1",
            b"[1,]",
            b"[,1]",
            b"{\"a\"}",
            b"{\"a\":}",
            b"{a:1}",
            b"{\"a\":1,}",
            b"\"\\x\"",
            b"\"\\u12g4\"",
            b"\"a\nb\"",
            b"\"a",
            b"tru",
            b"nulL",
            b"\"\xff\"",
            b"\"\xffabcdefghijklmnopqrst\"",
        ];
        for text in bad {
            assert!(Scan::new(text).skip(DEPTH).is_err(), "{}", text.escape_ascii());
        }
    }
}
