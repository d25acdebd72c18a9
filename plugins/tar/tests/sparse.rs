//! Sparse files of every format, linked and concatenated and packed archives: what the samples are.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::io::Write as _;

use forebay_core::{Blob, Buffer, ErrorKind, Sample, Str};
use forebay_tar::{Group, Kind, open, read, samples, walk};
use tar::{Builder, EntryType, Header};

fn append(builder: &mut Builder<Vec<u8>>, name: &str, contents: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_size(contents.len() as u64);
    builder.append_data(&mut header, name, contents).unwrap();
}

fn link(builder: &mut Builder<Vec<u8>>, name: &str, target: &str) {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Link);
    header.set_size(0);
    builder.append_link(&mut header, name, target).unwrap();
}

/// An old GNU sparse header with these parts; more than four go on in blocks of their own.
fn old_gnu(parts: &[(u64, u64)], size: u64, data: &[u8]) -> Vec<u8> {
    let numbers: Vec<String> =
        parts.iter().flat_map(|(start, len)| [start, len]).map(|n| format!("{n:011o}\0")).collect();
    let map = numbers.concat().into_bytes();
    let mut header = Header::new_gnu();
    header.set_path("holes.bin").unwrap();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(data.len() as u64);
    let (first, rest) = map.split_at(map.len().min(96));
    let bytes = header.as_mut_bytes();
    bytes[386..386 + first.len()].copy_from_slice(first);
    bytes[482] = u8::from(!rest.is_empty());
    bytes[483..495].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header.set_cksum();
    let mut out = header.as_bytes().to_vec();
    let blocks: Vec<_> = rest.chunks(504).collect();
    for (at, block) in blocks.iter().enumerate() {
        let start = out.len();
        out.resize(start + 512, 0);
        out[start..start + block.len()].copy_from_slice(block);
        out[start + 504] = u8::from(at + 1 < blocks.len());
    }
    out.extend(data);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn pax(records: &[(&str, String)], data: &[u8]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    builder.append_pax_extensions(records.iter().map(|(key, value)| (*key, value.as_bytes()))).unwrap();
    let mut header = Header::new_ustar();
    header.set_path("GNUSparseFile.7/holes.bin").unwrap();
    header.set_size(data.len() as u64);
    header.set_cksum();
    builder.append(&header, data).unwrap();
    let out = builder.into_inner().unwrap();
    out[..out.len() - 1024].to_vec()
}

/// One file with holes in each format, and what it holds.
fn sparse_files() -> (Vec<(&'static str, Vec<u8>)>, Vec<u8>) {
    let parts: Vec<(u64, u64)> = (0..40).map(|part| (10 + part * 100, 7)).chain([(5000, 0)]).collect();
    let data: Vec<u8> = (0..280_u32).map(|at| at as u8 | 1).collect();
    let mut whole = vec![0; 5000];
    for ((start, len), stored) in parts.iter().zip(data.chunks(7)) {
        whole[*start as usize..(start + len) as usize].copy_from_slice(stored);
    }
    let list =
        |mark: &str| parts.iter().map(|(start, len)| format!("{start}{mark}{len}{mark}")).collect::<String>();
    let size = |key| (key, "5000".to_owned());
    let path = |key| (key, "holes.bin".to_owned());
    let mut zero: Vec<(&str, String)> =
        vec![size("GNU.sparse.size"), ("GNU.sparse.numblocks", "41".into()), path("path")];
    for (start, len) in &parts {
        zero.extend([("GNU.sparse.offset", start.to_string()), ("GNU.sparse.numbytes", len.to_string())]);
    }
    let map = list(",").trim_end_matches(',').to_owned();
    let one = [size("GNU.sparse.size"), ("GNU.sparse.map", map), path("GNU.sparse.name")];
    let mut front = format!("41\n{}", list("\n")).into_bytes();
    front.resize(front.len().next_multiple_of(512), 0);
    front.extend(&data);
    let numbers = [("GNU.sparse.major", "1".to_owned()), ("GNU.sparse.minor", "0".to_owned())];
    let last = [&numbers[..], &[path("GNU.sparse.name"), size("GNU.sparse.realsize")]].concat();
    let files = vec![
        ("old GNU", old_gnu(&parts, 5000, &data)),
        ("pax 0.0", pax(&zero, &data)),
        ("pax 0.1", pax(&one, &data)),
        ("pax 1.0", pax(&last, &front)),
    ];
    (files, whole)
}

fn all(shard: &[u8], group: Group) -> Vec<Sample> {
    samples(shard.to_vec().into(), Str::from("s.tar"), 1, group).map(Result::unwrap).collect()
}

fn text(sample: &Sample) -> String {
    let fields = sample.fields().map(|(name, value)| {
        let text = value.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        format!(" {name}={}", text.or(value.as_str().map(str::to_owned)).unwrap())
    });
    format!("{}{}", sample.key().name, fields.collect::<String>())
}

#[test]
fn holes_are_filled_in_every_format_and_reading_goes_on() {
    let (files, whole) = sparse_files();
    for (format, mut archive) in files {
        let mut tail = Builder::new(Vec::new());
        append(&mut tail, "next.txt", b"x");
        archive.extend(tail.into_inner().unwrap());
        let members: Vec<_> = walk(&archive).map(Result::unwrap).collect();
        assert_eq!(members, read(&archive[..], 1 << 20).map(Result::unwrap).collect::<Vec<_>>(), "{format}");
        let names: Vec<_> = members.iter().map(|m| (&*m.name, m.kind, m.size)).collect();
        assert_eq!(
            names,
            [(&b"holes.bin"[..], Kind::Sparse, 5000), (b"next.txt", Kind::File, 1)],
            "{format}"
        );
        assert_eq!(members[0].contents(5000).unwrap(), whole, "{format}");
        assert_eq!(members[0].contents(4999).unwrap_err().kind(), ErrorKind::Limit);
        let found = all(&archive, Group::WebDataset);
        assert_eq!(found[0].get("bin").unwrap().as_bytes().unwrap()[..], whole, "{format}");
        assert_eq!(text(&found[1]), "next txt=x");
        for len in 0..archive.len() {
            let _ = walk(&archive[..len]).count();
        }
        for at in (0..archive.len() - 1024).filter(|at| archive[*at] != 0) {
            let mut damaged = archive.clone();
            damaged[at] ^= 0x15;
            for member in walk(&damaged).flatten() {
                let _ = member.contents(1 << 16);
            }
        }
    }
}

#[test]
fn hard_links_are_names_or_the_contents_of_their_targets() {
    let mut builder = Builder::new(Vec::new());
    append(&mut builder, "README", b"notes");
    append(&mut builder, "1.jpg", b"one");
    link(&mut builder, "2.jpg", "1.jpg");
    link(&mut builder, "3.txt", "README");
    link(&mut builder, "4.jpg", "5.jpg");
    append(&mut builder, "5.jpg", b"five");
    let shard = builder.into_inner().unwrap();
    let names: Vec<_> = all(&shard, Group::WebDataset).iter().map(text).collect();
    assert_eq!(names, ["1 jpg=one", "5 jpg=five"]);
    let items = samples(shard.clone().into(), Str::from("s.tar"), 1, Group::WebDataset).following_links();
    let found: Vec<_> = items.collect();
    let lines: Vec<_> = found.iter().flatten().map(text).collect();
    assert_eq!(lines, ["1 jpg=one", "2 jpg=one", "3 txt=notes", "5 jpg=five"]);
    let error = found.iter().find_map(|sample| sample.as_ref().err()).unwrap();
    assert_eq!((error.kind(), error.get("member")), (ErrorKind::Corrupt, Some("4.jpg")), "{error}");
    let packed = Blob::from(Buffer::from(gzip(&shard)));
    let items = open(&packed, Str::from("s"), 1, Group::None).unwrap().following_links();
    assert_eq!(
        items.filter_map(Result::err).map(|error| error.kind()).collect::<Vec<_>>()[0],
        ErrorKind::Unsupported
    );
}

#[test]
fn archives_one_after_the_other_are_read_where_that_is_asked_for() {
    let archive = |name: &str| {
        let mut builder = Builder::new(Vec::new());
        append(&mut builder, name, b"x");
        let mut out = builder.into_inner().unwrap();
        out.resize(10_240, 0);
        out
    };
    let both = [archive("1.txt"), archive("2.txt")].concat();
    assert_eq!(walk(&both).count(), 1);
    let names: Vec<_> = walk(&both).concatenated().map(|member| member.unwrap().name.into_owned()).collect();
    assert_eq!(names, [b"1.txt", b"2.txt"]);
    let found = samples(both.clone().into(), Str::from("s"), 1, Group::WebDataset).concatenated();
    assert_eq!(found.map(Result::unwrap).count(), 2);
    let rubbish = [archive("1.txt"), vec![7; 512], vec![0; 512]].concat();
    assert!(walk(&rubbish).concatenated().any(|member| member.is_err()));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_packed_shard_gives_the_samples_of_the_one_in_it() {
    let mut builder = Builder::new(Vec::new());
    for number in 0..50_usize {
        append(&mut builder, &format!("{number:04}.jpg"), &vec![number as u8; number * 97]);
        append(&mut builder, &format!("{number:04}.cls"), number.to_string().as_bytes());
    }
    append(&mut builder, "big.bin", &vec![5; 3_000_000]);
    let shard = builder.into_inner().unwrap();
    for group in [Group::WebDataset, Group::None] {
        let plain = all(&shard, group);
        for packed in [gzip(&shard), gzip(&gzip(&shard))] {
            let blob = Blob::from(Buffer::from(packed));
            let found = open(&blob, Str::from("s.tar"), 1, group).unwrap();
            assert_eq!(found.map(Result::unwrap).collect::<Vec<_>>(), plain);
        }
    }
    // A name may begin as packed bytes do.
    let mut builder = Builder::new(Vec::new());
    append(&mut builder, "x\u{1}.txt", b"text");
    let odd = Blob::from(Buffer::from(builder.into_inner().unwrap()));
    assert_eq!(open(&odd, Str::from("s"), 1, Group::None).unwrap().map(Result::unwrap).count(), 1);
}

#[test]
fn a_packed_shard_that_is_cut_is_an_error_wherever() {
    let mut builder = Builder::new(Vec::new());
    for number in 0..9 {
        append(&mut builder, &format!("{number}.txt"), &[number; 300]);
    }
    let packed = gzip(&builder.into_inner().unwrap());
    for len in 3..packed.len() {
        let blob = Blob::from(Buffer::from(packed[..len].to_vec()));
        let found = open(&blob, Str::from("s"), 1, Group::WebDataset)
            .and_then(|items| items.collect::<Result<Vec<_>, _>>());
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Corrupt, "{len} of {}", packed.len());
    }
    for at in 0..packed.len() {
        let mut damaged = packed.clone();
        damaged[at] ^= 0x24;
        let opened = open(&Blob::from(Buffer::from(damaged)), Str::from("s"), 1, Group::WebDataset);
        // One that went on after an error would never end.
        let _ = opened.map(|items| items.take(100).count());
    }
}
