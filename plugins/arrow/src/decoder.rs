//! `arrow`: a whole small document to one Arrow value.
//!
//! ```toml
//! [arrow]
//! gives = "Arrow columns"
//! when = "a table within a sample; for files of rows, use `row_groups` and `read_rows`"
//! ```

use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat_batches;
use forebay_core::{
    Buffer, Context, Decoder, DecoderInfo, Error, Limits, Magic, NoOptions, Result, Value, Wanted,
};

use crate::{
    errors::{of_arrow, shielded},
    exchange::export,
    messages::begins_stream,
    table::{ReadOptions, read},
};

/// Decodes a Parquet or Arrow IPC document into one Arrow value: see [`decode`].
#[derive(Debug)]
pub struct Arrow;

impl Decoder for Arrow {
    const INFO: DecoderInfo = DecoderInfo {
        name: "arrow",
        summary: "Parquet and Arrow IPC documents to Arrow columns",
        extensions: &["parquet", "arrow", "arrows", "feather", "ipc"],
        media_types: &[
            "application/vnd.apache.parquet",
            "application/vnd.apache.arrow.file",
            "application/vnd.apache.arrow.stream",
        ],
        magic: &[
            Magic { offset: 0, bytes: b"PAR1" },
            // Encrypted, to say that it is.
            Magic { offset: 0, bytes: b"PARE" },
            Magic { offset: 0, bytes: b"ARROW1" },
            Magic { offset: 0, bytes: &[0xff, 0xff, 0xff, 0xff] },
        ],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn probe(&self, head: &[u8], extension: &str) -> u8 {
        let magic = [&b"PAR1"[..], b"PARE", b"ARROW1"].iter().any(|magic| head.starts_with(magic));
        let stream = matches!(extension.to_ascii_lowercase().as_str(), "arrow" | "arrows" | "ipc");
        match (magic, stream) {
            (true, _) => 224,
            (_, true) => 128,
            _ => u8::from(begins_stream(head)) * 128,
        }
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        decode(bytes, *cx.limits())
    }
}

/// Reads a whole document into one Arrow value, a struct of its columns with all rows.
///
/// # Errors
/// As [`read`]; `Limit` when the columns take more than `limits` allow.
pub fn decode(bytes: &Buffer, limits: Limits) -> Result<Value> {
    let table = read(&bytes.clone().into(), &ReadOptions { limits, ..ReadOptions::default() })?;
    let schema = table.schema().clone();
    let (mut batches, mut size) = (Vec::new(), 0_u64);
    for batch in table {
        let columns = batch?.columns;
        // What a batch shares with others counts each time; that errs on the safe side.
        size = size.saturating_add(columns.get_array_memory_size() as u64);
        if size > limits.bytes {
            return Err(Error::limit(format!("the columns take more than {} bytes", limits.bytes)));
        }
        batches.push(columns);
    }
    let whole = shielded(|| concat_batches(&schema, &batches).map_err(of_arrow))?;
    let columns = StructArray::from(whole);
    let field = Field::new("", DataType::Struct(columns.fields().clone()), false);
    let columns: ArrayRef = std::sync::Arc::new(columns);
    export(&columns, &field)
}
