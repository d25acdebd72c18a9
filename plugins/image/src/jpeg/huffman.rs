//! Huffman tables, made so that one look tells a code, its zeros and its value's length.

/// Codes up to this long are found in one look.
pub(crate) const LOOK: u32 = 11;

/// In the place of an advance: the block ends.
pub(crate) const END: u32 = 64;
/// In the place of an advance: the code is longer than [`LOOK`], its value is unusually long, or there is none.
pub(crate) const LONG: u32 = 128;

/// A table as the file has it: how many codes there are of each length from 1 to 16, and their symbols.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spec<'a> {
    counts: [u8; 16],
    symbols: &'a [u8],
    /// Whether its symbols are lengths of values, without zeros before them.
    is_dc: bool,
}

impl<'a> Spec<'a> {
    /// The table at the start of `bytes`, and what follows it; `None` if its codes do not fit their lengths.
    pub(crate) fn parse(bytes: &'a [u8], is_dc: bool) -> Option<(Self, &'a [u8])> {
        let (counts, rest) = bytes.split_first_chunk::<16>()?;
        let (symbols, rest) = rest.split_at_checked(counts.iter().map(|count| usize::from(*count)).sum())?;
        let mut code = 0_u32;
        for (count, len) in counts.iter().zip(1..) {
            code += u32::from(*count);
            // The code of nothing but ones is kept free.
            if code > (1 << len) - u32::from(*count > 0) {
                return None;
            }
            code <<= 1;
        }
        let is_valid = symbols.len() <= 256 && (!is_dc || symbols.iter().all(|size| *size <= 15));
        is_valid.then_some((Self { counts: *counts, symbols, is_dc }, rest))
    }
}

/// What one look tells, of one code: its bits, coefficients to go on by, and bits of its value; and of the one behind
/// it, if that one is whole too: coefficients to go on by, the value itself, and the bits of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(u64);

impl Entry {
    const UNKNOWN: Self = Self((LONG as u64) << 8);

    fn new(code: u32, symbol: u8, is_dc: bool) -> Self {
        let size = u32::from(symbol & 15);
        let advance = match symbol >> 4 {
            15 if size == 0 => 16,
            _ if size == 0 && !is_dc => END,
            zeros => u32::from(zeros) + 1,
        };
        Self(u64::from(code | advance << 8 | size << 16 | (code + size) << 24))
    }

    /// The same with another code behind it.
    fn with_second(self, advance: u32, value: i32, total: u32) -> Self {
        let value = (value as u16 as u64) << 48;
        Self(self.0 & 0xff_ffff | u64::from(total) << 24 | u64::from(advance) << 32 | value)
    }

    #[inline(always)]
    fn code(self) -> u32 {
        self.0 as u32 & 0xff
    }

    #[inline(always)]
    fn size(self) -> u32 {
        self.0 as u32 >> 16 & 0xff
    }

    /// Coefficients to go on by, [`END`] or [`LONG`].
    #[inline(always)]
    pub(crate) fn advance(self) -> u32 {
        self.0 as u32 >> 8 & 0xff
    }

    /// Bits of the first code and its value.
    #[inline(always)]
    pub(crate) fn total(self) -> u32 {
        self.code() + self.size()
    }

    /// Bits to go on by behind both.
    #[inline(always)]
    pub(crate) fn total_of_both(self) -> u32 {
        self.0 as u32 >> 24
    }

    /// Coefficients to go on by for the second; 0 if there is none, [`END`] if the block ends.
    #[inline(always)]
    pub(crate) fn second_advance(self) -> u32 {
        (self.0 >> 32) as u32 & 0xff
    }

    /// The second value.
    #[inline(always)]
    pub(crate) fn second_value(self) -> i32 {
        (self.0 as i64 >> 48) as i32
    }

    /// The first value, whose code is at the top of `ahead`.
    #[inline(always)]
    pub(crate) fn value(self, ahead: u64) -> i32 {
        let (bits, size) = (ahead << (self.code() & 63), self.size() & 31);
        let value = (bits >> 1 >> (63 - size)) as i32;
        // A value that begins with a zero is negative.
        let is_negative = !(bits as i64 >> 63) as i32;
        value + (((-1 << size) + 1) & is_negative)
    }
}

/// A table for reading.
pub(crate) struct Table {
    /// By the next [`LOOK`] bits.
    entries: [Entry; 1 << LOOK],
    /// By the next [`LOOK`] bits, all codes that are whole in them.
    runs: [Run; 1 << LOOK],
    codes: Codes,
    /// The table as the file has it, to know it again.
    counts: [u8; 16],
    is_dc: bool,
}

/// Codes of any length.
struct Codes {
    /// For each length, one more than its last code, at the top of 16 bits.
    ends: [u32; 17],
    /// For each length, what is added to a code to find its symbol.
    offsets: [i32; 17],
    symbols: [u8; 256],
    len: usize,
}

