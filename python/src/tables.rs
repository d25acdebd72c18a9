//! Tables of Arrow's: streams of batches out, rows of tables in.
#![expect(unsafe_code, reason = "the structs of Arrow's C data interface, in capsules")]

use std::{
    ffi::CStr,
    sync::{Arc, Mutex, PoisonError},
};

use forebay_arrow::{
    BatchForm, InMemory,
    arrow_array::{
        Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
        ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi},
        ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader},
        make_array,
    },
    arrow_schema::{ArrowError, Field, Fields, Schema, SchemaRef},
    export, import,
};
use forebay_core::Sample;
use pyo3::{
    exceptions::{PyIndexError, PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyBytes, PyDict, PyIterator, PyTuple},
};

use crate::{columns::Columns, errors::raise, values};

const STREAM: &CStr = c"arrow_array_stream";

/// What the columns of an epoch's batches are: those of the first.
#[pyclass(frozen, module = "forebay._native")]
#[derive(Default)]
pub(crate) struct Form(Mutex<Option<BatchForm>>);

#[pymethods]
impl Form {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

impl Form {
    /// A batch as one struct of columns.
    pub(crate) fn columns(&self, batch: &Sample) -> forebay_core::Result<Columns> {
        let mut form = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let form = match &*form {
            Some(form) => form,
            None => form.insert(BatchForm::of(batch)?),
        };
        let batch: ArrayRef = Arc::new(StructArray::from(form.batch(batch)?));
        export(&batch, &Field::new("", batch.data_type().clone(), false)).map(Columns)
    }
}

/// The capsule of a stream over these batches, [`Columns`] each. What the first raises is raised here; later, readers get its text.
#[pyfunction]
pub(crate) fn arrow_stream<'py>(
    py: Python<'py>,
    batches: &Bound<'py, PyIterator>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut batches = batches.clone();
    let first = batches.next().transpose()?.map(|first| batch_of(&first)).transpose()?;
    let schema = first.as_ref().map_or_else(|| SchemaRef::new(Schema::empty()), RecordBatch::schema);
    let batches = batches.unbind();
    let rest = std::iter::from_fn(move || {
        let next = Python::try_attach(|py| {
            let next = batches.bind(py).clone().next()?;
            Some(next.and_then(|next| batch_of(&next)).map_err(|error| text_of(py, &error)))
        });
        next.unwrap_or_else(|| Some(Err("the interpreter has ended".to_owned())))
    });
    let rest = rest.map(|next| next.map_err(ArrowError::ComputeError));
    let reader = RecordBatchIterator::new(first.map(Ok).into_iter().chain(rest), schema);
    let place = Box::into_raw(Box::new(FFI_ArrowArrayStream::new(Box::new(reader))));
    // SAFETY: the name lives for ever, and the destructor takes what such a capsule holds.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(place.cast(), STREAM.as_ptr(), Some(end))) }
}

/// The end of a stream's capsule. A reader that moved the stream out left one that is released.
unsafe extern "C" fn end(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule was made by `arrow_stream`, and holds a box of a stream.
    unsafe {
        let place = ffi::PyCapsule_GetPointer(capsule, STREAM.as_ptr());
        if !place.is_null() {
            drop(Box::from_raw(place.cast::<FFI_ArrowArrayStream>()));
        }
    }
}

fn batch_of(columns: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let columns = columns.cast::<Columns>()?;
    let (_, array) = raise(columns.py(), import(&columns.get().0))?;
    let array = array.as_any().downcast_ref::<StructArray>().cloned();
    array.map(RecordBatch::from).ok_or_else(|| PyTypeError::new_err("found columns that are no struct"))
}

fn text_of(py: Python<'_>, error: &PyErr) -> String {
    let value = error.value(py);
    value.get_type().name().map_or_else(|_| value.to_string(), |name| format!("{name}: {value}"))
}

