//! Values to columns: what type a field's values have together, and their array.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_buffer::{BooleanBuffer, Buffer as ArrowBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use forebay_core::{DType, Error, Result, Sample, Str, Value, View};

use crate::errors::of_arrow;

/// Values within each other deeper than this are refused.
const DEPTH: usize = 64;
/// Integers up to here are float64 exactly.
const EXACT: u64 = 1 << 53;

/// The type of a field's values; any may be null.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number(DType),
    /// int64 of which none is negative: beside larger ones they are uint64.
    Natural,
    Text,
    Bytes,
    /// Blocks of numbers of one type; the lengths of all axes but the first are always these.
    Block(DType, Vec<i64>),
    List(Box<Kind>),
    Struct(Vec<(Str, Kind)>),
}

impl Kind {
    /// The type of one value.
    pub(crate) fn of(value: &Value) -> Result<Self> {
        Self::within(value, DEPTH)
    }

    /// Whether [`join`](Self::join) with the value's type gives this one. It may say no where the answer is yes, and takes no memory.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        match (self, value.view()) {
            (_, View::Null)
            | (Self::Bool, View::Bool(_))
            | (Self::Text, View::Str(_))
            | (Self::Bytes, View::Bytes(_)) => true,
            (Self::Natural, View::Int(0..)) => value.dtype() == Some(DType::I64),
            (Self::Number(dtype), View::Int(_) | View::UInt(_) | View::Float(_)) => {
                value.dtype() == Some(*dtype)
            }
            (Self::List(items), View::List(values)) => values.iter().all(|value| items.holds(value)),
            _ => false,
        }
    }

    /// The type of numbers and truth values.
    pub(crate) fn of_dtype(dtype: DType) -> Result<Self> {
        if dtype == DType::BOOL {
            return Ok(Self::Bool);
        }
        number(dtype).map(|_| Self::Number(dtype))
    }

    fn within(value: &Value, depth: usize) -> Result<Self> {
        let depth =
            depth.checked_sub(1).ok_or_else(|| Error::limit(format!("values nest deeper than {DEPTH}")))?;
        Ok(match value.view() {
            View::Null => Self::Null,
            View::Bool(_) => Self::Bool,
            View::Int(0..) if value.dtype() == Some(DType::I64) => Self::Natural,
            View::Int(_) | View::UInt(_) | View::Float(_) => {
                let dtype = value.dtype().unwrap_or(DType::ANY);
                number(dtype)?;
                Self::Number(dtype)
            }
            View::Str(_) => Self::Text,
            View::Bytes(_) => Self::Bytes,
            View::Tensor(tensor) => {
                let dtype = tensor.dtype();
                if dtype != DType::BOOL {
                    number(dtype)?;
                }
                match tensor.shape().split_first() {
                    None if dtype == DType::BOOL => Self::Bool,
                    None => Self::Number(dtype),
                    Some((_, inner)) => Self::Block(dtype, inner.to_vec()),
                }
            }
            View::List(values) => {
                let mut items = Self::Null;
                for value in values {
                    items = items.join(Self::within(value, depth)?)?;
                }
                Self::List(Box::new(items))
            }
            View::Struct(fields) => {
                let field = |(name, value): (&Str, &Value)| Ok((name.clone(), Self::within(value, depth)?));
                Self::Struct(fields.fields().map(field).collect::<Result<_>>()?)
            }
            View::Arrow(_) => {
                return Err(Error::unsupported("found columns, expected rows, as `read_rows` gives them"));
            }
            _ => return Err(Error::unsupported(format!("{value:?} has no type in Arrow"))),
        })
    }

    /// The type that values of both have: an integer and a float are float64, integers of which none is
    /// negative and larger ones uint64, a field that one struct lacks is null there.
    ///
    /// # Errors
    /// `Invalid` when there is none.
    pub(crate) fn join(self, other: Self) -> Result<Self> {
        Ok(match (self, other) {
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (one, other) if one == other => one,
            (Self::Natural, Self::Number(other)) | (Self::Number(other), Self::Natural) if wide(other) => {
                Self::Number(other)
            }
            (Self::Number(DType::F64), Self::Number(other))
            | (Self::Number(other), Self::Number(DType::F64))
                if wide(other) =>
            {
                Self::Number(DType::F64)
            }
            (Self::List(one), Self::List(other)) => Self::List(Box::new(one.join(*other)?)),
            (Self::Struct(mut fields), Self::Struct(others)) => {
                for (name, kind) in others {
                    match fields.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, known)) => *known = std::mem::replace(known, Self::Null).join(kind)?,
                        None => fields.push((name, kind)),
                    }
                }
                Self::Struct(fields)
            }
            (one, other) => {
                return Err(Error::invalid(format!("found {}, and {} before", other.name(), one.name())));
            }
        })
    }

    /// What it is once a file says so: what comes later changes it no more.
    pub(crate) fn settled(self) -> Self {
        match self {
            Self::Natural => Self::Number(DType::I64),
            Self::List(items) => Self::List(Box::new(items.settled())),
            Self::Struct(fields) => {
                Self::Struct(fields.into_iter().map(|(name, kind)| (name, kind.settled())).collect())
            }
            kind => kind,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Number(dtype) => dtype.to_string(),
            Self::Natural => DType::I64.to_string(),
            Self::Text => "text".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Block(dtype, inner) => format!("a tensor of {dtype} whose last axes are {inner:?}"),
            Self::List(items) => format!("a list of {}", items.name()),
            Self::Struct(_) => "a struct".to_owned(),
        }
    }

    fn data_type(&self) -> Result<DataType> {
        let item = |kind: DataType, nullable| Arc::new(Field::new("item", kind, nullable));
        Ok(match self {
            Self::Null => DataType::Null,
            Self::Bool => DataType::Boolean,
            Self::Number(dtype) => number(*dtype)?,
            Self::Natural => DataType::Int64,
            Self::Text => DataType::LargeUtf8,
            Self::Bytes => DataType::LargeBinary,
            Self::Block(dtype, inner) => {
                let mut kind = if *dtype == DType::BOOL { DataType::Boolean } else { number(*dtype)? };
                for &axis in inner.iter().rev() {
                    let axis =
                        i32::try_from(axis).map_err(|_| Error::limit("an axis is too long for Arrow"))?;
                    kind = DataType::FixedSizeList(item(kind, false), axis);
                }
                DataType::LargeList(item(kind, false))
            }
            Self::List(items) => DataType::LargeList(item(items.data_type()?, true)),
            Self::Struct(fields) => DataType::Struct(fields_of(fields)?),
        })
    }

    /// The values as one array of this type, which is theirs together.
    pub(crate) fn array(&self, values: &[&Value]) -> Result<ArrayRef> {
        let kind = self.data_type()?;
        let valid: Vec<bool> = values.iter().map(|value| !matches!(value.view(), View::Null)).collect();
        let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
        let data = ArrayData::builder(kind.clone()).len(values.len()).nulls(nulls);
        let data = match self {
            Self::Null => ArrayData::builder(kind).len(values.len()),
            Self::Bool => {
                let bits = values.iter().map(|value| value.bits() != 0 || scalar(value).first() == Some(&1));
                data.add_buffer(BooleanBuffer::from_iter(bits).into_inner())
            }
            Self::Number(_) | Self::Natural => {
                let dtype = if let Self::Number(dtype) = self { *dtype } else { DType::I64 };
                let mut bytes = Vec::with_capacity(values.len() * dtype.size());
                for value in values {
                    push_number(value, dtype, &mut bytes)?;
                }
                data.add_buffer(ArrowBuffer::from(bytes))
            }
            Self::Text | Self::Bytes => {
                let parts = values.iter().map(|value| match value.view() {
                    View::Str(text) => text.as_bytes(),
                    View::Bytes(bytes) => bytes,
                    _ => &[],
                });
                let parts: Vec<&[u8]> = parts.collect();
                let offsets = offsets(parts.iter().map(|part| part.len()));
                data.add_buffer(offsets).add_buffer(ArrowBuffer::from(parts.concat()))
            }
            Self::Block(dtype, inner) => {
                let mut bytes = Vec::new();
                let mut lens = Vec::with_capacity(values.len());
                for value in values {
                    let tensor = value.as_tensor();
                    let shape = tensor.map_or(&[][..], |tensor| tensor.shape());
                    lens.push(shape.first().map_or(0, |&len| usize::try_from(len).unwrap_or(0)));
                    bytes.extend_from_slice(tensor.map_or(&[], |tensor| tensor.data()));
                }
                let count = lens.iter().sum();
                let items = block(*dtype, inner, bytes, count)?;
                data.add_buffer(offsets(lens.into_iter())).add_child_data(items)
            }
            Self::List(items) => {
                let lists = values.iter().map(|value| match value.view() {
                    View::List(values) => values,
                    _ => &[],
                });
                let lists: Vec<&[Value]> = lists.collect();
                let all: Vec<&Value> = lists.iter().flat_map(|values| values.iter()).collect();
                data.add_buffer(offsets(lists.iter().map(|values| values.len())))
                    .add_child_data(items.array(&all)?.to_data())
            }
            Self::Struct(fields) => {
                let (mut data, null) = (data, Value::NULL);
                for (name, kind) in fields {
                    let column: Vec<&Value> = values
                        .iter()
                        .map(|value| match value.view() {
                            View::Struct(fields) => fields.get(name).unwrap_or(&null),
                            _ => &null,
                        })
                        .collect();
                    let column =
                        kind.array(&column).map_err(|error| error.context("field", name.as_str()))?;
                    data = data.add_child_data(column.to_data());
                }
                data
            }
        };
        Ok(make_array(data.align_buffers(true).build().map_err(of_arrow)?))
    }
}

