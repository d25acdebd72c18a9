//! One Parquet file: its footer, which row groups may have rows that are wanted, and reading part of one.
//!
//! Source: <https://parquet.apache.org/docs/file-format/>.

use std::{ops::Range, sync::Arc};

use arrow_array::UInt64Array;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use forebay_core::{Blob, Buffer, Error, Result};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
            ParquetRecordBatchReaderBuilder, RowSelection, RowSelector, statistics::StatisticsConverter,
        },
    },
    basic::Type as Physical,
    file::metadata::{ParquetMetaDataReader, RowGroupMetaData},
};

use crate::{
    chunks::Chunks,
    document::{Batch, Limited, PIECE_BYTES, PIECE_ROWS, Piece, Rows, Wanted},
    errors::{of_parquet, shielded},
    mend::{mended, typed},
    pages,
    predicate::{Bounds, Predicate},
    prune, times,
};

/// The bytes read at the end of a file far away, in the hope that the footer is among them.
const TAIL: u64 = 64 << 10;
/// The length of a footer, and the magic.
const END: u64 = 8;
const MAGIC: &[u8] = b"PAR1";

/// The footer of a file, read and checked.
pub(crate) struct ParquetFile {
    footer: ArrowReaderMetadata,
}

/// The bytes of a file's footer, which tell it from any other file.
pub(crate) fn footer(blob: &Blob) -> Result<Buffer> {
    let len = blob.len();
    let tail = if blob.in_memory().is_some() { END } else { TAIL };
    let start = len.saturating_sub(tail);
    let bytes = blob.read(start..len)?;
    let end = bytes.len().checked_sub(END as usize).and_then(|at| bytes.get(at..));
    let end = end.ok_or_else(|| Error::corrupt(format!("expected a Parquet file, found {len} bytes")))?;
    match &end[4..] {
        MAGIC => {}
        b"PARE" => {
            return Err(Error::unsupported(
                "an encrypted Parquet file, footer and all, which is not supported",
            ));
        }
        found => {
            let message =
                format!("expected PAR1 at the end of a Parquet file, found {}", found.escape_ascii());
            return Err(Error::corrupt(message).context("byte", len - 4));
        }
    }
    let size = u64::from(u32::from_le_bytes(end[..4].try_into().unwrap_or_default()));
    let at = len.checked_sub(END + size).ok_or_else(|| {
        Error::corrupt(format!("found a footer of {size} bytes in a file of {len}"))
            .context("byte", len - END)
    })?;
    match at.checked_sub(start).and_then(|at| usize::try_from(at).ok()) {
        Some(at) => bytes.get(at..at + size as usize).ok_or_else(|| Error::bug("a footer beyond its tail")),
        None => blob.read(at..at + size),
    }
}

impl ParquetFile {
    /// Reads what [`footer`] gave of a file of `len` bytes.
    pub(crate) fn open(footer: &[u8], len: u64) -> Result<Self> {
        pages::check_schema(footer)?;
        let footer = typed(footer)?;
        let metadata = shielded(|| ParquetMetaDataReader::decode_metadata(&footer).map_err(of_parquet))?;
        if let Some(part) = metadata
            .row_groups()
            .iter()
            .flat_map(RowGroupMetaData::columns)
            .find_map(|column| column.file_path())
        {
            return Err(Error::unsupported("a column lies in another file").context("file_path", part));
        }
        let metadata = Arc::new(mended(metadata, len)?);
        let read = |options: ArrowReaderOptions| {
            shielded(|| ArrowReaderMetadata::try_new(metadata.clone(), options).map_err(of_parquet))
        };
        // A hint of the Arrow schema that does not fit is no reason not to read the columns.
        let stored = read(ArrowReaderOptions::new())
            .or_else(|_| read(ArrowReaderOptions::new().with_skip_arrow_metadata(true)))?;
        let views = Arc::new(with_views(stored.schema()));
        let footer = read(ArrowReaderOptions::new().with_schema(views)).unwrap_or(stored);
        Ok(Self { footer })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        self.footer.schema()
    }

    #[cfg(test)]
    pub(crate) fn footer(&self) -> &ArrowReaderMetadata {
        &self.footer
    }

    /// How many rows each row group has.
    pub(crate) fn rows(&self) -> Result<Vec<u64>> {
        let rows = |(at, group): (usize, &RowGroupMetaData)| {
            u64::try_from(group.num_rows()).map_err(|_| {
                Error::corrupt(format!("found {} rows in a row group", group.num_rows()))
                    .context("row_group", at)
            })
        };
        self.footer.metadata().row_groups().iter().enumerate().map(rows).collect()
    }

