//! How numbers of one type become those of another: each is read as the widest of its kind, and taken if the other type holds it.

use std::fmt;

use forebay_core::{DType, Value, View};

/// A number of any type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    UInt(u64),
    Float(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::UInt(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
        }
    }
}

/// Elements of one type, read from and written to bytes in the machine's order.
trait Element: Sized {
    const SIZE: usize;

    fn get(bytes: &[u8]) -> Self;

    fn put(self, bytes: &mut [u8]);

    fn number(self) -> Number;

    /// The element for a number; none where the type does not hold it.
    fn of(number: Number) -> Option<Self>;

    /// As a scalar's bits.
    fn bits(self) -> u64;
}

/// What turns all elements of a tensor, or gives the first number that does not fit.
pub(super) type Convert = fn(&[u8], &mut [u8]) -> Result<(), Number>;

fn convert<From: Element, To: Element>(from: &[u8], to: &mut [u8]) -> Result<(), Number> {
    for (from, to) in from.chunks_exact(From::SIZE).zip(to.chunks_exact_mut(To::SIZE)) {
        let number = From::get(from).number();
        To::of(number).ok_or(number)?.put(to);
    }
    Ok(())
}

/// Runs `$body` with `$element` for the type; none for types that are not here.
macro_rules! with_element {
    ($dtype:expr, $element:ident => $body:expr) => {
        with_element!(
            $dtype, $element => $body, BOOL Truth, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 Half, BF16 Brain, F32 f32, F64 f64
        )
    };
    ($dtype:expr, $element:ident => $body:expr, $($name:ident $type:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $element = $type;
                $body
            })*
            _ => None,
        }
    };
}

/// What turns elements of one type into another.
pub(super) fn converter(from: DType, to: DType) -> Option<Convert> {
    with_element!(from, From => to_converter::<From>(to))
}

fn to_converter<From: Element>(to: DType) -> Option<Convert> {
    with_element!(to, To => Some(convert::<From, To> as Convert))
}

/// The bits of a scalar of this type; none where it does not hold the number.
pub(super) fn scalar(number: Number, to: DType) -> Option<u64> {
    with_element!(to, To => To::of(number).map(To::bits))
}

/// What looks at numbers, one after the other.
pub(crate) trait Visit {
    /// Looks at more of them.
    fn visit(&mut self, numbers: impl Iterator<Item = Number>);
}

/// Shows all elements of this type; none where they are no numbers.
pub(crate) fn visit(dtype: DType, elements: &[u8], visitor: &mut impl Visit) -> Option<()> {
    with_element!(dtype, Each => {
        visitor.visit(elements.chunks_exact(Each::SIZE).map(|bytes| Each::get(bytes).number()));
        Some(())
    })
}

/// The methods that a type has of its own, for those that [`Element`] asks for bytes.
macro_rules! bytes {
    ($type:ty) => {
        const SIZE: usize = size_of::<$type>();

        #[inline]
        fn get(bytes: &[u8]) -> Self {
            let mut own = [0; size_of::<$type>()];
            own.copy_from_slice(bytes);
            Self::from_ne_bytes(own)
        }

        #[inline]
        fn put(self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.to_ne_bytes());
        }
    };
}

macro_rules! integers {
    ($($type:ty => $kind:ident;)*) => {
        $(impl Element for $type {
            bytes!($type);

            #[inline]
            fn number(self) -> Number {
                Number::$kind(self.into())
            }

            #[inline]
            fn of(number: Number) -> Option<Self> {
                match number {
                    Number::Int(number) => number.try_into().ok(),
                    Number::UInt(number) => number.try_into().ok(),
                    // Both bounds are powers of two or zero, so they are exact; NaN is within none.
                    Number::Float(number) => {
                        let (cut, beyond) = (number.trunc(), <$type>::MAX as f64 + 1.0);
                        (cut >= <$type>::MIN as f64 && cut < beyond).then_some(cut as $type)
                    }
                }
            }

            #[inline]
            fn bits(self) -> u64 {
                self as u64
            }
        })*
    };
}