/// The rows of a table of Arrow's, by their numbers.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Rows {
    table: InMemory,
    names: values::Names,
}

#[pymethods]
impl Rows {
    /// The rows of whatever has `__arrow_c_stream__` or `__arrow_c_array__`.
    #[new]
    fn new(py: Python<'_>, table: &Bound<'_, PyAny>) -> PyResult<Self> {
        let reader: Box<dyn RecordBatchReader + Send> = if table.hasattr("__arrow_c_stream__")? {
            stream_of(&table.call_method0("__arrow_c_stream__")?)?
        } else if table.hasattr("__arrow_c_array__")? {
            array_of(&table.call_method0("__arrow_c_array__")?.cast_into()?)?
        } else {
            return Err(PyTypeError::new_err(format!(
                "found {}, expected a table with __arrow_c_stream__ or __arrow_c_array__, as Arrow libraries have",
                table.get_type()
            )));
        };
        // Whoever makes the batches may need the interpreter.
        Self::of(py, py.detach(move || InMemory::read(reader)))
    }

    /// What a pickle has.
    #[staticmethod]
    fn from_ipc(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Self::of(py, InMemory::from_ipc(bytes))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = raise(py, self.table.to_ipc())?;
        Ok((py.get_type::<Self>().getattr("from_ipc")?, (PyBytes::new(py, &bytes),)))
    }

    fn __len__(&self) -> usize {
        self.table.len()
    }

    /// A row, by the names of its columns.
    fn __getitem__<'py>(&self, py: Python<'py>, at: isize) -> PyResult<Bound<'py, PyDict>> {
        let len = self.table.len();
        let place = if at < 0 { len.checked_add_signed(at) } else { usize::try_from(at).ok() };
        let place = place.filter(|&place| place < len);
        let place = place
            .ok_or_else(|| PyIndexError::new_err(format!("found row {at}, expected one of the {len}")))?;
        let row = raise(py, self.table.row(place))?;
        let mut row = Sample::with_schema(0, forebay_core::Key::default(), self.table.schema().clone(), row);
        values::fields_of(py, &self.names, &mut row)
    }
}

impl Rows {
    fn of(py: Python<'_>, table: forebay_core::Result<InMemory>) -> PyResult<Self> {
        Ok(Self { table: raise(py, table)?, names: values::Names::default() })
    }
}

/// What a capsule of this name holds.
fn held<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    // SAFETY: asks only; null comes with an exception.
    let place = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) };
    if place.is_null() { Err(PyErr::fetch(capsule.py())) } else { Ok(place.cast()) }
}

fn stream_of(capsule: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let stream = held::<FFI_ArrowArrayStream>(capsule, STREAM)?;
    // SAFETY: a capsule of this name holds a stream, which is moved out of it.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream) };
    Ok(Box::new(reader.map_err(refused)?))
}

fn array_of(capsules: &Bound<'_, PyTuple>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let schema = held::<FFI_ArrowSchema>(&capsules.get_item(0)?, c"arrow_schema")?;
    let array = held::<FFI_ArrowArray>(&capsules.get_item(1)?, c"arrow_array")?;
    // SAFETY: capsules of these names hold such structs. The array is moved out; the schema is read while its capsule lives.
    let (schema, data) = unsafe { (&*schema, from_ffi(FFI_ArrowArray::from_raw(array), &*schema)) };
    let array = make_array(data.map_err(refused)?);
    let field = Field::try_from(schema).map_err(refused)?;
    let batch = match array.as_any().downcast_ref::<StructArray>() {
        Some(columns) => RecordBatch::from(columns.clone()),
        None => {
            let fields = Fields::from(vec![field.with_name("value")]);
            RecordBatch::try_new(SchemaRef::new(Schema::new(fields)), vec![array]).map_err(refused)?
        }
    };
    let schema = batch.schema();
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

fn refused(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("found a table that breaks Arrow's rules: {error}"))
}
