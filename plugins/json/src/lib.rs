#![doc = include_str!("../README.md")]

mod csv;
mod csv_blocks;
mod digits;
mod ends;
mod json;
mod json_array;
mod json_lines;
mod lines;
mod number;
mod piece;
mod record;
mod rows;
mod scan;
mod select;
mod shapes;
mod source;
mod text;
mod text_lines;
mod unique;
mod value;
mod write_csv;
mod write_jsonl;

pub use crate::{
    csv::{Csv, CsvItems, CsvOptions},
    csv_blocks::{CsvBlocks, CsvBlocksItems, CsvBlocksOptions},
    json::{Json, parse},
    json_array::{JsonArray, JsonArrayItems, JsonArrayOptions},
    json_lines::{JsonLines, JsonLinesItems, JsonLinesOptions, rows},
    lines::{Lines, LinesItems, LinesOptions},
    number::{Number, parse_number},
    record::{Cell, Dialect, records},
    rows::Form,
    scan::DEPTH,
    text::{Text, parse_text},
    text_lines::{TextLines, TextLinesItems, TextLinesOptions},
    value::{Duplicates, Rules},
    write_csv::{CsvFormat, WriteCsv, WriteCsvOptions},
    write_jsonl::{JsonlFormat, WriteJsonl, WriteJsonlOptions},
};

/// The mark that some programs put before UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

forebay_core::export_plugin! {
    state_version: 1,
    flat_maps: [Csv, CsvBlocks, JsonArray, JsonLines, Lines, TextLines],
    streams: [WriteCsv, WriteJsonl],
    decoders: [Json, Number, Text],
}
