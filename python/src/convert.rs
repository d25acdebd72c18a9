//! Python's values as Forebay's: what [`values`](crate::values) does, the other way round.
#![expect(unsafe_code, reason = "buffers and capsules are C's")]

use std::ffi::{CStr, c_char};

use forebay_core::{BufferMut, Context, DType, Sample, Schema, Str, Tensor, TensorExt, Value};
use pyo3::{
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};

use crate::{array::Array, capsules, columns::Columns};

/// The field of a struct that stands for an object which has no other form: its pickle. The arrays in it stand beside.
pub(crate) const PICKLED: &str = "__pickled__";
/// The field beside [`PICKLED`].
pub(crate) const LEAVES: &str = "leaves";

/// Puts what a function gave into `sample`: the fields of a dict; of a tuple fields called `0`, `1` and so on; of anything else the field
/// `value`.
pub(crate) fn fill(sample: &mut Sample, given: &Bound<'_, PyAny>, cx: &Context) -> PyResult<()> {
    if let Ok(dict) = given.cast::<PyDict>() {
        return fill_fields(sample, dict, cx);
    }
    if given.is_none() {
        return Err(PyTypeError::new_err(
            "found None, expected a sample: does the function end without return?",
        ));
    }
    if let Ok(tuple) = given.cast::<PyTuple>() {
        let names = Schema::new((0..tuple.len()).map(|at| Str::from(at.to_string().as_str())));
        let values = tuple.iter().map(|item| value(&item, cx)).collect::<PyResult<Vec<_>>>()?;
        sample.replace(names, values);
        return Ok(());
    }
    sample.replace(Schema::new(["value"]), [value(given, cx)?]);
    Ok(())
}

fn fill_fields(sample: &mut Sample, dict: &Bound<'_, PyDict>, cx: &Context) -> PyResult<()> {
    let mut values = Vec::with_capacity(dict.len());
    let known = sample.schema();
    let mut same = known.len() == dict.len();
    for (name, item) in dict.iter() {
        let name = text(&name)?;
        same = same && known.names().get(values.len()).is_some_and(|known| known.as_str() == name);
        values.push(value(&item, cx).map_err(|error| in_field(dict.py(), error, name))?);
    }
    let schema = if same { known.clone() } else { schema_of(dict)? };
    sample.replace(schema, values);
    Ok(())
}

fn schema_of(dict: &Bound<'_, PyDict>) -> PyResult<Schema> {
    let names = dict.keys().iter().map(|name| Ok(Str::from(text(&name)?))).collect::<PyResult<Vec<_>>>()?;
    Ok(Schema::new(names))
}

/// The name of a field.
fn text<'a>(name: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    let text = name.cast::<PyString>();
    let wrong = || PyTypeError::new_err(format!("found the field name {name}, expected a str"));
    text.map_err(|_| wrong())?.to_str()
}

/// Says of which field an error is.
fn in_field(py: Python<'_>, error: PyErr, field: &str) -> PyErr {
    // An error that takes no notes is told without.
    let _ = error.value(py).call_method1("add_note", (format!("field {field}"),));
    error
}

/// A value. Numbers, text, bytes, lists and dicts are what they are; whatever has the buffer protocol or DLPack is a tensor, copied into the
/// memory of the run; anything else is kept as its pickle.
pub(crate) fn value(given: &Bound<'_, PyAny>, cx: &Context) -> PyResult<Value> {
    if given.is_exact_instance_of::<PyInt>() {
        return integer(given);
    }
    if given.is_exact_instance_of::<PyFloat>() {
        return Ok(given.extract::<f64>()?.into());
    }
    if let Ok(text) = given.cast_exact::<PyString>() {
        return Ok(text.to_str()?.into());
    }
    if let Ok(bytes) = given.cast_exact::<PyBytes>() {
        return bytes_value(given.py(), bytes.as_bytes(), cx);
    }
    if let Ok(array) = given.cast::<Array>() {
        return Ok(array.get().tensor().clone().into());
    }
    if given.is_none() {
        return Ok(Value::NULL);
    }
    if let Ok(truth) = given.cast::<PyBool>() {
        return Ok(truth.is_true().into());
    }
    if let Ok(list) = given.cast_exact::<PyList>() {
        return deeper(given.py(), || {
            Ok(Value::list(list.iter().map(|item| value(&item, cx)).collect::<PyResult<_>>()?))
        });
    }
    if let Ok(dict) = given.cast_exact::<PyDict>() {
        return deeper(given.py(), || structure(dict, cx));
    }
    deeper(given.py(), || rarer(given, cx))
}

