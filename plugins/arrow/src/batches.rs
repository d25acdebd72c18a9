//! Batches of samples as columns of Arrow's. Blocks of numbers, and columns that were read, keep their memory.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer as ArrowBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Fields};
use bytes::Bytes;
use forebay_core::{DType, Error, Result, Sample, Schema, Str, Tensor, Value, View};

use crate::{
    columns::{Kind, number},
    errors::of_arrow,
    exchange::import,
};

/// What the columns of batches are, which the first of them decides.
///
/// A tensor is a column of numbers, and with more axes than one of tensors of fixed shape
/// (<https://arrow.apache.org/docs/format/CanonicalExtensions.html#fixed-shape-tensor>). A list is a column of what it holds. Columns stay what they are.
///
/// ```
/// use forebay_arrow::BatchForm;
/// use forebay_core::{Key, Sample, Value};
///
/// let mut batch = Sample::new(7, Key::whole("birds"));
/// batch.set("name", Value::list(vec!["heron".into(), Value::NULL]));
/// let columns = BatchForm::of(&batch)?.batch(&batch)?;
/// assert_eq!((columns.num_rows(), columns.column(0).null_count()), (2, 1));
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BatchForm(Vec<(Str, Column)>);

#[derive(Debug, Clone, PartialEq)]
enum Column {
    /// The values of a list, or the numbers of a tensor with one axis.
    Listed(Kind),
    /// A tensor of more axes: its type, and its axes but the first.
    Block(DType, Vec<i64>),
    Columns(FieldRef),
    Struct(Vec<(Str, Column)>),
}

impl BatchForm {
    /// The form of this batch, for it and those behind it.
    ///
    /// # Errors
    /// `Invalid` for a field that is a single value; `Unsupported` for values that have no type in Arrow. Both name the field.
    pub fn of(batch: &Sample) -> Result<Self> {
        columns_of(batch.schema(), batch.values(), Column::of).map(Self)
    }

    /// The batch as columns.
    ///
    /// # Errors
    /// As [`of`](Self::of); `Invalid` for fields of other names or types than the first batch's, and for fields of different lengths.
    pub fn batch(&self, batch: &Sample) -> Result<RecordBatch> {
        let columns = structure(&self.0, batch.schema(), batch.values())?;
        Ok(RecordBatch::from(columns))
    }
}

fn columns_of<T>(
    schema: &Schema,
    values: &[Value],
    of: impl Fn(&Value) -> Result<T>,
) -> Result<Vec<(Str, T)>> {
    let column = |(name, value): (&Str, &Value)| {
        Ok((name.clone(), of(value).map_err(|error| error.context("field", name.as_str()))?))
    };
    schema.names().iter().zip(values).map(column).collect()
}

fn structure(columns: &[(Str, Column)], schema: &Schema, values: &[Value]) -> Result<StructArray> {
    if let Some(more) = schema.names().iter().find(|name| columns.iter().all(|(known, _)| known != *name)) {
        return Err(Error::invalid(format!("found the field {more}, which the first batch lacks")));
    }
    let mut fields: Vec<FieldRef> = Vec::with_capacity(columns.len());
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for (name, column) in columns {
        let value = schema.position(name).and_then(|at| values.get(at));
        let value = value
            .ok_or_else(|| Error::invalid(format!("found no field {name}, which the first batch has")))?;
        let made = column.array(value).map_err(|error| error.context("field", name.as_str()))?;
        if let (Some(first), Some((known, _))) = (arrays.first(), columns.first())
            && first.len() != made.1.len()
        {
            return Err(Error::invalid(format!(
                "found {} rows of {name} and {} of {known}, expected as many of each field",
                made.1.len(),
                first.len()
            )));
        }
        fields.push(Arc::new(Field::clone(&made.0).with_name(name.as_str())));
        arrays.push(made.1);
    }
    let rows = arrays.first().map_or(0, |array| array.len());
    StructArray::try_new_with_length(Fields::from(fields), arrays, None, rows).map_err(of_arrow)
}

impl Column {
    fn of(value: &Value) -> Result<Self> {
        Ok(match value.view() {
            View::List(values) => {
                let mut kind = Kind::Null;
                for value in values {
                    if !kind.holds(value) {
                        kind = kind.join(Kind::of(value)?)?;
                    }
                }
                Self::Listed(kind.settled())
            }
            View::Tensor(tensor) if tensor.shape().len() == 1 => {
                Self::Listed(Kind::of_dtype(tensor.dtype())?)
            }
            View::Tensor(tensor) if !tensor.shape().is_empty() => {
                let inner = tensor.shape().get(1..).unwrap_or_default();
                Self::Block(tensor.dtype(), inner.to_vec())
            }
            View::Arrow(_) => Self::Columns(Arc::new(import(value)?.0)),
            View::Struct(fields) => Self::Struct(columns_of(fields.schema(), fields.values(), Self::of)?),
            _ => {
                return Err(Error::invalid(format!(
                    "found a single {}, expected a value for each sample of a batch",
                    Kind::of(value)?.name()
                ))
                .context("next", "put `batch` behind the pipes, so that samples come in batches"));
            }
        })
    }

