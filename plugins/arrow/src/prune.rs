//! What a Parquet file knows of its rows beside their values: bloom filters of row groups, and bounds of pages.
//!
//! Sources: <https://github.com/apache/parquet-format/blob/master/BloomFilter.md> and `PageIndex.md` beside it.

use arrow_array::UInt64Array;
use arrow_schema::DataType;
use forebay_core::{Blob, Result};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, RowSelection, RowSelector, statistics::StatisticsConverter},
    basic::Type as Physical,
    bloom_filter::Sbbf,
    file::metadata::{
        ColumnChunkMask, PageIndexPolicy, ParquetMetaDataReader, page_index::PageIndexProvider as _,
    },
};

use crate::{
    chunks::Chunks,
    errors::{of_parquet, shielded},
    predicate::{Bounds, Equal, Predicate},
};

/// The place among the leaves of a column that is not within another.
fn leaf(footer: &ArrowReaderMetadata, column: &str) -> Option<usize> {
    let columns = footer.parquet_schema().columns();
    columns.iter().position(|leaf| leaf.path().parts() == [column] && leaf.max_rep_level() == 0)
}

/// Whether a row group's bloom filters let it have rows that pass. A filter that cannot be read says nothing.
pub(crate) fn blooms_may_pass(
    footer: &ArrowReaderMetadata,
    blob: &Blob,
    group: usize,
    filter: &Predicate,
) -> Result<bool> {
    let Some(group) = footer.metadata().row_groups().get(group) else { return Ok(true) };
    for (column, value) in filter.equalities() {
        let Some(chunk) = leaf(footer, column).and_then(|leaf| group.columns().get(leaf)) else { continue };
        let Ok(field) = footer.schema().field_with_name(column) else { continue };
        if chunk.bloom_filter_offset().is_none() {
            continue;
        }
        let chunks = Chunks::new(blob, Vec::new())?;
        let read = || Sbbf::read_from_column_chunk(chunk, &chunks).map_err(of_parquet);
        let may = shielded(|| {
            let Some(bloom) = read()? else { return Ok(true) };
            Ok(may_have(&bloom, chunk.column_type(), field.data_type(), &value))
        });
        if matches!(may, Ok(false)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a column may have a value; always so where the value is stored in another form than it is compared in.
fn may_have(bloom: &Sbbf, physical: Physical, kind: &DataType, value: &Equal<'_>) -> bool {
    use DataType::*;
    match (physical, kind, value) {
        (Physical::INT32, Int8 | Int16 | Int32 | Date32, Equal::Int(value)) => {
            i32::try_from(*value).is_ok_and(|value| bloom.check(&value))
        }
        (Physical::INT32, UInt8 | UInt16 | UInt32, Equal::Int(value)) => {
            u32::try_from(*value).is_ok_and(|value| bloom.check(&value.cast_signed()))
        }
        (Physical::INT64, Int64, Equal::Int(value)) => bloom.check(value),
        (Physical::INT64, UInt64, Equal::Int(value)) => *value >= 0 && bloom.check(value),
        (
            Physical::BYTE_ARRAY,
            Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView,
            Equal::Text(value),
        ) => bloom.check(value.as_bytes()),
        _ => true,
    }
}

/// The rows of a row group that lie in pages which may have rows that pass; `None` if nothing is known of them.
pub(crate) fn pages_may_pass(
    footer: &ArrowReaderMetadata,
    blob: &Blob,
    group: usize,
    filter: &Predicate,
) -> Result<Option<RowSelection>> {
    let Some(chunks) = footer.metadata().row_groups().get(group) else { return Ok(None) };
    let indexed = |leaf: &usize| {
        chunks
            .columns()
            .get(*leaf)
            .is_some_and(|chunk| chunk.column_index_range().is_some() && chunk.offset_index_range().is_some())
    };
    let mut leaves: Vec<_> =
        filter.columns().into_iter().filter_map(|column| leaf(footer, column)).filter(indexed).collect();
    if leaves.is_empty() {
        return Ok(None);
    }
    leaves.sort_unstable();
    let rows = chunks.num_rows().max(0).unsigned_abs();
    let mask = ColumnChunkMask::row_groups_and_columns([group], leaves);
    let source = Chunks::new(blob, Vec::new())?;
    let found = shielded(|| {
        let reader = ParquetMetaDataReader::new_with_metadata(footer.metadata().as_ref().clone());
        let reader = reader.with_page_index_policy(PageIndexPolicy::Optional).with_page_index_mask(mask);
        let (_, index) = reader.read_page_index_and_finish(&source).map_err(of_parquet)?;
        let Some(index) = index else { return Ok(None) };
        let each = filter.each_may_pass(|column| {
            let leaf = leaf(footer, column)?;
            let starts = index.offset_index(group, leaf)?.page_locations();
            let starts = starts.iter().map(|page| u64::try_from(page.first_row_index).ok());
            let rows = lengths(&starts.collect::<Option<Vec<_>>>()?, rows)?;
            let of = StatisticsConverter::try_new(column, footer.schema(), footer.parquet_schema()).ok()?;
            let of =
                of.with_column_orders(footer.metadata().file_metadata().column_orders().map(Vec::as_slice));
            let mins = of.data_page_mins(&index, [&group]).ok()?;
            let maxes = of.data_page_maxes(&index, [&group]).ok()?;
            let nulls = of.data_page_null_counts(&index, [&group]);
            let nulls = nulls.unwrap_or_else(|_| UInt64Array::new_null(rows.len()));
            let all = [mins.len(), maxes.len(), nulls.len()];
            all.iter().all(|len| *len == rows.len()).then_some(Bounds { mins, maxes, nulls, rows })
        })?;
        let select = |pages: Vec<(u64, bool)>| {
            let pages = pages.into_iter().map(|(rows, may)| match may {
                true => RowSelector::select(rows as usize),
                false => RowSelector::skip(rows as usize),
            });
            RowSelection::from(pages.collect::<Vec<_>>())
        };
        Ok(each.into_iter().map(select).reduce(|all, one| all.intersection(&one)))
    });
    // An index that cannot be read says nothing: the rows are there without it.
    Ok(found.unwrap_or_default())
}

/// How many rows each page has, by the first row of each; `None` if they cannot be those of `rows` rows.
fn lengths(starts: &[u64], rows: u64) -> Option<Vec<u64>> {
    if starts.first() != Some(&0) {
        return None;
    }
    let ends = starts.iter().skip(1).copied().chain([rows]);
    starts.iter().zip(ends).map(|(start, end)| end.checked_sub(*start)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
    use forebay_core::Buffer;
    use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};

    use super::*;
    use crate::{
        ReadOptions,
        document::{Document, Opened},
        parquet::ParquetFile,
        read,
    };

    /// Row groups of 100 even numbers each, not sorted, in pages of 10; as integers of both widths and as text.
    fn file(blooms: bool) -> Blob {
        let numbers = || (0..300_i32).map(|at| at / 100 * 200 + at % 100 / 10 * 20 + (at % 10 * 7) % 10 * 2);
        let columns: [(&str, ArrayRef); 3] = [
            ("small", Arc::new(Int32Array::from_iter_values(numbers()))),
            ("large", Arc::new(Int64Array::from_iter_values(numbers().map(i64::from)))),
            ("text", Arc::new(StringArray::from_iter_values(numbers().map(|number| format!("{number:04}"))))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(100))
            .set_data_page_row_count_limit(10)
            .set_write_batch_size(10)
            .set_dictionary_enabled(false)
            .set_bloom_filter_enabled(blooms)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        Buffer::from(writer.into_inner().unwrap()).into()
    }

    fn parquet(blob: &Blob) -> Arc<ParquetFile> {
        match Opened::new(blob, 1 << 30).unwrap().document {
            Document::Parquet(file) => file,
            Document::Ipc(_) => panic!("no Parquet"),
        }
    }

    fn rows(blob: &Blob, filter: &str) -> Vec<u64> {
        let filter = Some(Predicate::parse(filter).unwrap());
        let batches = read(blob, &ReadOptions { filter, ..ReadOptions::default() }).unwrap();
        batches
            .flat_map(|batch| {
                let batch = batch.unwrap();
                (0..batch.columns.num_rows()).map(|at| batch.row(at)).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn row_groups_without_a_value_are_left_out() {
        let (with, without) = (file(true), file(false));
        for (filter, plain, left) in [
            ("small == 250", [false, true, false], [false, true, false]),
            ("small == 251", [false, true, false], [false; 3]),
            ("large == 251", [false, true, false], [false; 3]),
            ("text == '0250'", [false, true, false], [false, true, false]),
            ("text == '0251'", [false, true, false], [false; 3]),
            ("small > 251", [false, true, true], [false, true, true]),
        ] {
            let parsed = Predicate::parse(filter).unwrap();
            assert_eq!(parquet(&without).may_pass(&without, &parsed).unwrap(), plain, "{filter}");
            assert_eq!(parquet(&with).may_pass(&with, &parsed).unwrap(), left, "{filter}");
            assert_eq!(rows(&with, filter), rows(&without, filter), "{filter}");
        }
        assert_eq!(rows(&with, "small == 254 and text == '0254'"), [121]);
    }

    #[test]
    fn pages_without_wanted_rows_are_not_looked_at() {
        let blob = file(false);
        let looked_at = |filter: &str| {
            let found = pages_may_pass(parquet(&blob).footer(), &blob, 1, &Predicate::parse(filter).unwrap());
            found.unwrap().map(|selection| selection.row_count())
        };
        assert_eq!(looked_at("small == 250"), Some(10));
        assert_eq!(looked_at("small >= 250 and large < 300"), Some(30));
        assert_eq!(looked_at("text == '0250' and small > 300"), Some(0));
        assert_eq!(looked_at("small is null"), Some(0));
        assert_eq!(looked_at("small != 1"), Some(100));
        let numbers = |at: u64| at / 100 * 200 + at % 100 / 10 * 20 + (at % 10 * 7) % 10 * 2;
        for (from, to) in [(0, 600), (250, 300), (199, 203), (258, 259), (3, 5)] {
            let expected: Vec<_> = (0..300).filter(|at| (from..to).contains(&numbers(*at))).collect();
            assert_eq!(rows(&blob, &format!("small >= {from} and large < {to}")), expected, "{from} {to}");
        }
    }

    #[test]
    fn pages_have_the_rows_up_to_the_next() {
        assert_eq!(lengths(&[0, 3, 10], 12), Some(vec![3, 7, 2]));
        assert_eq!(lengths(&[0], 5), Some(vec![5]));
        for starts in [&[][..], &[1], &[0, 13], &[0, 5, 4]] {
            assert_eq!(lengths(starts, 12), None, "{starts:?}");
        }
    }
}
