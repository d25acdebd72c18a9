//! Checks of stores.

use forebay_core::{AnyStore, scheme_of};
use forebay_loader::Error;

use super::{Check, Kind, Miss, expect};
use crate::conformance::{bench::Bench, subject::Subject};

/// A name that nothing has.
const NOWHERE: &str = "-there-is-no-such-file-17";
/// More is not read of a file.
const MOST: u64 = 1 << 20;

fn store<'a>(bench: &Bench<'a>) -> Result<(AnyStore, &'a str), Error> {
    let Subject::Store { url, .. } = bench.subject else { return Err(Error::bug("no store")) };
    Ok((bench.registry()?.store(scheme_of(url))?, url))
}

pub(super) const READS: Check = Check {
    name: "reads",
    kind: Kind::Store,
    promise: "a file has as many bytes as it says, and any piece equals that part of the whole",
    run: |bench| {
        let (store, url) = store(bench)?;
        bench.doing(url);
        let size = store.size(url)?;
        let whole = store.read(url, 0, size.min(MOST))?;
        let len = whole.len() as u64;
        expect(len == size.min(MOST), || format!("says that {url} has {size} bytes, but gives {len}"))?;
        for from in [0, 1, len / 3, len / 2, len.saturating_sub(1)] {
            for count in [0, 1, 7, len / 2, len] {
                let count = count.min(len - from.min(len));
                let piece = store.read(url, from, count)?;
                let wanted = &whole[from.min(len) as usize..(from.min(len) + count) as usize];
                expect(*piece == *wanted, || {
                    format!("{count} bytes from byte {from} differ from the whole")
                })?;
            }
        }
        if size <= MOST {
            expect(store.read(url, 0, size + 1000)?.len() as u64 == size, || {
                "a read of more bytes than there are does not give all of them".to_owned()
            })?;
            expect(store.read(url, size, 1000)?.is_empty(), || {
                "a read behind the end gives bytes".to_owned()
            })?;
        }
        if let Some(mapped) = store.map(url)? {
            expect(mapped.iter().take(whole.len()).eq(whole.iter()), || {
                "its map shows other bytes".to_owned()
            })?;
        }
        Ok(format!("{size} bytes"))
    },
};

pub(super) const REFUSES: Check = Check {
    name: "refuses",
    kind: Kind::Store,
    promise: "a missing file is an error that names it",
    run: |bench| {
        let (store, url) = store(bench)?;
        let nowhere = format!("{url}{NOWHERE}");
        for (what, error) in
            [("size", store.size(&nowhere).err()), ("read", store.read(&nowhere, 0, 10).map(drop).err())]
        {
            let Some(error) = error else {
                return Err(Miss::Failed(format!("{what} of the missing {nowhere} is no error")));
            };
            expect(error.to_string().contains(NOWHERE), || {
                format!("{what}: the error does not name it: {error}")
            })?;
        }
        Ok(String::new())
    },
};
