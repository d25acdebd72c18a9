//! Values of plain Rust values.

use super::{Value, tag};
use crate::{ArrowData, Buffer, DType, Str, Tensor};

macro_rules! scalars {
    ($($from:ty => $dtype:ident, $bits:expr;)*) => {
        $(impl From<$from> for Value {
            #[inline]
            fn from(value: $from) -> Self {
                let bits: fn($from) -> u64 = $bits;
                Self::scalar(DType::$dtype, bits(value))
            }
        })*
    };
}

scalars! {
    bool => BOOL, u64::from;
    i8 => I8, |value| value as u64;
    i16 => I16, |value| value as u64;
    i32 => I32, |value| value as u64;
    i64 => I64, |value| value as u64;
    u8 => U8, u64::from;
    u16 => U16, u64::from;
    u32 => U32, u64::from;
    u64 => U64, |value| value;
    usize => U64, |value| value as u64;
    f32 => F32, |value| value.to_bits().into();
    f64 => F64, f64::to_bits;
}

impl From<Buffer> for Value {
    fn from(payload: Buffer) -> Self {
        Self { tag: tag::BYTES, word: 0, payload }
    }
}

impl From<Str> for Value {
    fn from(text: Str) -> Self {
        Self { tag: tag::STR, word: 0, payload: text.into_buffer() }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Str::from(text).into()
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Str::from(text).into()
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Self::boxed(tag::TENSOR, tensor)
    }
}

impl From<ArrowData> for Value {
    fn from(data: ArrowData) -> Self {
        Self::boxed(tag::ARROW, data)
    }
}

/// Null for `None`.
///
/// ```
/// use forebay_abi::Value;
///
/// assert_eq!(Value::from(Some(3_usize)).as_i64(), Some(3));
/// assert_eq!(Value::from(None::<f32>), Value::NULL);
/// ```
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::NULL, Into::into)
    }
}

macro_rules! vectors {
    ($($number:ty)*) => {
        $(impl From<Vec<$number>> for Value {
            /// A tensor with one axis, over the vector's own memory.
            fn from(numbers: Vec<$number>) -> Self {
                Tensor::from(numbers).into()
            }
        })*
    };
}

// Not `u8`: whether bytes or a tensor of small numbers is meant, `Buffer::from` and `Tensor::from` say.
vectors! { i8 i16 i32 i64 u16 u32 u64 f32 f64 }

/// A list of texts.
impl From<Vec<&str>> for Value {
    fn from(texts: Vec<&str>) -> Self {
        Self::list(texts.into_iter().map(Self::from).collect())
    }
}

/// A list of texts.
impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Self {
        Self::list(texts.into_iter().map(Self::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Sample};

    #[test]
    fn fields_are_set_to_plain_values() {
        let mut sample = Sample::new(0, Key::default());
        sample.set("count", usize::MAX);
        sample.set("weights", vec![0.5_f32, 1.5]);
        sample.set("words", vec!["heron", "stork"]);
        sample.set("lines", vec![String::new()]);
        sample.set("maybe", Some(vec![1_i64]));
        sample.set("never", None::<&str>);
        let values = sample.values();
        assert_eq!((values[0].dtype(), values[0].bits()), (Some(DType::U64), u64::MAX));
        assert_eq!(values[1].as_tensor().and_then(Tensor::as_slice), Some(&[0.5_f32, 1.5][..]));
        assert_eq!(values[2], Value::list(vec!["heron".into(), "stork".into()]));
        assert_eq!(values[3], Value::list(vec!["".into()]));
        assert_eq!(values[4].as_tensor().and_then(Tensor::as_slice), Some(&[1_i64][..]));
        assert_eq!(values[5], Value::NULL);
    }
}
