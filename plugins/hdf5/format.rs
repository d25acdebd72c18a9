//! HDF5, for the tests of all formats.

mod corpus;

use std::collections::BTreeSet;

use forebay_bundled::forebay_hdf5::{self, Group, Object, Target};
use forebay_core::Result;
use forebay_testkit::Costs;

use crate::{Corpus, Format, LIMITS, apart, buffer, opened, parser, pieces};

pub(crate) const FORMAT: Format = Format {
    parsers: &[
        parser("hdf5", hdf5, &["h5", "hdf5", "mat", "nc"]),
        parser("hdf5_rows", hdf5_rows, &["h5", "hdf5", "mat", "nc"]),
    ],
    readers: &[
        opened("hdf5", &["hdf5_pieces piece_bytes=8", "hdf5_rows"], &["chunks.h5", "newer.h5", "words.h5"])
            .costs(costs),
        // Rows whose text is elsewhere, all in one piece.
        opened("hdf5_whole", &["hdf5_pieces", "hdf5_rows"], &["words.h5"]).costs(costs),
    ],
    corpora: &[Corpus::new("hdf5", corpus::digest, 0.90)
        .compare(corpus::compare)
        .known(include_str!("format/known.toml"))],
    ..Format::NONE
};

/// What h5py says: where the chunks are, of two rows each, or the rows themselves; by the length of the file.
fn costs(bytes: &[u8]) -> Costs {
    match bytes.len() {
        // chunks.h5
        4064 => apart(&[(4016..4032, 0..2), (4032..4048, 2..4), (4048..4064, 4..6)]),
        // newer.h5: behind the chunks of one dataset the rows of another, of a byte each.
        2114 => {
            let costs = apart(&[(2048..2068, 0..2), (2068..2088, 2..4), (2088..2108, 4..6)]);
            (0..6).fold(costs, |costs, row| costs.part(2108 + row..2109 + row, row..row + 1))
        }
        // words.h5: the rows say where their text is.
        6192 => apart(&[(2048..2064, 0..1), (2064..2080, 1..2), (2080..2096, 2..3)]),
        _ => Costs::new(),
    }
}

fn hdf5(bytes: &[u8]) {
    fn visit(group: &Group, seen: &mut BTreeSet<u64>, depth: usize) -> Result<()> {
        for link in group.links()? {
            let Target::Object(address) = link.target else { continue };
            if seen.len() > 64 || depth > 8 || !seen.insert(address) {
                continue;
            }
            match group.follow(&link) {
                Ok(Object::Group(group)) => {
                    let _ = group.attributes();
                    let _ = visit(&group, seen, depth + 1);
                }
                Ok(Object::Dataset(dataset)) => {
                    let _ = dataset.attributes();
                    let _ = dataset.read_rows(0..dataset.rows().min(100));
                }
                _ => {}
            }
        }
        Ok(())
    }
    let _ = (|| -> Result<()> {
        let file = forebay_hdf5::File::open_limited(buffer(bytes).into(), &LIMITS)?;
        visit(&file.root()?, &mut BTreeSet::new(), 0)
    })();
}

fn hdf5_rows(bytes: &[u8]) {
    pieces::<forebay_hdf5::Hdf5Pieces, forebay_hdf5::Hdf5Rows>(bytes, r#"{"piece_bytes": 4096}"#);
}
