//! A file of either format: cut into pieces, and a piece into batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use forebay_core::{Blob, Buffer, Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    ipc::{IpcBatches, IpcFile},
    parquet::{self, ParquetBatches, ParquetFile},
    predicate::Predicate,
};

/// About how many bytes of columns a piece has, decoded.
pub(crate) const PIECE_BYTES: u64 = 16 << 20;
/// The most rows in a piece that can be cut.
pub(crate) const PIECE_ROWS: u64 = 1 << 17;

/// Part of a file, little enough to be held whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// What tells the file from others: a hash of its footer, or of a stream's message heads.
    pub(crate) file: u64,
    /// The row group, or the first record batch.
    pub(crate) part: u64,
    /// How many record batches; 1 for a row group.
    pub(crate) parts: u64,
    /// How many rows of the row group come before.
    pub(crate) skip: u64,
    /// The first row, counted from the start of the file.
    pub(crate) row: u64,
    /// How many rows.
    pub(crate) rows: u64,
}

/// Which columns and rows are wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Wanted {
    /// All when empty.
    pub(crate) names: Vec<String>,
    pub(crate) filter: Option<Predicate>,
}

impl Wanted {
    /// The columns to give; all when there is none.
    pub(crate) fn columns(&self) -> Option<Vec<&str>> {
        (!self.names.is_empty()).then(|| self.names.iter().map(String::as_str).collect())
    }

    /// The columns to give, and those to compare.
    pub(crate) fn names(&self) -> Option<Vec<&str>> {
        let mut names = self.columns()?;
        names.extend(self.filter.iter().flat_map(Predicate::columns));
        Some(names)
    }
}

/// Some rows, by column, and which they are.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The columns, in the file's order.
    pub columns: RecordBatch,
    pub(crate) rows: Rows,
}

/// The numbers of a batch's rows, counted from the start of the file.
#[derive(Debug, Clone)]
pub(crate) enum Rows {
    /// One after the other from this one on.
    Span(u64),
    /// These.
    Picked(Vec<u64>),
}

impl Batch {
    /// The number of a row in its file, from 0.
    #[must_use]
    pub fn row(&self, at: usize) -> u64 {
        match &self.rows {
            Rows::Span(first) => first + at as u64,
            Rows::Picked(rows) => rows.get(at).copied().unwrap_or(u64::MAX),
        }
    }
}

/// What the batches of one piece may take, which is checked as they come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limited {
    limit: u64,
}

impl Limited {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit }
    }

    /// Refuses a batch whose rows alone are more than the limit of bytes: then nothing is stored of most.
    pub(crate) fn check(&self, batch: &RecordBatch) -> Result<()> {
        match batch.num_rows() as u64 > self.limit {
            true => Err(Error::limit(format!(
                "a batch of {} rows, and {} bytes are allowed",
                batch.num_rows(),
                self.limit
            ))),
            false => Ok(()),
        }
    }
}

/// A file whose footer was read.
pub(crate) enum Document {
    Parquet(Arc<ParquetFile>),
    Ipc(Arc<IpcFile>),
}

/// A file's hash and footer.
pub(crate) struct Opened {
    pub(crate) hash: u64,
    pub(crate) document: Document,
}

/// Whether the file is Parquet.
fn is_parquet(blob: &Blob) -> Result<bool> {
    Ok(blob.len() >= 4 && matches!(&*blob.read(0..4)?, b"PAR1" | b"PARE"))
}

impl Opened {
    /// Reads what tells where the rows are: the footer of Parquet and Arrow files, the heads of a stream's messages.
    pub(crate) fn new(blob: &Blob, limit: u64) -> Result<Self> {
        if is_parquet(blob)? {
            let footer = parquet::footer(blob)?;
            let document = Document::Parquet(Arc::new(ParquetFile::open(&footer, blob.len())?));
            return Ok(Self { hash: xxh3_64(&footer), document });
        }
        let (hash, file) = IpcFile::open(blob, limit)?;
        Ok(Self { hash, document: Document::Ipc(Arc::new(file)) })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        match &self.document {
            Document::Parquet(file) => file.schema(),
            Document::Ipc(file) => file.schema(),
        }
    }

