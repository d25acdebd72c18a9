//! A tensor as Python sees it: the buffer protocol, and DLPack 1.x, without a copy.
//!
//! Source of the layouts: <https://dmlc.github.io/dlpack/latest/c_api.html>; the protocol is that of
//! <https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html>.
#![expect(unsafe_code, reason = "buffers and capsules are C's")]

use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

use forebay_core::{BufferMut, DType, Tensor};
use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    ffi,
    prelude::*,
    types::{PyMemoryView, PyTuple},
};

/// The version of DLPack that capsules have, if their reader takes versions.
const VERSION: (u32, u32) = (1, 0);
/// `DLPACK_FLAG_BITMASK_READ_ONLY`, `DLPACK_FLAG_BITMASK_IS_COPIED`.
const READ_ONLY: u64 = 1;
const COPIED: u64 = 2;
/// `kDLCPU`.
pub(crate) const CPU: i32 = 1;

/// A block of numbers in memory that is shared with whoever made it.
///
/// It may be written only if nobody else has a part of it, which is so for a batch that was just made.
#[pyclass(frozen, weakref, module = "forebay")]
pub(crate) struct Array {
    tensor: Tensor,
    /// Whether it was seen once that nobody else has the memory. What is shown of it since may be written too.
    writable: AtomicBool,
    /// The steps in bytes, as buffers have them.
    strides: Vec<isize>,
    shape: Vec<isize>,
}

impl Array {
    /// Over a tensor that the caller gives up: so it is seen whether anybody else has it.
    pub(crate) fn new(tensor: Tensor) -> Self {
        let size = tensor.dtype().size() as i64;
        let strides = tensor.strides().iter().map(|step| (step * size) as isize).collect();
        let shape = tensor.shape().iter().map(|&len| len as isize).collect();
        Self { writable: AtomicBool::new(tensor.data().is_unshared()), tensor, strides, shape }
    }

    /// Whether its bytes may be written. A worker may let go of them a moment after they came.
    fn is_writable(&self) -> bool {
        let known = self.writable.load(Ordering::Acquire);
        if !known && self.tensor.data().is_unshared() {
            self.writable.store(true, Ordering::Release);
            return true;
        }
        known
    }

    /// The tensor that it shows.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// A copy, which is its owner's alone.
    fn copied(&self) -> Tensor {
        let mut memory = BufferMut::zeroed(self.tensor.data().len());
        memory.copy_from_slice(self.tensor.data());
        let shape: Vec<usize> = self.tensor.shape().iter().map(|&len| len as usize).collect();
        // Invariant: as long as the tensor that it is of.
        Tensor::try_new(self.tensor.dtype(), &shape, memory.freeze()).unwrap_or_else(|_| self.tensor.clone())
    }

    fn name(&self) -> String {
        self.tensor.dtype().to_string()
    }
}

#[pymethods]
impl Array {
    /// The length of each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.shape())
    }

    /// The type of an element, in NumPy's spelling.
    #[getter]
    fn dtype(&self) -> String {
        self.name()
    }

    /// How many axes it has.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// How many elements it has.
    #[getter]
    fn size(&self) -> i64 {
        self.tensor.shape().iter().product()
    }

    /// How many bytes its elements take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.tensor.data().len()
    }

    /// Whether its bytes may be written.
    #[getter]
    fn writable(&self) -> bool {
        self.is_writable()
    }

    /// The address of its first element.
    #[getter]
    fn ptr(&self) -> usize {
        self.tensor.data().as_ptr().addr()
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.tensor.shape().first();
        first
            .map(|&len| len as usize)
            .ok_or_else(|| PyTypeError::new_err("an array without axes has no length"))
    }

    fn __repr__(&self) -> String {
        let shape: Vec<String> = self.tensor.shape().iter().map(ToString::to_string).collect();
        format!("Array({}, [{}])", self.name(), shape.join(", "))
    }

    /// As an array of NumPy's, over the same memory.
    fn numpy<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// As a tensor of torch's: over the same memory if that may be written, since torch would; else of a copy.
    fn torch<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let from_dlpack = py.import("torch")?.getattr("from_dlpack")?;
        if this.is_writable() {
            return from_dlpack.call1((slf,));
        }
        let copied = py.detach(|| this.copied());
        from_dlpack.call1((Self::new(copied),))
    }

    /// As nested lists of numbers.
    fn tolist<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(&slf)?.call_method0("tolist")
    }

    /// The device that its memory is of: the processor's.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (CPU, 0)
    }

    /// The memory as a capsule of DLPack's. A reader that cannot say read-only gets a copy of what must not be written, unless `copy` is false.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() {
            return Err(PyBufferError::new_err(
                "found a stream, expected none: the memory is the processor's",
            ));
        }
        if dl_device.is_some_and(|device| device != (CPU, 0)) {
            return Err(PyBufferError::new_err(
                "found another device, expected (1, 0): the memory is the processor's",
            ));
        }
        let versioned = max_version.is_some_and(|version| version >= VERSION);
        // Torch takes what is read-only and writes to it all the same.
        let writable = self.is_writable();
        let copies = copy.unwrap_or(!writable);
        if !copies && !writable && !versioned {
            let error = "found memory that must not be written, expected `copy` or a reader of DLPack 1.0, which can tell";
            return Err(PyBufferError::new_err(error));
        }
        let tensor = if copies { py.detach(|| self.copied()) } else { self.tensor.clone() };
        let flags = if copies { COPIED } else { u64::from(!writable) * READ_ONLY };
        capsule(py, tensor, versioned.then_some(flags))
    }

    /// # Safety
    /// As the buffer protocol has it: `view` is to be filled.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        let format = format(this.tensor.dtype());
        let writable = this.is_writable();
        let refused = match format {
            None => Some(format!(
                "{} has no form in the buffer protocol; .torch() and DLPack have one",
                this.name()
            )),
            Some(_) if flags & ffi::PyBUF_WRITABLE != 0 && !writable => {
                Some("the memory must not be written: somebody else has it too".to_owned())
            }
            Some(_)
                if flags & ffi::PyBUF_F_CONTIGUOUS == ffi::PyBUF_F_CONTIGUOUS
                    && flags & ffi::PyBUF_C_CONTIGUOUS != ffi::PyBUF_C_CONTIGUOUS
                    && this.shape.len() > 1 =>
            {
                Some("the last axis is the one whose elements lie side by side".to_owned())
            }
            Some(_) => None,
        };
        if let Some(refused) = refused {
            return Err(PyBufferError::new_err(refused));
        }
        let has = |flag: c_int| flags & flag == flag;
        let (shape, strides) = (this.shape.as_ptr().cast_mut(), this.strides.as_ptr().cast_mut());
        // SAFETY: the protocol's: `view` is a place for a view. What it points to lives in the array, which it holds a reference to.
        unsafe {
            (*view).buf = this.tensor.data().as_ptr().cast_mut().cast();
            (*view).len = this.tensor.data().len() as isize;
            (*view).itemsize = this.tensor.dtype().size() as isize;
            (*view).readonly = c_int::from(!writable);
            (*view).ndim = this.shape.len() as c_int;
            (*view).format = match format {
                Some(format) if has(ffi::PyBUF_FORMAT) => format.as_ptr().cast_mut(),
                _ => ptr::null_mut(),
            };
            (*view).shape = if has(ffi::PyBUF_ND) { shape } else { ptr::null_mut() };
            (*view).strides = if has(ffi::PyBUF_STRIDES) { strides } else { ptr::null_mut() };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }

    /// # Safety
    /// As above; there is nothing to do.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {}
}

