//! JSON, CSV and text, for the tests of all formats.

mod costs;
mod csv;
mod json;
mod jsonl;

use forebay_bundled::forebay_json;

use crate::{Corpus, Format, MOST, buffer, decode, expand, opened, parser, pieces};

pub(crate) const FORMAT: Format = Format {
    parsers: &[
        parser("csv", parse_csv, &["csv", "tsv", "tab"]),
        parser("json", parse_json, &["json"]),
        parser("json_array", json_array, &["json"]),
        parser("jsonl", parse_jsonl, &["jsonl"]),
        parser("text", text, &["txt", "cls", "jsonl", "csv"]),
    ],
    readers: &[
        opened("csv", &["csv_blocks block=16", "csv"], &["birds.csv", "legs.csv"]).costs(costs::csv),
        opened("csv_whole", &["csv_blocks", "csv"], &["birds.csv", "legs.csv"]).costs(costs::csv),
        opened("csv_packed", &["csv_blocks block=16", "csv ragged=fill"], PACKED),
        opened("json_array", &["json_array"], &["list.json"]).costs(costs::json_array),
        opened("json_lines", &["lines block=16", "json_lines"], &["rows.jsonl", "two.jsonl"])
            .costs(costs::json_lines),
        opened("json_lines_packed", &["lines block=16", "json_lines"], PACKED),
        opened("text_lines", &["lines rows=1", "text_lines"], &["words.txt", "two.jsonl"])
            .costs(costs::text_lines),
        decoded!("json", ["doc.json", "list.json"]),
        decoded!("number", ["label.cls"]),
        decoded!("text", ["words.txt"]),
    ],
    corpora: &[
        Corpus::new("json", json::digest, 0.99)
            .compare(json::compare)
            .aside(&["gz"])
            .known(include_str!("format/known.toml")),
        Corpus::new("jsonl", jsonl::digest, 0.99).compare(jsonl::compare).aside(&["gz"]),
        Corpus::new("csv", csv::digest, 0.99).aside(&["gz"]),
    ],
    ..Format::NONE
};

/// Lines of JSON, packed in every way: seeds of the plugin `compress`.
const PACKED: &[&str] =
    &["rows.jsonl.gz", "rows.jsonl.zst", "rows.jsonl.xz", "rows.jsonl.bz2", "rows.jsonl.lz4", "rows.jsonl.Z"];

fn parse_csv(bytes: &[u8]) {
    let _ = forebay_json::records(&buffer(bytes), forebay_json::Dialect::CSV);
    type Blocks = forebay_json::CsvBlocks;
    for options in ["{}", r##"{"header": false, "block": 64, "separator": "\t", "comment": "#"}"##] {
        pieces::<Blocks, forebay_json::Csv>(bytes, options);
    }
}

fn parse_json(bytes: &[u8]) {
    let _ = forebay_json::parse(&buffer(bytes));
}

fn json_array(bytes: &[u8]) {
    expand::<forebay_json::JsonArray>("{}", bytes);
}

fn parse_jsonl(bytes: &[u8]) {
    for fields in [&[][..], &["a".to_owned(), "/b/0".to_owned()]] {
        if let Ok(form) = forebay_json::Form::new(fields, forebay_json::Rules::DEFAULT) {
            forebay_json::rows(buffer(bytes), "file".into(), 0, form).take(MOST).for_each(drop);
        }
    }
    for options in ["{}", r#"{"block": 1}"#, r#"{"rows": 2}"#] {
        pieces::<forebay_json::Lines, forebay_json::JsonLines>(bytes, options);
    }
}

fn text(bytes: &[u8]) {
    let _ = forebay_json::parse_text(&buffer(bytes));
    decode::<forebay_json::Number>(bytes);
    pieces::<forebay_json::Lines, forebay_json::TextLines>(bytes, "{}");
}
