//! Tar archives, for the tests of all formats.

mod corpus;

use forebay_bundled::forebay_tar;
use forebay_core::Blob;
use forebay_testkit::Costs;

use crate::{BYTES, Corpus, END, Format, Kit, MOST, buffer, expand, opened, parser, pieces};

pub(crate) const FORMAT: Format = Format {
    parsers: &[parser("tar", tar, &["tar"]), parser("tar_pieces", tar_pieces, &["tar"])],
    readers: &[
        opened("tar_pieces", &["tar_pieces samples=2", "untar_pieces"], &["gnu.tar", "pax.tar", "birds.tar"])
            .costs(grouped),
        opened("untar", &["untar"], &["gnu.tar", "pax.tar", "birds.tar"]).costs(grouped),
        opened("untar_files", &["untar group=none"], &["birds.tar"]).costs(apart),
    ],
    corpora: &[Corpus::new("tar", corpus::digest, 0.99)
        .compare(corpus::compare)
        .known(include_str!("format/known.toml"))],
    kit: Some(Kit {
        graphs: &[
            "range 40 | write_tar 'FOLDER/{:05}.tar' shard_size=7",
            "files SEEDS/pax.tar | tar_pieces samples=1 | untar_pieces",
        ],
        writes: 6,
        ..Kit::of(&["pax.tar", "gnu.tar"])
    }),
};

/// Members, of which those that share their name up to the dot are a sample.
fn grouped(bytes: &[u8]) -> Costs {
    members(bytes, true)
}

/// Members, each a sample.
fn apart(bytes: &[u8]) -> Costs {
    members(bytes, false)
}

/// Blocks of 512 bytes: headers, and the contents of files, which nothing checks. Behind a header that is wrong nobody finds the next, and
/// the sample before it, if it is a group, may go on there.
fn members(bytes: &[u8], grouped: bool) -> Costs {
    let text = |field: &[u8]| String::from_utf8(field.to_vec()).unwrap();
    let (mut costs, mut at, mut samples) = (Costs::new(), 0, 0_usize);
    // Of the sample being collected; none where a header before its own has its name.
    let mut key = None;
    while let Some(header) = bytes.get(at..at + 512).filter(|header| header[0] != 0) {
        let size = usize::from_str_radix(text(&header[124..136]).trim_end_matches(['\0', ' ']), 8).unwrap();
        let end = at + 512 + size.next_multiple_of(512);
        let is_file = matches!(header[156], b'0' | 0);
        let name = text(&header[..100]);
        let name = name.split(if grouped { '.' } else { '\0' }).next().unwrap_or_default().to_owned();
        let same = is_file && key.is_none_or(|key| key == name);
        samples += usize::from(!same || samples == 0);
        key = is_file.then_some(name);
        let sample = samples - 1;
        let broken = sample.saturating_sub(usize::from(grouped))..END;
        costs = costs.part(at..at + 512, broken.clone());
        costs = costs.part(at + 512..end, if is_file { sample..samples } else { broken });
        at = end;
    }
    costs.part(at..END, samples - usize::from(grouped)..samples)
}

fn tar(bytes: &[u8]) {
    let members = forebay_tar::walk(bytes).take(MOST);
    members.for_each(|member| drop(member.map(|member| drop(member.contents(BYTES)))));
    forebay_tar::samples(buffer(bytes), "file".into(), 0, forebay_tar::Group::WebDataset)
        .take(MOST)
        .for_each(drop);
    let _ = forebay_tar::Index::build(&Blob::from(buffer(bytes)), forebay_tar::Group::None);
}

fn tar_pieces(bytes: &[u8]) {
    pieces::<forebay_tar::TarPieces, forebay_tar::UntarPieces>(bytes, "{}");
    expand::<forebay_tar::Untar>(r#"{"links": "follow", "concatenated": true}"#, bytes);
}
