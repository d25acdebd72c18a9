//! One Arrow IPC file or stream: where its messages are, and reading some of its record batches.
//!
//! Source: <https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc>. Both forms are lists
//! of messages; a file has an index of them at its end, a stream is walked from head to head, passing over the bodies.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::{MessageHeader, MetadataVersion};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use forebay_core::{Blob, Buffer, Error, ErrorKind, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{
    document::{Batch, Limited, PIECE_BYTES, PIECE_ROWS, Piece, Rows, Wanted},
    endian,
    errors::{of_arrow, shielded},
    messages::{
        Block, MAGIC, aligned, broken, check, footer, next_message, rows_of, schema_of, short, with_message,
    },
    predicate::{mask, missing},
};

/// Where the messages of a file or stream are.
pub(crate) struct IpcFile {
    schema: SchemaRef,
    /// Whether numbers in the bodies have their bytes in the order that this machine has not.
    swapped: bool,
    dictionaries: Vec<Block>,
    batches: Vec<Place>,
    /// Why there are no more batches in a stream that is cut off or damaged.
    broken: Option<Error>,
}

/// A stream, as far as it was walked over.
#[derive(Default)]
struct Walk {
    at: u64,
    hash: Xxh3,
    schema: Option<(SchemaRef, bool)>,
    dictionaries: Vec<Block>,
    batches: Vec<Place>,
}

impl Walk {
    /// Passes over a message; says whether there was one.
    fn step(&mut self, blob: &Blob, limit: u64) -> Result<bool> {
        let Some((block, head)) = next_message(blob, self.at)? else { return Ok(false) };
        let end = block.end().filter(|&end| end <= blob.len()).ok_or_else(|| short(block, blob.len()))?;
        with_message(&head, block, |message| {
            match (message.header_type(), &self.schema) {
                (MessageHeader::Schema, None) => {
                    let schema = message
                        .header_as_schema()
                        .ok_or_else(|| Error::corrupt("a schema without its body"))?;
                    self.schema = Some(schema_of(schema, |bytes| {
                        arrow_ipc::root_as_message(bytes).ok()?.header_as_schema()
                    })?);
                }
                (MessageHeader::DictionaryBatch, Some(_)) => self.dictionaries.push(block),
                (MessageHeader::RecordBatch, Some(_)) => {
                    let rows = rows_of(&message, limit)?;
                    self.batches.push(Place { block, rows, dictionaries: self.dictionaries.len() });
                }
                (MessageHeader::Tensor | MessageHeader::SparseTensor, _) => {
                    return Err(Error::unsupported("a tensor message of Arrow IPC"));
                }
                (kind, schema) => {
                    let expected = if schema.is_some() { "a batch" } else { "a schema" };
                    return Err(Error::corrupt(format!(
                        "found a message of kind {kind:?}, expected {expected}"
                    )));
                }
            }
            Ok(())
        })?;
        self.hash.update(&head);
        self.at = end;
        Ok(true)
    }
}

/// A record batch.
struct Place {
    block: Block,
    rows: u64,
    /// How many dictionary messages it needs: those before it in a stream, all in a file.
    dictionaries: usize,
}

impl IpcFile {
    /// Finds the messages; gives a hash of what tells the file from others too.
    pub(crate) fn open(blob: &Blob, limit: u64) -> Result<(u64, Self)> {
        let start = blob.read(0..blob.len().min(MAGIC.len() as u64))?;
        match &*start == MAGIC {
            true => Self::open_file(blob, limit),
            false => Self::open_stream(blob, limit),
        }
    }

    fn open_file(blob: &Blob, limit: u64) -> Result<(u64, Self)> {
        let footer = footer(blob)?;
        let bytes = aligned(&footer);
        let root = shielded(|| arrow_ipc::root_as_footer(&bytes).map_err(|error| broken(&error)))?;
        let schema = root.schema().ok_or_else(|| Error::corrupt("an Arrow footer without a schema"))?;
        let (schema, swapped) = schema_of(schema, |bytes| arrow_ipc::root_as_footer(bytes).ok()?.schema())?;
        let block = |block: &arrow_ipc::Block| {
            let part = |number: i64| u64::try_from(number).ok();
            let found =
                part(block.offset()).zip(part(block.metaDataLength().into())).zip(part(block.bodyLength()));
            let found = found.map(|((at, head), body)| Block { at, head, body });
            let within = found.filter(|block| block.end().is_some_and(|end| end <= blob.len()));
            within.ok_or_else(|| {
                let message = format!("the footer says {block:?}, in a file of {} bytes", blob.len());
                Error::corrupt(message).context("byte", block.offset())
            })
        };
        let dictionaries =
            root.dictionaries().into_iter().flatten().map(block).collect::<Result<Vec<_>>>()?;
        let mut batches = Vec::new();
        for found in root.recordBatches().into_iter().flatten() {
            let block = block(found)?;
            let head = blob.read(block.at..block.at + block.head)?;
            let rows = with_message(&head, block, |message| rows_of(&message, limit))?;
            batches.push(Place { block, rows, dictionaries: dictionaries.len() });
        }
        Ok((xxh3_64(&footer), Self { schema, swapped, dictionaries, batches, broken: None }))
    }

