#![doc = include_str!("../README.md")]

mod example;
mod parse_example;
mod proto;
mod source;
mod tfrecords;

pub use crate::{
    example::{Kind, Wish, parse_example, parse_sequence_example},
    parse_example::{ParseExample, ParseExampleOptions},
    tfrecords::{Records, TfRecords, TfRecordsOptions, records},
};

forebay_core::export_plugin! { state_version: 1, maps: [ParseExample], flat_maps: [TfRecords] }
