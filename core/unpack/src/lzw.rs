//! compress(1): LZW with codes of 9 to 16 bits, as `gzip -d` reads it. There is no specification beside its source.

use std::io::{self, BufRead, Read};

/// The code that empties the table, and the first that is free then.
const CLEAR: u16 = 256;
const FIRST: u32 = 257;

/// The bytes of a `.Z`, unpacked.
pub(crate) struct Lzw<R> {
    source: R,
    /// The table, once the header was read.
    table: Option<Box<Table>>,
    /// What was unpacked and not taken.
    text: Vec<u8>,
    taken: usize,
}

struct Table {
    /// What each code adds to another one: that one, and the last byte.
    prefix: Vec<u16>,
    suffix: Vec<u8>,
    /// The code that the next one adds to; none at the start and after a clear.
    last: Option<u16>,
    /// The first byte of what the last code stood for.
    first: u8,
    free: u32,
    bits: u32,
    most_bits: u32,
    clears: bool,
    /// Codes come eight at a time, in as many bytes as each has bits. What is left of those is passed over when the width changes.
    group: [u8; 16],
    group_bits: usize,
    at: usize,
}

impl<R: BufRead> Lzw<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, table: None, text: Vec::new(), taken: 0 }
    }

    /// Unpacks until some text waits; says whether there is any.
    fn fill(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.taken = 0;
        if self.table.is_none() {
            self.table = Some(Box::new(Table::open(&mut self.source)?));
        }
        let Some(table) = &mut self.table else { return Ok(false) };
        while self.text.is_empty() {
            let Some(code) = table.code(&mut self.source)? else { return Ok(false) };
            table.step(code, &mut self.text)?;
        }
        Ok(true)
    }
}

impl<R: BufRead> Read for Lzw<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            if self.taken == self.text.len() && !self.fill()? {
                break;
            }
            let count = self.text.get(self.taken..).unwrap_or_default().read(rest)?;
            self.taken += count;
            filled += count;
        }
        Ok(filled)
    }
}

impl Table {
    fn open(source: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 3];
        source.read_exact(&mut head)?;
        let (most_bits, clears) = (u32::from(head[2] & 0x1f), head[2] & 0x80 != 0);
        if !(9..=16).contains(&most_bits) {
            return Err(broken(format!("codes of {most_bits} bits, expected 9 to 16")));
        }
        let codes = 1_usize << most_bits;
        Ok(Self {
            prefix: vec![0; codes],
            suffix: (0..codes).map(|code| code as u8).collect(),
            last: None,
            first: 0,
            free: if clears { FIRST } else { 256 },
            bits: 9,
            most_bits,
            clears,
            group: [0; 16],
            group_bits: 0,
            at: 0,
        })
    }

    /// The next code; none at the end.
    fn code(&mut self, source: &mut impl Read) -> io::Result<Option<u16>> {
        // The width grows when the next free code would not fit.
        if self.free > (1 << self.bits) - 1 && self.bits < self.most_bits {
            self.bits += 1;
            self.at = self.group_bits;
        }
        let bits = self.bits as usize;
        if self.at + bits > self.group_bits {
            let got = read_up_to(source, self.group.get_mut(..bits).unwrap_or_default())?;
            (self.at, self.group_bits) = (0, got * 8);
            if got == 0 {
                return Ok(None);
            }
            if self.group_bits < bits {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let start = self.at / 8;
        let word = (0..3).fold(0_u32, |word, byte| {
            word | u32::from(self.group.get(start + byte).copied().unwrap_or(0)) << (8 * byte)
        });
        let code = (word >> (self.at % 8)) & ((1 << bits) - 1);
        self.at += bits;
        // At most 16 bits.
        Ok(Some(code as u16))
    }

    /// Adds what `code` stands for to `text`.
    fn step(&mut self, code: u16, text: &mut Vec<u8>) -> io::Result<()> {
        if code == CLEAR && self.clears {
            (self.free, self.last, self.bits, self.at) = (FIRST, None, 9, self.group_bits);
            return Ok(());
        }
        let Some(last) = self.last else {
            if code > 255 {
                return Err(broken(format!("the first code is {code}, expected a byte")));
            }
            (self.last, self.first) = (Some(code), code as u8);
            text.push(code as u8);
            return Ok(());
        };
        // The code that is about to be made: what the last one stands for, and its first byte again.
        let next = u32::from(code) == self.free;
        if u32::from(code) > self.free {
            return Err(broken(format!("found code {code}, but only {} codes are known", self.free)));
        }
        let start = text.len();
        let mut at = if next { last } else { code };
        while at > 255 {
            let (suffix, prefix) = (self.suffix.get(usize::from(at)), self.prefix.get(usize::from(at)));
            let (Some(&suffix), Some(&prefix)) = (suffix, prefix) else {
                return Err(broken(format!("code {at} does not exist")));
            };
            text.push(suffix);
            // Each code adds to an earlier one, so this ends.
            if prefix >= at {
                return Err(broken(format!("code {at} adds to itself")));
            }
            at = prefix;
        }
        self.first = at as u8;
        text.push(self.first);
        if let Some(new) = text.get_mut(start..) {
            new.reverse();
        }
        if next {
            text.push(self.first);
        }
        if self.free < 1 << self.most_bits {
            let free = self.free as usize;
            if let (Some(prefix), Some(suffix)) = (self.prefix.get_mut(free), self.suffix.get_mut(free)) {
                (*prefix, *suffix) = (last, self.first);
            }
            self.free += 1;
        }
        self.last = Some(code);
        Ok(())
    }
}

/// Fills `out`, or less at the end.
fn read_up_to(source: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn broken(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