/// The columns of a table while its rows are collected.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns {
    fields: Vec<(Str, Kind)>,
}

impl Columns {
    /// The columns with those of one more row.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported`, naming the field.
    pub(crate) fn with(&self, row: &Sample) -> Result<Self> {
        let kind = |(name, value): (&Str, &Value)| {
            Ok((name.clone(), Kind::of(value).map_err(|error| error.context("field", name.as_str()))?))
        };
        let row: Vec<_> = row.fields().map(kind).collect::<Result<_>>()?;
        let mut fields = self.fields.clone();
        for (name, kind) in row {
            match fields.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => {
                    let joined = std::mem::replace(known, Kind::Null).join(kind);
                    *known = joined.map_err(|error| error.context("field", name.as_str()))?;
                }
                None => fields.push((name, kind)),
            }
        }
        Ok(Self { fields })
    }

    /// The columns of a file that is begun with them.
    pub(crate) fn settled(self) -> Self {
        Self { fields: self.fields.into_iter().map(|(name, kind)| (name, kind.settled())).collect() }
    }

    /// Whether rows of `other` are rows of these columns.
    pub(crate) fn hold(&self, other: &Self) -> bool {
        self.fields == other.fields
    }

    pub(crate) fn schema(&self) -> Result<Arc<Schema>> {
        Ok(Arc::new(Schema::new(fields_of(&self.fields)?)))
    }

    /// The rows as a batch of these columns.
    pub(crate) fn batch(&self, rows: &[Sample]) -> Result<RecordBatch> {
        let null = Value::NULL;
        let column = |(name, kind): &(Str, Kind)| {
            let values: Vec<&Value> = rows.iter().map(|row| row.get(name).unwrap_or(&null)).collect();
            kind.array(&values).map_err(|error| error.context("field", name.as_str()))
        };
        let columns = self.fields.iter().map(column).collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(self.schema()?, columns).map_err(of_arrow)
    }
}

