//! What other libraries packed comes back, whole and as a stream; what is broken, cut or too much is an error.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::io::{Read, Write};

use forebay_core::{Blob, Buffer, BufferMut, Error, ErrorKind, Result};
use forebay_unpack::{Codec, LAYERS, Unpacked, inflate, unpack};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

fn lz4(text: &[u8], linked: bool) -> Vec<u8> {
    let mode = if linked { BlockMode::Linked } else { BlockMode::Independent };
    let info = FrameInfo::new()
        .block_mode(mode)
        .block_size(BlockSize::Max64KB)
        .block_checksums(linked)
        .content_checksum(true)
        .content_size((!linked).then_some(text.len() as u64));
    let mut writer = FrameEncoder::with_frame_info(info, Vec::new());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

/// As compress(1) writes them, but that the table is not emptied before it is full.
fn compress(text: &[u8], most_bits: u32) -> Vec<u8> {
    let mut codes = std::collections::HashMap::<(u32, u8), u32>::new();
    let (mut out, mut bits, mut free) = (vec![0x1f, 0x9d, 0x80 | most_bits as u8], 9, 257);
    let mut group: Vec<u32> = Vec::new();
    let flush = |group: &mut Vec<u32>, bits: u32, out: &mut Vec<u8>, whole: bool| {
        let mut bytes =
            vec![0_u8; if whole { bits as usize } else { (group.len() * bits as usize).div_ceil(8) }];
        for (at, code) in group.drain(..).enumerate() {
            for bit in 0..bits as usize {
                let place = at * bits as usize + bit;
                bytes[place / 8] |= ((code >> bit & 1) as u8) << (place % 8);
            }
        }
        out.extend(bytes);
    };
    let mut last = None;
    let mut put = |code: u32, free: u32, out: &mut Vec<u8>, bits: &mut u32| {
        group.push(code);
        if group.len() == 8 {
            flush(&mut group, *bits, out, true);
        }
        // The reader is one code behind.
        if free > (1 << *bits) && *bits < most_bits {
            if !group.is_empty() {
                flush(&mut group, *bits, out, true);
            }
            *bits += 1;
        }
    };
    for &byte in text {
        last = Some(match last {
            None => u32::from(byte),
            Some(known) => match codes.get(&(known, byte)) {
                Some(&code) => code,
                None => {
                    if free < 1 << most_bits {
                        codes.insert((known, byte), free);
                        free += 1;
                    }
                    put(known, free, &mut out, &mut bits);
                    u32::from(byte)
                }
            },
        });
    }
    if let Some(last) = last {
        put(last, 0, &mut out, &mut bits);
    }
    flush(&mut group, bits, &mut out, false);
    out
}

fn pack(codec: Codec, text: &[u8]) -> Vec<u8> {
    match codec {
        Codec::Gzip => gzip(text),
        Codec::Zlib => {
            let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        Codec::Zstd => zstd::encode_all(text, 3).unwrap(),
        Codec::Xz => {
            let mut writer = liblzma::write::XzEncoder::new(Vec::new(), 1);
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        Codec::Bzip2 => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        Codec::Lz4 => lz4(text, false),
        Codec::Compress => compress(text, 12),
        other => panic!("{other:?}"),
    }
}

/// Words in an order that repeats late: some packs well, some does not.
fn text(len: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut out = Vec::new();
    while out.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        out.extend_from_slice(format!("heron {} ", state >> 52).as_bytes());
    }
    out.truncate(len);
    out
}

fn alloc(len: usize) -> Result<BufferMut> {
    Ok(BufferMut::from_owner(vec![0xa5; len]))
}

fn whole(codec: Codec, packed: &[u8], limit: u64) -> Result<Buffer> {
    unpack(codec, &packed.to_vec().into(), limit, alloc)
}

fn streamed(codec: Codec, packed: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut reader = Unpacked::new(codec, Box::new(std::io::Cursor::new(packed.to_vec())))?;
    reader.read_to_end(&mut out).map_err(|error| error.downcast::<Error>().unwrap())?;
    Ok(out)
}

#[test]
fn every_codec_gives_back_what_was_packed_and_is_told_by_its_head() {
    for codec in Codec::ALL {
        for len in [0, 1, 5, 70_000, 300_000] {
            let text = text(len);
            let packed = pack(codec, &text);
            assert_eq!(Codec::of(&packed[..packed.len().min(Codec::HEAD)]), Some(codec), "{codec:?} {len}");
            assert_eq!(&whole(codec, &packed, len as u64).unwrap()[..], text, "{codec:?} {len}");
            assert_eq!(streamed(codec, &packed).unwrap(), text, "{codec:?} {len}");
        }
    }
    let text = text(300_000);
    assert_eq!(streamed(Codec::Lz4, &lz4(&text, true)).unwrap(), text);
    assert_eq!(streamed(Codec::Compress, &compress(&text, 16)).unwrap(), text);
}

#[test]
fn members_one_after_the_other_are_one() {
    for codec in [Codec::Gzip, Codec::Zstd, Codec::Xz, Codec::Bzip2, Codec::Lz4] {
        for (one, two) in [(text(20), text(70_000)), (text(9), text(9)), (Vec::new(), text(3))] {
            let packed = [pack(codec, &one), pack(codec, &two)].concat();
            let both = [one, two].concat();
            assert_eq!(&whole(codec, &packed, both.len() as u64).unwrap()[..], both, "{codec:?}");
            assert_eq!(streamed(codec, &packed).unwrap(), both, "{codec:?}");
        }
    }
    let padded = [gzip(b"one"), vec![0; 700]].concat();
    assert_eq!(&whole(Codec::Gzip, &padded, 3).unwrap()[..], b"one");
    let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &pack(Codec::Zstd, b"one")].concat();
    assert_eq!(streamed(Codec::of(&skipped).unwrap(), &skipped).unwrap(), b"one");
}

#[test]
fn what_is_cut_anywhere_is_an_error_with_the_place() {
    for codec in Codec::ALL {
        let packed = pack(codec, &text(3_000));
        let first = if codec == Codec::Compress { 0..3 } else { 0..packed.len() };
        for len in first {
            // An empty file is an empty one of several members; it has no magic either.
            if len == 0 && matches!(codec, Codec::Zstd | Codec::Lz4 | Codec::Gzip | Codec::Bzip2) {
                continue;
            }
            for found in [whole(codec, &packed[..len], 1 << 20).err(), streamed(codec, &packed[..len]).err()]
            {
                let error = found.unwrap_or_else(|| panic!("{codec:?} took {len} bytes of {}", packed.len()));
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                assert!(error.get("packed byte").is_some(), "{error}");
            }
        }
    }
}

#[test]
fn a_changed_byte_never_panics_and_checked_codecs_see_it() {
    for codec in Codec::ALL {
        let text = text(600);
        let packed = pack(codec, &text);
        for at in 0..packed.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = packed.clone();
                damaged[at] ^= flip;
                for found in [whole(codec, &damaged, 1 << 20), streamed(codec, &damaged).map(Buffer::from)] {
                    match found {
                        // gzip's header has bytes that say nothing of the contents; zstd was written without a sum.
                        Ok(found) if !matches!(codec, Codec::Zstd | Codec::Compress) => {
                            assert_eq!(&found[..], text, "{codec:?} {at}");
                        }
                        Ok(_) => {}
                        Err(error) => assert!(
                            matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Limit),
                            "{codec:?} {at}: {error}"
                        ),
                    }
                }
            }
        }
    }
}

