//! The file that is being written, under its other name: one run at a time has it.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

use crate::{Error, Result};

/// Opens an empty file at `part` that no other run writes to as long as this one lives and has not [given it up](give_up).
///
/// The system forgets the lock of a run that died, so what such a run left is taken away.
pub(super) fn create(part: &Path) -> Result<File> {
    loop {
        let file = File::options().create(true).write(true).truncate(false).open(part)?;
        // Some file systems have no locks; there nobody is refused.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(taken(&file));
        }
        // The run before may have given it its name in the meantime, or died before it took this one away.
        match standing(&file, part)? {
            Standing::New => return Ok(file),
            Standing::Old => fs::remove_file(part)?,
            Standing::Gone => {}
        }
    }
}

/// Lets others write to it, once it has its name or is taken away. By closing it alone it would stay locked while a worker is
/// being spawned, which has it for a moment.
pub(super) fn give_up(file: &File) {
    let _ = file.unlock();
}

/// What a file is that was just locked.
enum Standing {
    /// The empty one that is found under its name.
    New,
    /// What a run left that died; it may be the whole file that it had just named, too.
    Old,
    /// No longer found there.
    Gone,
}

#[cfg(unix)]
fn standing(file: &File, part: &Path) -> io::Result<Standing> {
    use std::os::unix::fs::MetadataExt as _;

    let locked = file.metadata()?;
    let there = match fs::metadata(part) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Gone),
        there => there?,
    };
    Ok(match (locked.dev(), locked.ino()) == (there.dev(), there.ino()) {
        false => Standing::Gone,
        true if locked.nlink() > 1 || locked.len() > 0 => Standing::Old,
        true => Standing::New,
    })
}

#[cfg(not(unix))]
fn standing(file: &File, _: &Path) -> io::Result<Standing> {
    file.set_len(0)?;
    Ok(Standing::New)
}

/// Says who writes to the file, and for how long, as far as the system tells.
fn taken(file: &File) -> Error {
    let metadata = file.metadata().ok();
    let begun =
        metadata.as_ref().and_then(|metadata| metadata.created().or_else(|_| metadata.modified()).ok());
    let since = begun.and_then(|begun| begun.elapsed().ok());
    let since = since.map_or(String::new(), |since| format!(" for {} s", since.as_secs()));
    let who = match metadata.as_ref().and_then(owner) {
        Some(process) => format!("process {process} has been writing this file{since}"),
        None => format!("another run has been writing this file{since}"),
    };
    Error::invalid(format!("{who}; wait for it, or give each run a name of its own"))
}

/// The process that has the lock of a file, as Linux lists it.
#[cfg(unix)]
fn owner(metadata: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;

    let locks = fs::read_to_string("/proc/locks").ok()?;
    let inode = metadata.ino().to_string();
    locks.lines().find_map(|line| {
        // `1: FLOCK ADVISORY WRITE 4711 fe:00:131 0 EOF`; one that waits has `->` behind its number.
        let mut words = line.split_whitespace().skip(1);
        let (kind, process) = (words.next()?, words.nth(2)?);
        let is_it = kind == "FLOCK" && words.next()?.rsplit(':').next()? == inode;
        process.parse().ok().filter(|&process| is_it && process > 0)
    })
}

#[cfg(not(unix))]
fn owner(_: &fs::Metadata) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A folder of this test's own.
    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("forebay-part-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn the_second_is_refused_and_told_who_is_the_first() {
        let folder = folder("second");
        let part = folder.join(".a.part");
        let first = create(&part).unwrap();
        let error = create(&part).unwrap_err();
        let process = std::process::id();
        assert!(error.message().starts_with(&format!("process {process} has been")), "{error}");
        assert!(error.message().len() <= 100, "{error}");
        give_up(&first);
        create(&part).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_dead_run_left_is_written_over_but_not_what_it_published() {
        let folder = folder("dead");
        let (part, whole) = (folder.join(".a.part"), folder.join("a"));
        fs::write(&part, "half").unwrap();
        assert_eq!(create(&part).unwrap().metadata().unwrap().len(), 0);
        // It died between the two names.
        fs::write(&part, "whole").unwrap();
        fs::hard_link(&part, &whole).unwrap();
        create(&part).unwrap().write_all(b"new").unwrap();
        assert_eq!(
            (fs::read(&whole).unwrap(), fs::read(&part).unwrap()),
            (b"whole".to_vec(), b"new".to_vec())
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
