//! `write_parquet` and `write_ipc`: samples to tables, a column for each field.
//!
//! ```toml
//! [write_ipc]
//! examples = ['''forebay run "range 1000 | write_ipc 'numbers-{:05}.arrow'"''']
//!
//! [write_parquet]
//! examples = ['''forebay run "range 1000 | write_parquet 'numbers-{:05}.parquet'"''']
//! ```

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::Schema;
use forebay_core::{Encode, Error, Files, Options, PipeInfo, Result, Sample, Writer, options};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use crate::{
    columns::Columns,
    errors::{of_arrow, of_parquet},
};

/// Rows of so many bytes, or so many of them, are a row group or a record batch.
const BYTES: usize = 16 << 20;
const ROWS: usize = 65_536;

options! {
    /// Options of `write_parquet`.
    pub struct WriteParquetOptions {
        /// The files, such as `out-{:05}.parquet`; `{rank}` and `{epoch}` may stand in it too.
        pattern: String = required;
        /// The most samples in a file.
        shard_size: Option<u64> = null;
        /// About how many bytes a file holds; 1 GiB if neither limit is given.
        shard_bytes: Option<u64> = null;
        /// Replace existing files.
        overwrite: bool = false;
        /// The compression of pages.
        compression: String = "zstd", one_of ["zstd", "snappy", "none"];
    }
}

options! {
    /// Options of `write_ipc`.
    pub struct WriteIpcOptions {
        /// The files, such as `out-{:05}.arrow`; `{rank}` and `{epoch}` may stand in it too.
        pattern: String = required;
        /// The most samples in a file.
        shard_size: Option<u64> = null;
        /// About how many bytes a file holds; 1 GiB if neither limit is given.
        shard_bytes: Option<u64> = null;
        /// Replace existing files.
        overwrite: bool = false;
    }
}

/// Writes samples as rows of Parquet files; see [`Writer`] for what it gives and saves.
pub type WriteParquet = Writer<Rows<Parquet>>;

/// Writes samples as rows of Arrow IPC files; see [`Writer`] for what it gives and saves.
pub type WriteIpc = Writer<Rows<Ipc>>;

/// A format of tables.
pub trait Table: Send + Sized + 'static {
    /// The pipe's name and summary.
    const INFO: PipeInfo;
    /// The options of the pipe.
    type Options: Options;
    /// Its writer.
    type To: Send;

    /// The format, and the files it is for.
    ///
    /// # Errors
    /// `Invalid`, when the options do not go together.
    fn new(options: Self::Options) -> Result<(Self, Files)>;

    /// Begins a file.
    ///
    /// # Errors
    /// The library's, here and below.
    fn begin(&self, schema: Arc<Schema>, to: Shared) -> Result<Self::To>;

    /// Adds a batch, to be brought out at once.
    ///
    /// # Errors
    /// As above.
    fn add(to: &mut Self::To, batch: &RecordBatch) -> Result<()>;

    /// Ends the file.
    ///
    /// # Errors
    /// As above.
    fn end(to: Self::To) -> Result<()>;
}

/// Parquet, with row groups of about 16 MiB.
#[derive(Debug)]
pub struct Parquet {
    compression: Compression,
}

/// Arrow's IPC file format, not packed, so that it can be mapped.
#[derive(Debug)]
pub struct Ipc;

/// Samples as rows. The columns of a file are those of its first rows.
pub struct Rows<T: Table> {
    table: T,
    rows: Vec<Sample>,
    bytes: usize,
    columns: Columns,
    /// The file, once its columns are known.
    to: Option<T::To>,
    shared: Shared,
}

