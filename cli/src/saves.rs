//! What a run leaves for a later one: snapshot files, read and written, and the list of lost samples.

use std::{
    collections::HashSet,
    fs::{self, File, Metadata, TryLockError},
    io::{self, Write},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process,
};

use forebay_loader::{Error, Loader, LostSample, Result, Snapshot};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};
use serde::Serialize;

use crate::print;

/// The most links that are followed, one behind the other; the system follows as many.
const LINKS: usize = 40;

/// Reads a snapshot, as JSON or as the bytes that the library makes.
pub(crate) fn read(path: &Path) -> Result<Snapshot> {
    let bytes = fs::read(path).map_err(|error| in_file(error.into(), path))?;
    let is_json = bytes.trim_ascii_start().starts_with(b"{");
    let snapshot = match str::from_utf8(&bytes) {
        Ok(text) if is_json => Snapshot::from_json(text),
        _ => Snapshot::from_bytes(&bytes),
    };
    snapshot.map_err(|error| in_file(error, path))
}

/// Says which file an error is about.
pub(crate) fn in_file(error: Error, path: &Path) -> Error {
    error.context("file", path.display())
}

/// A name for what is not yet whole, in the same folder.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
    name.push(format!(".{}.tmp", process::id()));
    Ok(path.with_file_name(name))
}

/// Finds out whether a file can be [replaced](replace), before hours are spent on what it is to hold.
fn try_replace(path: &Path) -> Result<()> {
    if let Some(found) = found_at(path) {
        let error = format!(
            "found {found}, expected a regular file or a new name, because the file is replaced whole"
        );
        return Err(Error::invalid(error));
    }
    let beside = beside(&behind_links(path)?)?;
    File::create(&beside)?;
    Ok(fs::remove_file(&beside)?)
}

/// The file that links at `path` lead to, which need not be there yet.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path = match path.parent() {
            Some(folder) => folder.join(target),
            None => target,
        };
    }
    Err(io::Error::other("found more than 40 links in a chain, expected a file"))
}

/// What is at a path where a file of this run's own should be: none for a regular file that the run does not write to otherwise.
fn no_file_of_its_own(there: &Metadata) -> Option<&'static str> {
    let kind = there.file_type();
    let is_stream = |stream: &std::io::Result<Metadata>| {
        let same = |stream: &Metadata| (stream.dev(), stream.ino()) == (there.dev(), there.ino());
        stream.as_ref().is_ok_and(same)
    };
    if kind.is_dir() {
        Some("a folder")
    } else if kind.is_fifo() || kind.is_socket() {
        Some("a pipe or socket")
    } else if !kind.is_file() {
        Some("a device")
    } else {
        let output = print::output().and_then(|output| output.metadata());
        let streams = [output, fs::metadata("/dev/stderr")];
        streams.iter().any(is_stream).then_some("the standard output or error of this run")
    }
}

/// What is at a path, where a file of this run's own should be: none for nothing, or for such a file.
fn found_at(path: &Path) -> Option<&'static str> {
    let there = || fs::metadata(path).ok().and_then(|there| no_file_of_its_own(&there));
    if is_output(path) { Some("the standard output of this run") } else { there() }
}

/// Refuses a path that an audit or a record cannot go to, since they are read again.
pub(crate) fn refuse_output(path: &Path) -> Result<()> {
    let refuse = |found| Err(Error::invalid(format!("found {found}, expected a regular file or a new name")));
    found_at(path).map_or(Ok(()), refuse).map_err(|error| in_file(error, path))
}

/// Whether a path is one of the names that the system has for the standard output.
fn is_output(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].map(Path::new).contains(&path)
}

/// Puts `bytes` into a file so that nobody ever finds half of them there, not after a crash either. A link stays, and leads to them.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = &behind_links(path)?;
    let beside = beside(path)?;
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| {
        // It may not be there at all.
        let _ = fs::remove_file(&beside);
    })
}

/// A place in the data: epoch, samples of it that were delivered, and whether it has ended.
type Place = (u64, u64, bool);

/// Writes snapshots and lost samples as a run goes on, where that was asked for.
pub(crate) struct Saves {
    snapshot: Option<PathBuf>,
    every: u64,
    /// Deliveries since the last snapshot.
    since: u64,
    /// The place that is in the file.
    saved: Option<Place>,
    quarantine: Option<Quarantine>,
}

