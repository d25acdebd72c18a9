//! Zip archives: what is read, what is refused, and that damage never panics.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::io::Write as _;

use forebay_core::{Blob, Buffer, BufferMut, Error, ErrorKind, Items as _, Result, Sample, Value};
use forebay_testkit::Host;
use forebay_unpack::Directory;

struct Entry<'a> {
    name: &'a [u8],
    contents: &'a [u8],
    deflated: bool,
    wide: bool,
}

const fn stored<'a>(name: &'a [u8], contents: &'a [u8]) -> Entry<'a> {
    Entry { name, contents, deflated: false, wide: false }
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

fn crc(text: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(text);
    crc.sum()
}

/// An archive of these members, as APPNOTE has it.
fn archive(entries: &[Entry], wide_end: bool, comment: &[u8]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for Entry { name, contents, deflated, wide } in entries {
        let packed = if *deflated { deflate(contents) } else { contents.to_vec() };
        let mut extra = Vec::new();
        let narrow = |number: u64| if *wide { u32::MAX } else { number as u32 };
        if *wide {
            extra.extend([1_u16, 24].map(u16::to_le_bytes).concat());
            extra.extend(
                [contents.len() as u64, packed.len() as u64, out.len() as u64].map(u64::to_le_bytes).concat(),
            );
        }
        let common = [
            &[20, 0, 0, 8, if *deflated { 8 } else { 0 }, 0, 0, 0, 0, 0][..],
            &crc(contents).to_le_bytes(),
            &narrow(packed.len() as u64).to_le_bytes(),
            &narrow(contents.len() as u64).to_le_bytes(),
            &(name.len() as u16).to_le_bytes(),
        ]
        .concat();
        let extra_len = (extra.len() as u16).to_le_bytes();
        directory.extend(
            [&b"PK\x01\x02\x14\x03"[..], &common, &extra_len, &[0; 6], &0x81a4_0000_u32.to_le_bytes()]
                .concat(),
        );
        directory.extend([&narrow(out.len() as u64).to_le_bytes()[..], name, &extra].concat());
        out.extend([&b"PK\x03\x04"[..], &common, &[0, 0], name, &packed].concat());
    }
    let (start, count) = (out.len() as u64, entries.len() as u16);
    out.extend(&directory);
    let numbers = [directory.len() as u64, start];
    if wide_end {
        let at = out.len() as u64;
        out.extend([&b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0"[..], &[0; 8]].concat());
        out.extend(
            [u64::from(count), u64::from(count), numbers[0], numbers[1]].map(u64::to_le_bytes).concat(),
        );
        out.extend([&b"PK\x06\x07\0\0\0\0"[..], &at.to_le_bytes(), &1_u32.to_le_bytes()].concat());
    }
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, count].map(u16::to_le_bytes).concat());
    let narrow = numbers.map(|number| if wide_end { u32::MAX } else { number as u32 });
    out.extend(narrow.map(u32::to_le_bytes).concat());
    out.extend((comment.len() as u16).to_le_bytes());
    out.extend(comment);
    out
}

fn alloc(len: usize) -> Result<BufferMut> {
    Ok(BufferMut::zeroed(len))
}

/// Name and contents of each member, or the first error.
fn read(bytes: &[u8], limit: u64) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut directory = Directory::open(&Blob::from(Buffer::from(bytes.to_vec())), 1 << 20)?;
    let mut found = Vec::new();
    while let Some(member) = directory.next().transpose()? {
        let contents = directory.read(&member, limit, alloc)?.to_vec();
        found.push((member.name, contents));
    }
    Ok(found)
}

fn sample() -> [Entry<'static>; 4] {
    [
        stored(b"a/one.txt", b"heron"),
        Entry { deflated: true, ..stored(b"a/two.txt", &[b'x'; 3000]) },
        stored(b"a/", b""),
        Entry { deflated: true, wide: true, ..stored("grün/drei.txt".as_bytes(), b"wide numbers") },
    ]
}

