//! Tensors: an element type, a shape, strides and a buffer.

use std::fmt;

use abi_stable::StableAbi;

use crate::{Buffer, DType};

/// The most axes a tensor can have.
pub const MAX_DIMS: usize = 8;

/// A dense block of numbers: [`DType`], shape, strides (in elements) and bytes.
///
/// The fields hold what DLPack's `DLTensor` asks for, so an export copies pointers only.
#[repr(C)]
#[derive(StableAbi, Clone, PartialEq)]
pub struct Tensor {
    dtype: DType,
    ndim: u32,
    shape: [i64; MAX_DIMS],
    strides: [i64; MAX_DIMS],
    data: Buffer,
}

impl Tensor {
    /// A row-major tensor over `data`, whose length must be exactly that of the shape.
    ///
    /// # Errors
    /// A sentence, when there are more than [`MAX_DIMS`] axes or the length does not fit.
    pub fn try_new(dtype: DType, shape: &[usize], data: Buffer) -> Result<Self, String> {
        if shape.len() > MAX_DIMS {
            return Err(format!("a tensor has at most {MAX_DIMS} axes, found {}", shape.len()));
        }
        let wanted = shape.iter().try_fold(dtype.size(), |bytes, &axis| bytes.checked_mul(axis));
        if wanted != Some(data.len()) {
            return Err(format!("{dtype} {shape:?} does not fill a buffer of {} bytes", data.len()));
        }
        Ok(Self::row_major(dtype, shape, data))
    }

    /// As [`try_new`](Tensor::try_new), for a shape with few enough axes that is as large as `data`.
    #[inline]
    pub(crate) fn row_major(dtype: DType, shape: &[usize], data: Buffer) -> Self {
        let mut tensor =
            Self { dtype, ndim: shape.len() as u32, shape: [1; MAX_DIMS], strides: [1; MAX_DIMS], data };
        let mut stride = 1;
        for (axis, &len) in shape.iter().enumerate().rev() {
            tensor.shape[axis] = len as i64;
            tensor.strides[axis] = stride;
            stride = i64::wrapping_mul(stride, len as i64); // Only an empty tensor can wrap.
        }
        tensor
    }

    /// The type of one element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The length of each axis.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape[..(self.ndim as usize).min(MAX_DIMS)]
    }

    /// Whether both have the same type and shape.
    #[must_use]
    #[inline]
    pub fn is_like(&self, other: &Self) -> bool {
        // All axes there could be, and without a call, which arrays are compared by.
        let differing =
            self.shape.iter().zip(&other.shape).fold(0, |found, (one, other)| found | (one ^ other));
        (self.dtype.to_word(), self.ndim, differing) == (other.dtype.to_word(), other.ndim, 0)
    }

    /// The step along each axis, in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.strides[..(self.ndim as usize).min(MAX_DIMS)]
    }

    /// All elements, in row-major order.
    #[must_use]
    pub fn data(&self) -> &Buffer {
        &self.data
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.shape())
    }
}