integers! {
    i8 => Int;
    i16 => Int;
    i32 => Int;
    i64 => Int;
    u8 => UInt;
    u16 => UInt;
    u32 => UInt;
    u64 => UInt;
}

macro_rules! floats {
    ($($type:ty),*) => {
        $(impl Element for $type {
            bytes!($type);

            #[inline]
            fn number(self) -> Number {
                Number::Float(self.into())
            }

            #[inline]
            fn of(number: Number) -> Option<Self> {
                match number {
                    Number::Int(number) => Some(number as $type),
                    Number::UInt(number) => Some(number as $type),
                    Number::Float(number) => {
                        let near = number as $type;
                        (near.is_finite() || !number.is_finite()).then_some(near)
                    }
                }
            }

            #[inline]
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        })*
    };
}

floats!(f32, f64);

/// Truth, one byte.
struct Truth(bool);

impl Element for Truth {
    const SIZE: usize = 1;

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        Self(bytes[0] != 0)
    }

    #[inline]
    fn put(self, bytes: &mut [u8]) {
        bytes[0] = self.0.into();
    }

    #[inline]
    fn number(self) -> Number {
        Number::UInt(self.0.into())
    }

    #[inline]
    fn of(number: Number) -> Option<Self> {
        match number {
            Number::Int(0) | Number::UInt(0) => Some(Self(false)),
            Number::Int(1) | Number::UInt(1) => Some(Self(true)),
            Number::Float(number) if number == 0.0 || number == 1.0 => Some(Self(number == 1.0)),
            _ => None,
        }
    }

    #[inline]
    fn bits(self) -> u64 {
        self.0.into()
    }
}

macro_rules! short_floats {
    ($($(#[$doc:meta])* $name:ident = $dtype:ident, $exponent:literal, $fraction:literal;)*) => {
        $($(#[$doc])*
        struct $name(u16);

        impl $name {
            fn from_ne_bytes(bytes: [u8; 2]) -> Self {
                Self(u16::from_ne_bytes(bytes))
            }

            fn to_ne_bytes(&self) -> [u8; 2] {
                self.0.to_ne_bytes()
            }
        }

        impl Element for $name {
            bytes!(u16);

            #[inline]
            fn number(self) -> Number {
                // How these are read is known to values.
                match Value::scalar(DType::$dtype, self.0.into()).view() {
                    View::Float(number) => Number::Float(number),
                    _ => Number::Float(f64::NAN),
                }
            }

            #[inline]
            fn of(number: Number) -> Option<Self> {
                let number = match number {
                    Number::Int(number) => number as f64,
                    Number::UInt(number) => number as f64,
                    Number::Float(number) => number,
                };
                shortened(number, $exponent, $fraction).map(Self)
            }

            #[inline]
            fn bits(self) -> u64 {
                self.0.into()
            }
        })*
    };
}

short_floats! {
    /// IEEE half.
    Half = F16, 5, 10;
    /// The upper half of an IEEE single.
    Brain = BF16, 8, 7;
}

/// The nearest float with so many bits of exponent and of fraction, ties to even; none where a number would become infinite.
fn shortened(number: f64, exponent: u32, fraction: u32) -> Option<u16> {
    let sign = u16::from(number.is_sign_negative()) << 15;
    let infinite = ((1_u16 << exponent) - 1) << fraction;
    if number.is_nan() {
        return Some(sign | infinite | 1 << (fraction - 1));
    }
    if number.is_infinite() {
        return Some(sign | infinite);
    }
    let size = number.abs();
    // Below the least exponent the steps stay as wide as they are there: these are the subnormal ones.
    let bias = (1 << (exponent - 1)) - 1;
    let power = ((size.to_bits() >> 52) as i64 - 1023).max(1 - bias);
    let step = f64::from_bits(((power - i64::from(fraction) + 1023) as u64) << 52);
    // Division by a power of two is exact. What is rounded up to the next power carries into the exponent.
    let steps = (size / step).round_ties_even() as i64;
    let bits = ((power + bias - 1) << fraction) + steps;
    (bits < infinite.into()).then_some(sign | bits as u16)
}
