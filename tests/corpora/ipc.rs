//! Arrow IPC files and streams, by the same reader and in the same words as Parquet.

pub(crate) use super::parquet::{compare, digest};