/// The letter of the module `struct` for an element.
fn format(dtype: DType) -> Option<&'static CStr> {
    Some(match dtype {
        DType::BOOL => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"q",
        DType::U8 => c"B",
        DType::U16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        _ => return None,
    })
}

/// DLPack's `DLTensor`.
#[repr(C)]
pub(crate) struct DlTensor {
    pub(crate) data: *mut c_void,
    device: (i32, i32),
    pub(crate) ndim: i32,
    pub(crate) dtype: DType,
    pub(crate) shape: *mut i64,
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

/// DLPack's `DLManagedTensor`.
#[repr(C)]
pub(crate) struct Legacy {
    pub(crate) tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Legacy)>,
}

/// DLPack's `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: (u32, u32),
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// One of the two, and what it shows; the head comes first, since its address is that of the whole.
#[repr(C)]
struct Managed<H> {
    head: H,
    tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// How a head is filled and found.
trait Head: Sized {
    const NAME: &'static CStr;

    fn new(tensor: DlTensor, flags: u64) -> Self;

    fn tensor(&mut self) -> &mut DlTensor;

    /// # Safety
    /// `capsule` is one that [`capsule`] made.
    unsafe extern "C" fn end(capsule: *mut ffi::PyObject) {
        // SAFETY: a capsule that was taken has another name by now, and its taker calls the deleter.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, Self::NAME.as_ptr()) == 1 {
                let place = ffi::PyCapsule_GetPointer(capsule, Self::NAME.as_ptr());
                delete(place.cast::<Self>());
            }
        }
    }
}

impl Head for Legacy {
    const NAME: &'static CStr = c"dltensor";

    fn new(tensor: DlTensor, _: u64) -> Self {
        Self { tensor, context: ptr::null_mut(), deleter: Some(delete::<Self>) }
    }

    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
}

impl Head for Versioned {
    const NAME: &'static CStr = c"dltensor_versioned";

    fn new(tensor: DlTensor, flags: u64) -> Self {
        Self { version: VERSION, context: ptr::null_mut(), deleter: Some(delete::<Self>), flags, tensor }
    }

    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
}

/// Frees a managed tensor, on whatever thread: nothing of Python's is in it.
///
/// # Safety
/// It is the head of a [`Managed`] that a capsule was made of, and nobody uses it any more.
unsafe extern "C" fn delete<H>(head: *mut H) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(head.cast::<Managed<H>>()) });
}

/// A capsule of the tensor: one with flags, or, without, one of the form before versions.
fn capsule(py: Python<'_>, tensor: Tensor, flags: Option<u64>) -> PyResult<Bound<'_, PyAny>> {
    match flags {
        Some(flags) => capsule_of::<Versioned>(py, tensor, flags),
        None => capsule_of::<Legacy>(py, tensor, 0),
    }
}

fn capsule_of<H: Head>(py: Python<'_>, tensor: Tensor, flags: u64) -> PyResult<Bound<'_, PyAny>> {
    let (shape, strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    let head = H::new(
        DlTensor {
            data: tensor.data().as_ptr().cast_mut().cast(),
            device: (CPU, 0),
            ndim: shape.len() as i32,
            dtype: tensor.dtype(),
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        },
        flags,
    );
    let mut managed = Box::new(Managed { head, tensor, shape, strides });
    let (shape, strides) = (managed.shape.as_mut_ptr(), managed.strides.as_mut_ptr());
    let seen = managed.head.tensor();
    (seen.shape, seen.strides) = (shape, strides);
    let place = Box::into_raw(managed);
    // SAFETY: the name lives for ever, and the destructor takes what such a capsule holds.
    unsafe {
        let made = ffi::PyCapsule_New(place.cast(), H::NAME.as_ptr(), Some(H::end));
        Bound::from_owned_ptr_or_err(py, made).inspect_err(|_| delete(place.cast::<H>()))
    }
}