    /// The pieces that may have rows that are wanted, in order.
    pub(crate) fn pieces(self: Arc<Self>, blob: &Blob, wanted: Wanted) -> Result<Pieces> {
        let (rows, keep, broken) = match &self.document {
            Document::Parquet(file) => {
                let rows = file.rows()?;
                let keep = wanted.filter.as_ref().map(|filter| file.may_pass(blob, filter)).transpose()?;
                (rows, keep, None)
            }
            Document::Ipc(file) => (file.rows(), None, file.broken().cloned()),
        };
        // Columns that are not there are told before the first piece.
        let known = self.schema().fields();
        let compared = wanted.filter.iter().flat_map(Predicate::columns);
        let roots = wanted.names.iter().map(String::as_str).chain(compared);
        for name in roots {
            let within = |field: &str| {
                name.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if !known.iter().any(|field| within(field.name())) {
                return Err(crate::predicate::missing(name, known));
            }
        }
        Ok(Pieces { opened: self, wanted, rows, keep, broken, part: 0, skip: 0, row: 0 })
    }

    /// Reads the rows of a piece that are wanted, at most so many in a batch.
    pub(crate) fn read(
        &self,
        blob: &Blob,
        piece: Piece,
        wanted: &Wanted,
        rows: u64,
        limit: u64,
    ) -> Result<Batches> {
        Ok(match &self.document {
            Document::Parquet(file) => {
                Batches::Parquet(Box::new(file.clone().read(blob, piece, wanted, rows, limit)?))
            }
            Document::Ipc(file) => {
                Batches::Ipc(Box::new(file.clone().read(blob, piece, wanted, rows, limit)?))
            }
        })
    }
}

/// The pieces of a file, one by one; made by [`Opened::pieces`].
pub(crate) struct Pieces {
    opened: Arc<Opened>,
    wanted: Wanted,
    /// The rows of each row group or record batch.
    rows: Vec<u64>,
    /// Which of them may have rows that are wanted.
    keep: Option<Vec<bool>>,
    /// What is told behind the last piece.
    broken: Option<Error>,
    part: usize,
    skip: u64,
    row: u64,
}

impl Pieces {
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Where the next piece starts.
    pub(crate) fn place(&self) -> (u64, u64, u64) {
        (self.part as u64, self.skip, self.row)
    }

    /// Goes to a place that [`place`](Pieces::place) gave.
    pub(crate) fn go_to(&mut self, (part, skip, row): (u64, u64, u64)) -> Result<()> {
        let within = usize::try_from(part).ok().filter(|&part| part <= self.rows.len());
        let message = || Error::invalid(format!("the saved place is part {part} of {}", self.rows.len()));
        (self.part, self.skip, self.row) = (within.ok_or_else(message)?, skip, row);
        Ok(())
    }

    /// Leaves out all pieces that are left.
    pub(crate) fn go_to_end(&mut self) {
        (self.part, self.skip, self.broken) = (self.rows.len(), 0, None);
    }

    pub(crate) fn next(&mut self) -> Result<Option<Piece>> {
        while let Some(&rows) = self.rows.get(self.part) {
            let keep = self.keep.as_ref().is_none_or(|keep| keep.get(self.part) == Some(&true));
            let left = rows.saturating_sub(self.skip);
            if left == 0 || !keep {
                self.row = self.row.saturating_add(left);
                (self.part, self.skip) = (self.part + 1, 0);
                continue;
            }
            let (parts, taken) = self.cut(left)?;
            let (part, skip, row) = self.place();
            let piece = Piece { file: self.opened.hash, part, parts, skip, row, rows: taken };
            self.row = self.row.saturating_add(taken);
            if taken < left {
                self.skip += taken;
            } else {
                (self.part, self.skip) = (self.part + parts as usize, 0);
            }
            return Ok(Some(piece));
        }
        self.broken.take().map_or(Ok(None), Err)
    }

    /// How many parts and rows the next piece has, when its first part has `left` rows left.
    fn cut(&self, left: u64) -> Result<(u64, u64)> {
        match &self.opened.document {
            Document::Parquet(file) => {
                let step = file.step(self.part, &self.wanted)?;
                Ok((1, step.map_or(left, |step| step.min(left))))
            }
            Document::Ipc(file) => Ok(file.run(self.part)),
        }
    }
}

/// The rows of one piece, batch by batch; made by [`Opened::read`].
pub(crate) enum Batches {
    Parquet(Box<ParquetBatches>),
    Ipc(Box<IpcBatches>),
}

impl Batches {
    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        match self {
            Self::Parquet(batches) => batches.next(),
            Self::Ipc(batches) => batches.next(),
        }
    }

    /// Whether more may come behind an error: record batches stand by themselves, the pages of a row group do not.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(self, Self::Ipc(_))
    }
}

/// The bytes of `buffer`, shared.
pub(crate) fn share(buffer: arrow_buffer::Buffer) -> Buffer {
    if buffer.is_empty() { Buffer::EMPTY } else { Buffer::from_owner(buffer) }
}
