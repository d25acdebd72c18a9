//! A host whose store has files far away and counts what is fetched.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    os::unix::fs::FileExt as _,
    sync::atomic::{AtomicU64, Ordering},
};

use forebay_core::{Buffer, Key, Limits, NoOptions, Result, Sample, Store, StoreInfo, Value};
use forebay_testkit::Host;

/// Bytes that were fetched from the store.
pub(crate) static FETCHED: AtomicU64 = AtomicU64::new(0);

/// Files as if they were on another machine.
struct Far;

impl Store for Far {
    const INFO: StoreInfo = StoreInfo { name: "far", summary: "Files far away", schemes: &["far"] };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn list(&self, _: &str) -> Result<Vec<(String, bool)>> {
        Ok(Vec::new())
    }

    fn size(&self, path: &str) -> Result<u64> {
        Ok(fs::metadata(local(path))?.len())
    }

    fn read_range(&self, path: &str, offset: u64, len: u64) -> Result<Buffer> {
        let mut bytes = vec![0; usize::try_from(len).unwrap()];
        fs::File::open(local(path))?.read_exact_at(&mut bytes, offset)?;
        FETCHED.fetch_add(len, Ordering::Relaxed);
        Ok(bytes.into())
    }
}

fn local(path: &str) -> &str {
    path.strip_prefix("far://").unwrap_or(path)
}

/// A host with the store.
pub(crate) fn host() -> Host {
    Host::new().limits(Limits { bytes: 64 << 20, ..Limits::DEFAULT }).store::<Far>()
}

/// The path of a file for tests.
pub(crate) fn path(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A file for tests.
pub(crate) fn file(name: &str) -> Buffer {
    fs::read(path(name)).unwrap().into()
}

/// The sample of a file, with its bytes.
pub(crate) fn sample(bytes: Buffer) -> Sample {
    let mut sample = Sample::new(11, Key::whole("file.h5"));
    sample.set("split", "train");
    sample.set("bytes", Value::from(bytes));
    sample
}
