//! The Rust types that elements of tensors are read as, and vectors of them as tensors.

use std::slice;

use crate::{Buffer, DType, Tensor};

/// A Rust number that is laid out as the elements of a tensor: integers of 8 to 64 bits, `f32` and `f64`.
///
/// `bool` is none of them, since a tensor from elsewhere may hold other bytes than 0 and 1. Neither are halves, for which
/// Rust has no type. [`Tensor::data`] has the bytes of both.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The type as tensors name it.
    const DTYPE: DType;
}

mod sealed {
    /// Keeps others from calling a type a number for which not all bits are valid.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($number:ty => $dtype:ident;)*) => {
        $(impl sealed::Sealed for $number {}
        impl Element for $number {
            const DTYPE: DType = DType::$dtype;
        }
        const _: () = assert!(DType::$dtype.size() == size_of::<$number>());)*
    };
}

elements! {
    i8 => I8;
    i16 => I16;
    i32 => I32;
    i64 => I64;
    u8 => U8;
    u16 => U16;
    u32 => U32;
    u64 => U64;
    f32 => F32;
    f64 => F64;
}

/// Numbers as the bytes that they are.
struct Numbers<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Numbers<T> {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the vector's memory, which has no padding: `Element` is sealed, and its types are plain numbers.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), size_of_val(self.0.as_slice())) }
    }
}

impl<T: Element> From<Vec<T>> for Tensor {
    /// A tensor with one axis, over the vector's own memory.
    ///
    /// ```
    /// use forebay_abi::{DType, Tensor};
    ///
    /// let tensor = Tensor::from(vec![0.5_f32, 1.0]);
    /// assert_eq!((tensor.dtype(), tensor.shape()), (DType::F32, &[2][..]));
    /// ```
    fn from(numbers: Vec<T>) -> Self {
        let len = numbers.len();
        let data = if numbers.is_empty() { Buffer::EMPTY } else { Buffer::from_owner(Numbers(numbers)) };
        Self::row_major(T::DTYPE, &[len], data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_becomes_a_tensor_without_a_copy() {
        let numbers = vec![1_i16, -2, 3];
        let place = numbers.as_ptr();
        let tensor = Tensor::from(numbers);
        let slice = tensor.as_slice::<i16>().unwrap();
        assert_eq!((slice, slice.as_ptr()), (&[1, -2, 3][..], place));
        assert_eq!(tensor.as_slice::<u16>(), None, "another type of the same size");
        let none = Tensor::from(Vec::<f64>::new());
        assert_eq!((none.dims(), none.as_slice::<f64>()), (Some([0]), Some(&[][..])));
    }

    #[test]
    fn bytes_that_are_not_aligned_give_no_slice() {
        // Eight bytes of which the second to the fifth cannot begin at a multiple of four if the first does.
        let memory = Buffer::from_owner(Numbers(vec![0x0202_0202_u32, 0x0303_0303]));
        let read = |from| {
            let tensor = Tensor::try_new(DType::U32, &[1], memory.slice(from..from + 4)).unwrap();
            tensor.as_slice::<u32>().map(<[u32]>::to_vec)
        };
        assert_eq!(read(0), Some(vec![0x0202_0202]));
        assert_eq!([1, 2, 3].map(read), [const { None }; 3]);
        assert_eq!(read(4), Some(vec![0x0303_0303]));
    }

    #[test]
    fn only_a_shape_with_so_many_axes_is_given() {
        let tensor = Tensor::try_new(DType::U8, &[2, 3], vec![0; 6].into()).unwrap();
        assert_eq!(tensor.dims(), Some([2, 3]));
        assert_eq!((tensor.dims::<1>(), tensor.dims::<3>(), tensor.dims::<0>()), (None, None, None));
        let one = Tensor::try_new(DType::F32, &[], 1.5_f32.to_ne_bytes().to_vec().into()).unwrap();
        assert_eq!((one.dims(), one.as_slice()), (Some([]), Some(&[1.5_f32][..])));
    }
}
