//! Pipes that write files: one file after the other, each whole or not at all, and the same ones after a resume.

mod part;

use std::{
    fs::{self, File},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
};

use forebay_abi::{Key, Sample, Schema, State, Str};

use crate::{
    Context, DataPipe, Error, Io, Noun, On, Options, PipeAudit, PipeInfo, PipeLayout, PipePlacement, Result,
    StateExt as _, Step, Stream, Uids, maps_cut, random::mix,
};

/// The version of a saved position.
const STATE: u32 = 1;
/// Extensions of packed files.
const PACKED: [&str; 7] = ["gz", "tgz", "zst", "xz", "bz2", "lz4", "zip"];
/// So much is collected before it is written.
const BLOCK: usize = 1 << 20;

/// The format of a [`Writer`]: turns samples into the bytes of a file.
///
/// The bytes of a file must depend on its samples alone, so that a resumed run writes the same.
pub trait Encode: Send + Sized + 'static {
    /// The pipe's name and summary; [`Writer`] sets the rest.
    const INFO: PipeInfo;

    /// The options of the pipe.
    type Options: Options;

    /// The format, and the files that it writes.
    ///
    /// # Errors
    /// `Invalid` if the options contradict each other.
    fn new(options: Self::Options) -> Result<(Self, Files)>;

    /// Begins a file, also after a file that failed.
    ///
    /// # Errors
    /// Any.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<()>;

    /// Adds a sample to the file. On an error, the host removes what the call added to `out`.
    ///
    /// # Errors
    /// Any; the sample is left out, and the file continues without it.
    fn sample(&mut self, sample: &Sample, out: &mut Vec<u8>) -> Result<()>;

    /// How many bytes it holds back that it will add to the file later.
    fn held(&self) -> u64 {
        0
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Any.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<()>;
}

/// Which files a pipe writes, and when one is full.
#[derive(Debug, Clone)]
pub struct Files {
    pattern: Pattern,
    samples: u64,
    bytes: u64,
    overwrite: bool,
}

impl Files {
    /// Files by a pattern such as `out-{:05}.tar`. A file is full when it has `samples` samples, or as soon as it
    /// has `bytes` bytes.
    ///
    /// # Errors
    /// `Unsupported` for a URL, and for the extension of a packed file. `Invalid` for a pattern that cannot
    /// be read, and for one without a place for a number if a limit was given.
    pub fn new(pattern: &str, samples: Option<u64>, bytes: Option<u64>, overwrite: bool) -> Result<Self> {
        writable(pattern).map_err(|error| error.context("option", "pattern"))?;
        let pattern = Pattern::parse(pattern).map_err(|error| error.context("option", "pattern"))?;
        let many = pattern.parts.iter().any(|part| matches!(part, Part::Number(_)));
        if !many && (samples.is_some() || bytes.is_some()) {
            let error =
                "found no place for a number, expected one as in `out-{:05}.tar`, since a file has a limit";
            return Err(Error::invalid(error).context("option", "pattern"));
        }
        let usual = if many { 1 << 30 } else { u64::MAX };
        let bytes = bytes.or(samples.map(|_| u64::MAX)).unwrap_or(usual);
        Ok(Self { pattern, samples: samples.unwrap_or(u64::MAX), bytes, overwrite })
    }
}

/// Refuses what would become a file of another place or another kind than its name says.
fn writable(pattern: &str) -> Result<()> {
    if pattern.contains("://") {
        return Err(Error::unsupported(
            "found a URL, expected a path; write to a folder, and copy the files from there",
        ));
    }
    let packed = Path::new(pattern).extension().and_then(|extension| extension.to_str());
    match packed.filter(|extension| PACKED.contains(extension)) {
        Some(extension) => Err(Error::unsupported(format!(
            "found the extension `{extension}`, expected another one, since files are written unpacked"
        ))),
        None => Ok(()),
    }
}

/// A file's name with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The number of the file, with so many digits at least.
    Number(usize),
    Rank,
    Epoch,
}

impl Pattern {
    fn parse(text: &str) -> Result<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            parts.push(Part::Text(before.to_owned()));
            let (inside, behind) =
                after.split_once('}').ok_or_else(|| Error::invalid("found `{` without `}`"))?;
            let digits = inside.strip_prefix(":0").or((inside.is_empty()).then_some("0"));
            let digits = digits.and_then(|digits| digits.parse().ok()).filter(|&digits: &usize| digits <= 20);
            parts.push(match (inside, digits) {
                (_, Some(digits)) => Part::Number(digits),
                ("rank", _) => Part::Rank,
                ("epoch", _) => Part::Epoch,
                _ => {
                    let error =
                        format!("found `{{{inside}}}`, expected {{}}, {{:05}}, {{rank}} or {{epoch}}");
                    return Err(Error::invalid(error));
                }
            });
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        match Path::new(text).file_name() {
            Some(_) if !text.ends_with('/') => Ok(Self { parts }),
            _ => Err(Error::invalid(format!("found `{text}`, expected the name of a file"))),
        }
    }

    fn path(&self, number: u64, (rank, epoch): (u32, u64)) -> PathBuf {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Number(digits) => format!("{number:0digits$}"),
            Part::Rank => rank.to_string(),
            Part::Epoch => epoch.to_string(),
        };
        PathBuf::from(self.parts.iter().map(part).collect::<String>())
    }
}

