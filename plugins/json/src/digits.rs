//! Numbers of JSON, exact: an integer in its own type, a float the nearest one.
//!
//! Source: RFC 8259, section 6. Floats: Clinger, "How to read floating point numbers accurately", PLDI 1990, for
//! those whose digits and power of ten are exact; the standard library for the rest.

use forebay_core::{Error, Result, Value};

use crate::scan::{Scan, Text};

/// The powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// What the digits of a number say.
pub(crate) struct Digits {
    start: usize,
    /// All digits as one integer, wrapped if there are more than 19.
    mantissa: u64,
    count: usize,
    /// The power of ten that the mantissa is multiplied with.
    power: i64,
    /// Whether there is no point and no exponent.
    integer: bool,
}

impl<'a> Scan<'a> {
    /// Passes over a number, and gives what its digits say.
    #[inline(always)] // What is given back in memory is slow to read at once.
    fn digits(&mut self) -> Result<Digits> {
        let start = self.at;
        self.at += usize::from(self.peek() == b'-');
        let mut mantissa = 0;
        let whole = self.run(&mut mantissa);
        if whole == 0 || (whole > 1 && self.bytes.get(self.at - whole) == Some(&b'0')) {
            self.at = start;
            return Err(self.refuse(if whole == 0 { "a value" } else { "a number without a leading zero" }));
        }
        let mut digits = Digits { start, mantissa, count: whole, power: 0, integer: true };
        if self.peek() == b'.' {
            self.at += 1;
            let places = self.run(&mut digits.mantissa);
            if places == 0 {
                return Err(self.refuse("a digit"));
            }
            digits = Digits { count: whole + places, power: -(places as i64), integer: false, ..digits };
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            let negative = self.peek() == b'-';
            self.at += usize::from(matches!(self.peek(), b'-' | b'+'));
            let mut exponent = 0;
            let count = self.run(&mut exponent);
            if count == 0 {
                return Err(self.refuse("a digit"));
            }
            // Beyond what is exact the text is read again anyway.
            let exponent = if count > 6 { 1 << 20 } else { exponent as i64 };
            digits.power = digits.power.saturating_add(if negative { -exponent } else { exponent });
            digits.integer = false;
        }
        Ok(digits)
    }

