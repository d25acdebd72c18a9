//! A column as values: one for each row, which share the column's memory.

use arrow_array::{Array, ArrayRef, cast::AsArray as _, types};
use arrow_buffer::{ArrowNativeType as _, BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, IntervalUnit};
use forebay_core::{Buffer, DType, Error, Result, Str, Tensor, TensorExt as _, Value};

use crate::document::share;

/// A column, ready to give the value of any row.
pub(crate) struct Cells {
    nulls: Option<NullBuffer>,
    kind: Kind,
}

enum Kind {
    Null,
    Bool(BooleanBuffer),
    Numbers(DType, Buffer),
    Slices(Ends, Buffer, Bytes),
    Views(ScalarBuffer<u128>, Buffer, Vec<Buffer>, Bytes),
    Fixed(usize, Buffer),
    /// Integers that make up a value: months, days and nanoseconds.
    Tuples(Vec<Cells>),
    /// Exact numbers of too many digits, as text.
    Decimals(ArrayRef),
    Lists(Ends, Box<Cells>),
    /// Lists that each start and end where they say.
    ListViews(Ends, Ends, Box<Cells>),
    FixedLists(usize, Box<Cells>),
    Structs(Vec<(Str, Cells)>),
    /// Numbers that stand for other values.
    Picked(Vec<usize>, Box<Cells>),
    /// Which of the columns has the row, and where in it.
    Unions(Vec<(usize, usize)>, Vec<Cells>),
}

#[derive(Clone, Copy)]
enum Bytes {
    Text,
    Raw,
}

impl Bytes {
    fn value(self, bytes: Buffer) -> Value {
        match self {
            Self::Raw => bytes.into(),
            // The library has seen that it is; to look again is what safe code costs.
            Self::Text => Str::from_utf8(bytes).map_or_else(Value::from, Value::from),
        }
    }
}

/// Offsets of 32 or 64 bits.
enum Ends {
    Small(ScalarBuffer<i32>),
    Large(ScalarBuffer<i64>),
}

impl Ends {
    fn at(&self, at: usize) -> usize {
        match self {
            Self::Small(ends) => ends.get(at).map_or(0, |end| end.as_usize()),
            Self::Large(ends) => ends.get(at).map_or(0, |end| end.as_usize()),
        }
    }

    fn range(&self, at: usize) -> std::ops::Range<usize> {
        self.at(at)..self.at(at + 1)
    }
}

/// The element type of numbers that a tensor or scalar can hold: integers, floats, and times as the integers that are stored.
pub(crate) fn dtype(kind: &DataType) -> Option<DType> {
    use DataType::*;
    Some(match kind {
        Int8 => DType::I8,
        Int16 => DType::I16,
        Int32 | Date32 | Time32(_) | Interval(IntervalUnit::YearMonth) => DType::I32,
        Int64 | Date64 | Time64(_) | Timestamp(_, _) | Duration(_) => DType::I64,
        UInt8 => DType::U8,
        UInt16 => DType::U16,
        UInt32 => DType::U32,
        UInt64 => DType::U64,
        Float16 => DType::F16,
        Float32 => DType::F32,
        Float64 => DType::F64,
        _ => return None,
    })
}

/// The numbers of an array of a fixed width, as bytes; only those of its rows.
pub(crate) fn number_bytes(array: &dyn Array, width: usize) -> Result<Buffer> {
    let data = array.to_data();
    let (start, len) = (data.offset() * width, data.len() * width);
    let found = data.buffers().first().filter(|buffer| buffer.len() >= start + len);
    let found = found.ok_or_else(|| Error::bug("an array without its buffer"))?;
    Ok(share(found.slice_with_length(start, len)))
}

/// The whole array as a block of numbers without nulls, if it is one.
pub(crate) fn tensor(array: &ArrayRef) -> Result<Option<Tensor>> {
    fn is_block(kind: &DataType) -> bool {
        match kind {
            DataType::FixedSizeList(items, _) => is_block(items.data_type()),
            kind => *kind == DataType::Boolean || dtype(kind).is_some(),
        }
    }
    if !is_block(array.data_type()) {
        return Ok(None);
    }
    let block = Cells::new(array)?.block(0..array.len())?;
    block.map(|(dtype, shape, bytes)| Tensor::new(dtype, &shape, bytes)).transpose()
}