fn fields_of(fields: &[(Str, Kind)]) -> Result<Fields> {
    let field = |(name, kind): &(Str, Kind)| -> Result<FieldRef> {
        Ok(Arc::new(Field::new(name.as_str(), kind.data_type()?, true)))
    };
    fields.iter().map(field).collect()
}

pub(crate) fn number(dtype: DType) -> Result<DataType> {
    Ok(match dtype {
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U8 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        _ => return Err(Error::unsupported(format!("numbers of {dtype} have no type in Arrow"))),
    })
}

/// Whether numbers are as text has them: an integer here and a float there may be one column.
fn wide(dtype: DType) -> bool {
    matches!(dtype, DType::I64 | DType::U64 | DType::F64)
}

/// The bytes of a tensor without axes.
fn scalar(value: &Value) -> &[u8] {
    value.as_tensor().map_or(&[], |tensor| tensor.data())
}

fn push_number(value: &Value, dtype: DType, bytes: &mut Vec<u8>) -> Result<()> {
    let size = dtype.size();
    if let View::Tensor(_) = value.view() {
        bytes.extend_from_slice(scalar(value));
        return Ok(());
    }
    let bits = match value.view() {
        View::Int(number) if dtype == DType::F64 && value.dtype() != Some(dtype) => {
            exact(number.unsigned_abs())?;
            (number as f64).to_bits()
        }
        View::UInt(number) if dtype == DType::F64 => {
            exact(number)?;
            (number as f64).to_bits()
        }
        View::Null => 0,
        _ => value.bits(),
    };
    let word = bits.to_ne_bytes();
    let part = if cfg!(target_endian = "little") { &word[..size] } else { &word[8 - size..] };
    bytes.extend_from_slice(part);
    Ok(())
}

