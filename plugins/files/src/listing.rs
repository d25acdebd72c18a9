//! From patterns to paths: one folder at a time, in the order of the whole sorted list.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use forebay_core::{Context, Error, Result, Texts, nearest};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    braces::Braces,
    map::at,
    nearby,
    pattern::{Pattern, Positions, is_wild},
    url,
};

/// The most errors of one listing that say what may have been meant.
const EXPLAINED: u32 = 8;
/// What the path `-` stands for.
const STDIN: &str = "/dev/stdin";

/// A file that a pattern stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its path, as the pattern has it: relative if that is.
    pub path: PathBuf,
    /// A hash of the pattern's number and of the path below the pattern's first wildcard.
    pub uid: u64,
}

/// Lists the files that `patterns` stand for. Folders are read when the listing comes to them.
///
/// # Errors
/// `Limit`, when braces stand for more than ten million names. The iterator gives `Io` and `Invalid`, naming the
/// path or the pattern, and goes on with the next name; `Unsupported` for patterns in stores, which only a host knows.
///
/// # Examples
/// ```
/// let sources: Vec<_> = forebay_files::list(&["src/*.rs"])?.collect::<Result<_, _>>()?;
/// assert!(sources.iter().any(|found| found.path.ends_with("src/listing.rs")));
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub fn list<S: AsRef<str>>(patterns: &[S]) -> Result<Listing> {
    Listing::new(patterns.iter().collect())
}

/// The files that patterns stand for; made by [`list`].
pub struct Listing {
    patterns: Texts,
    /// Which pattern, and which name that its braces stand for, comes next.
    pattern: usize,
    name: u64,
    /// The pattern whose turn it is, once its first name is asked for: there may be a million.
    one: Option<One>,
    /// How many files this pattern gave, and whether it met folders where files were expected.
    matches: u64,
    folders: bool,
    walk: Option<Walk>,
    /// How many files the walk gave.
    given: u64,
    /// How many errors were told with what may have been meant.
    explained: u32,
}

/// Where a listing is: so that it goes on there without a look at all files before.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Which pattern, and which of the names that its braces stand for.
    pattern: usize,
    name: u64,
    /// How many files that name has given.
    pub(crate) given: u64,
}

/// A pattern as it was given.
struct One {
    text: String,
    names: Braces,
    /// The folder that holds its first part with a wildcard or a brace; uids do not depend on it.
    prefix: PathBuf,
}

impl One {
    fn new(text: &str) -> Result<Self> {
        let text = if text == "-" { STDIN } else { below_scheme(text)? };
        let plain: Vec<_> =
            text.split('/').take_while(|part| !is_wild_in(text, part) && !part.contains('{')).collect();
        let plain = plain.join("/");
        let whole = plain.len() == text.len();
        let prefix =
            if whole { Path::new(text).parent().unwrap_or(Path::new("")) } else { Path::new(&plain) };
        // The root itself splits into nothing.
        let prefix =
            if !whole && plain.is_empty() && text.starts_with('/') { Path::new("/") } else { prefix };
        Ok(Self { text: text.to_owned(), names: Braces::parse(text)?, prefix: prefix.to_owned() })
    }

    /// What [`new`](One::new) would refuse, found without making it.
    fn check(text: &str) -> Result<()> {
        let text = below_scheme(text)?;
        if text.contains('{') { Braces::parse(text).map(drop) } else { Ok(()) }
    }
}

/// Whether a part of a pattern has a wildcard: in a URL of http none is one, since `?` begins its query and its server lists nothing.
fn is_wild_in(text: &str, part: &str) -> bool {
    !url::is_web(text) && is_wild(part)
}

fn below_scheme(text: &str) -> Result<&str> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    if text.is_empty() { Err(Error::invalid("found an empty path")) } else { Ok(text) }
}

impl Iterator for Listing {
    type Item = Result<Found>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance(None)
    }
}

