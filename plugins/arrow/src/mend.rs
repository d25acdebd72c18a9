//! Footers that some writers got wrong, put right.

use std::borrow::Cow;

use forebay_core::Result;
use parquet::file::metadata::{ColumnChunkMetaData, FileMetaData, ParquetMetaData, RowGroupMetaData};

use crate::{
    errors::of_parquet,
    thrift::{LIST, STRUCT, Skim},
};

/// A footer's bytes, in which empty lists of columns say what they are lists of: fastparquet leaves that out, and the library insists.
pub(crate) fn typed(footer: &[u8]) -> Result<Cow<'_, [u8]>> {
    let mut untyped = Vec::new();
    Skim::new(footer).fields(|id, kind, skim| {
        if (id, kind) != (4, LIST) {
            return Ok(false);
        }
        for _ in 0..skim.list()?.1 {
            skim.fields(|id, kind, skim| {
                let at = skim.at();
                let empty = (id, kind) == (1, LIST) && footer.get(at) == Some(&0);
                if empty {
                    untyped.push(at);
                    skim.list()?;
                }
                Ok(empty)
            })?;
        }
        Ok(true)
    })?;
    if untyped.is_empty() {
        return Ok(footer.into());
    }
    let mut typed = footer.to_vec();
    for at in untyped {
        typed[at] = STRUCT;
    }
    Ok(typed.into())
}

/// How many bytes a dictionary page's header may have, at most, that are missing from the size of its column.
const MISSED: i64 = 100;

/// The footer of a file of `len` bytes, with
/// - the number of rows that its row groups have together, which the reader trusts;
/// - sizes of columns that reach over their last page: parquet-mr before 1.2.9 left out the header of the dictionary page
///   (<https://issues.apache.org/jira/browse/PARQUET-816>).
pub(crate) fn mended(metadata: ParquetMetaData, len: u64) -> Result<ParquetMetaData> {
    let file = metadata.file_metadata();
    let rows =
        metadata.row_groups().iter().fold(0_i64, |sum, group| sum.saturating_add(group.num_rows().max(0)));
    let short = misses_headers(file.created_by().unwrap_or_default());
    if rows == file.num_rows() && !short {
        return Ok(metadata);
    }
    let file = FileMetaData::new(
        file.version(),
        rows,
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let mut groups = metadata.row_groups().to_vec();
    if short {
        groups = groups.into_iter().map(|group| reaching(group, len)).collect::<Result<_>>()?;
    }
    Ok(ParquetMetaData::new(file, groups))
}

fn reaching(group: RowGroupMetaData, len: u64) -> Result<RowGroupMetaData> {
    let longer = |column: ColumnChunkMetaData| {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let left = i64::try_from(len)
            .unwrap_or(i64::MAX)
            .saturating_sub(start.saturating_add(column.compressed_size()));
        let size = column.compressed_size().saturating_add(left.clamp(0, MISSED));
        column.into_builder().set_total_compressed_size(size).build().map_err(of_parquet)
    };
    let mut builder = group.into_builder();
    let columns = builder.take_columns().into_iter().map(longer).collect::<Result<_>>()?;
    builder.set_column_metadata(columns).build().map_err(of_parquet)
}

/// Whether the writer is parquet-mr before 1.2.9, or one that does not say its version.
fn misses_headers(writer: &str) -> bool {
    let Some(rest) = writer.strip_prefix("parquet-mr") else { return false };
    let version = rest.trim_start().strip_prefix("version ").unwrap_or_default();
    let mut numbers =
        version.split(|sign: char| !sign.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0_u32);
    (next(), next(), next()) < (1, 2, 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writers_that_miss_headers_are_known_by_name() {
        for writer in ["parquet-mr", "parquet-mr version 1.2.8 (build x)", "parquet-mr version 1.0.0"] {
            assert!(misses_headers(writer), "{writer}");
        }
        for writer in
            ["", "parquet-mr version 1.2.9", "parquet-mr version 1.12.0-2018", "parquet-cpp version 1.0.0"]
        {
            assert!(!misses_headers(writer), "{writer}");
        }
    }
}