/// Goes one level deeper, as far as Python's own functions may: a list may hold itself.
fn deeper<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // SAFETY: the interpreter is attached, and each level that is entered is left.
    unsafe {
        if ffi::Py_EnterRecursiveCall(c" in a sample".as_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        let done = work();
        ffi::Py_LeaveRecursiveCall();
        done
    }
}

fn rarer(given: &Bound<'_, PyAny>, cx: &Context) -> PyResult<Value> {
    if let Ok(columns) = given.cast::<Columns>() {
        return Ok(columns.get().0.clone());
    }
    if given.is_instance_of::<PyByteArray>() {
        let bytes = given.cast::<PyByteArray>()?;
        return bytes_value(given.py(), &bytes.to_vec(), cx);
    }
    if let Ok(list) = given.cast_exact::<PyTuple>() {
        return Ok(Value::list(list.iter().map(|item| value(&item, cx)).collect::<PyResult<_>>()?));
    }
    if let Some(buffer) = Buffered::of(given) {
        return buffer.tensor(cx);
    }
    if given.hasattr("__dlpack__")? {
        return capsules::tensor(given, cx);
    }
    pickled(given, cx)
}

fn integer(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(number) = given.extract::<i64>() {
        return Ok(number.into());
    }
    let wide = given.extract::<u64>();
    wide.map(Value::from)
        .map_err(|_| PyOverflowError::new_err(format!("found the number {given}, expected one of 64 bits")))
}

fn bytes_value(py: Python<'_>, bytes: &[u8], cx: &Context) -> PyResult<Value> {
    let mut memory = alloc(py, cx, bytes.len())?;
    memory.copy_from_slice(bytes);
    Ok(memory.freeze().into())
}

/// From so many bytes on, whoever asks for memory may have to wait for other samples.
const LARGE: usize = 1 << 20;

/// Memory of the host's. What is waited for may need the interpreter, so large memory is asked for without its lock.
fn alloc(py: Python<'_>, cx: &Context, len: usize) -> PyResult<BufferMut> {
    struct Here<'a>(&'a Context<'a>);
    // SAFETY: what is done detached is done on the thread that detaches.
    unsafe impl Send for Here<'_> {}
    impl Here<'_> {
        fn alloc(&self, len: usize) -> forebay_core::Result<BufferMut> {
            self.0.alloc(len)
        }
    }
    if len < LARGE {
        return cx.alloc(len).map_err(limit);
    }
    let here = Here(cx);
    py.detach(move || here.alloc(len)).map_err(limit)
}

/// A row-major tensor, which `fill` writes.
pub(crate) fn tensor(
    py: Python<'_>,
    cx: &Context,
    dtype: DType,
    shape: &[usize],
    fill: impl FnOnce(&mut [u8]),
) -> PyResult<Value> {
    match shape.iter().try_fold(dtype.size(), |bytes, &axis| bytes.checked_mul(axis)) {
        Some(len) if len >= LARGE => {
            let mut memory = alloc(py, cx, len)?;
            fill(&mut memory);
            Ok(Tensor::new(dtype, shape, memory.freeze()).map_err(limit)?.into())
        }
        _ => cx.tensor(dtype, shape, fill).map_err(limit),
    }
}

fn structure(dict: &Bound<'_, PyDict>, cx: &Context) -> PyResult<Value> {
    let field = |(name, item): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name = text(&name)?;
        let value = value(&item, cx).map_err(|error| in_field(dict.py(), error, name))?;
        Ok((Str::from(name), value))
    };
    Ok(Value::structure(dict.iter().map(field).collect::<PyResult<_>>()?))
}

/// An object that has no other form. Its pickle goes wherever a sample goes, to other processes too.
pub(crate) fn pickled(given: &Bound<'_, PyAny>, cx: &Context) -> PyResult<Value> {
    let py = given.py();
    let packed = py.import("forebay._objects")?.getattr("pack")?.call1((given,))?;
    let (pickle, leaves): (Bound<'_, PyBytes>, Bound<'_, PyList>) = packed.extract()?;
    let leaves = leaves.iter().map(|leaf| value(&leaf, cx)).collect::<PyResult<Vec<_>>>()?;
    let pickle = bytes_value(py, pickle.as_bytes(), cx)?;
    Ok(Value::structure(vec![(PICKLED.into(), pickle), (LEAVES.into(), Value::list(leaves))]))
}

