//! A store that has whatever it is asked for.

use forebay_core::{Buffer, NoOptions, Result, Store, StoreInfo};

const FILE: &[u8] = b"ten bytes and a few more";

struct Faulty;

impl Store for Faulty {
    const INFO: StoreInfo = StoreInfo { name: "faulty", summary: "One file", schemes: &["faulty"] };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn list(&self, _: &str) -> Result<Vec<(String, bool)>> {
        Ok(vec![("faulty://file".to_owned(), false)])
    }

    fn size(&self, _: &str) -> Result<u64> {
        Ok(FILE.len() as u64)
    }

    fn read_range(&self, path: &str, offset: u64, len: u64) -> Result<Buffer> {
        let start = offset.min(self.size(path)?);
        let end = start.saturating_add(len).min(FILE.len() as u64);
        Ok(FILE[start as usize..end as usize].to_vec().into())
    }
}

forebay_core::export_plugin! { stores: [Faulty] }
