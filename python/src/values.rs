//! Values as Python's own.

use std::sync::{Mutex, PoisonError};

use forebay_core::{Buffer, DType, Error, Sample, Schema, Struct, Tensor, TensorExt as _, Value, View};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple},
};

use crate::{
    array::Array,
    columns::Columns,
    convert::{LEAVES, PICKLED},
    errors::{exception, raise},
};

/// The names of a sample's fields as Python has them, kept from one sample to the next.
#[derive(Default)]
pub(crate) struct Names {
    last: Mutex<Option<(Schema, Py<PyTuple>)>>,
    /// Whether bytes are shown as views of their memory, in place of copies.
    views: bool,
}

/// What is shown.
#[derive(Clone, Copy)]
struct Field<'a> {
    name: &'a str,
    views: bool,
}

impl Names {
    /// For samples whose bytes are shown as views, if that is wanted.
    pub(crate) fn viewing(views: bool) -> Self {
        Self { views, ..Self::default() }
    }

    fn of<'py>(&self, py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyTuple>> {
        let kept = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, names)) = &*kept()
            && last.is(schema)
        {
            return Ok(names.bind(py).clone());
        }
        let names = schema.names().iter().map(|name| PyString::intern(py, name.as_str()));
        let names = PyTuple::new(py, names.collect::<Vec<_>>())?;
        // What was kept is dropped without the lock: that may call Python.
        let last = kept().replace((schema.clone(), names.clone().unbind()));
        drop(last);
        Ok(names)
    }
}

/// The fields of a sample that gets others, and has none of worth until then: so it is seen which of its memory nobody else has.
pub(crate) fn fields_of<'py>(
    py: Python<'py>,
    names: &Names,
    sample: &mut Sample,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    fill(&dict, names, sample)?;
    Ok(dict)
}

/// As [`fields_of`], into a dict that is there.
pub(crate) fn fill(dict: &Bound<'_, PyDict>, names: &Names, sample: &mut Sample) -> PyResult<()> {
    let (py, schema) = (dict.py(), sample.schema().clone());
    let shown = names.of(py, &schema)?;
    for ((name, value), shown) in schema.names().iter().zip(sample.values_mut()).zip(shown) {
        let value = std::mem::replace(value, Value::NULL);
        let field = Field { name: name.as_str(), views: names.views };
        dict.set_item(shown, owned(py, field, value)?)?;
    }
    Ok(())
}

/// The fields of a sample that stays as it is: what can be written in Python is not there.
pub(crate) fn shared<'py>(py: Python<'py>, names: &Names, sample: &Sample) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for ((name, value), known) in sample.fields().zip(names.of(py, sample.schema())?) {
        let field = Field { name: name.as_str(), views: names.views };
        dict.set_item(known, shown(py, field, value)?)?;
    }
    Ok(dict)
}

/// A value that nobody else is to have.
fn owned<'py>(py: Python<'py>, field: Field, value: Value) -> PyResult<Bound<'py, PyAny>> {
    match value.view() {
        View::Tensor(tensor) => {
            let tensor = tensor.clone();
            drop(value);
            Ok(Bound::new(py, Array::new(tensor))?.into_any())
        }
        View::Arrow(_) => Ok(Bound::new(py, Columns(value))?.into_any()),
        View::Struct(fields) => {
            let Some((pickle, leaves)) = object(fields) else { return shown(py, field, &value) };
            let (pickle, leaves) = (shown(py, field, pickle)?, leaves.to_vec());
            drop(value);
            let leaves =
                leaves.into_iter().map(|leaf| owned(py, field, leaf)).collect::<PyResult<Vec<_>>>()?;
            unpacked(py, pickle, PyList::new(py, leaves)?)
        }
        _ => shown(py, field, &value),
    }
}

/// The pickle of an object that has no other form, and the values that stand for the arrays in it.
fn object(fields: &Struct) -> Option<(&Value, &[Value])> {
    match fields.get(LEAVES)?.view() {
        View::List(leaves) => Some((fields.get(PICKLED)?, leaves)),
        _ => None,
    }
}

fn unpacked<'py>(
    py: Python<'py>,
    pickle: Bound<'py, PyAny>,
    leaves: Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("forebay._objects")?.getattr("unpack")?.call1((pickle, leaves))
}

/// Values in a list. Whole numbers, the usual case of a batch, go there without a look at each kind.
fn list<'py>(py: Python<'py>, field: Field, values: &[Value]) -> PyResult<Bound<'py, PyList>> {
    if values.iter().all(|value| value.bits_of(DType::I64).is_some()) {
        return PyList::new(py, values.iter().map(|value| value.bits().cast_signed()));
    }
    let items = values.iter().map(|value| shown(py, field, value)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, items)
}

/// The memory of bytes, read-only whoever else has it: values may be shared where nobody sees it.
fn view<'py>(py: Python<'py>, bytes: &Buffer) -> PyResult<Bound<'py, PyAny>> {
    let tensor = raise(py, Tensor::new(DType::U8, &[bytes.len()], bytes.clone()))?;
    let array = Bound::new(py, Array::new(tensor))?;
    PyMemoryView::from(array.as_any())?.call_method0("toreadonly")
}

fn shown<'py>(py: Python<'py>, field: Field, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value.view() {
        View::Null => py.None().into_bound(py),
        View::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        View::Int(number) => number.into_pyobject(py)?.into_any(),
        View::UInt(number) => number.into_pyobject(py)?.into_any(),
        View::Float(number) => number.into_pyobject(py)?.into_any(),
        View::Str(text) => PyString::new(py, text).into_any(),
        View::Bytes(bytes) if field.views => view(py, bytes)?,
        View::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        View::Tensor(tensor) => Bound::new(py, Array::new(tensor.clone()))?.into_any(),
        View::Arrow(_) => Bound::new(py, Columns(value.clone()))?.into_any(),
        View::List(values) => list(py, field, values)?.into_any(),
        View::Struct(fields) => {
            if let Some((pickle, leaves)) = object(fields) {
                let field = Field { views: false, ..field };
                return unpacked(py, shown(py, field, pickle)?, list(py, field, leaves)?);
            }
            let dict = PyDict::new(py);
            for (name, value) in fields.fields() {
                dict.set_item(PyString::intern(py, name.as_str()), shown(py, field, value)?)?;
            }
            dict.into_any()
        }
        View::Opaque(kind) => {
            let error = Error::unsupported(format!("a value of the type {kind} has no form in Python"));
            return Err(exception(py, &error.context("field", field.name)));
        }
        _ => {
            let error = Error::unsupported("a kind of value that came after this release");
            return Err(exception(py, &error.context("field", field.name)));
        }
    })
}
