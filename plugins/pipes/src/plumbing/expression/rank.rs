//! What samples are ordered by: any numbers, texts, truth values and bytes in one order.

use std::cmp::Ordering;

use forebay_core::{Error, Key, Result, Schema, Value, View};

use super::{Draws, Expression, Places, numbers, val::Val};

/// A value with its place among all others: null, false, true, numbers by what they are, NaN, texts and then bytes by their bytes.
#[derive(Debug, Clone)]
pub(crate) enum Rank {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(Value),
    Bytes(Value),
}

impl Expression {
    /// What it gives for a sample, to be ordered by.
    ///
    /// # Errors
    /// As [`value`](Expression::value), and `Invalid` where it gives what has no order.
    pub(crate) fn rank(&self, places: &Places, key: &Key, schema: &Schema, values: &[Value]) -> Result<Rank> {
        let draws = Draws::none();
        if let Some(found) = self.quick(places, values, &draws) {
            return Ok(match found.into_val() {
                Val::Bool(truth) => Rank::Bool(truth),
                Val::Int(number) => Rank::Int(number),
                Val::UInt(number) => Rank::UInt(number),
                Val::Float(number) => Rank::Float(number),
                _ => Rank::Null,
            });
        }
        let value = self.value(places, key, schema, values, &draws)?;
        Ok(match value.view() {
            View::Null => Rank::Null,
            View::Bool(truth) => Rank::Bool(truth),
            View::Int(number) => Rank::Int(number),
            View::UInt(number) => Rank::UInt(number),
            View::Float(number) => Rank::Float(number),
            View::Str(_) => Rank::Text(value),
            View::Bytes(_) => Rank::Bytes(value),
            _ => {
                let found = Val::of(&value).kind();
                let expected = "a number, text, bytes, a truth value or null";
                let error =
                    Error::invalid(format!("it gives {found}, which has no order: expected {expected}"));
                return Err(self.blame(error));
            }
        })
    }
}

impl Rank {
    fn kind(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Float(number) if number.is_nan() => 3,
            Self::Int(_) | Self::UInt(_) | Self::Float(_) => 2,
            Self::Text(_) => 4,
            Self::Bytes(_) => 5,
        }
    }

    fn number(&self) -> Val<'_> {
        match *self {
            Self::Int(number) => Val::Int(number),
            Self::UInt(number) => Val::UInt(number),
            Self::Float(number) => Val::Float(number),
            _ => Val::Null,
        }
    }
}

impl Ord for Rank {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => one.cmp(other),
            (Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (Self::Text(one), Self::Text(other)) | (Self::Bytes(one), Self::Bytes(other)) => {
                one.as_bytes().map(|bytes| &**bytes).cmp(&other.as_bytes().map(|bytes| &**bytes))
            }
            _ => self.kind().cmp(&other.kind()).then_with(|| {
                let numbers = (numbers::of(&self.number()), numbers::of(&other.number()));
                let (Some(one), Some(other)) = numbers else { return Ordering::Equal };
                one.compare(other).unwrap_or(Ordering::Equal) // Both are NaN.
            }),
        }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}

#[cfg(test)]
mod tests {
    use forebay_core::Buffer;

    use super::*;

    #[test]
    fn all_kinds_are_in_one_order() {
        let bytes = |bytes: &[u8]| Value::from(Buffer::from(bytes.to_vec()));
        let ascending: Vec<Vec<Value>> = vec![
            vec![Value::NULL],
            vec![false.into()],
            vec![true.into()],
            vec![f64::NEG_INFINITY.into()],
            vec![i64::MIN.into(), (i64::MIN as f64).into()],
            vec![(-1_i8).into(), (-1.0).into()],
            vec![0_i64.into(), (-0.0).into(), 0_u8.into()],
            vec![0.5.into(), 0.5_f32.into()],
            vec![1_u8.into()],
            vec![9_007_199_254_740_992.0.into(), 9_007_199_254_740_992_i64.into()],
            vec![9_007_199_254_740_993_i64.into()],
            vec![i64::MAX.into()],
            vec![u64::MAX.into()],
            vec![1e300.into()],
            vec![f64::INFINITY.into()],
            vec![f64::NAN.into(), (-f64::NAN).into()],
            vec!["".into()],
            vec!["Z".into()],
            vec!["a".into()],
            vec!["ab".into()],
            vec![bytes(b"")],
            vec![bytes(b"ab")],
        ];
        let expression = Expression::new("x").unwrap();
        let schema = Schema::new(["x"]);
        let rank = |value: &Value| {
            let values = std::slice::from_ref(value);
            expression.rank(&expression.places(&schema), &Key::default(), &schema, values)
        };
        for (at, class) in ascending.iter().enumerate() {
            for (other_at, other_class) in ascending.iter().enumerate() {
                for (one, other) in
                    class.iter().flat_map(|one| other_class.iter().map(move |other| (one, other)))
                {
                    let found = rank(one).unwrap().cmp(&rank(other).unwrap());
                    assert_eq!(found, at.cmp(&other_at), "{one:?} and {other:?}");
                }
            }
        }
        let error = rank(&Value::list(vec![])).unwrap_err();
        assert!(error.message().contains("it gives a list, which has no order"), "{error}");
    }
}
