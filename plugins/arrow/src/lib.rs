#![doc = include_str!("../README.md")]

mod batches;
mod cells;
mod chunks;
mod columns;
mod decoder;
mod document;
mod endian;
mod errors;
mod exchange;
mod hive;
mod in_memory;
mod ipc;
mod mend;
mod messages;
mod old_packing;
mod pages;
mod parquet;
mod piece;
mod predicate;
mod prune;
mod read_columns;
mod read_rows;
mod row_groups;
mod table;
#[cfg(test)]
mod tests;
mod thrift;
mod times;
mod words;
mod write_table;

pub use arrow_array;
pub use arrow_schema;

pub use crate::{
    batches::BatchForm,
    decoder::{Arrow, decode},
    document::Batch,
    exchange::{export, import},
    in_memory::InMemory,
    predicate::Predicate,
    read_columns::{ColumnItems, ReadColumns, ReadColumnsOptions},
    read_rows::{ReadRows, RowItems, RowValues},
    row_groups::{PieceItems, RowGroups, RowGroupsOptions},
    table::{ReadOptions, Table, read},
    write_table::{WriteIpc, WriteIpcOptions, WriteParquet, WriteParquetOptions},
};

forebay_core::export_plugin! { state_version: 1, flat_maps: [RowGroups, ReadRows, ReadColumns], streams: [WriteIpc, WriteParquet], decoders: [Arrow] }