impl Cells {
    /// The column's values.
    ///
    /// # Errors
    /// `Unsupported` for a type that has no value here.
    pub(crate) fn new(array: &ArrayRef) -> Result<Self> {
        use DataType::*;
        let inner = |array: &ArrayRef| Self::new(array).map(Box::new);
        let kind = match array.data_type() {
            Null => Kind::Null,
            Boolean => Kind::Bool(array.as_boolean().values().clone()),
            Utf8 => slices(array.as_string::<i32>(), Bytes::Text),
            Binary => slices(array.as_binary::<i32>(), Bytes::Raw),
            LargeUtf8 => large_slices(array.as_string::<i64>(), Bytes::Text),
            LargeBinary => large_slices(array.as_binary::<i64>(), Bytes::Raw),
            Utf8View => views(array.as_string_view(), Bytes::Text),
            BinaryView => views(array.as_binary_view(), Bytes::Raw),
            FixedSizeBinary(width) => Kind::Fixed(width.as_usize(), number_bytes(array, width.as_usize())?),
            Interval(IntervalUnit::DayTime) => tuples(array, &[(DType::I32, 0), (DType::I32, 4)], 8)?,
            Interval(IntervalUnit::MonthDayNano) => {
                tuples(array, &[(DType::I32, 0), (DType::I32, 4), (DType::I64, 8)], 16)?
            }
            Decimal32(_, _) | Decimal64(_, _) | Decimal128(_, _) | Decimal256(_, _) => {
                Kind::Decimals(array.clone())
            }
            List(_) => {
                let list = array.as_list::<i32>();
                Kind::Lists(Ends::Small(list.offsets().inner().clone()), inner(list.values())?)
            }
            LargeList(_) => {
                let list = array.as_list::<i64>();
                Kind::Lists(Ends::Large(list.offsets().inner().clone()), inner(list.values())?)
            }
            Map(_, _) => {
                let map = array.as_map();
                let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
                Kind::Lists(Ends::Small(map.offsets().inner().clone()), inner(&entries)?)
            }
            ListView(_) => {
                let list = array.as_list_view::<i32>();
                let (starts, sizes) = (list.offsets().clone(), list.sizes().clone());
                Kind::ListViews(Ends::Small(starts), Ends::Small(sizes), inner(list.values())?)
            }
            LargeListView(_) => {
                let list = array.as_list_view::<i64>();
                let (starts, sizes) = (list.offsets().clone(), list.sizes().clone());
                Kind::ListViews(Ends::Large(starts), Ends::Large(sizes), inner(list.values())?)
            }
            FixedSizeList(_, size) => {
                Kind::FixedLists(size.as_usize(), inner(array.as_fixed_size_list().values())?)
            }
            Struct(fields) => {
                let columns = array.as_struct().columns().iter().zip(fields);
                let cells =
                    columns.map(|(column, field)| Ok((field.name().as_str().into(), Self::new(column)?)));
                Kind::Structs(cells.collect::<Result<_>>()?)
            }
            Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                match dictionary.values().is_empty() {
                    true => Kind::Null,
                    false => Kind::Picked(dictionary.normalized_keys(), inner(dictionary.values())?),
                }
            }
            RunEndEncoded(_, _) => runs(array)?,
            Union(fields, _) => {
                let union = array.as_union();
                let ids: Vec<_> = fields.iter().map(|(id, _)| id).collect();
                let place = |id: i8| ids.iter().position(|&known| known == id).unwrap_or(usize::MAX);
                let rows = (0..union.len()).map(|at| (place(union.type_id(at)), union.value_offset(at)));
                let columns = ids.iter().map(|&id| Self::new(union.child(id)));
                Kind::Unions(rows.collect(), columns.collect::<Result<_>>()?)
            }
            other => match dtype(other) {
                Some(dtype) => Kind::Numbers(dtype, number_bytes(array, dtype.size())?),
                None => return Err(Error::unsupported(format!("no values for Arrow's {other}"))),
            },
        };
        Ok(Self { nulls: array.nulls().filter(|nulls| nulls.null_count() > 0).cloned(), kind })
    }

    /// The value of a row.
    pub(crate) fn value(&self, at: usize) -> Result<Value> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
            return Ok(Value::NULL);
        }
        Ok(match &self.kind {
            Kind::Null => Value::NULL,
            Kind::Bool(bits) => bits.value(at).into(),
            Kind::Numbers(dtype, bytes) => Value::scalar(*dtype, bits(bytes, at, *dtype)),
            Kind::Slices(ends, bytes, is) => is.value(part(bytes, ends.range(at))?),
            Kind::Views(views, inline, parts, is) => is.value(viewed(views, inline, parts, at)?),
            Kind::Fixed(width, bytes) => part(bytes, at * width..(at + 1) * width)?.into(),
            Kind::Tuples(parts) => {
                Value::list(parts.iter().map(|part| part.value(at)).collect::<Result<_>>()?)
            }
            Kind::Decimals(array) => decimal(array, at)?.into(),
            Kind::Lists(ends, items) => items.list(ends.range(at))?,
            Kind::ListViews(starts, sizes, items) => {
                let start = starts.at(at);
                items.list(start..start + sizes.at(at))?
            }
            Kind::FixedLists(size, items) => items.list(at * size..(at + 1) * size)?,
            Kind::Structs(fields) => {
                let fields = fields.iter().map(|(name, cells)| Ok((name.clone(), cells.value(at)?)));
                Value::structure(fields.collect::<Result<_>>()?)
            }
            Kind::Picked(keys, values) => {
                values.value(*keys.get(at).ok_or_else(|| Error::bug("a row without its key"))?)?
            }
            Kind::Unions(rows, columns) => {
                let (column, row) = rows.get(at).copied().unwrap_or_default();
                match columns.get(column) {
                    Some(column) => column.value(row)?,
                    None => return Err(Error::corrupt("a union's row is of a type that it has not")),
                }
            }
        })
    }

    /// Some rows as one value: a tensor where they are numbers and none is null, otherwise a list.
    fn list(&self, rows: std::ops::Range<usize>) -> Result<Value> {
        if let Some((dtype, shape, bytes)) = self.block(rows.clone())? {
            return Ok(Tensor::new(dtype, &shape, bytes)?.into());
        }
        Ok(Value::list(rows.map(|at| self.value(at)).collect::<Result<_>>()?))
    }

    /// Some rows as a block of numbers, if they are one.
    fn block(&self, rows: std::ops::Range<usize>) -> Result<Option<(DType, Vec<usize>, Buffer)>> {
        let nulls = self.nulls.as_ref();
        if nulls.is_some_and(|nulls| nulls.slice(rows.start, rows.len()).null_count() > 0) {
            return Ok(None);
        }
        Ok(match &self.kind {
            Kind::Numbers(dtype, bytes) => {
                let size = dtype.size();
                Some((*dtype, vec![rows.len()], part(bytes, rows.start * size..rows.end * size)?))
            }
            Kind::Bool(bits) => {
                let bytes: Vec<u8> = rows.map(|at| bits.value(at).into()).collect();
                Some((DType::BOOL, vec![bytes.len()], bytes.into()))
            }
            Kind::FixedLists(size, items) => {
                let block = items.block(rows.start * size..rows.end * size)?;
                block.filter(|(_, shape, _)| shape.len() < forebay_core::abi::MAX_DIMS).map(
                    |(dtype, shape, bytes)| {
                        let inner = shape.into_iter().skip(1);
                        (dtype, [rows.len(), *size].into_iter().chain(inner).collect(), bytes)
                    },
                )
            }
            _ => None,
        })
    }
}