/// A pipe that writes its samples to files in some [format](Encode). For each finished file it gives a sample with
/// `path`, `samples` and `bytes`.
///
/// A file is written under another name in the same folder (`.NAME.part`), flushed to the disk, and only then
/// renamed. The other name is locked, so if two runs write the same file at once, the second is refused. If a file
/// exists and holds the same bytes, it counts as written, so that a run can go on after a crash. If its bytes
/// differ, that is an error, unless it may be overwritten. State: the number of files; after a resume, the samples
/// of the unfinished file come again.
#[derive(Debug)]
pub struct Writer<E> {
    format: E,
    files: Files,
    /// How many files are whole.
    number: u64,
    /// How many samples were taken for the next one, those it failed on too, and up to which it told so before a restore.
    taken: u64,
    told: u64,
    open: Option<Open>,
    schema: Schema,
}

/// A saved position.
#[derive(serde::Serialize, serde::Deserialize)]
struct Place {
    number: u64,
    told: u64,
}

/// The file that is being written.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    part: PathBuf,
    file: File,
    /// Once the disk failed.
    lost: bool,
    /// Once it has its name alone: another run may have a file of the other name by then.
    moved: bool,
    block: Vec<u8>,
    samples: u64,
    bytes: u64,
    /// How many maps had been cut short when it was begun.
    cut: u64,
}

impl<E: Encode> DataPipe for Writer<E> {
    const INFO: PipeInfo = PipeInfo {
        audit: PipeAudit { uids: Uids::Made, writes: true, ..E::INFO.audit },
        layout: PipeLayout { gives: Some(Noun { one: "file", many: "files" }), ..E::INFO.layout },
        placement: PipePlacement { on: On::OwnThread, ..E::INFO.placement },
        ..E::INFO
    };
    type Options = E::Options;

    fn new(options: E::Options) -> Result<Self> {
        let (format, files) = E::new(options)?;
        let schema = Schema::new(["path", "samples", "bytes"].map(Str::from_static));
        Ok(Self { format, files, number: 0, taken: 0, told: 0, open: None, schema })
    }
}

impl<E: Encode> Stream for Writer<E> {
    fn reset(&mut self, cx: &Context) -> Result<()> {
        (self.number, self.taken, self.told, self.open) = (0, 0, 0, None);
        if cx.world_size() > 1 && !self.files.pattern.parts.contains(&Part::Rank) {
            let error = "each rank writes files of its own, expected `{rank}` in their names";
            return Err(Error::invalid(error).context("option", "pattern"));
        }
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let mut sample = Sample::default();
        while io.room() > 0 {
            if io.pop_into(0, &mut sample) {
                self.taken += 1;
                match self.add(&sample, cx) {
                    Ok(()) => {}
                    // After a resume the samples of the file come again, and this one was told before.
                    Err(Failed::Sample(_)) if self.taken <= self.told => continue,
                    Err(Failed::Sample(error) | Failed::File(error)) => {
                        self.told = self.told.max(self.taken);
                        return Err(error.context("sample", sample.key()));
                    }
                }
                let full = |open: &Open| {
                    let bytes = open.bytes + open.block.len() as u64 + self.format.held();
                    open.samples >= self.files.samples || bytes >= self.files.bytes
                };
                if self.open.as_ref().is_some_and(full) {
                    io.push(&mut self.finish()?);
                }
            } else if io.ended(0) {
                if self.open.is_some() {
                    io.push(&mut self.finish()?);
                }
                return Ok(Step::End);
            } else {
                return Ok(Step::NeedInput(0));
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        let place = Place { number: self.number, told: self.told };
        Ok(State::json(STATE, &place)?.again(0, self.taken))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let Place { number, told } = state.parse(STATE)?;
        (self.number, self.told) = (number, told);
        Ok(())
    }
}

/// Why a sample is not in the file.
enum Failed {
    /// The format has no form for it.
    Sample(Error),
    /// The file cannot be written.
    File(Error),
}

impl<E: Encode> Writer<E> {
    fn add(&mut self, sample: &Sample, cx: &Context) -> std::result::Result<(), Failed> {
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let path = self.files.pattern.path(self.number, (cx.rank(), cx.epoch()));
                let mut open = Open::create(path).map_err(Failed::File)?;
                self.format.begin(&mut open.block).map_err(Failed::File)?;
                none.insert(open)
            }
        };
        let before = open.block.len();
        if let Err(error) = self.format.sample(sample, &mut open.block) {
            open.block.truncate(before);
            return Err(Failed::Sample(error));
        }
        open.samples += 1;
        if open.block.len() >= BLOCK { open.flush().map_err(Failed::File) } else { Ok(()) }
    }

