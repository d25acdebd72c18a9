//! MessagePack, for the tests of all formats.

use forebay_bundled::forebay_msgpack;

use crate::{Format, Kit, buffer, parser};

pub(crate) const FORMAT: Format = Format {
    parsers: &[parser("msgpack", msgpack, &["msgpack"])],
    readers: &[decoded!("msgpack", ["doc.msgpack"])],
    kit: Some(Kit::of(&["doc.msgpack"])),
    ..Format::NONE
};

fn msgpack(bytes: &[u8]) {
    let _ = forebay_msgpack::parse(&buffer(bytes));
}
