//! The tar crate writes random archives in each form and lists them: the walk must agree, from memory and as a stream.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::io::Read;

use forebay_tar::{Kind, read, walk};
use tar::{Builder, EntryType, Header};

/// A member as it was meant: name, contents.
type Meant = (String, Vec<u8>);

#[derive(Clone, Copy, Debug)]
enum Form {
    Ustar,
    Gnu,
    Pax,
}

/// SplitMix64: the tests draw the same archives everywhere.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn name(&mut self, form: Form) -> String {
        let longest = if matches!(form, Form::Ustar) { 220 } else { 400 };
        let len = if self.below(3) == 0 { 1 + self.below(longest) } else { 1 + self.below(30) };
        let letters = ["a", "b", "Z", "0", "7", ".", "_", " ", "ü", "鳥"];
        let mut name = String::from("m");
        while (name.len() as u64) < len {
            // Parts short enough for ustar's prefix to end at a slash.
            let part = name.rsplit('/').next().map_or(0, str::len);
            let letter = letters[self.below(letters.len() as u64) as usize];
            name.push_str(if part > 40 { "/n" } else { letter });
        }
        name
    }

    fn contents(&mut self) -> Vec<u8> {
        let len = [0, 1, 511, 512, 513, 1024, self.below(5000)][self.below(7) as usize];
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

fn write(builder: &mut Builder<Vec<u8>>, form: Form, (name, contents): &Meant) {
    let mut header = match form {
        Form::Gnu => Header::new_gnu(),
        Form::Ustar | Form::Pax => Header::new_ustar(),
    };
    header.set_size(contents.len() as u64);
    header.set_mode(0o644);
    if !matches!(form, Form::Pax) {
        return builder.append_data(&mut header, name, &contents[..]).unwrap();
    }
    let size = contents.len().to_string();
    let records = [("mtime", "1.5"), ("path", name.as_str()), ("size", size.as_str())];
    builder.append_pax_extensions(records.map(|(key, value)| (key, value.as_bytes()))).unwrap();
    header.set_path("short").unwrap();
    header.set_size(contents.len() as u64);
    header.set_cksum();
    builder.append(&header, &contents[..]).unwrap();
}

fn listed_by_tar(archive: &[u8]) -> Vec<Meant> {
    let mut reader = tar::Archive::new(archive);
    let entries = reader.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        let mut contents = Vec::new();
        entry.read_to_end(&mut contents).unwrap();
        (name, contents)
    });
    entries.collect()
}

#[test]
fn random_archives_list_as_they_were_written() {
    let mut draw = Draw(17);
    let mut members = 0;
    for round in 0..120 {
        let mut builder = Builder::new(Vec::new());
        let mut meant = Vec::new();
        for _ in 0..draw.below(12) {
            let form = [Form::Ustar, Form::Gnu, Form::Pax][draw.below(3) as usize];
            let member = (draw.name(form), draw.contents());
            write(&mut builder, form, &member);
            meant.push(member);
        }
        let archive = builder.into_inner().unwrap();
        let walked: Vec<_> = walk(&archive).map(Result::unwrap).collect();
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        let listed: Vec<Meant> = walked.iter().map(|m| (text(&m.name), m.data.to_vec())).collect();
        assert_eq!(listed, meant, "round {round}");
        assert_eq!(listed, listed_by_tar(&archive), "round {round}");
        for member in &walked {
            let start = member.data_offset as usize;
            assert_eq!(&archive[start..start + member.data.len()], &*member.data);
        }
        let streamed: Vec<_> = read(&archive[..], 1 << 20).map(Result::unwrap).collect();
        assert_eq!(streamed, walked, "round {round}");
        members += meant.len();
    }
    assert!(members > 500, "{members}");
}

#[test]
fn links_and_directories_are_names_only() {
    let mut builder = Builder::new(Vec::new());
    let long = "l".repeat(150);
    for (kind, name) in [(EntryType::Directory, "d/"), (EntryType::Symlink, "s"), (EntryType::Link, "h")] {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        if kind == EntryType::Directory {
            builder.append_data(&mut header, name, std::io::empty()).unwrap();
        } else {
            builder.append_link(&mut header, name, &long).unwrap();
        }
    }
    let archive = builder.into_inner().unwrap();
    let kinds: Vec<_> =
        walk(&archive).map(|member| member.unwrap()).map(|m| (m.kind, m.link.len())).collect();
    assert_eq!(kinds, [(Kind::Directory, 0), (Kind::SymLink, 150), (Kind::HardLink, 150)]);
}

#[test]
fn base_256_sizes_and_a_missing_end_are_read() {
    let mut header = Header::new_gnu();
    header.set_path("a").unwrap();
    header.as_mut_bytes()[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    header.set_cksum();
    let archive = [header.as_bytes(), &b"heron"[..], &[0; 507]].concat();
    let sizes: Vec<_> = walk(&archive).map(|member| member.unwrap().data.into_owned()).collect();
    assert_eq!(sizes, [b"heron"]);
}

#[test]
fn one_block_of_zeros_is_passed_over_and_two_are_the_end() {
    let mut header = Header::new_gnu();
    header.set_path("a").unwrap();
    header.set_size(0);
    header.set_cksum();
    let (one, zeros) = (header.as_bytes().as_slice(), [0; 512]);
    let count = |parts: &[&[u8]]| walk(&parts.concat()).map(Result::unwrap).count();
    assert_eq!(count(&[one, &zeros, one]), 2);
    assert_eq!(count(&[one, &zeros, &zeros, one]), 1);
    assert_eq!(count(&[one, &zeros, &zeros, b"anything"]), 1);
    assert_eq!(count(&[]), 0);
    // Rubbish in the place of the second block of zeros is the end too, but nothing may hide behind it.
    assert_eq!(count(&[one, &zeros, &[7; 512]]), 1);
    assert!(walk(&[one, &zeros, &[7; 512], &zeros].concat()).any(|member| member.is_err()));
}

#[test]
fn a_global_header_holds_for_all_members_to_come() {
    let mut builder = Builder::new(Vec::new());
    let mut global = Header::new_ustar();
    global.set_entry_type(EntryType::XGlobalHeader);
    global.set_path("g").unwrap();
    let body = b"15 path=global\n";
    global.set_size(body.len() as u64);
    global.set_cksum();
    builder.append(&global, &body[..]).unwrap();
    for (form, name) in [(Form::Ustar, "x"), (Form::Pax, "own")] {
        write(&mut builder, form, &(name.into(), vec![1]));
    }
    let archive = builder.into_inner().unwrap();
    let names: Vec<_> = walk(&archive).map(|member| member.unwrap().name.into_owned()).collect();
    assert_eq!(names, [&b"global"[..], b"own"]);
}