    /// Ends the file, names it, and gives its sample.
    fn finish(&mut self) -> Result<Sample> {
        let mut open = self.open.take().ok_or_else(|| Error::bug("no file is open"))?;
        (self.taken, self.told) = (0, 0);
        self.format.end(&mut open.block)?;
        open.flush()?;
        open.publish(self.files.overwrite).map_err(|error| error.context("file", open.path.display()))?;
        let path = Str::from(open.path.to_string_lossy().into_owned());
        let values = vec![path.clone().into(), open.samples.into(), open.bytes.into()];
        self.number += 1;
        Ok(Sample::with_schema(mix(&[self.number]), Key::whole(path), self.schema.clone(), values))
    }
}

impl Open {
    fn create(path: PathBuf) -> Result<Self> {
        let create = || {
            let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
            let part = path.with_file_name(format!(".{}.part", name.to_string_lossy()));
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                fs::create_dir_all(folder)?;
            }
            Ok((part::create(&part)?, part))
        };
        let (file, part) = create().map_err(|error: Error| error.context("file", path.display()))?;
        Ok(Self {
            path,
            part,
            file,
            lost: false,
            moved: false,
            block: Vec::new(),
            samples: 0,
            bytes: 0,
            cut: maps_cut(),
        })
    }

    fn flush(&mut self) -> Result<()> {
        let lost =
            || Error::new(crate::ErrorKind::Io, "a write failed before, so the file cannot be finished");
        let written = match self.lost {
            false => self.file.write_all(&self.block).map_err(Error::from),
            true => Err(lost()),
        };
        self.bytes += self.block.len() as u64;
        self.block.clear();
        written.map_err(|error| {
            self.lost = true;
            error.context("file", self.path.display())
        })
    }

    /// Brings the file to the disk, and gives it its name.
    fn publish(&mut self, overwrite: bool) -> Result<()> {
        if maps_cut() != self.cut {
            let error = "a file was cut short while it was read, so the new file may hold zeros";
            return Err(Error::new(crate::ErrorKind::Io, error));
        }
        self.file.sync_all()?;
        if overwrite {
            fs::rename(&self.part, &self.path)?;
            self.moved = true;
        } else if let Err(error) = fs::hard_link(&self.part, &self.path) {
            match error.kind() {
                io::ErrorKind::AlreadyExists if alike(&self.part, &self.path)? => {}
                io::ErrorKind::AlreadyExists => {
                    let error = "found a file of this name with other contents; overwrite=true replaces it";
                    return Err(Error::invalid(error));
                }
                // Some file systems have no links.
                _ if !self.path.exists() => {
                    fs::rename(&self.part, &self.path)?;
                    self.moved = true;
                }
                _ => return Err(error.into()),
            }
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Of a folder that cannot be opened the system keeps the names in its own time.
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            folder.sync_all()?;
        }
        Ok(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.moved {
            let _ = fs::remove_file(&self.part); // Nobody can be told.
        }
        part::give_up(&self.file);
    }
}

/// Whether two files hold the same bytes.
fn alike(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; BLOCK], vec![0; BLOCK]);
    loop {
        let read = one.read(&mut left)?;
        other.read_exact(&mut right[..read])?;
        if left[..read] != right[..read] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in() {
        let path = |text: &str| Pattern::parse(text).unwrap().path(7, (3, 2)).to_str().unwrap().to_owned();
        assert_eq!(path("a/out-{:05}.tar"), "a/out-00007.tar");
        assert_eq!(path("{rank}-{}-{epoch}"), "3-7-2");
        assert_eq!(path("whole.tar"), "whole.tar");
        for wrong in ["{", "{:5}", "{x}", "", "a/", "{:099}"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_of_another_place_or_kind_are_refused() {
        for pattern in ["s3://b/a.tar", "file:///a.tar", "a.tar.gz", "a-{}.jsonl.zst"] {
            let error = Files::new(pattern, None, None, false).unwrap_err();
            assert_eq!(
                (error.kind(), error.get("option")),
                (crate::ErrorKind::Unsupported, Some("pattern")),
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_limit_needs_a_number_in_the_name() {
        assert!(Files::new("a.tar", Some(3), None, false).is_err());
        assert!(Files::new("a.tar", None, None, false).is_ok());
        assert_eq!(Files::new("a-{}.tar", Some(3), None, false).unwrap().bytes, u64::MAX);
    }
}
