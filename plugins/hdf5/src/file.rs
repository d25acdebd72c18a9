//! An open file: where its bytes are, and the way to its objects by path.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use forebay_core::{Blob, Buffer, Error, Limits, Result};

use crate::{
    bytes::{Cursor, Sizes, size},
    object::{Group, Object},
    structure::{
        link::Target,
        shared,
        superblock::{self, Superblock},
    },
};

/// How much of a file far away is fetched at once to read its structures.
const PAGE: u64 = 1 << 16;
/// How many such pieces are kept.
const PAGES_KEPT: usize = 64;
/// How many objects are looked at to find all datasets.
pub(crate) const OBJECTS_LIMIT: usize = 1 << 16;
/// How many soft links may lead to one another.
const LINKS_LIMIT: usize = 16;

/// An open HDF5 file. Cheap to clone, safe to read from many threads: there is no lock around reading.
///
/// Structures are read where they are needed: what lies far away is fetched in pieces of 64 KiB, of which a few are kept.
///
/// ```
/// use forebay_core::Buffer;
/// use forebay_hdf5::File;
///
/// let bytes = Buffer::from(std::fs::read("tests/data/latest.h5")?);
/// let images = File::open(bytes.into())?.dataset("image")?;
/// assert_eq!((images.shape(), images.datatype().to_string()), (Some(&[23, 6, 5][..]), "uint16".to_owned()));
/// let ten = images.read_rows(5..15)?;
/// assert_eq!(ten.as_tensor().map(|tensor| tensor.shape()), Some(&[10, 6, 5][..]));
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Clone)]
pub struct File(Arc<Inner>);

struct Inner {
    blob: Blob,
    superblock: Superblock,
    /// The most bytes that one reading may take in memory.
    limit: u64,
    pages: Mutex<VecDeque<(u64, Buffer)>>,
    shared: Option<shared::Table>,
}

impl File {
    /// Opens the file in `blob`; no reading of it takes more than 1 GiB of memory.
    ///
    /// # Errors
    /// As [`open_limited`](File::open_limited).
    pub fn open(blob: Blob) -> Result<Self> {
        Self::open_limited(blob, &Limits::DEFAULT)
    }