    fn open_stream(blob: &Blob, limit: u64) -> Result<(u64, Self)> {
        let mut walk = Walk::default();
        let broken = loop {
            match walk.step(blob, limit) {
                Ok(true) => {}
                Ok(false) => break None,
                // What came before can be read: a program that died has left as much.
                Err(error) if walk.schema.is_some() && error.kind() != ErrorKind::Io => break Some(error),
                Err(error) => return Err(error),
            }
        };
        let Walk { hash, schema, dictionaries, batches, .. } = walk;
        let (schema, swapped) =
            schema.ok_or_else(|| Error::corrupt("expected Arrow IPC, found no schema"))?;
        Ok((hash.digest(), Self { schema, swapped, dictionaries, batches, broken }))
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What is told behind the last batch.
    pub(crate) fn broken(&self) -> Option<&Error> {
        self.broken.as_ref()
    }

    /// How many rows each record batch has.
    pub(crate) fn rows(&self) -> Vec<u64> {
        self.batches.iter().map(|batch| batch.rows).collect()
    }

    /// How many batches from this one on make a piece, and their rows.
    pub(crate) fn run(&self, first: usize) -> (u64, u64) {
        let (mut parts, mut rows, mut bytes) = (0, 0_u64, 0_u64);
        for batch in self.batches.iter().skip(first) {
            rows = rows.saturating_add(batch.rows);
            bytes = bytes.saturating_add(batch.block.body);
            if parts > 0 && (rows > PIECE_ROWS || bytes > PIECE_BYTES) {
                return (parts, rows - batch.rows);
            }
            parts += 1;
        }
        (parts, rows)
    }

    /// Reads the batches of a piece, at most so many rows at a time.
    pub(crate) fn read(
        self: Arc<Self>,
        blob: &Blob,
        piece: Piece,
        wanted: &Wanted,
        rows: u64,
        limit: u64,
    ) -> Result<IpcBatches> {
        let index = |name: &str| {
            self.schema.index_of(name).map_err(|_| {
                match self.schema.fields().iter().any(|field| name.starts_with(&format!("{}.", field.name())))
                {
                    true => Error::unsupported(format!(
                        "`{name}`: of Arrow IPC, columns within columns are read whole"
                    )),
                    false => missing(name, self.schema.fields()),
                }
            })
        };
        let indices = |names: Option<Vec<&str>>| {
            let mut all =
                names.map(|names| names.into_iter().map(index).collect::<Result<Vec<_>>>()).transpose()?;
            if let Some(all) = &mut all {
                all.sort_unstable();
                all.dedup();
            }
            Ok::<_, Error>(all)
        };
        let (columns, read) = (indices(wanted.columns())?, indices(wanted.names())?);
        // Where the columns to give stand among those that are read.
        let give = columns.zip(read.as_ref()).map(|(columns, read)| {
            columns.iter().filter_map(|column| read.binary_search(column).ok()).collect()
        });
        Ok(IpcBatches {
            blob: blob.clone(),
            wanted: wanted.clone(),
            read,
            give,
            dictionaries: HashMap::new(),
            known: 0,
            at: 0,
            row: piece.row,
            rows: usize::try_from(rows).unwrap_or(usize::MAX).max(1),
            held: None,
            piece,
            limit,
            file: self,
        })
    }

    /// The head and body of a message.
    fn message(&self, blob: &Blob, block: Block) -> Result<(Buffer, Buffer)> {
        let end = block.end().ok_or_else(|| short(block, blob.len()))?;
        let bytes = blob.read(block.at..end)?;
        let cut = |range: std::ops::Range<u64>| bytes.get(range.start as usize..range.end as usize);
        let parts = cut(0..block.head).zip(cut(block.head..end - block.at));
        parts.ok_or_else(|| short(block, blob.len()))
    }

    /// A message's body as the library takes it: aligned as far as it lies so in memory, and in this machine's order of bytes.
    fn body(
        &self,
        body: Buffer,
        (batch, version): (&arrow_ipc::RecordBatch<'_>, MetadataVersion),
        schema: &Schema,
        limit: u64,
    ) -> Result<arrow_buffer::Buffer> {
        check(batch, &body, limit)?;
        if self.swapped {
            return endian::swap(&body, batch, schema, version);
        }
        Ok(Bytes::from_owner(body).into())
    }

    fn read_dictionary(
        &self,
        blob: &Blob,
        block: Block,
        into: &mut HashMap<i64, ArrayRef>,
        limit: u64,
    ) -> Result<()> {
        let (head, body) = self.message(blob, block)?;
        with_message(&head, block, |message| {
            let batch = message
                .header_as_dictionary_batch()
                .ok_or_else(|| Error::corrupt("a dictionary block without a dictionary"))?;
            let data = batch.data().ok_or_else(|| Error::corrupt("a dictionary without its values"))?;
            let values = endian::dictionary_schema(&self.schema, batch.id());
            let values =
                values.ok_or_else(|| Error::corrupt(format!("dictionary {} is of no column", batch.id())))?;
            let body = self.body(body, (&data, message.version()), &values, limit)?;
            arrow_ipc::reader::read_dictionary(&body, batch, &self.schema, into, &message.version())
                .map_err(of_arrow)
        })
    }

    fn read_batch(
        &self,
        blob: &Blob,
        place: &Place,
        dictionaries: &HashMap<i64, ArrayRef>,
        columns: Option<&[usize]>,
        limit: u64,
    ) -> Result<RecordBatch> {
        let (head, body) = self.message(blob, place.block)?;
        with_message(&head, place.block, |message| {
            let batch = message
                .header_as_record_batch()
                .ok_or_else(|| Error::corrupt("a batch block without a batch"))?;
            let body = self.body(body, (&batch, message.version()), &self.schema, limit)?;
            let schema = self.schema.clone();
            arrow_ipc::reader::read_record_batch(
                &body,
                batch,
                schema,
                dictionaries,
                columns,
                &message.version(),
            )
            .map_err(of_arrow)
        })
    }
}

/// The batches of one piece.
pub(crate) struct IpcBatches {
    file: Arc<IpcFile>,
    blob: Blob,
    wanted: Wanted,
    /// The columns to read, and which of these to give.
    read: Option<Vec<usize>>,
    give: Option<Vec<usize>>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// How many dictionary messages were read.
    known: usize,
    /// How many batches of the piece were read, or could not be, and the first row of the next.
    at: u64,
    row: u64,
    /// The most rows to give at a time, and what is still to be given of a batch.
    rows: usize,
    held: Option<Batch>,
    piece: Piece,
    limit: u64,
}

impl IpcBatches {
    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.held.take() {
                let (first, rest) = split(batch, self.rows);
                self.held = rest;
                return Ok(Some(first));
            }
            if self.at == self.piece.parts {
                return Ok(None);
            }
            let (at, first) = (self.piece.part + self.at, self.row);
            self.at += 1;
            self.held = self.load(at as usize, first).map_err(|error| error.context("batch", at))?;
        }
    }