    /// Which row groups may have rows that pass, by their statistics and their bloom filters.
    pub(crate) fn may_pass(&self, blob: &Blob, filter: &Predicate) -> Result<Vec<bool>> {
        let groups = self.footer.metadata().row_groups();
        let mut keep = shielded(|| filter.may_pass(groups.len(), |column| self.bounds(column)))?;
        for (group, keep) in keep.iter_mut().enumerate().filter(|(_, keep)| **keep) {
            *keep = prune::blooms_may_pass(&self.footer, blob, group, filter)?;
        }
        Ok(keep)
    }

    fn bounds(&self, column: &str) -> Option<Bounds> {
        let groups = self.footer.metadata().row_groups();
        let of = StatisticsConverter::try_new(column, self.schema(), self.footer.parquet_schema()).ok()?;
        let of = of.with_missing_null_counts_as_zero(false);
        let nulls = of.row_group_null_counts(groups).unwrap_or_else(|_| UInt64Array::new_null(groups.len()));
        let rows = groups.iter().map(|group| group.num_rows() as u64).collect();
        let mins = of.row_group_mins(groups).ok()?;
        Some(Bounds { mins, maxes: of.row_group_maxes(groups).ok()?, nulls, rows })
    }

    /// How many rows of a row group make a piece; none when the group is one piece: then rows cannot be passed over without
    /// decoding them, or it is small.
    pub(crate) fn step(&self, group: usize, wanted: &Wanted) -> Result<Option<u64>> {
        let leaves = self.leaves(&wanted.names())?;
        let group = self.group(group)?;
        let flat = leaves.iter().all(|&at| {
            group.columns().get(at).is_some_and(|column| column.column_descr().max_rep_level() == 0)
        });
        let rows = rows_within(group, &leaves, PIECE_ROWS, PIECE_BYTES);
        Ok((flat && (group.num_rows() as u64) > rows.saturating_mul(3) / 2).then_some(rows))
    }

    fn group(&self, group: usize) -> Result<&RowGroupMetaData> {
        let groups = self.footer.metadata().row_groups();
        let missing = || Error::invalid(format!("no row group {group}; there are {}", groups.len()));
        groups.get(group).ok_or_else(missing)
    }

