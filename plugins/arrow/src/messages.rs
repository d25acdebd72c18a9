//! The messages of Arrow IPC: finding them, and looking at what they claim before the library believes it.
//!
//! Source: <https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format>.

use std::{borrow::Cow, sync::Arc};

use arrow_ipc::Message;
use arrow_schema::{Schema, SchemaRef};
use forebay_core::{Blob, Buffer, Error, Result, room_for};

use crate::{
    endian,
    errors::{of_arrow, shielded},
    old_packing,
};

pub(crate) const MAGIC: &[u8] = b"ARROW1";
/// The length of a file's footer, and the magic.
const END: u64 = 10;
/// What a message of today begins with, before its length.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// A message: its head, with the prefix, and its body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) at: u64,
    pub(crate) head: u64,
    pub(crate) body: u64,
}

impl Block {
    pub(crate) fn end(&self) -> Option<u64> {
        self.at.checked_add(self.head)?.checked_add(self.body)
    }
}

pub(crate) fn short(block: Block, len: u64) -> Error {
    let Block { at, head, body } = block;
    Error::corrupt(format!("a message of {head} and {body} bytes, and there are {len} in all"))
        .context("byte", at)
}

pub(crate) fn broken(error: &dyn std::fmt::Display) -> Error {
    Error::corrupt(format!("unreadable flatbuffer: {error}"))
}

pub(crate) fn footer(blob: &Blob) -> Result<Buffer> {
    let len = blob.len();
    let at = len.checked_sub(END).ok_or_else(|| Error::corrupt(format!("an Arrow file of {len} bytes")))?;
    let end = blob.read(at..len)?;
    if &end[4..] != MAGIC {
        let found = end[4..].escape_ascii();
        return Err(
            Error::corrupt(format!("expected ARROW1 at the end, found {found}")).context("byte", at + 4)
        );
    }
    let size = i32::from_le_bytes(end[..4].try_into().unwrap_or_default());
    let start = u64::try_from(size).ok().and_then(|size| at.checked_sub(size));
    let start = start.ok_or_else(|| {
        Error::corrupt(format!("found a footer of {size} bytes in a file of {len}")).context("byte", at)
    })?;
    blob.read(start..at)
}

/// The message that begins at `at`, if one does: where it is, and its head.
pub(crate) fn next_message(blob: &Blob, at: u64) -> Result<Option<(Block, Buffer)>> {
    if at == blob.len() {
        return Ok(None);
    }
    let here = |error: Error| error.context("byte", at);
    let prefix = blob.read(at..blob.len().min(at + 8)).map_err(here)?;
    let (width, length) = match prefix.get(..4).is_some_and(|start| *start == CONTINUATION) {
        true => (8, prefix.get(4..8)),
        false => (4, prefix.get(..4)),
    };
    let length = length.ok_or_else(|| here(Error::corrupt("the stream ends in the length of a message")))?;
    let length = i32::from_le_bytes(length.as_slice().try_into().unwrap_or_default());
    if length == 0 {
        return Ok(None);
    }
    let length =
        u64::try_from(length).map_err(|_| here(Error::corrupt(format!("a message of {length} bytes"))))?;
    let mut block = Block { at, head: width + length, body: 0 };
    let head = blob.read(at..at.saturating_add(block.head)).map_err(here)?;
    let body = with_message(&head, block, |message| Ok(message.bodyLength()))?;
    block.body = u64::try_from(body).map_err(|_| here(Error::corrupt(format!("a body of {body} bytes"))))?;
    Ok(Some((block, head)))
}

/// Whether bytes begin as a stream of today: four bytes of ones begin other things too, but then a length in words of 8 bytes
/// follows, and the place of a table within so many.
pub(crate) fn begins_stream(head: &[u8]) -> bool {
    let Some(rest) = head.strip_prefix(&CONTINUATION) else { return false };
    let number = |at: usize| rest.get(at..)?.first_chunk::<4>().map(|four| u32::from_le_bytes(*four));
    let length = number(0).filter(|length| (8..=1 << 26).contains(length) && length % 8 == 0);
    length.zip(number(4)).is_some_and(|(length, table)| (4..length).contains(&table))
}

/// Whether a stream as Arrow wrote it before 0.15, a length without anything before it, begins so: its schema must be whole.
pub(crate) fn begins_old_stream(head: &[u8]) -> bool {
    let schema = || {
        let (length, rest) = head.split_first_chunk::<4>()?;
        let bytes = aligned(rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?);
        let is_schema = || {
            let message = arrow_ipc::root_as_message(&bytes).map_err(|error| broken(&error))?;
            Ok(message.bodyLength() == 0 && message.header_as_schema().is_some())
        };
        shielded(is_schema).ok()
    };
    schema() == Some(true)
}