impl Listing {
    /// The next file; without a context, only where all folders are here.
    pub(crate) fn advance(&mut self, cx: Option<&Context<'_>>) -> Option<Result<Found>> {
        loop {
            let found = match &mut self.walk {
                Some(walk) => walk.next(&mut self.folders, cx),
                None => None,
            };
            if let Some(found) = found {
                self.matches += 1;
                self.given += u64::from(found.is_ok());
                return Some(found.map(|path| self.found(path)));
            }
            self.walk = None;
            let one = match &self.one {
                Some(one) => one,
                None => match One::new(self.patterns.get(self.pattern)?) {
                    Ok(one) => self.one.insert(one),
                    Err(error) => {
                        self.pattern += 1;
                        return Some(Err(error));
                    }
                },
            };
            if self.name < one.names.count().unwrap_or(0) {
                let name = one.names.get(self.name);
                self.name += 1;
                match Walk::open(&name, cx) {
                    Ok(walk) => (self.walk, self.given) = (Some(walk), 0),
                    Err(error) => {
                        self.matches += 1;
                        let error = self.explain(&name, error);
                        let Some(one) = &self.one else { return Some(Err(error)) };
                        let error =
                            if name == one.text { error } else { error.context("pattern", &one.text) };
                        return Some(Err(error));
                    }
                }
            } else if let Some(error) = self.end_pattern() {
                return Some(Err(error));
            }
        }
    }

    /// The error about a name, with what may have been meant; of the first few, since a list may have a million that are gone.
    fn explain(&mut self, name: &str, error: Error) -> Error {
        self.explained += 1;
        if self.explained > EXPLAINED || url::is_far(name) {
            return error;
        }
        let plain: PathBuf = Path::new(name)
            .components()
            .take_while(|part| !is_wild(&part.as_os_str().to_string_lossy()))
            .collect();
        nearby::told(&plain, error)
    }

    /// Checks the patterns; nothing is made of them before their turn.
    pub(crate) fn new(patterns: Texts) -> Result<Self> {
        patterns.iter().try_for_each(One::check)?;
        let (one, walk) = (None, None);
        Ok(Self {
            patterns,
            pattern: 0,
            name: 0,
            one,
            matches: 0,
            folders: false,
            walk,
            given: 0,
            explained: 0,
        })
    }

    /// The same patterns, from the first on.
    pub(crate) fn afresh(&self) -> Self {
        let (patterns, one, walk) = (self.patterns.clone(), None, None);
        Self { patterns, pattern: 0, name: 0, one, matches: 0, folders: false, walk, given: 0, explained: 0 }
    }

    pub(crate) fn place(&self) -> Place {
        match self.walk {
            Some(_) => Place { pattern: self.pattern, name: self.name - 1, given: self.given },
            None => Place { pattern: self.pattern, name: self.name, given: 0 },
        }
    }

    /// Goes to a place, at the first of the files that its name stands for.
    pub(crate) fn go_to(&mut self, place: Place) {
        (self.one, self.walk) = (None, None);
        // It had given something, or told an error, before it came to a second name.
        (self.pattern, self.name, self.matches) = (place.pattern, place.name, u64::from(place.name > 0));
        (self.folders, self.given) = (false, 0);
    }

    fn found(&self, path: PathBuf) -> Found {
        let prefix = self.one.as_ref().map(|one| one.prefix.as_path());
        let below = prefix.and_then(|prefix| path.strip_prefix(prefix).ok()).unwrap_or(&path);
        let uid = xxh3_64_with_seed(below.as_os_str().as_encoded_bytes(), self.pattern as u64);
        Found { path, uid }
    }

    /// Goes to the next pattern, with an error if this one stood for nothing.
    fn end_pattern(&mut self) -> Option<Error> {
        let one = self.one.take()?;
        let error = (self.matches == 0).then(|| {
            let (text, shown) = (&one.text, one.prefix.display().to_string());
            let message = match (self.folders, is_wild(text) || text.contains('{')) {
                (true, true) => "no file matches, only folders: add `/**` for the files in them".to_owned(),
                (_, false) => "no file is in this folder, nor below it".to_owned(),
                (false, true) => match nearest::inside(&one.prefix) {
                    Some(has) => format!("no file matches; the folder has {has}"),
                    None => "no file matches".to_owned(),
                },
            };
            Error::invalid(message)
                .context("pattern", text)
                .context("folder", if shown.is_empty() { "." } else { &shown })
        });
        (self.pattern, self.name, self.matches, self.folders) = (self.pattern + 1, 0, 0, false);
        error
    }
}

