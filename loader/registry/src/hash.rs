//! What tells one build of a plugin from another.

use std::{fs::File, io::Result, os::unix::fs::FileExt as _};

use object::{Object as _, ObjectSegment as _, ReadCache};
use xxhash_rust::xxh3::Xxh3;

/// The hash of the parts of a library that are loaded into memory, in the order of its segments: code and
/// data. Debug information is left out. It is most of such a file, and a resume would wait for it.
pub(super) fn of(file: &File) -> Result<u128> {
    let cache = ReadCache::new(file);
    let read = object::File::parse(&cache).map_err(std::io::Error::other)?;
    let (mut hash, mut part) = (Xxh3::new(), vec![0; 1 << 17]);
    for (from, len) in read.segments().map(|segment| segment.file_range()) {
        let mut done = 0;
        while done < len {
            // A part stays in the processor's cache between the two.
            let size = usize::try_from(len - done).unwrap_or(usize::MAX).min(part.len());
            file.read_exact_at(&mut part[..size], from + done)?;
            hash.update(&part[..size]);
            done += size as u64;
        }
    }
    Ok(hash.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_counts_and_what_is_for_debuggers_does_not() {
        // This test is such a file itself.
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let bytes = std::fs::read(&program).unwrap();
        let hash_with = |at: usize| {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            std::fs::write(&copy, changed).unwrap();
            of(&File::open(&copy).unwrap()).unwrap()
        };
        let file = object::File::parse(&*bytes).unwrap();
        let section = |name: &str| {
            use object::ObjectSection as _;
            file.section_by_name(name).unwrap().file_range().unwrap().0 as usize
        };
        let hash = of(&File::open(&program).unwrap()).unwrap();
        assert_ne!(hash_with(section(".text")), hash);
        assert_ne!(hash_with(section(".rodata")), hash);
        assert_eq!(hash_with(section(".symtab")), hash);
        std::fs::write(&copy, &bytes[..bytes.len() / 2]).unwrap();
        assert!(of(&File::open(&copy).unwrap()).is_err());
    }
}
