//! What a Parquet file's own numbers would take, looked at before the library believes them.
//!
//! Source: <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>: `FileMetaData`, `SchemaElement`,
//! `PageHeader`.

use std::ops::Range;

use forebay_core::{Error, Result, room_for};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::{chunks::Chunks, thrift::Skim};

/// The most columns within each other: the library goes down one call for each.
const DEPTH: usize = 96;
/// More values than this in a byte are no data, when they do not fit into memory either.
const VALUES_A_BYTE: u64 = 1024;

/// Checks how deep the columns of a footer lie within each other.
pub(crate) fn check_schema(footer: &[u8]) -> Result<()> {
    let mut skim = Skim::new(footer);
    skim.fields(|id, kind, skim| {
        if (id, kind) != (2, 9) {
            return Ok(false);
        }
        let (_, count) = skim.list()?;
        // How many children are still to come, on each level.
        let mut open: Vec<i64> = Vec::new();
        for _ in 0..count {
            let mut children = 0;
            skim.fields(|id, kind, skim| {
                let counted = (id, kind) == (5, 5);
                children = if counted { skim.int()? } else { children };
                Ok(counted)
            })?;
            while open.last() == Some(&0) {
                open.pop();
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            if open.len() > DEPTH {
                return Err(Error::limit(format!("columns lie more than {DEPTH} levels within each other")));
            }
        }
        Ok(true)
    })
}

/// Checks that each page of a column chunk takes no more than `limit` bytes, that a dictionary has the values it claims, for which
/// the library takes memory at once, and that lists do not claim endless items.
pub(crate) fn check_chunk(
    chunks: &Chunks,
    column: &ColumnChunkMetaData,
    range: &Range<u64>,
    limit: u64,
) -> Result<()> {
    let Range { start: mut at, end } = *range;
    let (len, mut values) = (end.saturating_sub(at), 0_u64);
    while at < end {
        let Some(bytes) = chunks.from(at) else { break };
        let page = Page::read(&bytes).map_err(|error| error.context("byte", at))?;
        if page.unpacked > limit {
            let message = format!("a page unpacks to {} bytes, and {limit} are allowed", page.unpacked);
            return Err(Error::limit(message).context("byte", at));
        }
        room_for(page.unpacked).map_err(|error| error.context("byte", at))?;
        if page.is_dictionary && page.values > page.unpacked {
            let Page { values, unpacked, .. } = page;
            let message = format!("a dictionary of {unpacked} bytes claims {values} values");
            return Err(Error::corrupt(message).context("byte", at));
        }
        values = values.saturating_add(page.values);
        at = at.saturating_add(page.head + page.packed);
    }
    if column.column_descr().max_rep_level() > 0
        && values.saturating_mul(8) > limit
        && values / VALUES_A_BYTE > len
    {
        return Err(Error::limit(format!("a column of {len} bytes claims {values} values in lists")));
    }
    Ok(())
}

struct Page {
    head: u64,
    unpacked: u64,
    packed: u64,
    values: u64,
    /// Its values are stored one by one, each in a byte at least.
    is_dictionary: bool,
}

impl Page {
    fn read(bytes: &[u8]) -> Result<Self> {
        let (mut skim, mut values, mut is_dictionary) = (Skim::new(bytes), 0, false);
        let mut sizes = [0_i64; 2];
        skim.fields(|id, kind, skim| match (id, kind) {
            (2 | 3, 5) => {
                sizes[(id - 2) as usize] = skim.int()?;
                Ok(true)
            }
            // The headers of a data page, a dictionary page and a data page of version 2; each begins with its number of values.
            (5 | 7 | 8, 12) => {
                is_dictionary = id == 7;
                skim.fields(|id, kind, skim| {
                    let counted = (id, kind) == (1, 5);
                    values = if counted { skim.int()? } else { values };
                    Ok(counted)
                })?;
                Ok(true)
            }
            _ => Ok(false),
        })?;
        let size = |size: i64| {
            u64::try_from(size).map_err(|_| Error::corrupt(format!("found a page of {size} bytes")))
        };
        let (unpacked, packed) = (size(sizes[0])?, size(sizes[1])?);
        let values = u64::try_from(values).unwrap_or(0);
        Ok(Self { head: skim.at() as u64, unpacked, packed, values, is_dictionary })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, RecordBatch};
    use forebay_core::Buffer;
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::ReadOptions;

    /// A footer whose schema has so many groups within each other.
    fn nested(depth: usize) -> Vec<u8> {
        let mut bytes = vec![0x15, 2, 0x19, 0xfc];
        let mut count = depth;
        while count > 127 {
            bytes.push(count as u8 | 128);
            count >>= 7;
        }
        bytes.push(count as u8);
        bytes.extend([0x55, 2, 0].repeat(depth));
        bytes.push(0);
        bytes
    }

    #[test]
    fn columns_within_columns_have_a_limit() {
        assert!(check_schema(&nested(DEPTH)).is_ok());
        assert!(check_schema(&nested(DEPTH + 1)).is_err());
        assert!(check_schema(&nested(1_000_000)).is_err());
    }

    #[test]
    fn the_head_of_a_page_is_read() {
        let bytes = [0x15, 0, 0x15, 20, 0x15, 10, 0x2c, 0x15, 8, 0, 0, 7];
        let page = Page::read(&bytes).unwrap();
        assert_eq!((page.head, page.unpacked, page.packed, page.values), (11, 10, 5, 4));
        assert!(Page::read(&[0x25, 1, 0]).is_err(), "a negative size");
    }

    #[test]
    fn a_dictionary_has_the_values_that_it_claims() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![5, 6, 7, 5, 6, 7]));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let mut bytes = writer.into_inner().unwrap();
        // Behind the magic a dictionary page of 12 bytes, with 3 values.
        assert_eq!(bytes[4..12], [0x15, 4, 0x15, 24, 0x15, 24, 0x4c, 0x15]);
        let read = |bytes: &[u8]| {
            let table = crate::read(&Buffer::from(bytes.to_vec()).into(), &ReadOptions::default())?;
            table.collect::<Result<Vec<_>>>().map(|batches| batches.len())
        };
        assert_eq!((bytes[12], read(&bytes).unwrap()), (6, 1));
        bytes[12] = 126;
        let error = read(&bytes).unwrap_err();
        assert_eq!(error.message(), "a dictionary of 12 bytes claims 63 values");
        assert_eq!(error.get("byte"), Some("4"));
    }
}