impl Codes {
    /// Calls `each` with the length, the code and the symbol of every code.
    fn new(spec: &Spec<'_>, mut each: impl FnMut(u32, u32, u8)) -> Self {
        let mut codes = Self { ends: [0; 17], offsets: [0; 17], symbols: [0; 256], len: spec.symbols.len() };
        codes.symbols[..spec.symbols.len()].copy_from_slice(spec.symbols);
        let (mut code, mut index) = (0_u32, 0_usize);
        for (count, len) in spec.counts.iter().zip(1_u32..) {
            codes.offsets[len as usize] = index as i32 - code as i32;
            for symbol in spec.symbols.iter().skip(index).take(usize::from(*count)) {
                each(len, code, *symbol);
                code += 1;
            }
            index += usize::from(*count);
            codes.ends[len as usize] = code << (16 - len);
            code <<= 1;
        }
        codes
    }

    /// The length and the symbol of the code that `ahead` begins with; `None` if there is none.
    fn find(&self, ahead: u64) -> Option<(u32, u8)> {
        let ahead = (ahead >> 48) as u32;
        let len = (1..=16_u32).find(|len| ahead < self.ends[*len as usize])?;
        let index = (ahead >> (16 - len)) as i32 + self.offsets[len as usize];
        let symbol = self.symbols[..self.len].get(usize::try_from(index).ok()?)?;
        Some((len, *symbol))
    }
}

/// The places that the code has in a table of the next `look` bits, if it is no longer than they are.
fn places(look: u32, len: u32, code: u32) -> std::ops::Range<usize> {
    let Some(rest) = look.checked_sub(len) else { return 0..0 };
    (code as usize) << rest..(code as usize + 1) << rest
}

/// A small table, of symbols alone: quickly made, for scans that each have their own.
pub(crate) struct Symbols {
    /// By the next [`Symbols::LOOK`] bits: the code's length, then its symbol; 0 if it is longer or there is none.
    found: [u16; 1 << Self::LOOK],
    codes: Codes,
}

impl Symbols {
    const LOOK: u32 = 9;

    pub(crate) fn new(spec: &Spec<'_>) -> Self {
        let mut found = [0; 1 << Self::LOOK];
        let codes = Codes::new(spec, |len, code, symbol| {
            found[places(Self::LOOK, len, code)].fill((len << 8) as u16 | u16::from(symbol));
        });
        Self { found, codes }
    }

    /// The length of the code that `ahead` begins with, at most 16, and its symbol; `None` if there is none.
    #[inline(always)]
    pub(crate) fn find(&self, ahead: u64) -> Option<(u32, u32)> {
        match u32::from(self.found[(ahead >> (64 - Self::LOOK)) as usize]) {
            0 => self.long(ahead),
            found => Some((found >> 8, found & 0xff)),
        }
    }

    #[cold]
    #[inline(never)]
    fn long(&self, ahead: u64) -> Option<(u32, u32)> {
        self.codes.find(ahead).map(|(len, symbol)| (len, u32::from(symbol)))
    }
}

/// What several codes at once tell: bits of them with their values, and coefficients to go on by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run(u16);

impl Run {
    /// Bits to go on by.
    #[inline(always)]
    pub(crate) fn total(self) -> u32 {
        u32::from(self.0 & 0xff)
    }

    /// Coefficients to go on by; [`END`] is added to them if the block ends then, [`LONG`] if nothing is known.
    #[inline(always)]
    pub(crate) fn advance(self) -> u32 {
        u32::from(self.0 >> 8)
    }
}

impl Table {
    /// Whether it was made from `spec`.
    pub(crate) fn is_of(&self, spec: &Spec<'_>) -> bool {
        let symbols = &self.codes.symbols[..self.codes.len];
        self.counts == spec.counts && self.is_dc == spec.is_dc && symbols == spec.symbols
    }

    pub(crate) fn new(spec: &Spec<'_>) -> Self {
        let mut entries = [Entry::UNKNOWN; 1 << LOOK];
        let codes = Codes::new(spec, |len, code, symbol| {
            // Values of more than 10 bits are left to the long way, so that two codes fit into a refill.
            if spec.is_dc || symbol & 15 <= 10 {
                entries[places(LOOK, len, code)].fill(Entry::new(len, symbol, spec.is_dc));
            }
        });
        let (runs, counts) = ([Run(0); 1 << LOOK], spec.counts);
        let mut table = Self { entries, runs, codes, counts, is_dc: spec.is_dc };
        if !spec.is_dc {
            for bits in 0..1 << LOOK {
                table.runs[bits] = table.run(bits);
                table.entries[bits] = table.pair(bits);
            }
        }
        table
    }

    /// The first code of these [`LOOK`] bits, and the second if both are whole in them.
    fn pair(&self, bits: usize) -> Entry {
        let first = self.entries[bits];
        if first.advance() >= END || first.total() >= LOOK {
            return first;
        }
        let rest = bits << first.total() & ((1 << LOOK) - 1);
        let second = self.entries[rest];
        let total = first.total() + second.total();
        if second.advance() == LONG || total > LOOK {
            return first;
        }
        first.with_second(second.advance(), second.value((rest as u64) << (64 - LOOK)), total)
    }