fn part(bytes: &Buffer, range: std::ops::Range<usize>) -> Result<Buffer> {
    bytes.get(range).ok_or_else(|| Error::bug("a value beyond its column"))
}

/// The bits of a number, as scalars have them: signed ones are widened with their sign.
fn bits(bytes: &Buffer, at: usize, dtype: DType) -> u64 {
    let (bytes, size): (&[u8], usize) = (bytes, dtype.size());
    let element = bytes.get(at * size..).and_then(|rest| rest.get(..size));
    element.and_then(|element| dtype.scalar_bits(element)).unwrap_or(0)
}

/// The bytes of a view: in the view itself where they are few, otherwise in one of the parts.
fn viewed(views: &[u128], inline: &Buffer, parts: &[Buffer], at: usize) -> Result<Buffer> {
    let view = *views.get(at).ok_or_else(|| Error::bug("a view beyond its column"))?;
    let len = (view & 0xffff_ffff) as usize;
    match len {
        0 => Ok(Buffer::EMPTY),
        1..=12 => part(inline, at * 16 + 4..at * 16 + 4 + len),
        _ => {
            let (index, start) = ((view >> 64 & 0xffff_ffff) as usize, (view >> 96) as usize);
            let bytes = parts.get(index).ok_or_else(|| Error::bug("a view into no buffer"))?;
            part(bytes, start..start + len)
        }
    }
}

