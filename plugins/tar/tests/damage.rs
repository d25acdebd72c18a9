//! Damaged archives: never a panic, always an error that says where; and the features that are refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use forebay_core::{Error, ErrorKind};
use forebay_tar::{read, walk};
use tar::{Builder, EntryType, Header};

const MEMBERS: [(&str, &[u8]); 3] =
    [("0001.jpg", b"not quite a jpeg"), ("0001.cls", b"7"), ("0002.jpg", &[9; 700])];

fn archive() -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    builder.append_pax_extensions([("path", &b"0000.txt"[..])]).unwrap();
    for (name, contents) in MEMBERS {
        let mut header = Header::new_gnu();
        header.set_size(contents.len() as u64);
        builder.append_data(&mut header, name, contents).unwrap();
    }
    let mut header = Header::new_gnu();
    header.set_size(2);
    builder.append_data(&mut header, "n".repeat(300), &b"ab"[..]).unwrap();
    builder.into_inner().unwrap()
}

fn first_error(archive: &[u8]) -> Option<Error> {
    let walked: Vec<_> = walk(archive).collect();
    let streamed: Vec<_> = read(archive, 1 << 20).collect();
    assert_eq!(walked, streamed);
    walked.into_iter().find_map(Result::err)
}

#[test]
fn every_prefix_errs_unless_it_ends_between_members() {
    let whole = archive();
    assert!(first_error(&whole).is_none());
    let members: Vec<_> = walk(&whole).map(Result::unwrap).collect();
    let mut ends: Vec<_> = members.iter().map(|member| member.offset as usize).collect();
    ends.push(whole.len() - 1024);
    for len in 0..=whole.len() {
        let error = first_error(&whole[..len]);
        let fine = ends.contains(&len) || len >= whole.len() - 512;
        assert_eq!(error.is_none(), fine, "{len}: {error:?}");
        if let Some(error) = error {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.get("byte").is_some(), "{error}");
        }
    }
}

#[test]
fn a_cut_member_is_named_with_the_bytes_found_and_wanted() {
    let whole = archive();
    let last = walk(&whole).map(Result::unwrap).find(|member| &*member.name == b"0002.jpg").unwrap();
    let cut = last.data_offset as usize + 100;
    let error = first_error(&whole[..cut]).unwrap();
    assert_eq!(error.message(), "truncated member: 100 bytes of 700");
    assert_eq!(error.get("member"), Some("0002.jpg"));
    assert_eq!(error.get("byte"), Some(last.offset.to_string().as_str()));
    assert_eq!(error.get("end"), Some(cut.to_string().as_str()));
    assert_eq!(walk(&whole[..cut]).last().unwrap().unwrap_err(), error);
}

#[test]
fn a_flipped_byte_never_panics_and_is_seen_in_a_header() {
    let whole = archive();
    for at in 0..whole.len() {
        for flip in [0x01, 0x40, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            let error = first_error(&damaged);
            let member_header = walk(&whole).map(Result::unwrap).any(|member| {
                let header = member.data_offset as usize;
                (header - 512..header).contains(&at)
            });
            // The digits of the checksum itself may change into others with the same meaning.
            let in_checksum = (148..156).contains(&(at % 512));
            assert!(!member_header || in_checksum || error.is_some(), "byte {at} ^ {flip:#x}");
        }
    }
}

#[test]
fn garbage_after_a_member_names_its_byte() {
    let mut whole = archive();
    let end = whole.len() - 1024;
    whole[end..].fill(b'x');
    let error = first_error(&whole).unwrap();
    assert_eq!(
        (error.kind(), error.get("byte")),
        (ErrorKind::Corrupt, Some(end.to_string().as_str())),
        "{error}"
    );
}

#[test]
fn what_is_no_tar_at_all_says_so() {
    assert_eq!(first_error(b"\x1f\x8b and then some").unwrap().kind(), ErrorKind::Corrupt);
    let mut packed = vec![7; 1024];
    packed[..3].copy_from_slice(b"\x1f\x8b\x08");
    let error = first_error(&packed).unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("gzip"), "{error}");
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_path("holes.bin").unwrap();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_cksum();
    header
}

#[test]
fn sparse_files_whose_map_cannot_be_are_refused_by_name() {
    let mut old = Builder::new(Vec::new());
    let mut header = header(EntryType::GNUSparse, 4);
    header.as_mut_bytes()[386..410].copy_from_slice(b"000000000010000000000005");
    header.as_mut_bytes()[483..495].copy_from_slice(b"000000000100");
    header.set_cksum();
    old.append(&header, &b"data"[..]).unwrap();
    let pax = |records: &[(&str, &[u8])], data: &[u8]| {
        let mut builder = Builder::new(Vec::new());
        builder.append_pax_extensions(records.iter().copied()).unwrap();
        let mut header = Header::new_gnu();
        header.set_path("holes.bin").unwrap();
        header.set_size(data.len() as u64);
        header.set_cksum();
        builder.append(&header, data).unwrap();
        builder.into_inner().unwrap()
    };
    let (size, major): (_, (_, &[u8])) = (("GNU.sparse.realsize", &b"8"[..]), ("GNU.sparse.major", b"1"));
    for archive in [
        old.into_inner().unwrap(),
        pax(&[major], b"0\n"),
        pax(&[major, size], b"data"),
        pax(&[major, size], b"1\n0\n9\n"),
        pax(&[size, ("GNU.sparse.map", b"0,4,2,1")], b"data"),
        pax(&[size, ("GNU.sparse.map", b"0,5")], b"data"),
        pax(&[size, ("GNU.sparse.map", b"4,5")], b"datas"),
        pax(&[size, ("GNU.sparse.map", b"4")], b"data"),
    ] {
        let error = first_error(&archive).unwrap();
        assert_eq!((error.kind(), error.get("member")), (ErrorKind::Corrupt, Some("holes.bin")), "{error}");
    }
    // A file may be far larger than what is stored of it: no memory is taken before the limit is looked at.
    let vast =
        pax(&[("GNU.sparse.size", &b"60000000000"[..]), ("GNU.sparse.map", b"59999999996,4")], b"data");
    let member = walk(&vast).next().unwrap().unwrap();
    assert_eq!(
        (member.size, member.contents(1 << 30).unwrap_err().kind()),
        (60_000_000_000, ErrorKind::Limit)
    );
}

#[test]
fn huge_sizes_take_no_memory() {
    for size in [1 << 40, (1 << 62) - 1] {
        let bytes = header(EntryType::Regular, size).as_bytes().to_vec();
        assert_eq!(walk(&bytes).next().unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(read(&bytes[..], 1 << 30).next().unwrap().unwrap_err().kind(), ErrorKind::Limit);
        let bytes = header(EntryType::GNULongName, size).as_bytes().to_vec();
        assert_eq!(first_error(&bytes).unwrap().kind(), ErrorKind::Limit);
    }
}
