//! What is in the buckets of these tests, and what every service must give of it.

use forebay_core::Store;
use forebay_remote::{RemoteStore, Settings};

use crate::{
    reads::{bytes, settings},
    server::Server,
};

/// Names and sizes. Some programs write an empty object for a folder.
const BUCKET: [(&str, usize); 6] = [
    ("train/", 0),
    ("train/a.tar", 300_000),
    ("train/b c+%.tar", 300_013),
    ("train/deep/d.tar", 300_001),
    ("train/deep/e.tar", 300_002),
    ("val.tar", 1000),
];

/// Puts all of it on a server, below this path.
pub(crate) fn fill(server: &Server, path: &str) {
    for (name, len) in BUCKET {
        server.put(&format!("{path}/{name}"), bytes(len));
    }
}

/// A store with these variables of the services.
pub(crate) fn store(variables: &[(&str, &str)]) -> RemoteStore {
    let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    RemoteStore::with(Settings { variables, ..settings() }).unwrap()
}

/// Reads and lists the bucket whose URL this is.
pub(crate) fn check(bucket: &str, store: &RemoteStore) {
    for (name, len) in BUCKET.into_iter().filter(|(name, _)| !name.ends_with('/')) {
        let (url, all) = (format!("{bucket}/{name}"), bytes(len));
        assert_eq!(store.size(&url).unwrap(), len as u64);
        for (start, wanted) in [(0, 10), (len - 10, 1 << 20), (100, len)] {
            let found = store.read_range(&url, start as u64, wanted as u64).unwrap();
            assert!(found[..] == all[start..len.min(start + wanted)], "{url} from {start}");
        }
    }
    let entries = |names: &[(&str, bool)]| -> Vec<_> {
        names.iter().map(|&(name, folder)| (format!("{bucket}/{name}"), folder)).collect()
    };
    assert_eq!(store.list(bucket).unwrap(), entries(&[("train", true), ("val.tar", false)]));
    let train = [("train/a.tar", false), ("train/b c+%.tar", false), ("train/deep", true)];
    assert_eq!(store.list(&format!("{bucket}/train/")).unwrap(), entries(&train));
    assert_eq!(store.list(&format!("{bucket}/none")).unwrap(), []);
}