#[test]
fn members_come_in_the_order_of_the_directory() {
    for (wide, comment) in
        [(false, &b""[..]), (true, b""), (false, b"PK\x05\x06 in a comment, behind the end")]
    {
        let whole = archive(&sample(), wide, comment);
        for bytes in [whole.clone(), [b"#!/bin/sh\n", &whole[..]].concat()] {
            let found = read(&bytes, 1 << 20).unwrap();
            let wanted: Vec<_> = sample()
                .map(|entry| (String::from_utf8(entry.name.to_vec()).unwrap(), entry.contents.to_vec()))
                .into();
            assert_eq!(found, wanted);
        }
    }
    assert!(read(&archive(&[], false, b""), 0).unwrap().is_empty());
}

#[test]
fn names_that_are_no_utf8_are_of_the_first_code_page() {
    let found = read(&archive(&[stored(b"gr\x81n.txt", b"")], false, b""), 9).unwrap();
    assert_eq!(found[0].0, "grün.txt");
}

#[test]
fn stored_members_share_the_archives_memory() {
    let bytes = Buffer::from(archive(&sample(), false, b""));
    let mut directory = Directory::open(&Blob::from(bytes.clone()), 1 << 20).unwrap();
    let member = directory.next().unwrap().unwrap();
    assert!(member.is_file());
    assert!(directory.read(&member, 99, alloc).unwrap().same_owner(&bytes));
    let place = directory.place();
    let second = directory.next().unwrap().unwrap();
    assert_eq!(directory.member(place).unwrap(), second);
    assert!(!directory.next().unwrap().unwrap().is_file());
}

#[test]
fn every_prefix_and_every_changed_byte_is_an_error_or_a_value() {
    for wide in [false, true] {
        let whole = archive(&sample(), wide, b"");
        for len in 0..whole.len() {
            assert!(read(&whole[..len], 1 << 20).is_err(), "{len}");
        }
        for at in 0..whole.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                let _ = read(&damaged, 1 << 20);
            }
        }
    }
}

