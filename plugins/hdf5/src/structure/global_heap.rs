//! Global heaps: the elements of variable length (section III.E).

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Mutex, PoisonError},
};

use forebay_core::{Buffer, Error, Result};

use crate::{bytes::size, file::File};

/// How many collections are kept; elements that were written together lie in one.
const COLLECTIONS_KEPT: usize = 16;

/// One collection: its bytes, and where in them each object lies.
#[derive(Clone)]
struct Collection {
    bytes: Buffer,
    objects: BTreeMap<u16, Range<usize>>,
}

/// The global heap of a file; what was read last is kept.
pub(crate) struct GlobalHeap {
    file: File,
    kept: Mutex<Vec<(u64, Collection)>>,
}

impl GlobalHeap {
    pub(crate) fn new(file: &File) -> Self {
        Self { file: file.clone(), kept: Mutex::default() }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// An object, as a slice of the file.
    pub(crate) fn object(&self, collection: u64, number: u32) -> Result<Buffer> {
        let find = |from: &Collection| {
            let place = from.objects.get(&u16::try_from(number).ok()?)?;
            from.bytes.get(place.clone())
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match kept.iter().find(|(address, _)| *address == collection) {
            Some((_, known)) => find(known),
            None => {
                let new = read(&self.file, collection)?;
                let found = find(&new);
                if kept.len() >= COLLECTIONS_KEPT {
                    kept.remove(0);
                }
                kept.push((collection, new));
                found
            }
        };
        found.ok_or_else(|| {
            Error::corrupt(format!("no object {number} in the heap's collection")).context("byte", collection)
        })
    }
}

fn read(file: &File, address: u64) -> Result<Collection> {
    let head_len = 8 + file.sizes().length as u64;
    let head = file.read(address, head_len)?;
    let mut cursor = file.cursor(&head, address);
    cursor.signature(b"GCOL")?;
    cursor.version("the global heap", 1..=1)?;
    cursor.skip(3)?;
    let len = cursor.length()?;
    if len > file.limit() {
        return Err(
            cursor.corrupt(format!("a collection of {len} bytes, at most {} are taken", file.limit()))
        );
    }
    let bytes = file.data(address, len.max(head_len))?;
    let mut cursor = file.cursor(&bytes, address);
    cursor.skip(size(head_len)?)?;
    let mut objects = BTreeMap::new();
    while cursor.left() >= 8 + file.sizes().length {
        let number = cursor.u16()?;
        cursor.skip(6)?;
        let len = size(cursor.length()?)?;
        if number == 0 {
            break; // The free space, which is last.
        }
        let start = cursor.taken();
        cursor.skip(len)?;
        objects.insert(number, start..start + len);
        cursor.skip((len.wrapping_neg() % 8).min(cursor.left()))?;
    }
    Ok(Collection { bytes, objects })
}
