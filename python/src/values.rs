//! Values as Python's own.

use forebay_core::{Error, Sample, Value, View};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyList, PyString},
};

use crate::{
    array::Array,
    columns::Columns,
    convert::{LEAVES, PICKLED},
    errors::exception,
};

/// The fields of a sample, which the caller gives up: so it is seen which of its memory nobody else has.
pub(crate) fn fields(py: Python<'_>, mut sample: Sample) -> PyResult<Bound<'_, PyDict>> {
    fields_of(py, &mut sample)
}

/// As [`fields`], of a sample that gets others, and has none of worth until then.
pub(crate) fn fields_of<'py>(py: Python<'py>, sample: &mut Sample) -> PyResult<Bound<'py, PyDict>> {
    let schema = sample.schema().clone();
    let dict = PyDict::new(py);
    for (name, value) in schema.names().iter().zip(sample.values_mut()) {
        let value = std::mem::replace(value, Value::NULL);
        dict.set_item(PyString::intern(py, name.as_str()), owned(py, name.as_str(), value)?)?;
    }
    Ok(dict)
}

/// The fields of a sample that stays as it is: what can be written in Python is not there.
pub(crate) fn shared<'py>(py: Python<'py>, sample: &Sample) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in sample.fields() {
        dict.set_item(PyString::intern(py, name.as_str()), shown(py, name.as_str(), value)?)?;
    }
    Ok(dict)
}

/// A value that nobody else is to have.
fn owned<'py>(py: Python<'py>, field: &str, value: Value) -> PyResult<Bound<'py, PyAny>> {
    match value.view() {
        View::Tensor(tensor) => {
            let tensor = tensor.clone();
            drop(value);
            Ok(Bound::new(py, Array::new(tensor))?.into_any())
        }
        View::Arrow(_) => Ok(Bound::new(py, Columns(value))?.into_any()),
        _ => shown(py, field, &value),
    }
}

fn shown<'py>(py: Python<'py>, field: &str, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value.view() {
        View::Null => py.None().into_bound(py),
        View::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        View::Int(number) => number.into_pyobject(py)?.into_any(),
        View::UInt(number) => number.into_pyobject(py)?.into_any(),
        View::Float(number) => number.into_pyobject(py)?.into_any(),
        View::Str(text) => PyString::new(py, text).into_any(),
        View::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        View::Tensor(tensor) => Bound::new(py, Array::new(tensor.clone()))?.into_any(),
        View::Arrow(_) => Bound::new(py, Columns(value.clone()))?.into_any(),
        View::List(values) => {
            let items = values.iter().map(|value| shown(py, field, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        View::Struct(fields) => {
            if let (Some(pickle), Some(leaves)) = (fields.get(PICKLED), fields.get(LEAVES)) {
                let unpack = py.import("forebay._objects")?.getattr("unpack")?;
                return unpack.call1((shown(py, field, pickle)?, shown(py, field, leaves)?));
            }
            let dict = PyDict::new(py);
            for (name, value) in fields.fields() {
                dict.set_item(PyString::intern(py, name.as_str()), shown(py, field, value)?)?;
            }
            dict.into_any()
        }
        View::Opaque(kind) => {
            let error = Error::unsupported(format!("a value of the type {kind} has no form in Python"));
            return Err(exception(py, &error.context("field", field)));
        }
        _ => {
            let error = Error::unsupported("a kind of value that came after this release");
            return Err(exception(py, &error.context("field", field)));
        }
    })
}
