//! Files that were cut short or changed: an error or a value, and never a panic, a hang, or memory without a limit.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_core::{Buffer, BufferMut, Error, Limits};
use forebay_hdf5::{File, Group, Object};

const FILES: [&str; 3] = ["earliest.h5", "latest.h5", "groups.h5"];
/// No reading may take more.
const LIMIT: u64 = 8 << 20;

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Reads all there is; how many datasets could be.
fn read(bytes: Vec<u8>) -> usize {
    let limits = Limits { bytes: LIMIT, ..Limits::DEFAULT };
    let root = File::open_limited(Buffer::from(bytes).into(), &limits).and_then(|file| file.root());
    root.map_or(0, |root| group(&root, 8))
}

fn group(of: &Group, depth: usize) -> usize {
    let Ok(links) = of.links() else { return 0 };
    let _ = of.attributes();
    let mut read = 0;
    for link in links.iter().take(100) {
        match of.follow(link) {
            Ok(Object::Dataset(dataset)) => {
                let _ = dataset.attributes();
                let alloc = |len: usize| match len as u64 {
                    0..=LIMIT => Ok(BufferMut::zeroed(len)),
                    _ => Err(Error::bug("memory before a limit")),
                };
                let bytes = dataset.bytes(0..dataset.rows(), &alloc);
                assert!(
                    bytes
                        .as_ref()
                        .err()
                        .is_none_or(|error| !error.message().contains("memory before a limit"))
                );
                read += usize::from(bytes.is_ok() && dataset.read_rows(0..dataset.rows().min(3)).is_ok());
            }
            Ok(Object::Group(group)) if depth > 0 => read += self::group(&group, depth - 1),
            _ => {}
        }
    }
    read
}

#[test]
fn whole_files_are_read_whole() {
    assert_eq!(FILES.map(|name| read(file(name))), [18, 18, 80]);
}

#[test]
fn files_that_were_cut_short_are_refused() {
    for name in FILES {
        let whole = file(name);
        for len in (0..whole.len()).step_by(97).chain(0..200) {
            let error = File::open(Buffer::from(whole[..len].to_vec()).into()).err();
            assert!(error.is_some(), "{name} of {len} bytes");
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    for name in FILES {
        let whole = file(name);
        // Every byte of the first structures, and a sample of the others.
        for at in (0..512).chain((512..whole.len()).step_by(127)) {
            for flip in [0xff, 0x08] {
                let mut changed = whole.clone();
                changed[at] ^= flip;
                read(changed);
            }
        }
    }
}
