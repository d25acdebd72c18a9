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
    #[inline]
    pub(crate) fn digits(&mut self) -> Result<Digits> {
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
        while let Some(eight) = self.rest().first_chunk().and_then(eight_digits) {
            *number = number.wrapping_mul(100_000_000).wrapping_add(eight);
            self.at += 8;
        }
        while let Some(digit) =
            self.bytes.get(self.at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
        {
            *number = number.wrapping_mul(10).wrapping_add(digit.into());
            self.at += 1;
        }
        self.at - start
    }

    /// A number: int64, or uint64 above that; a float64 for a fraction, an exponent or `-0`. Of an integer beyond,
    /// `big` says what becomes.
    #[inline]
    pub(crate) fn number(&mut self, big: impl FnOnce(&Self, &'a str) -> Result<Value>) -> Result<Value> {
        let digits = self.digits()?;
        let negative = self.bytes.get(digits.start) == Some(&b'-');
        if digits.integer && digits.count <= 18 && !(negative && digits.mantissa == 0) {
            let int = digits.mantissa as i64;
            return Ok(if negative { -int } else { int }.into());
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
            return Ok(if negative { -float } else { float }.into());
        }
        let text = Text { from: digits.start, to: self.at, escapes: false, ascii: true };
        let text = self.utf8(text)?;
        if digits.integer && !(negative && digits.mantissa == 0 && digits.count == 1) {
            return match (text.parse::<i64>(), text.parse::<u64>()) {
                (Ok(int), _) => Ok(int.into()),
                (_, Ok(int)) => Ok(int.into()),
                _ => big(self, text),
            };
        }
        self.float(text, digits.start)
    }

    /// The nearest float64.
    pub(crate) fn float(&self, text: &str, start: usize) -> Result<Value> {
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(float.into()),
            _ => {
                Err(Error::unsupported("a number beyond the range of float64")
                    .context("byte", self.place(start)))
            }
        }
    }
}

/// The number that eight decimal digits make; none when one of them is no digit.
///
/// Source: Lemire, "Quickly parsing eight digits", 2022, for the sums of neighbours in one register.
#[inline]
fn eight_digits(text: &[u8; 8]) -> Option<u64> {
    const ONES: u64 = u64::MAX / 255;
    let bytes = u64::from_le_bytes(*text);
    let high = bytes & (ONES * 0xf0) == ONES * 0x30;
    let low = (bytes & (ONES * 0x0f)) + ONES * 6;
    if !high || low & (ONES * 0xf0) != 0 {
        return None;
    }
    let ones = bytes & (ONES * 0x0f);
    let twos = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_read_at_once() {
        for number in [0, 1, 12_345_678, 98_765_432, 99_999_999, 10_000_000] {
            let text = format!("{number:08}");
            assert_eq!(eight_digits(text.as_bytes().first_chunk().unwrap()), Some(number));
        }
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            for at in 0..8 {
                let mut text = *b"12345678";
                text[at] = byte;
                assert_eq!(eight_digits(&text), None, "byte {byte} at {at}");
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
            let value = Scan::new(text.as_bytes()).number(|_, _| unreachable!()).unwrap();
            assert_eq!(value, text.parse::<f64>().unwrap().into(), "{text}");
        }
    }
}
