//! TFRecord and `tf.train.Example`, for the tests of all formats.

mod corpus;

use forebay_bundled::forebay_tfrecord;
use forebay_testkit::Costs;

use crate::{Corpus, END, Format, Kit, MOST, buffer, file, number, opened, parser};

pub(crate) const FORMAT: Format = Format {
    parsers: &[parser("example", example, &["example"]), parser("tfrecord", tfrecord, &["tfrecord"])],
    readers: &[
        opened("tfrecords", &["tfrecords", "parse_example"], &["examples.tfrecord"]).costs(costs),
        opened("parse_example", &["parse_example"], &["one.example"]),
        opened("parse_sequence_example", &["parse_example sequence=true"], &["sequence.example"]),
    ],
    corpora: &[Corpus::new("tfrecord", corpus::digest, 1.0)],
    kit: Some(Kit::of(&["examples.tfrecord"])),
};

/// A length, its checksum, so many bytes and theirs. Behind a length that is wrong nobody finds the next.
fn costs(bytes: &[u8]) -> Costs {
    let (mut costs, mut at, mut sample) = (Costs::new(), 0, 0);
    while at < bytes.len() {
        let data = at + 12;
        let end = data + number(&bytes[at..at + 8]) + 4;
        costs = costs.part(at..data, sample..END);
        costs = costs.part(data..if end == bytes.len() { END } else { end }, sample..sample + 1);
        (at, sample) = (end, sample + 1);
    }
    costs
}

fn example(bytes: &[u8]) {
    let _ = forebay_tfrecord::parse_example(&buffer(bytes), &[]);
    let _ = forebay_tfrecord::parse_sequence_example(&buffer(bytes), &[]);
}

fn tfrecord(bytes: &[u8]) {
    for check in [true, false] {
        for record in forebay_tfrecord::records(buffer(bytes).into(), &file(&[]), check).take(MOST).flatten()
        {
            if let Some(message) = record.get("bytes").and_then(|bytes| bytes.as_bytes()) {
                let _ = forebay_tfrecord::parse_example(message, &[]);
                let _ = forebay_tfrecord::parse_sequence_example(message, &[]);
            }
        }
    }
}
