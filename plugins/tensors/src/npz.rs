//! `npz`: a zip archive of npy files.
//!
//! ```toml
//! [npz]
//! gives = "a struct with a field for each array"
//! when = "several arrays a sample"
//! ```

use forebay_core::{
    Blob, Buffer, Context, Decoder, DecoderInfo, Error, Magic, NoOptions, Result, Str, Value, Wanted,
};

use forebay_unpack::Directory;

use crate::{memory::Memory, npy};

/// Decodes what `numpy.savez` and `savez_compressed` write: see [`parse_npz`].
#[derive(Debug)]
pub struct Npz;

impl Decoder for Npz {
    const INFO: DecoderInfo = DecoderInfo {
        name: "npz",
        summary: "Archives of NumPy arrays to structs of tensors",
        extensions: &["npz"],
        magic: &[Magic { offset: 0, bytes: b"PK\x03\x04" }, Magic { offset: 0, bytes: b"PK\x05\x06" }],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    /// Any zip archive begins alike, so the first member's name tells.
    fn probe(&self, head: &[u8], extension: &str) -> u8 {
        let name = head.get(26..28).and_then(|len| {
            let len = usize::from(u16::from_le_bytes([len[0], len[1]]));
            head.get(30..30 + len)
        });
        match name {
            Some(name) if name.ends_with(b".npy") => 224,
            _ if extension.eq_ignore_ascii_case("npz") => 128,
            _ => 0,
        }
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        parse_within(bytes, &Memory::of(cx))
    }
}

/// Reads an npz file: a struct with a field for each member, in the archive's order.
///
/// Members called `name.npy` are arrays called `name`, as [`parse_npy`](crate::parse_npy) reads them; others are bytes. Members
/// that are stored share the memory of `bytes`, packed ones are unpacked. All together are held against the limit for one value.
///
/// # Errors
/// `Corrupt` with member and byte, for a wrong checksum too, and for two members of one name; `Unsupported` for encrypted members
/// and unknown methods, and as `parse_npy`; `Limit`.
pub fn parse_npz(bytes: &Buffer) -> Result<Value> {
    parse_within(bytes, &Memory::own())
}

fn parse_within(bytes: &Buffer, memory: &Memory) -> Result<Value> {
    let blob = Blob::from(bytes.clone());
    let mut directory = Directory::open(&blob, memory.limit())?;
    let members = directory.by_ref().collect::<Result<Vec<_>>>()?;
    let total = members.iter().fold(0_u64, |total, member| total.saturating_add(member.size));
    memory.check(usize::try_from(total).unwrap_or(usize::MAX))?;
    let mut fields: Vec<(Str, Value)> = Vec::new();
    let mut names = std::collections::HashSet::new();
    for member in &members {
        let name = member.name.strip_suffix(".npy");
        if !names.insert(name.unwrap_or(&member.name)) {
            return Err(Error::corrupt("two members of this name").context("member", &member.name));
        }
        let contents = directory.read(member, memory.limit(), |len| memory.take(len))?;
        let value = match name {
            Some(_) => {
                npy::parse_within(&contents, memory).map_err(|error| error.context("member", &member.name))?
            }
            None => contents.into(),
        };
        fields.push((name.unwrap_or(&member.name).into(), value));
    }
    Ok(Value::structure(fields))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::DeflateEncoder};
    use forebay_core::{ErrorKind, View};

    use super::*;
    use crate::npy::tests::file;

    fn numbers(out: &mut Vec<u8>, parts: &[(u64, usize)]) {
        for (number, len) in parts {
            out.extend(&number.to_le_bytes()[..*len]);
        }
    }