    /// The values as this column, with its type.
    fn array(&self, value: &Value) -> Result<(FieldRef, ArrayRef)> {
        let field = |kind: &DataType| Arc::new(Field::new("", kind.clone(), true));
        Ok(match (self, value.view()) {
            (Self::Listed(kind), View::List(values)) => {
                let array = listed(kind, values)?;
                (field(array.data_type()), array)
            }
            (Self::Listed(kind), View::Tensor(tensor)) if tensor.shape().len() == 1 => {
                if Kind::of_dtype(tensor.dtype())? == *kind {
                    return block(tensor);
                }
                let array = listed(kind, &numbers(tensor))?;
                (field(array.data_type()), array)
            }
            (Self::Block(dtype, inner), View::Tensor(tensor))
                if tensor.dtype() == *dtype && tensor.shape().get(1..) == Some(inner) =>
            {
                block(tensor)?
            }
            (Self::Columns(known), View::Arrow(_)) => {
                let (now, array) = import(value)?;
                if now.data_type() != known.data_type() {
                    return Err(unlike(known.data_type().to_string(), now.data_type().to_string()));
                }
                (Arc::clone(known), array)
            }
            (Self::Struct(columns), View::Struct(fields)) => {
                let array: ArrayRef = Arc::new(structure(columns, fields.schema(), fields.values())?);
                (field(array.data_type()), array)
            }
            _ => return Err(unlike(self.name(), Self::of(value)?.name())),
        })
    }

    fn name(&self) -> String {
        match self {
            Self::Listed(kind) => format!("a list of {}", kind.name()),
            Self::Block(dtype, inner) => format!("a tensor of {dtype} whose last axes are {inner:?}"),
            Self::Columns(field) => field.data_type().to_string(),
            Self::Struct(_) => "a struct".to_owned(),
        }
    }
}

/// Values as a column of this kind, if theirs goes with it.
fn listed(kind: &Kind, values: &[Value]) -> Result<ArrayRef> {
    for value in values.iter().filter(|value| !kind.holds(value)) {
        let now = Kind::of(value)?;
        if kind.clone().join(now.clone()).ok().as_ref() != Some(kind) {
            return Err(unlike(kind.name(), now.name()));
        }
    }
    kind.array(&values.iter().collect::<Vec<_>>())
}

/// The numbers of a tensor, one by one.
fn numbers(tensor: &Tensor) -> Vec<Value> {
    let dtype = tensor.dtype();
    tensor.data().chunks_exact(dtype.size()).filter_map(|bytes| Value::element(dtype, bytes)).collect()
}

fn unlike(known: String, now: String) -> Error {
    Error::invalid(format!("found {now}, and {known} in the first batch"))
}

/// A tensor by its first axis, in its own memory; truth values are packed.
fn block(tensor: &Tensor) -> Result<(FieldRef, ArrayRef)> {
    let len = |axis: &i64| usize::try_from(*axis).unwrap_or(0);
    let (rows, inner) = (tensor.shape().first().map_or(0, len), tensor.shape().get(1..).unwrap_or_default());
    let each: usize = inner.iter().map(len).product();
    let (kind, buffer) = if tensor.dtype() == DType::BOOL {
        let bits = BooleanBuffer::from_iter(tensor.data().iter().map(|&byte| byte != 0));
        (DataType::Boolean, bits.into_inner())
    } else {
        (number(tensor.dtype())?, ArrowBuffer::from(Bytes::from_owner(tensor.data().clone())))
    };
    let numbers = ArrayData::builder(kind.clone()).len(rows * each).add_buffer(buffer).align_buffers(true);
    let numbers = numbers.build().map_err(of_arrow)?;
    if inner.is_empty() {
        return Ok((Arc::new(Field::new("", kind, true)), make_array(numbers)));
    }
    let each = i32::try_from(each).map_err(|_| Error::limit("a tensor is too large for a row of Arrow's"))?;
    let kind = DataType::FixedSizeList(Arc::new(Field::new("item", kind, false)), each);
    let lists =
        ArrayData::builder(kind.clone()).len(rows).add_child_data(numbers).build().map_err(of_arrow)?;
    let field = Field::new("", kind, true).with_metadata(HashMap::from([
        ("ARROW:extension:name".to_owned(), "arrow.fixed_shape_tensor".to_owned()),
        ("ARROW:extension:metadata".to_owned(), format!("{{\"shape\":{inner:?}}}")),
    ]));
    Ok((Arc::new(field), make_array(lists)))
}