    /// The leaves below these columns; of all when there is no list.
    fn leaves(&self, names: &Option<Vec<&str>>) -> Result<Vec<usize>> {
        let columns = self.footer.parquet_schema().columns();
        let Some(names) = names else { return Ok((0..columns.len()).collect()) };
        let mut leaves = Vec::new();
        for name in names {
            let below = |path: &str| {
                path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let found = columns.iter().enumerate().filter(|(_, column)| below(&column.path().string()));
            let before = leaves.len();
            leaves.extend(found.map(|(at, _)| at));
            if leaves.len() == before {
                return Err(crate::predicate::missing(name, self.schema().fields()));
            }
        }
        leaves.sort_unstable();
        leaves.dedup();
        Ok(leaves)
    }

    /// Reads the rows of a piece that are wanted, at most so many in a batch.
    pub(crate) fn read(
        self: Arc<Self>,
        blob: &Blob,
        piece: Piece,
        wanted: &Wanted,
        rows: u64,
        limit: u64,
    ) -> Result<ParquetBatches> {
        let at = piece.part as usize;
        let group = self.group(at)?;
        let all = self.leaves(&wanted.names())?;
        let ranges = all.iter().map(|&leaf| range(group, leaf, blob.len())).collect::<Result<Vec<_>>>();
        let ranges = ranges.map_err(|error| error.context("row_group", at))?;
        let chunks = Chunks::new(blob, ranges.clone())?;
        for (&leaf, range) in all.iter().zip(&ranges) {
            let column = group.column(leaf);
            pages::check_chunk(&chunks, column, range, limit)
                .map_err(|error| error.context("column", column.column_path()).context("row_group", at))?;
        }
        let rows_most = rows_within(group, &all, rows.min(piece.rows).max(1), PIECE_BYTES);
        let open = |footer: &ArrowReaderMetadata, leaves: Vec<usize>, selection: Option<RowSelection>| {
            let mask = ProjectionMask::leaves(footer.parquet_schema(), leaves);
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks.clone(), footer.clone());
            let builder =
                builder.with_row_groups(vec![at]).with_projection(mask).with_batch_size(rows_most as usize);
            let builder = match selection {
                Some(selection) => builder.with_row_selection(selection),
                None => builder,
            };
            shielded(|| builder.build().map_err(of_parquet))
        };
        let behind = (group.num_rows() as u64).saturating_sub(piece.skip.saturating_add(piece.rows));
        // To its end: where one of two selections is shorter, their intersection has the rest of the other.
        let span = (piece.skip > 0 || behind > 0).then(|| {
            let [skip, rows, behind] = [piece.skip, piece.rows, behind].map(|count| count as usize);
            vec![RowSelector::skip(skip), RowSelector::select(rows), RowSelector::skip(behind)]
        });
        let span = span.map(RowSelection::from);
        times::check(&self.footer, &all, |footer, leaves| open(footer, leaves, span.clone()))
            .map_err(|error| error.context("row_group", at))?;
        let mut picked = None;
        let mut selection = span.clone();
        if let Some(filter) = &wanted.filter {
            // Far away the pages are here already, and the index would be fetched besides.
            let pages = match blob.in_memory() {
                Some(_) => prune::pages_may_pass(&self.footer, blob, at, filter)?,
                None => None,
            };
            let looked_at = match (pages, span) {
                (Some(pages), Some(span)) => Some(span.intersection(&pages)),
                (pages, span) => pages.or(span),
            };
            let compared = self.leaves(&Some(filter.columns()))?;
            let count = looked_at.as_ref().map_or(piece.rows as usize, RowSelection::row_count);
            let passed = passed(open(&self.footer, compared, looked_at.clone())?, filter, count)
                .map_err(|error| error.context("row_group", at))?;
            let passed = spread(&passed, looked_at.as_ref(), piece);
            let slices =
                passed.set_slices().map(|(from, to)| from + piece.skip as usize..to + piece.skip as usize);
            selection = Some(RowSelection::from_consecutive_ranges(slices, group.num_rows() as usize));
            picked = Some(passed);
        }
        let reader = open(&self.footer, self.leaves(&wanted.columns())?, selection)?;
        let left = picked.as_ref().map_or(piece.rows, |picked| picked.count_set_bits() as u64);
        Ok(ParquetBatches { reader, picked, at: 0, left, piece, limited: Limited::new(limit) })
    }
}

/// The rows of one piece, batch by batch.
pub(crate) struct ParquetBatches {
    reader: ParquetRecordBatchReader,
    /// Which rows of the piece passed the filter.
    picked: Option<BooleanBuffer>,
    /// How many rows of the piece are behind.
    at: usize,
    /// How many rows are still to come.
    left: u64,
    piece: Piece,
    limited: Limited,
}

impl ParquetBatches {
    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let found = shielded(|| self.reader.next().transpose().map_err(crate::errors::of_arrow));
        let here = |error: Error| {
            error.context("row_group", self.piece.part).context("row", self.piece.row + self.at as u64)
        };
        let columns = match found.map_err(here)? {
            Some(columns) if (columns.num_rows() as u64) <= self.left && columns.num_rows() > 0 => columns,
            _ => {
                let message = format!("the row group ends {} rows before what its footer says", self.left);
                return Err(here(Error::corrupt(message)));
            }
        };
        self.limited.check(&columns).map_err(here)?;
        let count = columns.num_rows();
        self.left -= count as u64;
        let first = self.piece.row;
        let rows = match &self.picked {
            None => Rows::Span(first + self.at as u64),
            Some(picked) => {
                let rest = picked.slice(self.at, picked.len() - self.at);
                Rows::Picked(rest.set_indices().take(count).map(|at| first + (self.at + at) as u64).collect())
            }
        };
        self.at = match &rows {
            Rows::Span(_) => self.at + count,
            Rows::Picked(rows) => rows.last().map_or(self.at, |last| (last - first) as usize + 1),
        };
        Ok(Some(Batch { columns, rows }))
    }
}

/// Which rows of a piece passed, where only those that were looked at could.
fn spread(passed: &BooleanBuffer, looked_at: Option<&RowSelection>, piece: Piece) -> BooleanBuffer {
    let Some(selection) = looked_at else { return passed.clone() };
    let (mut all, mut at) = (BooleanBufferBuilder::new(0), 0);
    for selector in selection.iter() {
        if selector.skip {
            all.append_n(selector.row_count, false);
        } else {
            all.append_buffer(&passed.slice(at, selector.row_count));
            at += selector.row_count;
        }
    }
    let (skip, rows) = (piece.skip as usize, piece.rows as usize);
    all.append_n((skip + rows).saturating_sub(all.len()), false);
    all.finish().slice(skip, rows)
}

