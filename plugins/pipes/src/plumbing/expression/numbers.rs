//! Numbers of three types, as one: comparison is exact across them, and arithmetic never wraps round.

use std::cmp::Ordering;

use forebay_core::{Error, Result};

use super::val::Val;

/// A number: an integer of 64 bits with a sign or without, or a float.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Whole(i128),
    Float(f64),
}

/// What is done to two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operation {
    const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    #[inline]
    pub(super) fn of_floats(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Add => one + other,
            Self::Subtract => one - other,
            Self::Multiply => one * other,
            Self::Divide => one / other,
            Self::Remainder => one % other,
        }
    }
}

/// The number that a value is.
#[inline]
pub(super) fn of(value: &Val<'_>) -> Option<Number> {
    Some(match *value {
        Val::Int(number) => Number::Whole(number.into()),
        Val::UInt(number) => Number::Whole(number.into()),
        Val::Float(number) => Number::Float(number),
        _ => return None,
    })
}

impl Number {
    /// How two compare by their values; none where one is NaN.
    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            (Self::Float(one), Self::Float(other)) => one.partial_cmp(&other),
            (Self::Whole(whole), Self::Float(float)) => compare(whole, float),
            (Self::Float(float), Self::Whole(whole)) => compare(whole, float).map(Ordering::reverse),
        }
    }

    pub(super) fn float(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

fn compare(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // The cast saturates, beyond all that 64 bits hold; what it cuts off decides where the rest is equal.
    let cut = float.trunc();
    Some(whole.cmp(&(cut as i128)).then_with(|| 0.0.partial_cmp(&(float - cut)).unwrap_or(Ordering::Equal)))
}

/// An integer: with a sign where it fits.
pub(super) fn whole<'a>(number: i128) -> Result<Val<'a>> {
    i64::try_from(number)
        .map(Val::Int)
        .or_else(|_| u64::try_from(number).map(Val::UInt))
        .map_err(|_| Error::invalid(format!("{number} is beyond 64 bits; `double` makes floats of integers")))
}

/// What `one` and `other` give. Integers stay integers, whose division cuts off; with a float all is floats.
#[inline]
pub(super) fn calculate<'a>(operation: Operation, one: &Val<'a>, other: &Val<'a>) -> Result<Val<'a>> {
    use Operation::{Add, Divide, Multiply, Remainder, Subtract};
    let (Some(one), Some(other)) = (of(one), of(other)) else {
        let (one, other, sign) = (one.kind(), other.kind(), operation.sign());
        return Err(Error::invalid(format!("`{sign}` takes two numbers, found {one} and {other}")));
    };
    if let (Number::Whole(one), Number::Whole(other)) = (one, other) {
        // 64 bits each, so only a product of two large ones is beyond 128.
        return whole(match operation {
            Add => one + other,
            Subtract => one - other,
            Multiply => one.saturating_mul(other),
            Divide | Remainder if other == 0 => return Err(Error::invalid("an integer divided by zero")),
            Divide => one / other,
            Remainder => one % other,
        });
    }
    Ok(Val::Float(operation.of_floats(one.float(), other.float())))
}