#[test]
fn contents_are_checked_against_sum_and_limit() {
    let mut whole = archive(&[stored(b"one", b"heron")], false, b"");
    whole[33] ^= 1;
    let error = read(&whole, 9).unwrap_err();
    assert_eq!((error.kind(), error.get("member")), (ErrorKind::Corrupt, Some("one")), "{error}");
    let whole = archive(&[Entry { deflated: true, ..stored(b"zeros", &[0; 5000]) }], false, b"");
    assert_eq!(read(&whole, 4999).unwrap_err().kind(), ErrorKind::Limit);
    let mut encrypted = archive(&[stored(b"one", b"heron")], false, b"");
    let entry = encrypted.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    encrypted[entry + 8] = 1;
    assert_eq!(read(&encrypted, 9).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_stream_goes_on_behind_a_member_that_cannot_be_read() {
    let mut whole = archive(&[stored(b"one", b"heron"), stored(b"two", b"ibis")], false, b"");
    whole[33] ^= 1;
    let blob = Blob::from(Buffer::from(whole));
    let mut members = forebay_compress::members(&blob, "a.zip".into(), 1, 1 << 20).unwrap();
    let host = Host::new();
    assert_eq!(members.next(&host.context()).unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(members.goes_on());
    assert_eq!(members.next(&host.context()).unwrap().unwrap().key().to_string(), "a.zip!/two");
    assert_eq!(members.next(&host.context()).unwrap(), None);
}

/// Key and fields of each sample, or its error.
fn samples(bytes: Vec<u8>) -> Vec<Result<(String, Vec<String>), Error>> {
    let mut items =
        forebay_compress::samples(&Blob::from(Buffer::from(bytes)), "a.zip".into(), 1, 1 << 20).unwrap();
    let host = Host::new();
    let fields = |sample: &Sample| {
        let text = |value: &Value| String::from_utf8(value.as_bytes().unwrap().to_vec()).unwrap();
        sample.fields().map(|(name, value)| format!("{name}={}", text(value))).collect()
    };
    std::iter::from_fn(|| items.next(&host.context()).transpose())
        .map(|sample| sample.map(|sample| (sample.key().to_string(), fields(&sample))))
        .collect()
}

#[test]
fn files_of_one_name_are_one_sample_wherever_they_stand() {
    let entries = [
        stored(b"d/2.jpg", b"two"),
        stored(b"d/1.txt", b"heron"),
        stored(b"readme", b""),
        stored(b"__MACOSX/d/._1.txt", b""),
        Entry { deflated: true, ..stored(b"d/2.Seg.PNG", b"mask") },
        stored(b"1.txt", b"another folder"),
        stored(b"d/1.jpg", b"one"),
    ];
    let found: Vec<_> = samples(archive(&entries, false, b"")).into_iter().map(Result::unwrap).collect();
    let wanted = [
        ("a.zip!/d/2", &["jpg=two", "seg.png=mask"][..]),
        ("a.zip!/d/1", &["txt=heron", "jpg=one"]),
        ("a.zip!/1", &["txt=another folder"]),
    ];
    assert_eq!(
        found,
        wanted.map(|(key, fields)| (key.into(), fields.iter().map(|&field| field.into()).collect()))
    );
}

#[test]
fn a_sample_of_two_equal_fields_or_too_many_is_refused_and_the_next_one_comes() {
    let clash = [stored(b"1.txt", b""), stored(b"1.TXT", b""), stored(b"2.txt", b"ibis")];
    let found = samples(archive(&clash, false, b""));
    let error = found[0].as_ref().unwrap_err();
    assert!(error.message().contains("`txt`: `1.txt` and"), "{error}");
    assert_eq!((error.get("member"), error.get("file")), (Some("1.TXT"), Some("a.zip")));
    assert_eq!((found[1].as_ref().unwrap().0.as_str(), found.len()), ("a.zip!/2", 2));
    let names: Vec<_> = (0..1025).map(|field| format!("1.{field}")).collect();
    let entries: Vec<_> = names.iter().map(|name| stored(name.as_bytes(), b"")).collect();
    assert_eq!(samples(archive(&entries, false, b""))[0].as_ref().unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(samples(archive(&entries[1..], false, b""))[0].as_ref().unwrap().1.len(), 1024);
}

#[test]
fn a_saved_place_goes_on_with_the_next_sample() {
    let entries = [stored(b"1.a", b"x"), stored(b"2.a", b"y"), stored(b"1.b", b"z"), stored(b"3.a", b"")];
    let blob = Blob::from(Buffer::from(archive(&entries, false, b"")));
    let open = || forebay_compress::samples(&blob, "a.zip".into(), 1, 1 << 20).unwrap();
    let host = Host::new();
    for given in 0..=3 {
        let (mut first, mut second) = (open(), open());
        for _ in 0..given {
            first.next(&host.context()).unwrap().unwrap();
        }
        second.restore(&first.state().unwrap(), &host.context()).unwrap();
        for _ in given..=3 {
            assert_eq!(second.next(&host.context()).unwrap(), first.next(&host.context()).unwrap());
        }
        assert_eq!(second.next(&host.context()).unwrap(), None);
    }
}

#[test]
fn members_that_share_bytes_are_refused() {
    let mut whole = archive(&[stored(b"one", b"heron"), stored(b"one", b"heron")], false, b"");
    let second = whole.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
    whole[second + 42..second + 46].fill(0);
    assert!(read(&whole, 9).unwrap_err().message().contains("the next one is at"));
}

#[test]
fn a_local_header_with_another_name_is_refused() {
    let mut whole = archive(&[stored(b"one", b"heron")], false, b"");
    whole[30] = b'x';
    assert!(read(&whole, 9).unwrap_err().message().contains("another name"));
}
