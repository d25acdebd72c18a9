//! A table in memory, whose rows are read by their numbers.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::{reader::StreamReader, writer::StreamWriter};
use arrow_schema::SchemaRef;
use forebay_core::{Error, Result, Schema, Value};

use crate::{cells::Cells, errors::of_arrow};

/// A table in memory. Values share its memory.
///
/// ```
/// use std::sync::Arc;
///
/// use forebay_arrow::{InMemory, arrow_array::{ArrayRef, Int32Array, RecordBatch}};
///
/// let numbers: ArrayRef = Arc::new(Int32Array::from(vec![3, 5]));
/// let batch = RecordBatch::try_from_iter([("n", numbers)]).expect("columns of one length");
/// let table = InMemory::new(batch.schema(), vec![batch])?;
/// assert_eq!((table.len(), table.row(1)?[0].as_i64()), (2, Some(5)));
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub struct InMemory {
    arrow: SchemaRef,
    batches: Vec<RecordBatch>,
    schema: Schema,
    /// Of each batch the number of its first row, and its columns.
    parts: Vec<(usize, Vec<Cells>)>,
    len: usize,
}

impl InMemory {
    /// The rows of these batches, one after the other.
    ///
    /// # Errors
    /// `Unsupported` for a type that has no value here.
    pub fn new(arrow: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        let schema = Schema::new(arrow.fields().iter().map(|field| field.name().as_str()));
        let (mut parts, mut len) = (Vec::with_capacity(batches.len()), 0);
        for batch in &batches {
            let cells = |(array, name)| Cells::new(array).map_err(|error| error.context("column", name));
            let columns = batch.columns().iter().zip(schema.names().iter().map(|name| name.as_str()));
            parts.push((len, columns.map(cells).collect::<Result<_>>()?));
            len += batch.num_rows();
        }
        Ok(Self { arrow, batches, schema, parts, len })
    }

    /// The rows of all batches of a reader.
    ///
    /// # Errors
    /// What the reader says; as [`new`](Self::new).
    pub fn read(reader: impl RecordBatchReader) -> Result<Self> {
        let schema = reader.schema();
        let batches = reader.collect::<std::result::Result<_, _>>().map_err(of_arrow)?;
        Self::new(schema, batches)
    }

    /// What [`to_ipc`](Self::to_ipc) gave.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are something else.
    pub fn from_ipc(bytes: &[u8]) -> Result<Self> {
        Self::read(StreamReader::try_new(bytes, None).map_err(of_arrow)?)
    }

    /// A copy of it as a stream of Arrow IPC.
    ///
    /// # Errors
    /// For memory that the system has not.
    pub fn to_ipc(&self) -> Result<Vec<u8>> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.arrow).map_err(of_arrow)?;
        for batch in &self.batches {
            writer.write(batch).map_err(of_arrow)?;
        }
        writer.into_inner().map_err(of_arrow)
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The names of the columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The values of a row, one for each column.
    ///
    /// # Errors
    /// `Invalid` for a row that is not there.
    pub fn row(&self, at: usize) -> Result<Vec<Value>> {
        let part = self.parts.partition_point(|(first, _)| *first <= at).checked_sub(1);
        let part = part.and_then(|part| self.parts.get(part)).filter(|_| at < self.len);
        let Some((first, cells)) = part else {
            return Err(Error::invalid(format!("found row {at}, expected one of the {}", self.len)));
        };
        cells.iter().map(|cells| cells.value(at - first)).collect()
    }
}
