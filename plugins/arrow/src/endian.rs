//! Batches written by machines with the other order of bytes.
//!
//! Which buffers an array has, in which order: <https://arrow.apache.org/docs/format/Columnar.html#recordbatch-message>.

use arrow_buffer::{Buffer as ArrowBuffer, MutableBuffer};
use arrow_ipc::MetadataVersion;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, UnionMode};
use forebay_core::{Buffer, Error, Result};

/// The most types within each other.
const DEPTH: usize = 64;

/// A copy of a batch's body with the bytes of each number the other way round.
pub(crate) fn swap(
    body: &Buffer,
    batch: &arrow_ipc::RecordBatch<'_>,
    schema: &Schema,
    version: MetadataVersion,
) -> Result<ArrowBuffer> {
    if batch.compression().is_some() {
        return Err(Error::unsupported("a packed body with the other order of bytes"));
    }
    let mut swap = Swap {
        out: MutableBuffer::from_len_zeroed(0),
        buffers: batch.buffers().into_iter().flatten().collect(),
        at: 0,
        version,
    };
    swap.out.extend_from_slice(body.as_slice());
    for field in schema.fields() {
        swap.array(field.data_type())?;
    }
    Ok(swap.out.into())
}

struct Swap<'a> {
    out: MutableBuffer,
    buffers: Vec<&'a arrow_ipc::Buffer>,
    at: usize,
    version: MetadataVersion,
}

impl Swap<'_> {
    fn array(&mut self, kind: &DataType) -> Result<()> {
        use DataType::*;
        let widths: &[usize] = match kind {
            Null | RunEndEncoded(_, _) => &[],
            Boolean | FixedSizeBinary(_) | Int8 | UInt8 => &[1, 1],
            Int16 | UInt16 | Float16 => &[1, 2],
            Int32 | UInt32 | Float32 | Date32 | Time32(_) | Decimal32(_, _) => &[1, 4],
            Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime) => &[1, 4],
            Int64
            | UInt64
            | Float64
            | Date64
            | Time64(_)
            | Timestamp(_, _)
            | Duration(_)
            | Decimal64(_, _) => &[1, 8],
            Decimal128(_, _) => &[1, 16],
            Decimal256(_, _) => &[1, 32],
            Utf8 | Binary => &[1, 4, 1],
            LargeUtf8 | LargeBinary => &[1, 8, 1],
            List(_) | Map(_, _) => &[1, 4],
            LargeList(_) => &[1, 8],
            Struct(_) | FixedSizeList(_, _) => &[1],
            Dictionary(key, _) => return self.array(key),
            Union(_, UnionMode::Sparse) => &[1],
            Union(_, UnionMode::Dense) => &[1, 4],
            other => return Err(Error::unsupported(format!("{other} with the other order of bytes"))),
        };
        // A union of the versions before 5 has a validity buffer.
        if matches!(kind, Union(_, _)) && self.version < MetadataVersion::V5 {
            self.at += 1;
        }
        for &width in widths {
            self.buffer(width)?;
        }
        match kind {
            List(items) | LargeList(items) | Map(items, _) | FixedSizeList(items, _) => {
                self.array(items.data_type())
            }
            Struct(fields) => fields.iter().try_for_each(|field| self.array(field.data_type())),
            Union(fields, _) => fields.iter().try_for_each(|(_, field)| self.array(field.data_type())),
            RunEndEncoded(ends, values) => {
                self.array(ends.data_type())?;
                self.array(values.data_type())
            }
            _ => Ok(()),
        }
    }

    fn buffer(&mut self, width: usize) -> Result<()> {
        let missing = || Error::corrupt("a batch with fewer buffers than its schema has");
        let buffer = self.buffers.get(self.at).ok_or_else(missing)?;
        self.at += 1;
        let start = buffer.offset() as usize;
        let bytes = self.out.as_slice_mut().get_mut(start..start + buffer.length() as usize);
        if width > 1 {
            bytes.ok_or_else(missing)?.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        Ok(())
    }
}

/// The schema of the batch that a dictionary message holds.
pub(crate) fn dictionary_schema(schema: &Schema, id: i64) -> Option<Schema> {
    #[expect(deprecated, reason = "the library's reader finds a dictionary's type in this way alone")]
    let fields = schema.fields_with_dict_id(id);
    match fields.first()?.data_type() {
        DataType::Dictionary(_, values) => {
            Some(Schema::new(vec![Field::new("", values.as_ref().clone(), true)]))
        }
        _ => None,
    }
}

/// Refuses types that lie too deep within each other: arrays are read by calls that go as deep.
pub(crate) fn check_depth(schema: &Schema) -> Result<()> {
    match schema.fields().iter().all(|field| is_within(field.data_type(), DEPTH)) {
        true => Ok(()),
        false => Err(Error::limit(format!("types lie more than {DEPTH} levels within each other"))),
    }
}

fn is_within(kind: &DataType, depth: usize) -> bool {
    use DataType::*;
    let Some(inner) = depth.checked_sub(1) else { return false };
    match kind {
        List(items)
        | LargeList(items)
        | FixedSizeList(items, _)
        | Map(items, _)
        | ListView(items)
        | LargeListView(items) => is_within(items.data_type(), inner),
        Struct(fields) => fields.iter().all(|field| is_within(field.data_type(), inner)),
        Union(fields, _) => fields.iter().all(|(_, field)| is_within(field.data_type(), inner)),
        Dictionary(_, values) => is_within(values, inner),
        RunEndEncoded(_, values) => is_within(values.data_type(), inner),
        _ => true,
    }
}
