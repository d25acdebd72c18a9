//! A store that closes no file.

use forebay_core::{Buffer, Error, NoOptions, Result, Store, StoreInfo};

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

    fn size(&self, path: &str) -> Result<u64> {
        match path {
            "faulty://file" => Ok(FILE.len() as u64),
            _ => Err(Error::invalid("no such file").context("file", path)),
        }
    }

    fn read_range(&self, path: &str, offset: u64, len: u64) -> Result<Buffer> {
        let left = self.size(path)?.saturating_sub(offset).min(len);
        std::mem::forget(std::fs::File::open("/dev/null")?);
        let start = FILE.len().min(offset as usize);
        Ok(FILE[start..start + left as usize].to_vec().into())
    }
}

forebay_core::export_plugin! { stores: [Faulty] }
