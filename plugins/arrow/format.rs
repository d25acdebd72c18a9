//! Parquet and Arrow IPC, for the tests of all formats.

mod corpus;

use forebay_bundled::forebay_arrow;
use forebay_testkit::Costs;

use crate::{Corpus, END, Format, LIMITS, MOST, apart, buffer, decode, opened, parser, pieces};

pub(crate) const FORMAT: Format = Format {
    parsers: &[
        parser("ipc", ipc, &["arrow", "arrows", "arrow_file", "feather", "ipc", "stream"]),
        parser("parquet", parquet, &["parquet", "parq"]),
    ],
    readers: &[
        opened("read_columns", &["row_groups", "read_columns size=2"], COLUMNS).costs(batches),
        opened("read_rows", &["row_groups", "read_rows"], COLUMNS).costs(rows),
        decoded!("arrow", ["flat.parquet", "words.arrows"]),
    ],
    corpora: &[
        Corpus::new("parquet", corpus::digest, 0.99)
            .compare(corpus::compare)
            .known(include_str!("format/known.toml")),
        Corpus::new("ipc", corpus::digest, 0.99).compare(corpus::compare),
    ],
    ..Format::NONE
};

const COLUMNS: &[&str] = &[
    "flat.parquet",
    "nested.parquet",
    "delta.parquet",
    "groups.parquet",
    "flat.arrow",
    "batches.arrow",
    "batches.arrows",
    "packed.arrows",
    "words.arrows",
];

/// The rows of row groups and of record batches, each group by itself.
fn rows(bytes: &[u8]) -> Costs {
    columns(bytes, 1)
}

/// The same, where a sample is two rows.
fn batches(bytes: &[u8]) -> Costs {
    columns(bytes, 2)
}

/// What pyarrow says: where the groups are, and the bodies of the batches; by the length of the file.
fn columns(bytes: &[u8], rows: usize) -> Costs {
    let (places, each) = match bytes.len() {
        // groups.parquet
        761 => ([4..118, 118..232, 232..346], 4),
        // batches.arrow
        1482 => ([416..544, 776..880, 1112..1208], 2),
        // batches.arrows: behind the head of a batch that is wrong nobody finds the next.
        1208 => {
            let each = 2 / rows;
            return Costs::new()
                .part(176..408, 0..END)
                .part(408..536, 0..each)
                .part(536..768, each..END)
                .part(768..872, each..2 * each)
                .part(872..1104, 2 * each..END)
                .part(1104..1200, 2 * each..3 * each)
                .part(1200..END, 3 * each..END);
        }
        _ => return Costs::new(),
    };
    let each = each / rows;
    let parts = places.into_iter().enumerate();
    apart(&parts.map(|(at, place)| (place, at * each..(at + 1) * each)).collect::<Vec<_>>())
}

fn ipc(bytes: &[u8]) {
    decode::<forebay_arrow::Arrow>(bytes);
    pieces::<forebay_arrow::RowGroups, forebay_arrow::ReadRows>(bytes, "{}");
}

fn parquet(bytes: &[u8]) {
    ipc(bytes);
    // Damaged statistics and indexes are looked at by a filter alone.
    let filter = forebay_arrow::Predicate::parse("a > 1 and b != 'x' and c is not null").ok();
    let options = forebay_arrow::ReadOptions { filter, limits: LIMITS, ..Default::default() };
    if let Ok(table) = forebay_arrow::read(&buffer(bytes).into(), &options) {
        table.take(MOST).for_each(drop);
    }
}