    /// A zip archive of these members, deflated or stored; the sizes of the first stand in its zip64 field.
    fn archive(members: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        for (index, (name, contents, deflated)) in members.iter().enumerate() {
            let mut packed = contents.to_vec();
            if *deflated {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(contents).unwrap();
                packed = encoder.finish().unwrap();
            }
            let (method, crc) = (if *deflated { 8 } else { 0 }, u64::from(forebay_unpack::crc32(contents)));
            let (offset, name_len) = (out.len() as u64, name.len() as u64);
            let sizes = (packed.len() as u64, contents.len() as u64);
            out.extend(b"PK\x03\x04");
            numbers(&mut out, &[(20, 2), (0, 2), (method, 2), (0, 4), (crc, 4), (sizes.0, 4), (sizes.1, 4)]);
            numbers(&mut out, &[(name_len, 2), (0, 2)]);
            out.extend(name.bytes().chain(packed));
            let wide = index == 0;
            let shown = if wide { (u64::from(u32::MAX), u64::from(u32::MAX)) } else { sizes };
            directory.extend(b"PK\x01\x02");
            numbers(
                &mut directory,
                &[(20, 2), (20, 2), (0, 2), (method, 2), (0, 4), (crc, 4), (shown.0, 4), (shown.1, 4)],
            );
            numbers(
                &mut directory,
                &[(name_len, 2), (if wide { 20 } else { 0 }, 2), (0, 2), (0, 8), (offset, 4)],
            );
            directory.extend(name.bytes());
            if wide {
                numbers(&mut directory, &[(1, 2), (16, 2), (sizes.1, 8), (sizes.0, 8)]);
            }
        }
        let (count, start) = (members.len() as u64, out.len() as u64);
        out.extend(&directory);
        out.extend(b"PK\x05\x06");
        numbers(&mut out, &[(0, 4), (count, 2), (count, 2), (directory.len() as u64, 4), (start, 4), (3, 2)]);
        out.extend(b"end");
        out
    }

    fn two() -> Vec<u8> {
        let (one, two) = (file("'<i2'", "False", "(2,)", &[1, 0, 2, 0]), file("'|u1'", "False", "()", &[7]));
        archive(&[("a.npy", &one, true), ("b/c.npy", &two, false), ("notes.txt", b"heron", false)])
    }

    #[test]
    fn members_become_fields() {
        let bytes = Buffer::from(two());
        let value = parse_npz(&bytes).unwrap();
        let View::Struct(fields) = value.view() else { panic!("no struct") };
        let names: Vec<_> = fields.schema().names().iter().map(|name| name.as_str()).collect();
        assert_eq!(names, ["a", "b/c", "notes.txt"]);
        assert_eq!(&**fields.get("a").and_then(Value::as_tensor).unwrap().data(), &[1, 0, 2, 0]);
        let stored = fields.get("b/c").and_then(Value::as_tensor).unwrap();
        assert!(stored.data().same_owner(&bytes) && **stored.data() == [7]);
        assert_eq!(&**fields.get("notes.txt").and_then(Value::as_bytes).unwrap(), b"heron");
    }

    #[test]
    fn an_empty_archive_has_no_fields() {
        assert_eq!(parse_npz(&archive(&[]).into()).unwrap(), Value::structure(vec![]));
    }

    #[test]
    fn refuses_two_of_one_name_and_what_unpacks_to_too_much() {
        let error = parse_npz(&archive(&[("a", b"1", false), ("a", b"2", false)]).into()).unwrap_err();
        assert_eq!((error.kind(), error.get("member")), (ErrorKind::Corrupt, Some("a")));
        let mut bomb = archive(&[("a", b"1", true)]);
        let wide = bomb.windows(4).position(|part| part == [1, 0, 16, 0]).unwrap();
        bomb[wide + 4..wide + 12].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        assert_eq!(parse_npz(&bomb.into()).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn damage_is_found() {
        let whole = two();
        for len in 0..whole.len() {
            let error = parse_npz(&whole[..len].to_vec().into()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{len}: {error}");
        }
        let mut refused = 0;
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                refused += u32::from(parse_npz(&bytes.into()).is_err());
            }
        }
        // Times, versions and the local headers' copies are not looked at.
        assert!(refused > whole.len() as u32 * 4, "{refused} of {}", whole.len() * 8);
    }

    #[test]
    fn tells_its_own_by_the_first_member() {
        assert!(Npz.probe(&two(), "zip") > 0);
        assert!(Npz.probe(b"PK\x05\x06", "npz") > 0);
        assert_eq!(Npz.probe(&archive(&[("word/document.xml", b"", false)]), "docx"), 0);
    }
}
