//! `Number`: a number that an option gives, for values of any type.

use std::fmt;

use forebay_core::DType;

/// An integer, or a float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(crate) const ZERO: Self = Self::Int(0);

    /// Reads `-100`, `0.5`, `nan`, `inf`, `true`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "true" => Some(Self::Int(1)),
            "false" => Some(Self::Int(0)),
            text => text.parse().map(Self::Int).or_else(|_| text.parse().map(Self::Float)).ok(),
        }
    }

    /// Whether it is this float, exactly.
    pub(crate) fn is(self, float: f64) -> bool {
        match self {
            Self::Int(int) => float as i128 == int && (float as i128) as f64 == float,
            Self::Float(own) => own == float,
        }
    }

    /// The bits of the scalar of this type; none where it has no such number. Floats are the nearest ones.
    #[expect(clippy::cast_possible_truncation, reason = "the nearest float is meant")]
    pub(crate) fn bits(self, dtype: DType) -> Option<u64> {
        let float = match self {
            Self::Int(0) => return Some(0), // Of every type.
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        };
        let bits = match dtype {
            DType::F64 => float.to_bits(),
            DType::F32 => (float as f32).to_bits().into(),
            DType::BF16 => brain(float as f32).into(),
            DType::F16 => half(float).into(),
            _ => {
                let Self::Int(int) = self else { return None };
                let bits = u32::from(dtype.bits);
                let (least, most) = match dtype {
                    DType::BOOL => (0, 1),
                    DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                        (-1 << (bits - 1), (1 << (bits - 1)) - 1)
                    }
                    DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0, (1 << bits) - 1),
                    _ => return None,
                };
                (least..=most).contains(&int).then_some(int as u64)?
            }
        };
        Some(bits)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(int) => int.fmt(f),
            Self::Float(float) => write!(f, "{float:?}"),
        }
    }
}

/// The nearest bfloat16, to even where two are as near.
fn brain(float: f32) -> u16 {
    let bits = float.to_bits();
    if float.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The nearest IEEE half, to even where two are as near.
fn half(float: f64) -> u16 {
    let sign = u16::from(float.is_sign_negative()) << 15;
    let size = float.abs();
    // The first number that is nearer to 65,536, which no half is, than to 65,504.
    let bits = if float.is_nan() {
        0x7e00
    } else if size >= 65520.0 {
        0x7c00
    } else if size < 2_f64.powi(-14) {
        (size * 2_f64.powi(24)).round_ties_even() as u16
    } else {
        let exponent = (size.to_bits() >> 52) as i32 - 1023;
        let units = (size * 2_f64.powi(10 - exponent)).round_ties_even() as u16;
        ((exponent + 15) as u16) * 1024 + (units - 1024)
    };
    sign | bits
}

#[cfg(test)]
mod tests {
    use forebay_core::{Value, View};

    use super::*;

    #[test]
    fn numbers_are_those_of_the_type_or_none() {
        let float = |text: &str, dtype| {
            let bits = Number::parse(text).unwrap().bits(dtype).unwrap();
            match Value::scalar(dtype, bits).view() {
                View::Float(float) => float,
                other => panic!("{other:?}"),
            }
        };
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            for exact in ["0", "1", "-1", "0.5", "-100", "1.5"] {
                assert_eq!(float(exact, dtype), exact.parse::<f64>().unwrap(), "{exact} {dtype}");
            }
            assert!(float("nan", dtype).is_nan());
            assert_eq!(float("-inf", dtype), f64::NEG_INFINITY);
        }
        // From the tables of IEEE 754: the greatest, the least normal and the least half, and what lies half way.
        let half = |text, expected: u16| {
            assert_eq!(Number::parse(text).unwrap().bits(DType::F16), Some(expected.into()))
        };
        half("65504", 0x7bff);
        half("65519.9", 0x7bff);
        half("65520", 0x7c00);
        half("0.00006103515625", 0x0400);
        half("0.000000059604644775390625", 0x0001);
        half("0.1", 0x2e66);
        half("2049", 0x6800);
        half("2051", 0x6802);
        half("0.00006102", 0x0400);
        assert_eq!(Number::parse("3.14159").unwrap().bits(DType::BF16), Some(0x4049));
        let int = |text, dtype| Number::parse(text).unwrap().bits(dtype);
        assert_eq!(int("-1", DType::I8).map(|bits| bits as u8), Some(0xff));
        assert_eq!(int("255", DType::U8), Some(255));
        assert_eq!(int("18446744073709551615", DType::U64), Some(u64::MAX));
        assert_eq!(int("true", DType::BOOL), Some(1));
        for (text, dtype) in [
            ("-1", DType::U8),
            ("256", DType::U8),
            ("128", DType::I8),
            ("0.5", DType::I64),
            ("2", DType::BOOL),
        ] {
            assert_eq!(int(text, dtype), None, "{text} {dtype}");
        }
        assert_eq!(Number::parse("x"), None);
    }
}