/// What a library wrote and was not taken yet.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn drain(&self, out: &mut Vec<u8>) {
        out.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: Table> Rows<T> {
    fn new(table: T) -> Self {
        let (columns, shared) = (Columns::default(), Shared::default());
        Self { table, rows: Vec::new(), bytes: 0, columns, to: None, shared }
    }

    fn clear(&mut self) {
        self.rows.clear();
        (self.bytes, self.columns, self.to, self.shared) = (0, Columns::default(), None, Shared::default());
    }

    fn add(&mut self, sample: &Sample, out: &mut Vec<u8>) -> Result<()> {
        let columns = self.columns.with(sample)?;
        if self.to.is_some() && !self.columns.hold(&columns) {
            let error = "a value of another type, or another field, than the first rows of the file have";
            return Err(Error::invalid(error));
        }
        // What cannot be a cell is told now, while it is known whose it is.
        columns.batch(std::slice::from_ref(sample))?;
        self.columns = columns;
        self.rows.push(sample.clone());
        self.bytes += sample.size();
        if self.bytes >= BYTES || self.rows.len() >= ROWS { self.flush(out) } else { Ok(()) }
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.columns = std::mem::take(&mut self.columns).settled();
        let to = match &mut self.to {
            Some(to) => to,
            none => none.insert(self.table.begin(self.columns.schema()?, self.shared.clone())?),
        };
        T::add(to, &self.columns.batch(&self.rows)?)?;
        self.rows.clear();
        self.bytes = 0;
        self.shared.drain(out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if !self.rows.is_empty() || self.to.is_none() {
            self.flush(out)?;
        }
        if let Some(to) = self.to.take() {
            T::end(to)?;
        }
        self.shared.drain(out);
        self.clear();
        Ok(())
    }
}

impl<T: Table> Encode for Rows<T> {
    const INFO: PipeInfo = T::INFO;
    type Options = T::Options;

    fn new(options: T::Options) -> Result<(Self, Files)> {
        let (table, files) = T::new(options)?;
        Ok((Self::new(table), files))
    }

    fn begin(&mut self, _: &mut Vec<u8>) -> Result<()> {
        self.clear();
        Ok(())
    }

    fn sample(&mut self, sample: &Sample, out: &mut Vec<u8>) -> Result<()> {
        self.add(sample, out)
    }

    fn held(&self) -> u64 {
        self.bytes as u64
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.finish(out)
    }
}

impl Table for Parquet {
    const INFO: PipeInfo =
        PipeInfo { name: "write_parquet", summary: "Samples to Parquet files", ..PipeInfo::DEFAULT };
    type Options = WriteParquetOptions;
    type To = ArrowWriter<Shared>;

    fn new(options: WriteParquetOptions) -> Result<(Self, Files)> {
        let WriteParquetOptions { pattern, shard_size, shard_bytes, overwrite, compression } = options;
        let compression = match compression.as_str() {
            "snappy" => Compression::SNAPPY,
            "none" => Compression::UNCOMPRESSED,
            _ => Compression::ZSTD(ZstdLevel::default()),
        };
        Ok((Self { compression }, Files::new(&pattern, shard_size, shard_bytes, overwrite)?))
    }

    fn begin(&self, schema: Arc<Schema>, to: Shared) -> Result<Self::To> {
        let properties = WriterProperties::builder().set_compression(self.compression);
        let properties = properties.set_created_by("forebay".to_owned()).build();
        ArrowWriter::try_new(to, schema, Some(properties)).map_err(of_parquet)
    }

    fn add(to: &mut Self::To, batch: &RecordBatch) -> Result<()> {
        to.write(batch).and_then(|()| to.flush()).map_err(of_parquet)
    }

    fn end(to: Self::To) -> Result<()> {
        to.close().map(drop).map_err(of_parquet)
    }
}

impl Table for Ipc {
    const INFO: PipeInfo =
        PipeInfo { name: "write_ipc", summary: "Samples to Arrow IPC files", ..PipeInfo::DEFAULT };
    type Options = WriteIpcOptions;
    type To = FileWriter<Shared>;

    fn new(options: WriteIpcOptions) -> Result<(Self, Files)> {
        let WriteIpcOptions { pattern, shard_size, shard_bytes, overwrite } = options;
        Ok((Self, Files::new(&pattern, shard_size, shard_bytes, overwrite)?))
    }

    fn begin(&self, schema: Arc<Schema>, to: Shared) -> Result<Self::To> {
        FileWriter::try_new(to, &schema).map_err(of_arrow)
    }

    fn add(to: &mut Self::To, batch: &RecordBatch) -> Result<()> {
        to.write(batch).map_err(of_arrow)
    }

    fn end(mut to: Self::To) -> Result<()> {
        to.finish().map_err(of_arrow)
    }
}
