//! Maps: which file their bytes say they show.

use std::{fs, io::Read};

use forebay_files::map_file;

#[test]
fn a_map_and_its_slices_give_their_file_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "heron and egret").unwrap();
    let bytes = map_file(&path).unwrap();
    for start in [0, 10] {
        let (mut file, place) = bytes.slice(start..).file().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((place, text.as_str()), (start as u64, "heron and egret"));
    }
}

#[test]
fn another_file_in_its_place_is_not_taken_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a"), folder.path().join("b"));
    fs::write(&path, "heron").unwrap();
    fs::write(&other, "egret").unwrap();
    let bytes = map_file(&path).unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(bytes.file().is_none());
    fs::remove_file(&path).unwrap();
    assert!(bytes.file().is_none());
    assert_eq!(&*bytes, b"heron");
}