impl Saves {
    /// Writes to `snapshot` after every so many deliveries, and lost samples to `quarantine`. `resumed` is where the run
    /// begins, and the file that says so: then the list of lost samples is gone on with, too.
    pub(crate) fn new(
        snapshot: Option<PathBuf>,
        every: u64,
        quarantine: Option<&Path>,
        resumed: Option<(&Path, &Snapshot)>,
    ) -> Result<Self> {
        if let Some(path) = &snapshot {
            try_replace(path).map_err(|error| in_file(error, path))?;
        }
        let quarantine = quarantine.map(|path| Quarantine::open(path, resumed.is_some())).transpose()?;
        let saved = resumed.filter(|(file, _)| snapshot.as_deref() == Some(*file));
        let saved = saved.map(|(_, snapshot)| place(snapshot));
        Ok(Self { snapshot, every, since: 0, saved, quarantine })
    }

    /// Takes note of one more delivery.
    pub(crate) fn delivered(&mut self, loader: &Loader) -> Result<()> {
        self.since += 1;
        if self.since == self.every && self.snapshot.is_some() { self.save(loader) } else { Ok(()) }
    }

    /// Writes where the run is, unless that is in the file already.
    pub(crate) fn save(&mut self, loader: &Loader) -> Result<()> {
        self.since = 0;
        if let Some(quarantine) = &mut self.quarantine {
            quarantine.add(&loader.quarantine())?;
        }
        let Some(path) = &self.snapshot else { return Ok(()) };
        let snapshot = loader.snapshot()?;
        if self.saved.replace(place(&snapshot)) == Some(place(&snapshot)) {
            return Ok(());
        }
        let text = snapshot.to_json() + "\n";
        replace(path, text.as_bytes()).map_err(|error| in_file(error.into(), path))
    }
}

fn place(snapshot: &Snapshot) -> Place {
    (snapshot.epoch, snapshot.delivered, snapshot.ended)
}

/// A file with a line for each lost sample, none of them twice.
struct Quarantine {
    path: PathBuf,
    file: File,
    lines: HashSet<String>,
    /// How many of the loader's were looked at.
    seen: usize,
}

impl Quarantine {
    fn open(path: &Path, go_on: bool) -> Result<Self> {
        let open = || match fs::metadata(path).ok().and_then(|there| no_file_of_its_own(&there)) {
            // What was written there before is somebody else's, or cannot be read again.
            _ if is_output(path) => Ok((print::output()?, HashSet::new())),
            Some(_) => Ok((open_stream(path)?, HashSet::new())),
            None => {
                let file = File::options().create(true).append(true).open(path)?;
                if let Err(TryLockError::WouldBlock) = file.try_lock() {
                    let error =
                        "another run writes its lost samples to this file; give each run its own file";
                    return Err(Error::invalid(error));
                }
                if !go_on {
                    file.set_len(0)?;
                }
                Ok((file, fs::read_to_string(path)?.lines().map(str::to_owned).collect()))
            }
        };
        let (file, lines) = open().map_err(|error| in_file(error, path))?;
        Ok(Self { path: path.to_owned(), file, lines, seen: 0 })
    }

    fn add(&mut self, lost: &[LostSample]) -> Result<()> {
        let mut text = String::new();
        for sample in lost.get(self.seen..).unwrap_or_default() {
            let line = Line::new(sample).to_json();
            if self.lines.insert(line.clone()) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        self.seen = lost.len();
        self.file.write_all(text.as_bytes()).map_err(|error| in_file(error.into(), &self.path))
    }
}

/// Opens a pipe or a device to write to; a pipe that nobody reads is an error at once.
fn open_stream(path: &Path) -> Result<File> {
    let now = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().append(true).custom_flags(now).open(path).map_err(|error| {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NXIO) => {
                Error::invalid("found a pipe that nobody reads, expected a reader; start the reader first")
            }
            _ => error.into(),
        }
    })?;
    // From here on a write waits for its reader.
    let flags = fcntl_getfl(&file).map_err(io::Error::from)?;
    fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK)).map_err(io::Error::from)?;
    Ok(file)
}

/// One lost sample.
#[derive(Serialize)]
struct Line<'a> {
    node: &'a str,
    key: Option<&'a str>,
    uid: Option<u64>,
    error: String,
}

impl<'a> Line<'a> {
    fn new(lost: &'a LostSample) -> Self {
        let LostSample { node, key, uid, error, .. } = lost;
        Self { node, key: key.as_deref(), uid: *uid, error: error.to_string() }
    }

    fn to_json(&self) -> String {
        // Invariant: text and numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
}
