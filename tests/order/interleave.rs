//! Flat maps that have several of their samples open at a time: the order is that of `tf.data` and Grain, on every executor and after
//! a resume.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, io::Write as _};

use forebay_loader::{ErrorKind, Executor};
use forebay_tests::{ALL, Setting, build, line, registry, within_deadline};

/// A file for each list, with a line for each number; and the pattern that stands for them.
fn files(folder: &tempfile::TempDir, lists: &[&[u8]]) -> String {
    for (at, list) in lists.iter().enumerate() {
        let lines: String = list.iter().map(|number| format!("{number}\n")).collect();
        fs::write(folder.path().join(format!("{at:02}.txt")), lines).unwrap();
    }
    folder.path().join("*.txt").display().to_string()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// The numbers of an epoch's samples, as digits.
fn digits(samples: impl Iterator<Item = forebay_loader::Result<forebay_loader::Sample>>) -> String {
    samples.map(|sample| sample.unwrap().get("text").unwrap().as_str().unwrap().to_owned()).collect()
}

const CASES: [(&[&[u8]], usize, usize, &str); 8] = [
    // B101, B102 and B103.
    (&[&[1], &[2, 2], &[3, 3, 3], &[4, 4, 4, 4], &[5, 5, 5, 5, 5]], 3, 1, "123234345454555"),
    (&[&[1, 1, 1], &[2], &[3, 3, 3, 3], &[4, 4]], 3, 1, "1231314343"),
    (&[&[1, 1, 1], &[2], &[3, 3, 3, 3], &[4, 4]], 10, 1, "1234134133"),
    // tf.data's own example: cycle_length=2, block_length=4.
    (&[&[1; 6], &[2; 6], &[3; 6], &[4; 6], &[5; 6]], 2, 4, "111122221122333344443344555555"),
    (&[&[1; 3], &[2; 3]], 1, 2, "111222"),
    (&[&[], &[1], &[], &[], &[2, 2], &[]], 2, 1, "122"),
    (&[&[], &[]], 5, 1, ""),
    (&[&[1, 2, 3]], 4, 2, "123"),
];

#[test]
fn the_order_is_that_of_others_b101_b102_b103() {
    within_deadline(|| {
        let registry = registry();
        for (lists, interleave, block, wanted) in CASES {
            let folder = tempfile::tempdir().unwrap();
            let pattern = files(&folder, lists);
            let text = format!(
                "files '{pattern}' | lines rows=1 interleave={interleave} interleave_block={block} | text_lines"
            );
            let graph = line(&text);
            for executor in ALL {
                for chunk in [Some(1), Some(3), None] {
                    let mut loader =
                        build(&graph, &registry, Setting { executor, chunk, ..Setting::INLINE }).unwrap();
                    assert_eq!(digits(loader.epoch(0)), wanted, "{text} on {executor}, {chunk:?}");
                }
            }
            for taken in 0..=wanted.len() {
                let setting = Setting { chunk: Some(1), marks: true, ..Setting::INLINE };
                let mut loader = build(&graph, &registry, setting).unwrap();
                let mut epoch = loader.epoch(0);
                let before = digits(epoch.by_ref().take(taken));
                let snapshot = epoch.snapshot().unwrap();
                let setting = Setting { executor: Executor::Threads(2), ..setting };
                let mut other = build(&graph, &registry, setting).unwrap();
                assert_eq!(
                    before + &digits(other.resume(&snapshot).unwrap()),
                    wanted,
                    "{text} after {taken}"
                );
            }
        }
    });
}

#[test]
fn a_broken_file_leaves_its_turn() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let pattern = files(&folder, &[&[1; 3], &[2; 3], &[3; 3], &[4; 2]]);
        // What is left of a file that cannot be gone on with is lost.
        fs::write(folder.path().join("01.txt"), [&gzip(b"2\n2\n")[..12], b"??"].concat()).unwrap();
        let text = format!("files '{pattern}' | lines rows=1 interleave=3 on_error=skip | text_lines");
        let mut loader = build(&line(&text), &registry(), Setting::threads(2)).unwrap();
        assert_eq!(digits(loader.epoch(0)), "13143143");
    });
}

#[test]
fn only_flat_maps_in_order_take_turns() {
    let registry = registry();
    for text in [
        "range 3 | increment interleave=2",
        "range 3 | batch 2 | unbatch interleave=0",
        "files x | json_lines interleave=2",
    ] {
        let error = build(&line(text), &registry, Setting::INLINE).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
        assert!(error.message().contains("interleave"), "{error}");
    }
}