    /// Opens the file in `blob`; no reading of it takes more memory than `limits` say.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are no HDF5 file or end before it does; `Unsupported` for one that is split over several files.
    pub fn open_limited(blob: Blob, limits: &Limits) -> Result<Self> {
        let superblock = superblock::find(&blob)?;
        let limit = limits.bytes;
        let mut inner = Inner { blob, superblock, limit, pages: Mutex::default(), shared: None };
        if inner.superblock.extension.is_some() {
            let file = Self(Arc::new(inner));
            let shared = shared::Table::of(&file)?;
            // Nobody else has the file yet.
            inner = Arc::into_inner(file.0).ok_or_else(|| Error::bug("the file is shared already"))?;
            inner.shared = shared;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// How many bytes lie before the file's signature.
    #[must_use]
    pub fn user_block(&self) -> u64 {
        self.0.superblock.base
    }

    /// The group that all paths start from.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn root(&self) -> Result<Group> {
        match Object::at(self, self.0.superblock.root, "/")? {
            Object::Group(group) => Ok(group),
            _ => Err(Error::corrupt("the file's root is no group").context("byte", self.0.superblock.root)),
        }
    }

    /// The object at `path`, whose parts are separated by `/`. Soft links are followed.
    ///
    /// # Errors
    /// `Invalid` when there is none, naming the part that is missing; `Unsupported` for a link to another file; `Corrupt`.
    pub fn object(&self, path: &str) -> Result<Object> {
        let mut left = LINKS_LIMIT;
        self.root()?.resolve(path, &mut left).map_err(|error| error.context("object", path))
    }

    /// The dataset at `path`.
    ///
    /// # Errors
    /// As [`object`](File::object); `Invalid` when it is no dataset.
    pub fn dataset(&self, path: &str) -> Result<crate::Dataset> {
        match self.object(path)? {
            Object::Dataset(dataset) => Ok(*dataset),
            _ => Err(Error::invalid("expected a dataset, found another object").context("object", path)),
        }
    }

    /// The group at `path`.
    ///
    /// # Errors
    /// As [`object`](File::object); `Invalid` when it is no group.
    pub fn group(&self, path: &str) -> Result<Group> {
        match self.object(path)? {
            Object::Group(group) => Ok(group),
            _ => Err(Error::invalid("expected a group, found another object").context("object", path)),
        }
    }

    /// All datasets below `root`, depth first, by name; each once, however many links lead to it. Soft links are not followed.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, also for a link to another file; `Limit` for more than 65,536 objects.
    pub fn datasets(&self, root: &Group) -> Result<Vec<crate::Dataset>> {
        self.walk(root, OBJECTS_LIMIT, &mut Err::<(), Error>)
    }

    /// As [`datasets`](File::datasets), of at most `most` objects; `refused` is told of each that cannot be read, and says whether to go on.
    pub(crate) fn walk(
        &self,
        root: &Group,
        most: usize,
        refused: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<Vec<crate::Dataset>> {
        let mut seen = BTreeSet::from([root.address()]);
        let mut found = Vec::new();
        let mut open = vec![Ok(Object::Group(root.clone()))];
        while let Some(object) = open.pop() {
            let links = match object {
                Ok(Object::Group(group)) => group.links().map(|links| (group, links)),
                Ok(Object::Dataset(dataset)) => {
                    found.push(*dataset);
                    continue;
                }
                Ok(Object::Datatype(_)) => continue,
                Err(error) => Err(error),
            };
            let (group, mut links) = match links {
                Ok(found) => found,
                Err(error) => {
                    refused(error)?;
                    continue;
                }
            };
            links.sort_by(|one, two| two.name.cmp(&one.name));
            for link in links {
                let new = match link.target {
                    Target::Object(address) => seen.insert(address),
                    // What it leads to has a name of its own, in this file.
                    Target::Soft(_) => false,
                    Target::External(..) | Target::Other(_) => true,
                };
                if new {
                    open.push(group.follow(&link));
                }
            }
            if seen.len() > most {
                return Err(Error::limit(format!("more than {most} objects; name the datasets")));
            }
        }
        Ok(found)
    }

    pub(crate) fn superblock(&self) -> &Superblock {
        &self.0.superblock
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.0.superblock.sizes
    }

    pub(crate) fn limit(&self) -> u64 {
        self.0.limit
    }

    pub(crate) fn shared(&self) -> Option<&shared::Table> {
        self.0.shared.as_ref()
    }

    /// How many bytes there are after the user block.
    pub(crate) fn len(&self) -> u64 {
        self.0.blob.len().saturating_sub(self.user_block())
    }

    /// Data, `len` bytes from `address` on, in one piece: shared where the file is mapped.
    pub(crate) fn data(&self, address: u64, len: u64) -> Result<Buffer> {
        let (start, end) = self.place(address, len)?;
        self.0.blob.read(start..end)
    }

    /// A structure, `len` bytes from `address` on.
    pub(crate) fn read(&self, address: u64, len: u64) -> Result<Buffer> {
        let (start, end) = self.place(address, len)?;
        if self.0.blob.in_memory().is_some() || len > PAGE {
            return self.0.blob.read(start..end);
        }
        let page = self.page(start / PAGE)?;
        let from = size(start % PAGE)?;
        if let Some(whole) = page.get(from..from + size(len)?) {
            return Ok(whole);
        }
        let mut joined = page.get(from..).unwrap_or_default().to_vec();
        let next = self.page(start / PAGE + 1)?;
        joined.extend_from_slice(next.get(..size(len)? - joined.len()).as_deref().unwrap_or_default());
        Ok(joined.into())
    }

    /// A structure of at most `most` bytes, whose length is not known: fewer where the file ends.
    pub(crate) fn read_up_to(&self, address: u64, most: u64) -> Result<Buffer> {
        let (start, _) = self.place(address, 0)?;
        self.read(address, most.min(self.0.blob.len() - start))
    }

    /// A cursor over bytes that were read from `address`.
    pub(crate) fn cursor<'a>(&self, bytes: &'a [u8], address: u64) -> Cursor<'a> {
        Cursor::new(bytes, address.wrapping_add(self.user_block()), self.sizes())
    }

    fn place(&self, address: u64, len: u64) -> Result<(u64, u64)> {
        let start = address.checked_add(self.user_block());
        let end = start.and_then(|start| start.checked_add(len));
        match (start, end) {
            (Some(start), Some(end)) if end <= self.0.blob.len() => Ok((start, end)),
            _ => {
                let all = self.0.blob.len();
                let error =
                    format!("{len} bytes at address {address} do not lie within the file of {all} bytes");
                Err(Error::corrupt(error).context("byte", start.unwrap_or(address)))
            }
        }
    }

    fn page(&self, number: u64) -> Result<Buffer> {
        let kept = || self.0.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, page)) = kept().iter().find(|(at, _)| *at == number) {
            return Ok(page.clone());
        }
        let start = number * PAGE;
        let page = self.0.blob.read(start..(start + PAGE).min(self.0.blob.len()))?;
        let mut pages = kept();
        pages.push_back((number, page.clone()));
        if pages.len() > PAGES_KEPT {
            pages.pop_front();
        }
        Ok(page)
    }
}

/// Ends the reading of structures that lead in circles: a file cannot have more of them than it has bytes.
pub(crate) struct Budget(u64);

impl Budget {
    pub(crate) fn of(file: &File) -> Self {
        Self(file.len().saturating_add(64))
    }

    pub(crate) fn spend(&mut self, bytes: u64) -> Result<()> {
        match self.0.checked_sub(bytes) {
            Some(left) => self.0 = left,
            None => return Err(Error::corrupt("the structures of the file lead in a circle")),
        }
        Ok(())
    }
}
