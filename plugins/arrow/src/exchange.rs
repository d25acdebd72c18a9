//! Arrow arrays to values and back, by the C Data Interface, without a copy.

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{Buffer as ArrowBuffer, ScalarBuffer};
use arrow_data::{ArrayData, layout};
use arrow_schema::{DataType, Field, ffi::FFI_ArrowSchema, ffi::Flags};
use bytes::Bytes;
use forebay_core::{ArrowData, ArrowParts, Error, Result, Value};

use crate::{
    document::share,
    errors::{of_arrow, shielded},
};

/// An array as a value that any plugin, and any Arrow library, can read; it shares the array's buffers.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Int32Array};
/// use arrow_schema::{DataType, Field};
///
/// let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
/// let value = forebay_arrow::export(&numbers, &Field::new("n", DataType::Int32, true))?;
/// let (field, back) = forebay_arrow::import(&value)?;
/// assert_eq!((field.name().as_str(), &*back), ("n", &*numbers));
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Unsupported` for a type that the interface has not.
pub fn export(array: &ArrayRef, field: &Field) -> Result<Value> {
    let schema = FFI_ArrowSchema::try_from(field).map_err(of_arrow)?;
    let parts = parts_of(&array.to_data(), &schema)?;
    Ok(ArrowData::new(parts).map_err(Error::bug)?.into())
}

/// The array in an Arrow value of whatever plugin, with its field; it shares the value's buffers.
///
/// # Errors
/// `Invalid` when this is no Arrow value; `Corrupt` when its buffers do not hold what its type says.
pub fn import(value: &Value) -> Result<(Field, ArrayRef)> {
    let parts = value.arrow().map_err(Error::invalid)?;
    let schema = schema_of(&parts)?;
    shielded(|| {
        let field = described(Field::try_from(&schema).map_err(of_arrow)?, &parts);
        let data = data_of(parts, field.data_type())?;
        Ok((field, make_array(data)))
    })
}

/// The field with its metadata, and those of the fields in a struct.
fn described(field: Field, parts: &ArrowParts) -> Field {
    let metadata = parts.metadata.iter().cloned().collect::<HashMap<_, _>>();
    let DataType::Struct(fields) = field.data_type() else { return field.with_metadata(metadata) };
    let fields = fields.iter().zip(&parts.children).map(|(field, part)| described(Field::clone(field), part));
    let kind = DataType::Struct(fields.collect());
    field.with_data_type(kind).with_metadata(metadata)
}

fn parts_of(data: &ArrayData, schema: &FFI_ArrowSchema) -> Result<ArrowParts> {
    let kind = data.data_type();
    let mut buffers = Vec::new();
    let mut offset = data.offset();
    let mut values: Vec<ArrowBuffer> = data.buffers().to_vec();
    let layout = layout(kind);
    if layout.can_contain_null_mask {
        let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0);
        // Bits of values and of validity start at the same place.
        if nulls.is_some_and(|nulls| nulls.offset() != offset) && offset > 0 {
            values[0] = values[0].bit_slice(offset, data.len());
            offset = 0;
        }
        buffers.push(nulls.map(|nulls| match nulls.offset() == offset {
            true => share(nulls.buffer().clone()),
            false => share(nulls.inner().sliced()),
        }));
    }
    if layout.variadic {
        let lengths: Vec<_> = values.iter().skip(1).map(|part| part.len() as i64).collect();
        values.push(ScalarBuffer::from(lengths).into_inner());
    }
    buffers.extend(values.into_iter().map(|buffer| Some(share(buffer))));
    let (children, dictionary) = match kind {
        DataType::Dictionary(_, _) => (&[][..], data.child_data().first().zip(schema.dictionary())),
        _ => (data.child_data(), None),
    };
    let children = children.iter().zip(schema.children()).map(|(child, schema)| parts_of(child, schema));
    let dictionary = dictionary.map(|(values, schema)| parts_of(values, schema).map(Box::new)).transpose()?;
    let nulls = if *kind == DataType::Null { data.len() } else { data.null_count() };
    let mut metadata: Vec<_> = schema.metadata().map_err(of_arrow)?.into_iter().collect();
    metadata.sort_unstable();
    Ok(ArrowParts {
        format: schema.format().to_owned(),
        name: schema.name().unwrap_or_default().to_owned(),
        metadata,
        flags: schema.flags().map_or(0, |flags| flags.bits()),
        length: data.len(),
        nulls: Some(nulls),
        offset,
        buffers,
        children: children.collect::<Result<_>>()?,
        dictionary,
    })
}

fn schema_of(parts: &ArrowParts) -> Result<FFI_ArrowSchema> {
    let children = parts.children.iter().map(schema_of).collect::<Result<_>>()?;
    let dictionary = parts.dictionary.as_deref().map(schema_of).transpose()?;
    let schema = FFI_ArrowSchema::try_new(&parts.format, children, dictionary).map_err(of_arrow)?;
    let schema = schema.with_name(&parts.name).map_err(of_arrow)?;
    schema.with_flags(Flags::from_bits_truncate(parts.flags)).map_err(of_arrow)
}

fn data_of(parts: ArrowParts, kind: &DataType) -> Result<ArrayData> {
    let layout = layout(kind);
    let shared = |buffer: forebay_core::Buffer| ArrowBuffer::from(Bytes::from_owner(buffer));
    let mut buffers = parts.buffers.into_iter();
    let nulls = if layout.can_contain_null_mask { buffers.next().flatten() } else { None };
    let mut values: Vec<_> =
        buffers.map(|buffer| buffer.map_or_else(|| ArrowBuffer::from(&[0_u8; 0]), shared)).collect();
    if layout.variadic {
        values.pop();
    }
    let mut children: Vec<_> = kinds_within(kind)
        .into_iter()
        .zip(parts.children)
        .map(|(kind, part)| data_of(part, kind))
        .collect::<Result<_>>()?;
    if let (DataType::Dictionary(_, kind), Some(part)) = (kind, parts.dictionary) {
        children.push(data_of(*part, kind)?);
    }
    let builder = ArrayData::builder(kind.clone())
        .len(parts.length)
        .offset(parts.offset)
        .null_bit_buffer(nulls.map(shared))
        .buffers(values)
        .child_data(children)
        .align_buffers(true);
    builder.build().map_err(of_arrow)
}

fn kinds_within(kind: &DataType) -> Vec<&DataType> {
    use DataType::*;
    match kind {
        List(items)
        | LargeList(items)
        | FixedSizeList(items, _)
        | Map(items, _)
        | ListView(items)
        | LargeListView(items) => vec![items.data_type()],
        Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}
