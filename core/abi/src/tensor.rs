//! Tensors: an element type, a shape, strides and a buffer.

use std::{fmt, slice};

use abi_stable::StableAbi;

use crate::{Buffer, DType, Element};

/// The most axes a tensor can have.
pub const MAX_DIMS: usize = 8;

/// A dense block of numbers: [`DType`], shape, strides (in elements) and bytes.
///
/// The fields hold what DLPack's `DLTensor` asks for, so an export copies pointers only.
///
/// # Alignment
/// The bytes of a tensor start at a multiple of the element's size if they lie in memory that the host or a `Vec` of
/// numbers gave, or come from a plugin in C. A tensor over bytes of a file may start anywhere, and
/// [`try_new`](Tensor::try_new) does not check it. [`as_slice`](Tensor::as_slice) does, and gives `None` for any other place.
///
/// ```
/// use forebay_abi::Tensor;
///
/// let tensor = Tensor::from(vec![3_i64, 4, 5]);
/// assert_eq!(tensor.as_slice::<i64>(), Some(&[3, 4, 5][..]));
/// assert_eq!(tensor.as_slice::<f32>(), None, "it holds int64");
/// assert_eq!(tensor.dims(), Some([3]));
/// ```
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

    /// The length of each axis, if there are `N` axes.
    ///
    /// ```
    /// # use forebay_abi::{DType, Tensor};
    /// let image = Tensor::try_new(DType::U8, &[32, 48, 3], vec![0; 32 * 48 * 3].into())?;
    /// let Some([height, width, channels]) = image.dims() else { panic!("found {image:?}") };
    /// assert_eq!((height, width, channels), (32, 48, 3));
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn dims<const N: usize>(&self) -> Option<[usize; N]> {
        let shape: &[i64; N] = self.shape().try_into().ok()?;
        Some(shape.map(|axis| axis as usize))
    }

    /// All elements in row-major order, as numbers of type `T`.
    ///
    /// `None` if the [`dtype`](Tensor::dtype) is another than `T`'s, the elements do not lie in row-major order, or the
    /// bytes do not start at a multiple of the element's size. No element is copied or converted.
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if self.dtype != T::DTYPE {
            return None;
        }
        if self.data.is_empty() {
            return Some(&[]);
        }
        let place = self.data.as_ptr().cast::<T>();
        if !self.is_row_major() || !place.is_aligned() || !self.data.len().is_multiple_of(size_of::<T>()) {
            return None;
        }
        // SAFETY: `place` is aligned and names as many bytes as `data` keeps, which nobody changes; `Element` is sealed, and
        // its types are numbers for which all bits are valid.
        Some(unsafe { slice::from_raw_parts(place, self.data.len() / size_of::<T>()) })
    }

    /// Whether each axis steps over all that the axes behind it have.
    fn is_row_major(&self) -> bool {
        let mut axes = self.shape().iter().zip(self.strides()).rev();
        let steps = axes.try_fold(1_i64, |step, (&len, &stride)| {
            (len == 1 || stride == step).then(|| step.wrapping_mul(len))
        });
        steps.is_some()
    }

    /// The bytes of all elements, in row-major order.
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