/// What `read` makes of the message in `head`.
pub(crate) fn with_message<T>(
    head: &Buffer,
    block: Block,
    read: impl FnOnce(Message<'_>) -> Result<T>,
) -> Result<T> {
    let skipped = if head.get(..4).is_some_and(|start| *start == CONTINUATION) { 8 } else { 4 };
    let bytes = head.as_slice().get(skipped..).unwrap_or_default();
    let bytes = aligned(bytes);
    shielded(|| {
        let message = arrow_ipc::root_as_message(&bytes).map_err(|error| broken(&error))?;
        let Some(today) = old_packing::of_today(&message)? else { return read(message) };
        read(arrow_ipc::root_as_message(&aligned(&today)).map_err(|error| broken(&error))?)
    })
    .map_err(|error| error.context("byte", block.at))
}

/// The bytes, aligned as flatbuffers are read.
pub(crate) fn aligned(bytes: &[u8]) -> Cow<'_, [u8]> {
    match bytes.as_ptr().addr() % 8 {
        0 => Cow::Borrowed(bytes),
        // The allocator aligns by eight at least.
        _ => Cow::Owned(bytes.to_vec()),
    }
}

/// The schema, and whether its batches have the other order of bytes; `again` finds it in a copy of the bytes that it lies in.
pub(crate) fn schema_of(
    schema: arrow_ipc::Schema<'_>,
    again: impl for<'a> Fn(&'a [u8]) -> Option<arrow_ipc::Schema<'a>>,
) -> Result<(SchemaRef, bool)> {
    let swapped = !schema.endianness().equals_to_target_endianness();
    fn convert(schema: arrow_ipc::Schema<'_>) -> Result<Schema> {
        arrow_ipc::convert::try_fb_to_schema(schema).map_err(of_arrow)
    }
    let schema = shielded(|| {
        if !swapped {
            return convert(schema);
        }
        // The library refuses decimals of the other order, which are swapped here: it is told of none.
        let table = schema._tab;
        let at = table.loc() + usize::from(table.vtable().get(arrow_ipc::Schema::VT_ENDIANNESS));
        let mut copy = table.buf().to_vec();
        copy.get_mut(at..at + 2).unwrap_or_default().fill(0);
        convert(again(&copy).ok_or_else(|| Error::bug("a schema that was there is not in its copy"))?)
    })?;
    endian::check_depth(&schema)?;
    Ok((Arc::new(schema), swapped))
}

pub(crate) fn rows_of(message: &Message<'_>, limit: u64) -> Result<u64> {
    let batch =
        message.header_as_record_batch().ok_or_else(|| Error::corrupt("a batch block without a batch"))?;
    let rows = u64::try_from(batch.length())
        .map_err(|_| Error::corrupt(format!("a batch of {} rows", batch.length())))?;
    match rows > limit {
        true => Err(Error::limit(format!("a batch of {rows} rows, and {limit} bytes are allowed"))),
        false => Ok(rows),
    }
}

/// Checks that the buffers of a batch lie in its body, and take at most `limit` bytes unpacked.
pub(crate) fn check(batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer, limit: u64) -> Result<()> {
    let mut unpacked = 0_u64;
    for (at, buffer) in batch.buffers().into_iter().flatten().enumerate() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let found = range.and_then(|(start, len)| body.get(start..start.checked_add(len)?));
        let bytes = found.ok_or_else(|| {
            Error::corrupt(format!(
                "buffer {at} lies at {} with {} bytes, in a body of {}",
                buffer.offset(),
                buffer.length(),
                body.len()
            ))
        })?;
        let size = match (batch.compression(), bytes.get(..8)) {
            (Some(_), Some(size)) => match i64::from_le_bytes(size.as_slice().try_into().unwrap_or_default())
            {
                -1 => bytes.len() as u64,
                size => u64::try_from(size)
                    .map_err(|_| Error::corrupt(format!("buffer {at} unpacks to {size} bytes")))?,
            },
            _ => bytes.len() as u64,
        };
        unpacked = unpacked.saturating_add(size);
    }
    for node in batch.nodes().into_iter().flatten() {
        if node.length() < 0 || node.null_count() < 0 || node.null_count() > node.length() {
            return Err(Error::corrupt(format!(
                "an array of {} values with {} nulls",
                node.length(),
                node.null_count()
            )));
        }
    }
    match unpacked > limit {
        true => Err(Error::limit(format!("a batch unpacks to {unpacked} bytes, and {limit} are allowed"))),
        false if batch.compression().is_some() => room_for(unpacked),
        false => Ok(()),
    }
}
