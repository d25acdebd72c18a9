//! The objects of a file: groups, datasets and committed types, and their attributes.

use std::sync::Arc;

use forebay_core::{Error, Result, Value};

use crate::{
    Dataset,
    dataset::heap_memory,
    datatype::Datatype,
    file::File,
    structure::{
        attribute, datatype,
        global_heap::GlobalHeap,
        header::{Header, kind},
        link::{self, Link, Target},
    },
    value::Values,
};

/// Something with a name in a file.
#[derive(Clone)]
#[non_exhaustive]
pub enum Object {
    /// Names that lead to objects.
    Group(Group),
    /// Elements.
    Dataset(Box<Dataset>),
    /// A type that datasets share.
    Datatype(Datatype),
}

/// Names that lead to objects.
#[derive(Clone)]
pub struct Group {
    file: File,
    header: Arc<Header>,
    path: String,
}

/// A named value of a group or dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// What it is: numbers as a tensor or a number, text as text, records as structs; null without elements.
    pub value: Value,
}

impl Object {
    /// The object whose header is at `address`.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub(crate) fn at(file: &File, address: u64, path: &str) -> Result<Self> {
        let header = Header::read(file, address)?;
        let has = |kind: u16| header.find(kind).is_some();
        if has(kind::SYMBOL_TABLE) || has(kind::LINK_INFO) || has(kind::LINK) {
            let header = Arc::new(header);
            return Ok(Self::Group(Group { file: file.clone(), header, path: path.into() }));
        }
        if has(kind::DATATYPE) && has(kind::DATASPACE) {
            return Dataset::of(file, header, path).map(|dataset| Self::Dataset(Box::new(dataset)));
        }
        match header.body(file, kind::DATATYPE)? {
            Some(body) => datatype::read(file, &body).map(Self::Datatype),
            None => {
                Err(Error::corrupt("an object that is no group, dataset or datatype")
                    .context("byte", address))
            }
        }
    }
}

impl Group {
    /// The path of the group, without its last `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.trim_end_matches('/')
    }

    /// The address of the group's header.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.header.address
    }

    /// The names in the group and what they lead to, in the order they are stored in: mostly that of the names.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub fn links(&self) -> Result<Vec<Link>> {
        link::links(&self.file, &self.header).map_err(|error| error.context("object", &self.path))
    }

    /// The object with this name; soft links are followed.
    ///
    /// # Errors
    /// As [`File::object`].
    pub fn object(&self, name: &str) -> Result<Object> {
        self.resolve(name, &mut 16)
    }

    /// The object that a link of this group leads to.
    ///
    /// # Errors
    /// As [`File::object`].
    pub fn follow(&self, link: &Link) -> Result<Object> {
        self.follow_at_most(link, &mut 16)
    }

    fn follow_at_most(&self, link: &Link, left: &mut usize) -> Result<Object> {
        let path = format!("{}/{}", self.path(), link.name);
        match &link.target {
            Target::Object(address) => {
                Object::at(&self.file, *address, &path).map_err(|error| error.context("object", path))
            }
            Target::Soft(target) => {
                *left = left
                    .checked_sub(1)
                    .ok_or_else(|| Error::corrupt(format!("soft links in a circle at `{path}`")))?;
                match target.strip_prefix('/') {
                    Some(target) => self.file.root()?.resolve(target, left),
                    None => self.resolve(target, left),
                }
            }
            Target::External(file, target) => {
                Err(Error::unsupported(format!("`{path}` is a link to `{target}` in another file, `{file}`")))
            }
            Target::Other(kind) => Err(Error::unsupported(format!("`{path}` is a link of kind {kind}"))),
        }
    }

    pub(crate) fn resolve(&self, path: &str, left: &mut usize) -> Result<Object> {
        let mut here = Object::Group(self.clone());
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            let Object::Group(group) = &here else {
                return Err(Error::invalid(format!(
                    "no object `{path}`: what comes before `{part}` is no group"
                )));
            };
            let links = group.links()?;
            let Some(link) = links.iter().find(|link| link.name == part) else {
                let mut names: Vec<_> = links.iter().take(20).map(|link| link.name.as_str()).collect();
                names.sort_unstable();
                let (at, names) = (group.path(), names.join(", "));
                return Err(Error::invalid(format!("no `{part}` in the group `{at}/`, which has: {names}")));
            };
            here = group.follow_at_most(link, left)?;
        }
        Ok(here)
    }

    /// How many attributes the group has.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub fn attribute_count(&self) -> Result<usize> {
        attribute::bodies(&self.file, &self.header).map(|bodies| bodies.len())
    }

    /// The group's attributes, in the order they are stored in.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Limit`.
    pub fn attributes(&self) -> Result<Vec<Attribute>> {
        attributes(&self.file, &self.header)
    }
}

pub(crate) fn attributes(file: &File, header: &Header) -> Result<Vec<Attribute>> {
    let heap = GlobalHeap::new(file);
    let read = |body| {
        let stored = attribute::read(file, body)?;
        let Some(dims) = stored.dataspace.dims else {
            return Ok(Attribute { name: stored.name, value: Value::NULL });
        };
        let values = Values::new(&heap, &heap_memory);
        let dims = dims.iter().map(|&dim| crate::bytes::size(dim)).collect::<Result<Vec<_>>>()?;
        let value = values.make(&stored.datatype, &dims, &stored.data);
        let value = value.map_err(|error| error.context("attribute", &stored.name))?;
        Ok(Attribute { name: stored.name, value })
    };
    attribute::bodies(file, header)?.iter().map(read).collect()
}