#[test]
fn bytes_behind_the_end_are_an_error() {
    for codec in Codec::ALL.into_iter().filter(|codec| *codec != Codec::Compress) {
        let packed = [pack(codec, b"heron"), b"rubbish behind".to_vec()].concat();
        assert_eq!(whole(codec, &packed, 1 << 20).unwrap_err().kind(), ErrorKind::Corrupt, "{codec:?}");
        assert_eq!(streamed(codec, &packed).unwrap_err().kind(), ErrorKind::Corrupt, "{codec:?}");
    }
}

#[test]
fn bombs_meet_the_limit_and_memory_is_asked_for_as_it_fills() {
    let zeros = vec![0; 4 << 20];
    for codec in Codec::ALL {
        let packed = pack(codec, &zeros);
        let mut most = 0;
        let found = unpack(codec, &packed.clone().into(), 1 << 20, |len| {
            most = most.max(len);
            alloc(len)
        });
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Limit, "{codec:?}");
        assert!(most <= 1 << 20, "{codec:?} asked for {most}");
        assert_eq!(whole(codec, &packed, 4 << 20).unwrap().len(), 4 << 20);
    }
}

#[test]
fn a_stated_length_that_cannot_be_takes_no_memory() {
    let mut packed = gzip(b"heron");
    let end = packed.len();
    packed[end - 4..].copy_from_slice(&[0xff; 4]);
    let found = unpack(Codec::Gzip, &packed.into(), 1 << 40, |len| {
        assert!(len < 1 << 20);
        alloc(len)
    });
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn layers_are_opened_up_to_a_limit() {
    let mut packed = b"heron".to_vec();
    for layer in 1..=LAYERS + 1 {
        packed = if layer % 2 == 0 { pack(Codec::Zstd, &packed) } else { gzip(&packed) };
        let opened = Unpacked::open(&Blob::from(Buffer::from(packed.clone())));
        if layer > LAYERS {
            assert_eq!(opened.err().unwrap().kind(), ErrorKind::Limit);
            continue;
        }
        let mut text = String::new();
        opened.unwrap().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "heron", "{layer}");
    }
    assert!(Unpacked::open(&Blob::from(Buffer::from_static(b"heron"))).unwrap().is_none());
}

#[test]
fn a_failing_source_keeps_its_error() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other(Error::new(ErrorKind::Io, "the line is dead")))
        }
    }
    for codec in Codec::ALL {
        let source = std::io::BufReader::new(Failing);
        let error = Unpacked::new(codec, Box::new(source)).unwrap().read(&mut [0; 9]).unwrap_err();
        let error = error.downcast::<Error>().unwrap();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "the line is dead"), "{codec:?}");
    }
}

#[test]
fn deflated_bytes_must_be_as_many_as_stated() {
    let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(b"heron heron heron").unwrap();
    let packed = writer.finish().unwrap();
    assert_eq!(&inflate(&packed, 17, alloc).unwrap()[..], b"heron heron heron");
    for (bytes, size) in [(&packed[..], 16), (&packed[..], 18), (&packed[..4], 17), (&[][..], 0)] {
        assert_eq!(inflate(bytes, size, alloc).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