/// A view of an object's memory, which is given back when this is dropped.
struct Buffered<'py> {
    view: Box<ffi::Py_buffer>,
    attached: Python<'py>,
}

impl<'py> Buffered<'py> {
    /// None for an object that shows none.
    fn of(given: &Bound<'py, PyAny>) -> Option<Self> {
        // SAFETY: asks only.
        if unsafe { ffi::PyObject_CheckBuffer(given.as_ptr()) } == 0 {
            return None;
        }
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the protocol's: a place for a view, which stays where it is.
        if unsafe { ffi::PyObject_GetBuffer(given.as_ptr(), &raw mut *view, ffi::PyBUF_FULL_RO) } != 0 {
            drop(PyErr::take(given.py()));
            return None;
        }
        Some(Self { view, attached: given.py() })
    }

    /// A copy of it, row by row.
    fn tensor(&self, cx: &Context) -> PyResult<Value> {
        let axes = usize::try_from(self.view.ndim).unwrap_or(0);
        let shape: Vec<usize> = match axes {
            0 => Vec::new(),
            // SAFETY: a full view has a length for each axis.
            _ => unsafe { std::slice::from_raw_parts(self.view.shape, axes) }
                .iter()
                .map(|&len| len.unsigned_abs())
                .collect(),
        };
        let format = if self.view.format.is_null() {
            c"B"
        } else {
            // SAFETY: a text that lives as long as the view.
            unsafe { CStr::from_ptr(self.view.format) }
        };
        let dtype = dtype_of(format, self.view.itemsize.unsigned_abs())?;
        tensor(self.attached, cx, dtype, &shape, |memory| self.copy(memory))
    }

    fn copy(&self, memory: &mut [u8]) {
        let (place, view) = (memory.as_mut_ptr().cast(), std::ptr::from_ref(&*self.view).cast_mut());
        let len = self.view.len.min(memory.len() as isize);
        // SAFETY: the memory has as many bytes as the elements of the view, and is nobody else's.
        let failed = unsafe { ffi::PyBuffer_ToContiguous(place, view, len, b'C' as c_char) } != 0;
        debug_assert!(!failed, "the length is that of the view");
    }
}

impl Drop for Buffered<'_> {
    fn drop(&mut self) {
        // SAFETY: it was taken by `of`, and the interpreter is attached.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
    }
}

/// The type of elements with this letter of the module `struct`.
fn dtype_of(format: &CStr, size: usize) -> PyResult<DType> {
    let text = format.to_str().unwrap_or_default();
    let (order, letter) = match text.as_bytes() {
        [letter] => (b'@', *letter),
        [order, letter] => (*order, *letter),
        _ => (b'?', b'?'),
    };
    let native = matches!(order, b'@' | b'=')
        || size == 1
        || order == if cfg!(target_endian = "little") { b'<' } else { b'>' };
    let found = match (letter, size) {
        (b'?', 1) => Some(DType::BOOL),
        (b'b', 1) => Some(DType::I8),
        (b'B' | b'c', 1) => Some(DType::U8),
        (b'h', 2) => Some(DType::I16),
        (b'H', 2) => Some(DType::U16),
        (b'i' | b'l' | b'q' | b'n', 4) => Some(DType::I32),
        (b'I' | b'L' | b'Q' | b'N', 4) => Some(DType::U32),
        (b'i' | b'l' | b'q' | b'n', 8) => Some(DType::I64),
        (b'I' | b'L' | b'Q' | b'N', 8) => Some(DType::U64),
        (b'e', 2) => Some(DType::F16),
        (b'f', 4) => Some(DType::F32),
        (b'd', 8) => Some(DType::F64),
        _ => None,
    };
    found.filter(|_| native).ok_or_else(|| {
        PyValueError::new_err(format!("found an array with elements of the format {text:?}, expected numbers or bools in this machine's order"))
    })
}

/// A limit of the run as an exception.
pub(crate) fn limit(error: forebay_core::Error) -> PyErr {
    Python::attach(|py| crate::errors::exception(py, &error))
}