    /// The codes that are whole in these [`LOOK`] bits.
    fn run(&self, bits: usize) -> Run {
        let (mut total, mut advance) = (0, 0);
        while total < LOOK {
            let entry = self.entries[bits << total & ((1 << LOOK) - 1)];
            if entry.advance() == LONG || total + entry.code() > LOOK {
                break;
            }
            // More than a block holds would not fit beside the marks.
            if entry.advance() != END && advance + entry.advance() >= END {
                break;
            }
            total += entry.total();
            advance += entry.advance();
            if entry.advance() == END {
                break;
            }
        }
        if total == 0 { Run((LONG << 8) as u16) } else { Run((total | advance << 8) as u16) }
    }

    /// What the next bits begin with.
    #[inline(always)]
    pub(crate) fn entry(&self, ahead: u64) -> Entry {
        self.entries[(ahead >> (64 - LOOK)) as usize]
    }

    /// The codes that the next bits begin with.
    #[inline(always)]
    pub(crate) fn codes(&self, ahead: u64) -> Run {
        self.runs[(ahead >> (64 - LOOK)) as usize]
    }

    /// The entry of a code of any length; `None` if there is none.
    pub(crate) fn long(&self, ahead: u64) -> Option<Entry> {
        let (len, symbol) = self.codes.find(ahead)?;
        Some(Entry::new(len, symbol, self.is_dc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of 2, 3, 3, 4, 12 and 16 bits: two zeros and one bit, the end, 16 zeros, no zero and ten bits, and so on.
    const BYTES: [u8; 22] =
        [0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x21, 0x00, 0xf0, 0x0a, 0x53, 0x1f];

    #[test]
    fn one_look_equals_the_long_way() {
        let (spec, rest) = Spec::parse(&BYTES, false).unwrap();
        assert!(rest.is_empty());
        let table = Table::new(&spec);
        assert!(table.is_of(&spec));
        for bits in 0..=u16::MAX {
            let ahead = u64::from(bits) << 48 | 0x5a5a_1234_9876;
            let (quick, long) = (table.entry(ahead), table.long(ahead));
            if quick.advance() == LONG {
                assert!(long.is_none_or(|long| long.code() > LOOK || long.size() > 10), "{bits:x}");
                continue;
            }
            let long = long.unwrap();
            assert_eq!((quick.advance(), quick.total()), (long.advance(), long.total()), "{bits:x}");
            assert_eq!(quick.value(ahead), long.value(ahead));
            if quick.second_advance() > 0 {
                let behind = table.long(ahead << long.total()).unwrap();
                assert_eq!(quick.second_advance(), behind.advance());
                assert_eq!(quick.second_value(), behind.value(ahead << long.total()));
                assert_eq!(quick.total_of_both(), long.total() + behind.total());
            }
            let (mut total, mut advance) = (0, 0);
            while total < table.codes(ahead).total() {
                let next = table.long(ahead << total).unwrap();
                (total, advance) = (total + next.total(), advance + next.advance());
            }
            assert_eq!(
                (total, advance),
                (table.codes(ahead).total(), table.codes(ahead).advance()),
                "{bits:x}"
            );
        }
    }

    #[test]
    fn symbols_alone_are_those_of_the_long_way() {
        let (spec, _) = Spec::parse(&BYTES, false).unwrap();
        let symbols = Symbols::new(&spec);
        for bits in 0..=u16::MAX {
            let ahead = u64::from(bits) << 48 | 0x5a5a_1234_9876;
            assert_eq!(symbols.find(ahead), symbols.long(ahead), "{bits:x}");
        }
        let lens = [0, 0x4000, 0x8000, 0xe000].map(|bits: u64| symbols.find(bits << 48));
        assert_eq!(lens, [Some((2, 0x21)), Some((3, 0x00)), Some((4, 0x0a)), None]);
    }

    #[test]
    fn values_have_their_sign() {
        let entry = Entry::new(2, 0x03, false);
        let values: Vec<i32> = (0..8).map(|bits: u64| entry.value(bits << 59 | 1 << 62)).collect();
        assert_eq!(values, [-7, -6, -5, -4, 4, 5, 6, 7]);
        assert_eq!(Entry::new(2, 0xf0, false).value(u64::MAX), 0);
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        assert!(Spec::parse(&BYTES[..21], false).is_none(), "symbols are missing");
        assert!(Spec::parse(&BYTES, true).is_none(), "zeros before a first coefficient");
        let mut bytes = BYTES;
        (bytes[0], bytes[1]) = (1, 2);
        assert!(Spec::parse(&bytes, false).is_none(), "too many codes");
        let ones: Vec<u8> = std::iter::once(2).chain([0; 17]).collect();
        assert!(Spec::parse(&ones, true).is_none(), "a code of nothing but ones");
    }
}