    /// Passes over decimal digits, adds them to `number`, which may wrap, and says how many there were.
    #[inline]
    fn run(&mut self, number: &mut u64) -> usize {
        let start = self.at;
        while let Some(eight) = self.rest().first_chunk() {
            let (value, count) = leading_digits(eight);
            *number = number.wrapping_mul(TENS[count]).wrapping_add(value);
            self.at += count;
            if count < eight.len() {
                return self.at - start;
            }
        }
        while let Some(digit) =
            self.bytes.get(self.at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
        {
            *number = number.wrapping_mul(10).wrapping_add(digit.into());
            self.at += 1;
        }
        self.at - start
    }

    /// Passes over a number that nobody wants.
    #[inline]
    pub(crate) fn skip_number(&mut self) -> Result<()> {
        let start = self.at;
        self.at += usize::from(self.peek() == b'-');
        let whole = self.skip_run();
        // The usual numbers; what is wrong is told by who reads them.
        let leading = whole > 1 && self.bytes.get(self.at - whole) == Some(&b'0');
        let broken = match self.peek() {
            b'.' => {
                self.at += 1;
                self.skip_run() == 0
            }
            _ => false,
        };
        if whole == 0 || leading || broken || matches!(self.peek(), b'e' | b'E') {
            self.at = start;
            return self.skip_any_number();
        }
        Ok(())
    }

    #[cold]
    fn skip_any_number(&mut self) -> Result<()> {
        self.digits().map(drop)
    }

    /// Passes over decimal digits, and says how many there were.
    #[inline]
    fn skip_run(&mut self) -> usize {
        let start = self.at;
        while let Some(eight) = self.rest().first_chunk() {
            let count = count_digits(u64::from_le_bytes(*eight) ^ ZEROS);
            self.at += count;
            if count < eight.len() {
                return self.at - start;
            }
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }

    /// A number goes to the stack: int64, or uint64 above that; a float64 for a fraction, an exponent or `-0`. Of an integer
    /// beyond, `big` says what becomes.
    #[inline]
    pub(crate) fn number(
        &mut self,
        stack: &mut Vec<Value>,
        big: impl FnOnce(&Self, &'a str) -> Result<Value>,
    ) -> Result<()> {
        let digits = self.digits()?;
        let negative = self.bytes.get(digits.start) == Some(&b'-');
        if digits.integer && digits.count <= 18 && !(negative && digits.mantissa == 0) {
            let int = digits.mantissa as i64;
            stack.push(if negative { -int } else { int }.into());
            return Ok(());
        }
        let power = usize::try_from(digits.power.unsigned_abs()).ok().and_then(|power| POWERS.get(power));
        if let Some(power) = power
            && digits.count <= 19
            && digits.mantissa <= 1 << 53
            && !digits.integer
        {
            // Both are exact, so the one rounding is the right one.
            let whole = digits.mantissa as f64;
            let float = if digits.power < 0 { whole / power } else { whole * power };
            stack.push(if negative { -float } else { float }.into());
            return Ok(());
        }
        let text = Text { from: digits.start, to: self.at, escapes: false, ascii: true };
        let text = self.utf8(text)?;
        if digits.integer && !(negative && digits.mantissa == 0 && digits.count == 1) {
            stack.push(match (text.parse::<i64>(), text.parse::<u64>()) {
                (Ok(int), _) => int.into(),
                (_, Ok(int)) => int.into(),
                _ => big(self, text)?,
            });
            return Ok(());
        }
        stack.push(self.float(text, digits.start)?.into());
        Ok(())
    }

    /// The nearest float64.
    pub(crate) fn float(&self, text: &str, start: usize) -> Result<f64> {
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(float),
            _ => {
                Err(Error::unsupported("a number beyond the range of float64")
                    .context("byte", self.place(start)))
            }
        }
    }
}

const ONES: u64 = u64::MAX / 255;
/// The digit zero in every byte.
const ZEROS: u64 = ONES * b'0' as u64;
/// What a number is worth that has so many more digits behind it.
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// How many of eight bytes, from the first on, are below ten.
#[inline]
fn count_digits(bytes: u64) -> usize {
    // In each byte the highest bit is set from ten on; nothing is carried over to the next.
    let others = (((bytes & (ONES * 0x7f)) + ONES * 0x76) | bytes) & (ONES << 7);
    others.trailing_zeros() as usize / 8
}

/// The number that the decimal digits make which come first, and how many they are.
///
/// Source: Lemire, "Quickly parsing eight digits", 2022, for the sums of neighbours in one register.
#[inline]
fn leading_digits(text: &[u8; 8]) -> (u64, usize) {
    let bytes = u64::from_le_bytes(*text) ^ ZEROS;
    let count = count_digits(bytes);
    // Zeros before them in place of what comes behind them; by none the shift is one of all bits.
    let ones = bytes.checked_shl(64 - 8 * count as u32).unwrap_or(0);
    let twos = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    ((fours * 10_000 + (fours >> 32)) & 0xffff_ffff, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_digits_are_read_at_once() {
        for number in [0, 1, 12_345_678, 98_765_432, 99_999_999, 10_000_000] {
            let digits = format!("{number:08}");
            assert_eq!(leading_digits(digits.as_bytes().first_chunk().unwrap()), (number, 8));
            for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                for at in 0..8 {
                    let mut text: [u8; 8] = *digits.as_bytes().first_chunk().unwrap();
                    text[at] = byte;
                    let expected = digits[..at].parse().unwrap_or(0);
                    assert_eq!(leading_digits(&text), (expected, at), "byte {byte} at {at}");
                }
            }
        }
    }

    #[test]
    fn a_number_that_nobody_wants_is_passed_over_as_one_that_is_read() {
        let pieces = [
            "",
            "-",
            "0",
            "7",
            "00",
            "12345678",
            "123456789",
            ".",
            ".5",
            ".123456789012",
            "e",
            "E+5",
            "e-12",
            " ",
            "x",
        ];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let text = format!("{first}{second}{third}");
                    for behind in ["", ",          "] {
                        let text = format!("{text}{behind}");
                        let (mut one, mut other) = (Scan::new(text.as_bytes()), Scan::new(text.as_bytes()));
                        let (read, skipped) = (one.digits().map(drop), other.skip_number());
                        assert_eq!((read.is_ok(), one.at), (skipped.is_ok(), other.at), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn floats_are_the_nearest() {
        let mut state = 7_u64;
        for round in 0..200_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let digits = (state >> 11) % 10_u64.pow(round % 20);
            let text = match round % 3 {
                0 => format!("-{digits}.{}", state % 1000),
                1 => format!("{digits}e{}", (state % 80) as i64 - 40),
                _ => format!("0.000{digits}E-{}", state % 30),
            };
            let mut stack = Vec::new();
            Scan::new(text.as_bytes()).number(&mut stack, |_, _| unreachable!()).unwrap();
            assert_eq!(stack, [text.parse::<f64>().unwrap().into()], "{text}");
        }
    }
}
