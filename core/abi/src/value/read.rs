//! What a value holds, if it is of one kind.

use super::{Struct, Value, View, tag};
use crate::{Buffer, Tensor};

/// # What it holds
/// These give what the value holds if it is of that kind, and `None` for any other. They convert nothing, apart from the width
/// of a number. [`view`](Value::view) tells all kinds apart.
///
/// ```
/// use forebay_abi::Value;
///
/// let value = Value::structure(vec![("score".into(), 0.5_f32.into()), ("words".into(), Value::list(vec!["heron".into()]))]);
/// let fields = value.as_struct().ok_or("no struct")?;
/// assert_eq!(fields.get("score").and_then(Value::as_f64), Some(0.5));
/// let words = fields.get("words").and_then(Value::as_list).ok_or("no list")?;
/// assert_eq!(words[0].as_str(), Some("heron"));
/// assert_eq!(words[0].as_bool(), None);
/// # Ok::<(), &str>(())
/// ```
impl Value {
    /// The integer, if this is one that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self.view() {
            View::Int(int) => Some(int),
            View::UInt(int) => i64::try_from(int).ok(),
            _ => None,
        }
    }

    /// The number as a float, if this is a number; one of more than 53 bits is rounded. Truth is no number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self.view() {
            View::Float(number) => Some(number),
            View::Int(int) => Some(int as f64),
            View::UInt(int) => Some(int as f64),
            _ => None,
        }
    }

    /// Whether it is true, if this is a truth value.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.view() {
            View::Bool(truth) => Some(truth),
            _ => None,
        }
    }

    /// The text, if this is text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self.view() {
            View::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if these are bytes or text.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&Buffer> {
        matches!(self.tag, tag::BYTES | tag::STR).then_some(&self.payload)
    }

    /// The tensor, if this is one.
    #[must_use]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self.view() {
            View::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The values in order, if this is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        match self.view() {
            View::List(values) => Some(values),
            _ => None,
        }
    }

    /// The named values, if there are such.
    #[must_use]
    pub fn as_struct(&self) -> Option<&Struct> {
        match self.view() {
            View::Struct(fields) => Some(fields),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn numbers_of_every_width_are_floats_and_truth_is_none() {
        for value in [(-3_i8).into(), (-3_i64).into(), (-3.0_f32).into(), Value::scalar(DType::F16, 0xc200)] {
            assert_eq!(value.as_f64(), Some(-3.0), "{value:?}");
        }
        assert_eq!(Value::from(u64::MAX).as_f64(), Some(18_446_744_073_709_551_616.0));
        for value in [true.into(), Value::NULL, "1".into(), Value::list(vec![1.into()])] {
            assert_eq!(value.as_f64(), None, "{value:?}");
        }
    }

    #[test]
    fn each_reader_takes_its_own_kind_alone() {
        let values = [
            true.into(),
            Value::list(vec![1.into(), 2.into()]),
            Value::structure(vec![("a".into(), 1.into())]),
        ];
        let kinds = values.map(|value| {
            (
                value.as_bool(),
                value.as_list().map(<[Value]>::len),
                value.as_struct().map(|it| it.schema().len()),
            )
        });
        assert_eq!(kinds, [(Some(true), None, None), (None, Some(2), None), (None, None, Some(1))]);
        assert_eq!(Value::from(1_u8).as_bool(), None, "a number is not truth");
        assert_eq!(Value::list(Vec::new()).as_list(), Some(&[][..]));
    }
}
