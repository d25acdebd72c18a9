//! Times of INT96, the type that Impala and Spark wrote: whether int64 nanoseconds hold them.
//!
//! The library counts them in nanoseconds and wraps around beyond the years 1677 to 2262. In seconds none does.

use std::sync::Arc;

use arrow_array::Array as _;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Schema, TimeUnit};
use forebay_core::{Error, Result};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader},
    basic::Type as Physical,
};

use crate::errors::{of_arrow, of_parquet, shielded};

/// The seconds all of which int64 nanoseconds hold.
const SECONDS: std::ops::RangeInclusive<i64> = i64::MIN / 1_000_000_000 + 1..=i64::MAX / 1_000_000_000 - 1;

/// Reads those of the leaves that are of INT96 in seconds, with what `open` gives for a footer and leaves, and refuses times that
/// nanoseconds do not hold.
pub(crate) fn check(
    footer: &ArrowReaderMetadata,
    leaves: &[usize],
    open: impl FnOnce(&ArrowReaderMetadata, Vec<usize>) -> Result<ParquetRecordBatchReader>,
) -> Result<()> {
    let columns = footer.parquet_schema().columns();
    let is_time =
        |leaf: &usize| columns.get(*leaf).is_some_and(|leaf| leaf.physical_type() == Physical::INT96);
    let times: Vec<_> = leaves.iter().copied().filter(is_time).collect();
    if times.is_empty() {
        return Ok(());
    }
    let roots = times.iter().filter_map(|leaf| columns.get(*leaf)?.path().parts().first());
    let roots: Vec<_> = roots.collect();
    let fields = footer.schema().fields().iter();
    let fields =
        fields.map(|field| if roots.contains(&field.name()) { in_seconds(field) } else { field.clone() });
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), footer.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    let read = || ArrowReaderMetadata::try_new(footer.metadata().clone(), options).map_err(of_parquet);
    let mut reader = open(&shielded(read)?, times)?;
    while let Some(batch) = shielded(|| reader.next().transpose().map_err(of_arrow))? {
        for (column, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
            if let Some(seconds) = beyond(&column.to_data()) {
                let message = format!(
                    "a time of INT96 {seconds} seconds from 1970, and int64 nanoseconds hold the years 1677 to 2262; \
                     leave its column out with `columns`"
                );
                return Err(Error::unsupported(message).context("column", field.name()));
            }
        }
    }
    Ok(())
}

fn in_seconds(field: &FieldRef) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            DataType::Timestamp(TimeUnit::Second, zone.clone())
        }
        DataType::List(items) => DataType::List(in_seconds(items)),
        DataType::LargeList(items) => DataType::LargeList(in_seconds(items)),
        DataType::Map(entries, sorted) => DataType::Map(in_seconds(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(in_seconds).collect()),
        other => other.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(kind))
}

/// A time in seconds that nanoseconds do not hold, if there is one.
fn beyond(data: &ArrayData) -> Option<i64> {
    if let DataType::Timestamp(TimeUnit::Second, _) = data.data_type() {
        let seconds = data.buffer::<i64>(0).iter().take(data.len()).enumerate();
        return seconds
            .filter(|(at, _)| data.is_valid(*at))
            .map(|(_, time)| *time)
            .find(|time| !SECONDS.contains(time));
    }
    data.child_data().iter().find_map(beyond)
}

#[cfg(test)]
mod tests {
    use forebay_core::{Blob, Buffer, ErrorKind};
    use parquet::{
        data_type::{Int96, Int96Type},
        file::{properties::WriterProperties, writer::SerializedFileWriter},
        schema::parser::parse_message_type,
    };

    use super::*;
    use crate::{ReadOptions, read};

    /// The Julian day of 1970-01-01.
    const EPOCH: u32 = 2_440_588;

    /// A file whose column `t` has these days, each an hour after midnight.
    fn file(days: &[u32]) -> Blob {
        let schema =
            Arc::new(parse_message_type("message m { required int96 t; required int32 n; }").unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let hour = 3_600_000_000_000_u64;
        let times: Vec<_> =
            days.iter().map(|day| Int96::from(vec![hour as u32, (hour >> 32) as u32, *day])).collect();
        column.typed::<Int96Type>().write_batch(&times, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let numbers: Vec<_> = (0..days.len() as i32).collect();
        column.typed::<parquet::data_type::Int32Type>().write_batch(&numbers, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        Buffer::from(writer.into_inner().unwrap()).into()
    }

    fn all(blob: &Blob, options: &ReadOptions) -> Result<usize> {
        read(blob, options)?.map(|batch| Ok(batch?.columns.num_rows())).sum()
    }

    #[test]
    fn times_that_nanoseconds_do_not_hold_are_refused() {
        let plain = ReadOptions::default();
        assert_eq!(all(&file(&[EPOCH, EPOCH - 100_000, EPOCH + 106_000]), &plain).unwrap(), 3);
        let numbers = ReadOptions { columns: vec!["n".into()], ..ReadOptions::default() };
        for day in [EPOCH + 107_000, EPOCH - 107_000, 0, EPOCH + 2_932_896] {
            let far = file(&[EPOCH, day]);
            let error = all(&far, &plain).unwrap_err();
            assert_eq!((error.kind(), error.get("column")), (ErrorKind::Unsupported, Some("t")), "{error}");
            assert_eq!(all(&far, &numbers).unwrap(), 2);
        }
    }
}
