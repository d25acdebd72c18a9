//! The short way through an expression over numbers and truth values alone, as most are: what its parts give fits into two registers.
//!
//! It gives what the long way gives, or nothing: where it meets another value, or what would be an error, the long way is taken.

use std::cmp::Ordering;

use forebay_core::{DType, Value, View};

use super::{
    draws::Draws,
    node::{Literal, Node, there},
    numbers::{Number, Operation},
    val::Val,
};

/// A number or a truth value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quick {
    kind: Kind,
    bits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    UInt,
    Float,
}

impl Quick {
    fn bool(truth: bool) -> Self {
        Self { kind: Kind::Bool, bits: truth.into() }
    }

    fn int(number: i64) -> Self {
        Self { kind: Kind::Int, bits: number.cast_unsigned() }
    }

    pub(super) fn float(number: f64) -> Self {
        Self { kind: Kind::Float, bits: number.to_bits() }
    }

    #[inline]
    fn of(value: &Value) -> Option<Self> {
        // What most numbers are, without a call.
        if let Some(bits) = value.bits_of(DType::I64) {
            return Some(Self { kind: Kind::Int, bits });
        }
        Some(match value.view() {
            View::Int(number) => Self::int(number),
            View::Bool(truth) => Self::bool(truth),
            View::UInt(bits) => Self { kind: Kind::UInt, bits },
            View::Float(number) => Self::float(number),
            _ => return None,
        })
    }

    /// What it is, if that is true or false.
    #[inline]
    pub(super) fn truth(self) -> Option<bool> {
        (self.kind == Kind::Bool).then_some(self.bits != 0)
    }

    /// As it goes into a sample.
    #[inline]
    pub(crate) fn into_value(self) -> Value {
        let dtype = match self.kind {
            Kind::Bool => DType::BOOL,
            Kind::Int => DType::I64,
            Kind::UInt => DType::U64,
            Kind::Float => DType::F64,
        };
        Value::scalar(dtype, self.bits)
    }

    /// As the long way has it.
    #[inline]
    pub(super) fn into_val<'a>(self) -> Val<'a> {
        match self.kind {
            Kind::Bool => Val::Bool(self.bits != 0),
            Kind::Int => Val::Int(self.bits.cast_signed()),
            Kind::UInt => Val::UInt(self.bits),
            Kind::Float => Val::Float(f64::from_bits(self.bits)),
        }
    }

    #[inline]
    fn number(self) -> Option<Number> {
        Some(match self.kind {
            Kind::Bool => return None,
            Kind::Int => Number::Whole(self.bits.cast_signed().into()),
            Kind::UInt => Number::Whole(self.bits.into()),
            Kind::Float => Number::Float(f64::from_bits(self.bits)),
        })
    }

    /// How two numbers or truth values compare; inside, none where one is NaN.
    #[inline]
    fn compare(self, other: Self) -> Option<Option<Ordering>> {
        Some(match (self.kind, other.kind) {
            (Kind::Int, Kind::Int) => Some(self.bits.cast_signed().cmp(&other.bits.cast_signed())),
            (Kind::Bool, Kind::Bool) => Some(self.bits.cmp(&other.bits)),
            _ => self.number()?.compare(other.number()?),
        })
    }

    #[inline]
    fn calculate(operation: Operation, one: Self, other: Self) -> Option<Self> {
        if one.kind == Kind::Float || other.kind == Kind::Float {
            let (one, other) = (one.number()?.float(), other.number()?.float());
            return Some(Self::float(operation.of_floats(one, other)));
        }
        let (one, other) = (one.whole()?, other.whole()?);
        let given = match operation {
            Operation::Add => one.checked_add(other),
            Operation::Subtract => one.checked_sub(other),
            Operation::Multiply => one.checked_mul(other),
            Operation::Divide => one.checked_div(other),
            Operation::Remainder => one.checked_rem(other),
        };
        given.map(Self::int)
    }

    /// The integer, if it is one from 0 up.
    #[inline]
    pub(crate) fn count(self) -> Option<usize> {
        usize::try_from(self.whole()?).ok()
    }

    /// The integer, if it is one that has a sign or could have one.
    #[inline]
    fn whole(self) -> Option<i64> {
        match self.kind {
            Kind::Int => Some(self.bits.cast_signed()),
            Kind::UInt => i64::try_from(self.bits).ok(),
            Kind::Bool | Kind::Float => None,
        }
    }
}

impl Node {
    /// Whether all its parts may be taken the short way. A field alone is not worth it.
    pub(super) fn is_quick(&self) -> bool {
        !matches!(self, Self::Field(..)) && self.may_be_quick()
    }

    fn may_be_quick(&self) -> bool {
        match self {
            Self::Field(..) => true,
            Self::Literal(literal) => literal.quick().is_some(),
            Self::Not(node) | Self::Negate(node) => node.may_be_quick(),
            Self::Logic(_, nodes)
            | Self::Equal(_, nodes)
            | Self::Compare(_, nodes)
            | Self::Calculate(_, nodes) => nodes.iter().all(Self::may_be_quick),
            Self::If(nodes) => nodes.iter().all(Self::may_be_quick),
            Self::Call(function, _) => function.is_random(),
            _ => false,
        }
    }

    /// What it gives for a sample, if the short way leads there.
    pub(super) fn quick(&self, places: &[Option<usize>], values: &[Value], draws: &Draws) -> Option<Quick> {
        let one = |node: &Node| node.quick(places, values, draws);
        let both = |nodes: &[Node; 2]| Some((one(&nodes[0])?, one(&nodes[1])?));
        Some(match self {
            Self::Field(at, _) => Quick::of(there(places, values, *at)?)?,
            Self::Literal(literal) => literal.quick()?,
            Self::Calculate(operation, nodes) => {
                let (one, other) = both(nodes)?;
                Quick::calculate(*operation, one, other)?
            }
            Self::Compare(order, nodes) => {
                let (one, other) = both(nodes)?;
                Quick::bool(one.compare(other)?.is_some_and(|found| order.holds(found)))
            }
            Self::Equal(wanted, nodes) => {
                let (one, other) = both(nodes)?;
                Quick::bool((one.compare(other)? == Some(Ordering::Equal)) == *wanted)
            }
            Self::Logic(decides, nodes) => {
                let left = one(&nodes[0])?.truth()?;
                Quick::bool(if left == *decides { left } else { one(&nodes[1])?.truth()? })
            }
            Self::Not(node) => Quick::bool(!one(node)?.truth()?),
            Self::Negate(node) => match one(node)? {
                Quick { kind: Kind::Float, bits } => {
                    let given = 0.0 - f64::from_bits(bits);
                    Quick::float(if given == 0.0 { -0.0 } else { given })
                }
                number => Quick::int(number.whole()?.checked_neg()?),
            },
            Self::If(nodes) => one(&nodes[if one(&nodes[0])?.truth()? { 1 } else { 2 }])?,
            Self::Call(function, _) if function.is_random() => Quick::float(draws.next().ok()?),
            _ => return None,
        })
    }
}

impl Literal {
    #[inline]
    pub(super) fn quick(&self) -> Option<Quick> {
        Some(match self {
            Self::Bool(truth) => Quick::bool(*truth),
            Self::Int(number) => Quick::int(*number),
            Self::UInt(bits) => Quick { kind: Kind::UInt, bits: *bits },
            Self::Float(number) => Quick::float(*number),
            Self::Null | Self::Text(_) | Self::Bytes(_) => return None,
        })
    }
}