    /// The rows of this batch that are wanted, if there are any; it begins with row `first`.
    fn load(&mut self, at: usize, first: u64) -> Result<Option<Batch>> {
        let place = self.file.batches.get(at).ok_or_else(|| Error::invalid("no such record batch"))?;
        self.row = first.saturating_add(place.rows);
        while self.known < place.dictionaries {
            let block = self.file.dictionaries.get(self.known).copied();
            let block = block.ok_or_else(|| Error::bug("a dictionary that was counted is not there"))?;
            self.file.read_dictionary(&self.blob, block, &mut self.dictionaries, self.limit)?;
            self.known += 1;
        }
        let columns =
            self.file.read_batch(&self.blob, place, &self.dictionaries, self.read.as_deref(), self.limit)?;
        Limited::new(self.limit).check(&columns)?;
        let (columns, rows) = match &self.wanted.filter {
            None => (columns, Rows::Span(first)),
            Some(filter) => {
                let passed = filter.evaluate(&columns)?;
                let rows = passed.set_indices().map(|at| first + at as u64).collect();
                (filter_record_batch(&columns, &mask(passed)).map_err(of_arrow)?, Rows::Picked(rows))
            }
        };
        let columns = match &self.give {
            Some(give) => columns.project(give).map_err(of_arrow)?,
            None => columns,
        };
        Ok((columns.num_rows() > 0).then_some(Batch { columns, rows }))
    }
}

/// The first rows of a batch, and the others.
fn split(batch: Batch, rows: usize) -> (Batch, Option<Batch>) {
    let count = batch.columns.num_rows();
    if count <= rows {
        return (batch, None);
    }
    let (one, two) = match batch.rows {
        Rows::Span(first) => (Rows::Span(first), Rows::Span(first + rows as u64)),
        Rows::Picked(mut picked) => {
            let rest = picked.split_off(rows);
            (Rows::Picked(picked), Rows::Picked(rest))
        }
    };
    let rest = Batch { columns: batch.columns.slice(rows, count - rows), rows: two };
    (Batch { columns: batch.columns.slice(0, rows), rows: one }, Some(rest))
}
