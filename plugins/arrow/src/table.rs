//! The plain library: a whole file, batch by batch, without a host.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use forebay_core::{Blob, Limits, Result};

use crate::{
    document::{Batch, Batches, Opened, Pieces, Wanted},
    predicate::Predicate,
};

/// What to read of a file; the default is all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOptions {
    /// The columns, all when empty; `a.b` is `b` within `a`, in Parquet.
    pub columns: Vec<String>,
    /// The rows.
    pub filter: Option<Predicate>,
    /// The most rows in a batch.
    pub rows: u64,
    /// What may be taken.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { columns: Vec::new(), filter: None, rows: 65536, limits: Limits::DEFAULT }
    }
}

/// Reads a Parquet file, an Arrow IPC file or an Arrow IPC stream, batch by batch in the file's order.
///
/// Text and bytes of Parquet come as views, which share the memory of the pages they were read from; of a file that is mapped and not
/// compressed that is the map. What Arrow IPC holds comes as it is stored.
///
/// ```no_run
/// use forebay_arrow::{ReadOptions, read};
/// use forebay_core::Buffer;
///
/// let bytes = Buffer::from(std::fs::read("birds.parquet")?);
/// for batch in read(&bytes.into(), &ReadOptions { columns: vec!["name".into()], ..ReadOptions::default() })? {
///     println!("{} rows", batch?.columns.num_rows());
/// }
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with the place, `Unsupported`, `Limit`; `Invalid` for a column that is not there.
pub fn read(blob: &Blob, options: &ReadOptions) -> Result<Table> {
    let limit = options.limits.bytes;
    let opened = Arc::new(Opened::new(blob, limit)?);
    let wanted = Wanted { names: options.columns.clone(), filter: options.filter.clone() };
    let pieces = opened.clone().pieces(blob, wanted)?;
    Ok(Table { opened, pieces, batches: None, blob: blob.clone(), rows: options.rows, limit })
}

/// The batches of a file; made by [`read`]. After an error it ends.
pub struct Table {
    opened: Arc<Opened>,
    pieces: Pieces,
    batches: Option<Batches>,
    blob: Blob,
    rows: u64,
    limit: u64,
}

impl Table {
    /// The columns of the file, also those that are not read.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.opened.schema()
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.batches.as_mut().map(Batches::next).transpose()?.flatten() {
                return Ok(Some(batch));
            }
            let Some(piece) = self.pieces.next()? else { return Ok(None) };
            self.batches =
                Some(self.opened.read(&self.blob, piece, self.pieces.wanted(), self.rows, self.limit)?);
        }
    }
}

impl Iterator for Table {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.next_batch();
        if found.is_err() {
            self.pieces.go_to_end();
            self.batches = None;
        }
        found.transpose()
    }
}