fn exact(size: u64) -> Result<()> {
    if size <= EXACT {
        return Ok(());
    }
    Err(Error::invalid(format!("an integer of size {size} among floats, at most {EXACT} is exact")))
}

fn offsets(lens: impl Iterator<Item = usize>) -> ArrowBuffer {
    let offsets = OffsetBuffer::<i64>::from_lengths(lens);
    ScalarBuffer::from(offsets).into_inner()
}

/// A block of numbers as `count` items, each a list of a fixed size for each axis.
fn block(dtype: DType, inner: &[i64], bytes: Vec<u8>, count: usize) -> Result<ArrayData> {
    let kind = Kind::Block(dtype, inner.to_vec()).data_type()?;
    let DataType::LargeList(item) = kind else { return Err(Error::bug("a block is a list")) };
    let mut kinds = vec![item.data_type().clone()];
    while let Some(DataType::FixedSizeList(item, _)) = kinds.last() {
        let item = item.data_type().clone();
        kinds.push(item);
    }
    let mut lens = vec![count];
    for &axis in inner {
        let len = lens.last().copied().unwrap_or(0);
        lens.push(len.saturating_mul(usize::try_from(axis).unwrap_or(0)));
    }
    let mut data: Option<ArrayData> = None;
    let mut bytes = Some(bytes);
    for (kind, len) in kinds.into_iter().zip(lens).rev() {
        let builder = ArrayData::builder(kind.clone()).len(len);
        let builder = match (data.take(), bytes.take()) {
            (Some(items), _) => builder.add_child_data(items),
            (None, Some(bytes)) if kind == DataType::Boolean => {
                let bits = BooleanBuffer::from_iter(bytes.iter().map(|&byte| byte != 0));
                builder.add_buffer(bits.into_inner())
            }
            (None, bytes) => builder.add_buffer(ArrowBuffer::from(bytes.unwrap_or_default())),
        };
        data = Some(builder.align_buffers(true).build().map_err(of_arrow)?);
    }
    data.ok_or_else(|| Error::bug("a block without items"))
}