/// Which of the `count` rows that a reader gives pass.
fn passed(mut reader: ParquetRecordBatchReader, filter: &Predicate, count: usize) -> Result<BooleanBuffer> {
    let mut passed = BooleanBufferBuilder::new(0);
    while passed.len() <= count
        && let Some(batch) = shielded(|| reader.next().transpose().map_err(crate::errors::of_arrow))?
    {
        passed.append_buffer(&filter.evaluate(&batch)?);
    }
    match passed.len() {
        found if found < count => {
            Err(Error::corrupt(format!("{found} values to compare, and {count} rows by the footer")))
        }
        found if found > count => {
            Err(Error::corrupt(format!("more values to compare than {count} rows by the footer")))
        }
        _ => Ok(passed.finish()),
    }
}

/// Where a column chunk lies, which must be within the file.
fn range(group: &RowGroupMetaData, leaf: usize, len: u64) -> Result<Range<u64>> {
    let column = group.columns().get(leaf);
    let column = column.ok_or_else(|| Error::corrupt(format!("a row group without column {leaf}")))?;
    let start =
        column.dictionary_page_offset().filter(|&at| at > 0).unwrap_or_else(|| column.data_page_offset());
    let bounds = || Some((u64::try_from(start).ok()?, u64::try_from(column.compressed_size()).ok()?));
    let within =
        bounds().map(|(start, size)| start..start.saturating_add(size)).filter(|range| range.end <= len);
    within.ok_or_else(|| {
        let size = column.compressed_size();
        let message = format!("found a column of {size} bytes at byte {start}, in a file of {len}");
        Error::corrupt(message).context("column", column.column_path())
    })
}

/// How many rows, at most `rows`, take about `bytes` decoded; by what the footer says, and never less than a column's least.
fn rows_within(group: &RowGroupMetaData, leaves: &[usize], rows: u64, bytes: u64) -> u64 {
    let count = group.num_rows().max(1) as u64;
    let each = leaves.iter().filter_map(|&leaf| group.columns().get(leaf)).map(|column| {
        let stored = column.uncompressed_size().max(0) as u64 / count;
        let width = match column.column_type() {
            Physical::FIXED_LEN_BYTE_ARRAY => column.column_descr().type_length().max(1) as u64,
            _ => 8,
        };
        stored.max(width)
    });
    (bytes / each.fold(1, u64::saturating_add)).clamp(1, rows)
}

/// The schema with text and bytes as views, which share the memory of the pages they are read from.
fn with_views(schema: &Schema) -> Schema {
    let fields: Fields = schema.fields().iter().map(view_field).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn view_field(field: &FieldRef) -> FieldRef {
    let viewed = view_type(field.data_type());
    Arc::new(Field::clone(field).with_data_type(viewed))
}

fn view_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(items) => DataType::List(view_field(items)),
        DataType::LargeList(items) => DataType::LargeList(view_field(items)),
        DataType::FixedSizeList(items, size) => DataType::FixedSizeList(view_field(items), *size),
        DataType::Map(entries, sorted) => DataType::Map(view_field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(view_field).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, ErrorKind};
    use parquet::{
        arrow::ArrowWriter,
        file::{
            metadata::{ParquetMetaDataReader, ParquetMetaDataWriter},
            properties::WriterProperties,
        },
    };

    use crate::tests::{birds, rows};

    #[test]
    fn a_footer_that_counts_otherwise_than_its_columns_is_an_error() {
        // With an index of its pages no more than are said are looked at.
        let plain = WriterProperties::builder().set_offset_index_disabled(true).build();
        let batch = birds(0, 100);
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(plain)).unwrap();
        writer.write(&batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        let footer =
            ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::copy_from_slice(&bytes)).unwrap();
        for (count, says) in [(60, "more values to compare than 60"), (140, "100 values to compare, and 140")]
        {
            let group = footer.row_group(0).clone().into_builder().set_num_rows(count).build().unwrap();
            let footer = footer.clone().into_builder().set_row_groups(vec![group]).build();
            let mut other = bytes.clone();
            ParquetMetaDataWriter::new(&mut other, &footer).finish().unwrap();
            let error =
                rows(&Buffer::from(other), r#"{"columns": ["id"], "filter": "id >= 0"}"#).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
