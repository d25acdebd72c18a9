//! Archives whose bytes show a file: headers are read from the file, contents are slices of the bytes.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::{
    fs::{self, File},
    path::PathBuf,
};

use forebay_core::{Buffer, Error, ErrorKind, FileView, Sample, Str};
use forebay_tar::{Group, samples};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

/// Bytes that pretend to be a map of the file at `path`.
struct View {
    bytes: Vec<u8>,
    path: PathBuf,
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl FileView for View {
    fn open(&self) -> Option<File> {
        File::open(&self.path).ok()
    }
}

/// A file of these bytes, and other bytes that pretend to show it.
fn view(folder: &TempDir, file: &[u8], bytes: Vec<u8>) -> Buffer {
    let path = folder.path().join("shard.tar");
    fs::write(&path, file).unwrap();
    Buffer::from_file_view(View { bytes, path })
}

/// Members smaller and larger than what is read at once, under names that fit a header and names that do not.
fn archive() -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    let long = format!("{}/{}", "d".repeat(90), "n".repeat(140));
    for (index, len) in [0_usize, 1, 600, 5_000, 40_000, 511, 512, 513].into_iter().enumerate() {
        for (stem, field) in
            [(format!("{index:04}"), "jpg"), (format!("{index:04}"), "Cls"), (long.clone(), "json")]
        {
            if len == 600 {
                builder.append_pax_extensions([("path", format!("pax{index}.{field}").as_bytes())]).unwrap();
            }
            let mut header = Header::new_gnu();
            header.set_size(len as u64);
            header.set_entry_type(EntryType::Regular);
            builder
                .append_data(&mut header, format!("{stem}{index}.{field}"), &vec![index as u8; len][..])
                .unwrap();
        }
    }
    builder.into_inner().unwrap()
}

fn all(shard: &Buffer, group: Group) -> Vec<Result<Sample, Error>> {
    // An archive that went on after an error would never end.
    samples(shard.clone(), Str::from("shard.tar"), 1, group).take(1_000).collect()
}

#[test]
fn a_file_gives_what_memory_gives_wherever_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let whole = archive();
    for len in (0..whole.len()).step_by(1531).chain([whole.len()]) {
        let part = &whole[..len];
        let (memory, file) = (Buffer::from(part.to_vec()), view(&folder, part, part.to_vec()));
        for group in [Group::WebDataset, Group::None] {
            assert_eq!(all(&file, group), all(&memory, group), "{len}");
        }
    }
}

#[test]
fn a_damaged_file_gives_what_damaged_memory_gives() {
    let folder = tempfile::tempdir().unwrap();
    let whole = archive();
    for at in (0..whole.len()).step_by(997) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        let (memory, file) = (Buffer::from(damaged.clone()), view(&folder, &damaged, damaged.clone()));
        assert_eq!(all(&file, Group::WebDataset), all(&memory, Group::WebDataset), "{at}");
    }
}

#[test]
fn headers_are_read_and_contents_are_slices() {
    let folder = tempfile::tempdir().unwrap();
    let whole = archive();
    let memory = Buffer::from(whole.clone());
    let mut without_headers = whole.clone();
    for member in forebay_tar::walk(&whole).map(Result::unwrap) {
        let header = member.offset as usize..member.data_offset as usize;
        // What goes before a header may end beyond what was read at once, and is then looked at in memory.
        if header.len() == 512 {
            without_headers[header].fill(0);
        }
    }
    let file = view(&folder, &whole, without_headers);
    let found: Vec<_> = all(&file, Group::WebDataset).into_iter().map(Result::unwrap).collect();
    assert_eq!(found, all(&memory, Group::WebDataset).into_iter().map(Result::unwrap).collect::<Vec<_>>());
    for value in found.iter().flat_map(|sample| sample.values()) {
        let bytes = value.as_bytes().unwrap();
        assert!(bytes.is_empty() || bytes.same_owner(&file));
    }
}

#[test]
fn an_archive_may_start_within_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let whole = archive();
    let file = [&[7; 1000][..], &whole].concat();
    let shard = view(&folder, &file, file.clone()).slice(1000..);
    assert_eq!(all(&shard, Group::WebDataset), all(&whole.into(), Group::WebDataset));
}

#[test]
fn a_file_that_was_cut_short_is_an_error_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let whole = archive();
    let file = view(&folder, &whole[..30_000], whole.clone());
    for group in [Group::WebDataset, Group::None] {
        let found = all(&file, group);
        let (last, before) = found.split_last().unwrap();
        assert!(!before.is_empty() && before.iter().all(Result::is_ok));
        let error = last.as_ref().unwrap_err();
        assert_eq!((error.kind(), error.get("file")), (ErrorKind::Corrupt, Some("shard.tar")));
        assert!(error.message().contains("cut short"), "{error}");
    }
}

#[test]
fn a_file_that_is_gone_is_looked_at_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let whole = archive();
    let file = view(&folder, &whole, whole.clone());
    drop(folder);
    assert_eq!(all(&file, Group::WebDataset), all(&whole.into(), Group::WebDataset));
}