fn slices<T: types::ByteArrayType<Offset = i32>>(
    array: &arrow_array::GenericByteArray<T>,
    is: Bytes,
) -> Kind {
    Kind::Slices(Ends::Small(array.offsets().inner().clone()), share(array.values().clone()), is)
}

fn large_slices<T: types::ByteArrayType<Offset = i64>>(
    array: &arrow_array::GenericByteArray<T>,
    is: Bytes,
) -> Kind {
    Kind::Slices(Ends::Large(array.offsets().inner().clone()), share(array.values().clone()), is)
}

fn views<T: types::ByteViewType>(array: &arrow_array::GenericByteViewArray<T>, is: Bytes) -> Kind {
    let views = array.views().clone();
    let parts = array.data_buffers().iter().map(|part| share(part.clone())).collect();
    Kind::Views(views.clone(), share(views.into_inner()), parts, is)
}

/// The integers in values of so many bytes, each by its place.
fn tuples(array: &ArrayRef, parts: &[(DType, usize)], width: usize) -> Result<Kind> {
    let bytes = number_bytes(array, width)?;
    let parts = parts.iter().map(|&(dtype, at)| {
        let all: Vec<u8> =
            bytes.chunks_exact(width).flat_map(|value| &value[at..at + dtype.size()]).copied().collect();
        Cells { nulls: None, kind: Kind::Numbers(dtype, all.into()) }
    });
    Ok(Kind::Tuples(parts.collect()))
}

fn runs(array: &ArrayRef) -> Result<Kind> {
    fn of<T: types::RunEndIndexType>(array: &ArrayRef) -> Result<Kind> {
        let runs = array.as_run::<T>();
        let keys = (0..runs.len()).map(|at| runs.get_physical_index(at)).collect();
        Ok(Kind::Picked(keys, Box::new(Cells::new(runs.values())?)))
    }
    match array.data_type() {
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int16 => {
            of::<types::Int16Type>(array)
        }
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int32 => {
            of::<types::Int32Type>(array)
        }
        _ => of::<types::Int64Type>(array),
    }
}

fn decimal(array: &ArrayRef, at: usize) -> Result<String> {
    use DataType::*;
    let (digits, scale) = match *array.data_type() {
        Decimal32(_, scale) => (array.as_primitive::<types::Decimal32Type>().value(at).to_string(), scale),
        Decimal64(_, scale) => (array.as_primitive::<types::Decimal64Type>().value(at).to_string(), scale),
        Decimal128(_, scale) => (array.as_primitive::<types::Decimal128Type>().value(at).to_string(), scale),
        Decimal256(_, scale) => (array.as_primitive::<types::Decimal256Type>().value(at).to_string(), scale),
        _ => return Err(Error::bug("a decimal of another type")),
    };
    Ok(scaled(&digits, scale))
}

/// An integer's digits with the point put `scale` places from the right.
fn scaled(digits: &str, scale: i8) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let places = usize::from(scale.unsigned_abs());
    match scale {
        0 => format!("{sign}{digits}"),
        1.. => {
            let padded = format!("{digits:0>width$}", width = places + 1);
            let (whole, part) = padded.split_at(padded.len() - places);
            format!("{sign}{whole}.{part}")
        }
        _ if digits == "0" => "0".to_owned(),
        _ => format!("{sign}{digits}{}", "0".repeat(places)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_out() {
        let cases = [
            ("12345", 2, "123.45"),
            ("-5", 3, "-0.005"),
            ("7", 0, "7"),
            ("-12", -2, "-1200"),
            ("0", -3, "0"),
        ];
        for (digits, scale, text) in cases {
            assert_eq!(scaled(digits, scale), text);
        }
    }
}