/// The walk of one name that a pattern stands for.
enum Walk {
    /// The path of a file.
    File(Option<PathBuf>),
    Folders {
        pattern: Pattern,
        open: Vec<Folder>,
    },
}

/// A folder being walked: what is left of it, last first, and what must be met below.
struct Folder {
    path: PathBuf,
    left: Vec<Entry>,
    positions: Positions,
}

struct Entry {
    name: OsString,
    folder: bool,
    link: bool,
}

impl Walk {
    fn open(name: &str, cx: Option<&Context<'_>>) -> Result<Self> {
        let path = Path::new(name);
        if url::is_far(name) {
            // What is there shows when it is read.
            if !is_wild_in(name, name) && !name.ends_with('/') {
                return Ok(Self::File(Some(path.to_owned())));
            }
        } else if !is_wild(name) && !fs::metadata(path).map_err(|error| at(path, error))?.is_dir() {
            return Ok(Self::File(Some(path.to_owned())));
        }
        let pattern = Pattern::parse(name)?;
        let root = Folder::read(pattern.base.clone(), pattern.start(), cx)?;
        Ok(Self::Folders { pattern, open: vec![root] })
    }

    /// The next file; notes when a folder stands where the pattern wants a file.
    fn next(&mut self, folders: &mut bool, cx: Option<&Context<'_>>) -> Option<Result<PathBuf>> {
        let (pattern, open) = match self {
            Self::File(path) => return path.take().map(Ok),
            Self::Folders { pattern, open } => (pattern, open),
        };
        loop {
            let folder = open.last_mut()?;
            let Some(entry) = folder.left.pop() else {
                open.pop();
                continue;
            };
            let path = folder.path.join(&entry.name);
            if !entry.folder {
                if pattern.ends_with(&folder.positions, &entry.name) {
                    return Some(Ok(path));
                }
                continue;
            }
            *folders |= pattern.ends_with(&folder.positions, &entry.name);
            let positions = pattern.enter(&folder.positions, &entry.name, entry.link);
            if positions.is_empty() {
                continue;
            }
            match Folder::read(path, positions, cx) {
                Ok(folder) => open.push(folder),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Folder {
    fn read(path: PathBuf, positions: Positions, cx: Option<&Context<'_>>) -> Result<Self> {
        if let Some(far) = path.to_str().filter(|path| url::is_far(path)) {
            let cx = cx.ok_or_else(|| {
                Error::unsupported("only a host knows stores; list them with the pipe `files`")
                    .context("folder", far)
            })?;
            let entries = url::list(far, cx)?;
            let entry = |(name, folder): (String, bool)| Entry { name: name.into(), folder, link: false };
            let left = entries.into_iter().map(entry).collect();
            return Ok(Self { path, left, positions }.sorted());
        }
        let place = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        let mut left = Vec::new();
        for entry in fs::read_dir(place).map_err(|error| at(place, error))? {
            let entry = entry.map_err(|error| at(place, error))?;
            let mut kind = entry.file_type().map_err(|error| at(&entry.path(), error))?;
            let link = kind.is_symlink();
            if link {
                // A link to nothing stays: opening it says what is wrong.
                kind = fs::metadata(entry.path()).map_or(kind, |target| target.file_type());
            }
            if kind.is_dir() || kind.is_file() || kind.is_symlink() {
                left.push(Entry { name: entry.file_name(), folder: kind.is_dir(), link });
            }
        }
        Ok(Self { path, left, positions }.sorted())
    }

    fn sorted(mut self) -> Self {
        self.left.sort_by(|one, two| two.order().cmp(one.order()));
        self
    }
}

impl Entry {
    /// The bytes this entry has in the whole sorted list of paths, where a slash follows a folder's name.
    fn order(&self) -> impl Iterator<Item = &u8> {
        self.name.as_encoded_bytes().iter().chain(self.folder.then_some(&b'/'))
    }
}
