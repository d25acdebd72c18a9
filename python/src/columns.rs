//! Columns of Arrow's, by its PyCapsule interface: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
#![expect(unsafe_code, reason = "the structs of Arrow's C data interface")]

use std::{
    ffi::{CStr, c_void},
    ptr,
};

use forebay_core::{
    Value, View,
    abi::{ArrowArray, ArrowData, ArrowSchema},
};
use pyo3::{ffi, prelude::*};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// A column, or a struct of them, that any Arrow library reads without a copy: `pyarrow.array(columns)`, `polars.Series(columns)`.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Columns(pub(crate) Value);

impl Columns {
    fn data(&self) -> PyResult<&ArrowData> {
        match self.0.view() {
            View::Arrow(data) => Ok(data),
            _ => Err(pyo3::exceptions::PyTypeError::new_err("no columns of Arrow's")),
        }
    }
}

#[pymethods]
impl Columns {
    /// How many rows there are.
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.data()?.array.length).unwrap_or(0))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("Columns({} rows)", self.data()?.array.length))
    }

    /// The type of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ArrowSchema { format, name, metadata, flags, n_children, children, dictionary, .. } =
            self.data()?.schema;
        let kept = Box::into_raw(Box::new(self.0.clone())).cast();
        let (release, private_data): (_, *mut c_void) = (Some(release_schema as _), kept);
        let shown = ArrowSchema {
            format,
            name,
            metadata,
            flags,
            n_children,
            children,
            dictionary,
            release,
            private_data,
        };
        capsule(py, shown, SCHEMA, end::<Schema>)
    }

    /// The columns, as one struct array, with their type.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let _ = requested_schema; // The interface lets a producer give what it has.
        let ArrowArray {
            length,
            null_count,
            offset,
            n_buffers,
            n_children,
            buffers,
            children,
            dictionary,
            ..
        } = self.data()?.array;
        let kept = Box::into_raw(Box::new(self.0.clone())).cast();
        let (release, private_data): (_, *mut c_void) = (Some(release_array as _), kept);
        let shown = ArrowArray {
            length,
            null_count,
            offset,
            n_buffers,
            n_children,
            buffers,
            children,
            dictionary,
            release,
            private_data,
        };
        Ok((self.__arrow_c_schema__(py)?, capsule(py, shown, ARRAY, end::<Array>)?))
    }
}

/// A struct of Arrow's as a capsule of this name.
fn capsule<'py, T>(
    py: Python<'py>,
    shown: T,
    name: &'static CStr,
    end: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    let place = Box::into_raw(Box::new(shown));
    // SAFETY: the name lives for ever, and the destructor takes what such a capsule holds.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(place.cast(), name.as_ptr(), Some(end))) }
}

/// The two structs, which are released alike.
trait Shown {
    type Struct;
    const NAME: &'static CStr;

    fn release(shown: &mut Self::Struct) -> Option<unsafe extern "C" fn(*mut c_void)>;
}

struct Schema;
struct Array;

impl Shown for Schema {
    type Struct = ArrowSchema;
    const NAME: &'static CStr = SCHEMA;

    fn release(shown: &mut ArrowSchema) -> Option<unsafe extern "C" fn(*mut c_void)> {
        shown.release
    }
}

impl Shown for Array {
    type Struct = ArrowArray;
    const NAME: &'static CStr = ARRAY;

    fn release(shown: &mut ArrowArray) -> Option<unsafe extern "C" fn(*mut c_void)> {
        shown.release
    }
}

/// The end of a capsule: calls the release that is still there; a reader that moved the struct out has taken it.
unsafe extern "C" fn end<T: Shown>(object: *mut ffi::PyObject) {
    // SAFETY: the capsule was made by `capsule` with this name, and holds a box of the struct.
    unsafe {
        let place = ffi::PyCapsule_GetPointer(object, T::NAME.as_ptr()).cast::<T::Struct>();
        if !place.is_null() {
            if let Some(release) = T::release(&mut *place) {
                release(place.cast());
            }
            drop(Box::from_raw(place));
        }
    }
}

unsafe extern "C" fn release_schema(shown: *mut c_void) {
    // SAFETY: the specification: called once, with the address of the struct, whose private data is the value that it shows.
    unsafe {
        let shown = &mut *shown.cast::<ArrowSchema>();
        shown.release = None;
        drop(Box::from_raw(std::mem::replace(&mut shown.private_data, ptr::null_mut()).cast::<Value>()));
    }
}

unsafe extern "C" fn release_array(shown: *mut c_void) {
    // SAFETY: as above.
    unsafe {
        let shown = &mut *shown.cast::<ArrowArray>();
        shown.release = None;
        drop(Box::from_raw(std::mem::replace(&mut shown.private_data, ptr::null_mut()).cast::<Value>()));
    }
}
