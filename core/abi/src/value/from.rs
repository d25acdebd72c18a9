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
