//! From header to header: one member after the other, whether the bytes lie in memory or come as a stream.

use std::borrow::Cow;

use forebay_core::{Buffer, Error, Result, zeroed};
use forebay_unpack::Codec;

use crate::{
    header::{self, BLOCK, Header, Kind, Role},
    pax::{Pax, SparseRecords},
    sparse::{Map, Sparse},
};

/// Names and pax records longer than this are refused: no program writes them.
const EXTENSION_LIMIT: u64 = 1 << 20;

/// One member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member<'a, D = Cow<'a, [u8]>> {
    /// The whole name, as it is written: any bytes but, in all sane archives, NUL.
    pub name: Cow<'a, [u8]>,
    /// What a hard or symbolic link points at; empty for all others.
    pub link: Cow<'a, [u8]>,
    /// What it is.
    pub kind: Kind,
    /// How many bytes a file has, holes included; 0 for all others.
    pub size: u64,
    /// What is stored of a file: all of it, but of a sparse one, whose [`contents`](Member::contents) have its holes; empty for all others.
    pub data: D,
    /// Where its first header starts, extended ones included.
    pub offset: u64,
    /// Where what is stored of it starts.
    pub data_offset: u64,
    pub(crate) sparse: Option<Sparse>,
}

impl<'a> Member<'a> {
    /// The contents of a file: as they are stored, or with the holes of a sparse one, in memory of their own.
    ///
    /// # Errors
    /// `Limit` for a sparse file of more than `limit` bytes, whatever little of it is stored.
    pub fn contents(&self, limit: u64) -> Result<Cow<'_, [u8]>> {
        let Some(sparse) = &self.sparse else { return Ok(Cow::Borrowed(&self.data)) };
        let mut bytes = zeroed(within(self.size, limit)?)?;
        sparse.expand(&self.data, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// A size, if it is within the limit.
pub(crate) fn within(size: u64, limit: u64) -> Result<usize> {
    let fits = usize::try_from(size).ok().filter(|_| size <= limit);
    fits.ok_or_else(|| Error::limit(format!("a file of {size} bytes, at most {limit} are taken into memory")))
}

/// Contents of a member, in whatever form.
pub(crate) trait Contents: Default {
    /// How many bytes there are.
    fn size(&self) -> u64;
}

impl Contents for Cow<'_, [u8]> {
    fn size(&self) -> u64 {
        self.len() as u64
    }
}

impl Contents for Buffer {
    fn size(&self) -> u64 {
        self.len() as u64
    }
}

/// Contents that were passed over: how many bytes.
#[derive(Debug, Default)]
pub(crate) struct Passed(u64);

impl Contents for Passed {
    fn size(&self) -> u64 {
        self.0
    }
}

/// An input of which only the headers are read.
pub(crate) struct Heads<I>(pub(crate) I);

impl<'a, I: Input<'a>> Input<'a> for Heads<I> {
    type Data = Passed;

    fn head(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>> {
        self.0.head(at, len)
    }

    fn take(&mut self, at: u64, len: u64) -> Result<Passed> {
        self.0.skip(at, len).map(Passed)
    }

    fn skip(&mut self, at: u64, len: u64) -> Result<u64> {
        self.0.skip(at, len)
    }
}

/// Where bytes come from.
pub(crate) trait Input<'a> {
    /// What contents are given as.
    type Data: Contents;

    /// The `len` bytes of a header from `at` on, fewer where the input ends.
    fn head(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>>;
    /// The `len` bytes of contents from `at` on, fewer where the input ends.
    fn take(&mut self, at: u64, len: u64) -> Result<Self::Data>;
    /// Passes over `len` bytes from `at` on, and says how many there were.
    fn skip(&mut self, at: u64, len: u64) -> Result<u64>;
}

/// Bytes in memory.
impl<'a> Input<'a> for &'a [u8] {
    type Data = Cow<'a, [u8]>;

    fn head(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
        Ok(Cow::Borrowed(rest.get(..len).unwrap_or_default()))
    }

    fn take(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>> {
        self.head(at, len)
    }

    fn skip(&mut self, at: u64, len: u64) -> Result<u64> {
        Ok((self.len() as u64).saturating_sub(at).min(len))
    }
}

/// How far a walk has come: all it must remember between two members.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    at: u64,
    global: Pax<'static>,
    /// Whether archives may follow one another: then marks of an end are passed over.
    concatenated: bool,
    done: bool,
}

/// What the headers before a member's own said about it.
#[derive(Default)]
struct Pending<'a> {
    start: Option<u64>,
    name: Option<Cow<'a, [u8]>>,
    link: Option<Cow<'a, [u8]>>,
    pax: Pax<'a>,
}

impl Place {
    /// Where the next header starts, while there may be one.
    pub(crate) fn at(&self) -> Option<u64> {
        (!self.done).then_some(self.at)
    }

    /// Where the walk is, or ended.
    pub(crate) fn last(&self) -> u64 {
        self.at
    }

    /// A walk that starts with the header at `at`.
    pub(crate) fn new(at: u64, concatenated: bool) -> Self {
        Self { at, concatenated, ..Self::default() }
    }

    /// The same walk, from the header at `at` on.
    pub(crate) fn going_on(&self, at: u64) -> Self {
        Self::new(at, self.concatenated)
    }

    /// Whether the place of the next header is all there is to remember.
    pub(crate) fn is_plain(&self) -> bool {
        self.global == Pax::default()
    }

    /// Ends the walk: what follows cannot be read.
    pub(crate) fn stop(&mut self) {
        self.done = true;
    }

    /// The next member. After the end and after an error there is none.
    pub(crate) fn next<'a, I: Input<'a>>(&mut self, input: &mut I) -> Result<Option<Member<'a, I::Data>>> {
        if self.done {
            return Ok(None);
        }
        let found = self.find(input);
        self.done = !matches!(found, Ok(Some(_)));
        found
    }

    fn find<'a, I: Input<'a>>(&mut self, input: &mut I) -> Result<Option<Member<'a, I::Data>>> {
        let mut pending = Pending::default();
        let mut after_zeros = false;
        loop {
            let at = self.at;
            let block = input.head(at, BLOCK as u64)?;
            let whole = block.is_empty() || block.len() == BLOCK || after_zeros;
            if whole && block.iter().all(|&byte| byte == 0) {
                if pending.start.is_some() {
                    let found = if block.is_empty() { "the end of the file" } else { "the end mark" };
                    return Err(Error::corrupt(format!(
                        "expected a member after its extended header, found {found}"
                    ))
                    .context("byte", at));
                }
                // Two blocks of zeros are the end. After a single one we read on, lest damage hides members.
                if (after_zeros && !self.concatenated) || block.len() < BLOCK {
                    return Ok(None);
                }
                (after_zeros, self.at) = (true, at + BLOCK as u64);
                continue;
            }
            let header = match self.header(block) {
                // Some programs leave rubbish in the second block of the end mark.
                Err(_) if after_zeros && input.skip(at + BLOCK as u64, 1)? == 0 => return Ok(None),
                header => header?,
            };
            self.at = at + BLOCK as u64;
            let extension = match header.role() {
                Role::Member(kind) => return self.member(input, &header, kind, pending).map(Some),
                extension => extension,
            };
            pending.start.get_or_insert(at);
            let body = self.extension(input, &header).map_err(|error| error.context("byte", at))?;
            match extension {
                Role::LongName => pending.name = Some(until_nul(&body)),
                Role::LongLink => pending.link = Some(until_nul(&body)),
                Role::Pax => pending.pax.read(body).map_err(|error| error.context("byte", at))?,
                _ => self.global.read_global(&body).map_err(|error| error.context("byte", at))?,
            }
            if extension == Role::GlobalPax && pending.is_empty() {
                // It stands for itself: an archive may end with it, as `git archive` of an empty tree does.
                pending.start = None;
            }
        }
    }

    fn header<'a>(&self, block: Cow<'a, [u8]>) -> Result<Header<'a>> {
        if block.len() < BLOCK {
            return Err(Error::corrupt(format!("truncated header: {} bytes of {BLOCK}", block.len()))
                .context("byte", self.at));
        }
        let packed = if self.at == 0 { Codec::of(&block) } else { None };
        Header::parse(block).map_err(|error| match packed {
            Some(codec) => {
                let codec = codec.name();
                Error::unsupported(format!("these bytes are packed by {codec}, expected a tar header"))
            }
            None => error.context("byte", self.at),
        })
    }

    /// The body of a header that tells more about the next one.
    fn extension<'a>(&mut self, input: &mut impl Input<'a>, header: &Header<'_>) -> Result<Cow<'a, [u8]>> {
        let size = header.size()?;
        if size > EXTENSION_LIMIT {
            return Err(Error::limit(format!(
                "extended header of {size} bytes, at most {EXTENSION_LIMIT} are read"
            )));
        }
        let body = input.head(self.at, size)?;
        self.pass("extended header", size, body.len() as u64)?;
        self.padding(input, "extended header", size)?;
        Ok(body)
    }

    fn member<'a, I: Input<'a>>(
        &mut self,
        input: &mut I,
        header: &Header<'a>,
        kind: Kind,
        mut pending: Pending<'a>,
    ) -> Result<Member<'a, I::Data>> {
        let offset = pending.start.unwrap_or(self.at - BLOCK as u64);
        let records = pending.pax.sparse.take().filter(|_| kind.has_contents());
        let name = pending.name(&self.global, records.as_ref()).unwrap_or_else(|| header.name());
        let kind = if header.is_untyped() && name.ends_with(b"/") { Kind::Directory } else { kind };
        let mut member = Member {
            name,
            link: Cow::Borrowed(&[]),
            kind: if records.is_some() { Kind::Sparse } else { kind },
            size: 0,
            data: I::Data::default(),
            offset,
            data_offset: self.at,
            sparse: None,
        };
        if matches!(kind, Kind::HardLink | Kind::SymLink) {
            member.link = pending.link(&self.global).unwrap_or_else(|| header.link());
        }
        if kind.has_contents() {
            let stated_size = pending.pax.size.or(self.global.size);
            self.contents(input, header, stated_size, records, &mut member).map_err(|error| {
                error.context("member", String::from_utf8_lossy(&member.name)).context("byte", offset)
            })?;
        }
        Ok(member)
    }

    fn contents<'a, I: Input<'a>>(
        &mut self,
        input: &mut I,
        header: &Header<'a>,
        stated_size: Option<u64>,
        records: Option<SparseRecords<'_>>,
        member: &mut Member<'a, I::Data>,
    ) -> Result<()> {
        let mut size = match stated_size {
            Some(size) => size,
            None => header.size()?,
        };
        member.size = size;
        if member.kind == Kind::Sparse {
            let sparse = match records {
                Some(records) => self.pax_sparse(input, records, &mut size)?,
                None => self.old_sparse(input, header, size)?,
            };
            (member.size, member.sparse) = (sparse.size, Some(sparse));
        }
        member.data_offset = self.at;
        if matches!(member.kind, Kind::File | Kind::Sparse) {
            member.data = input.take(self.at, size)?;
            self.pass("member", size, member.data.size())?;
        } else {
            member.size = 0;
            let found = input.skip(self.at, size)?;
            self.pass("member", size, found)?;
        }
        self.padding(input, "member", size)
    }

    /// The map of an old GNU sparse file: in its header, and in as many blocks behind it as it takes.
    fn old_sparse<'a>(
        &mut self,
        input: &mut impl Input<'a>,
        header: &Header<'_>,
        stored: u64,
    ) -> Result<Sparse> {
        let (size, mut numbers) = header.sparse()?;
        let mut more = header.sparse_goes_on();
        while more {
            let block = input.head(self.at, BLOCK as u64)?;
            self.pass("sparse map", BLOCK as u64, block.len() as u64)?;
            more = header::sparse_more(&block, &mut numbers)?;
        }
        Sparse::new(size, &numbers, stored)
    }

    /// The map of a pax sparse file: among its records, or before its contents, which then are so much shorter than `stored`.
    fn pax_sparse<'a>(
        &mut self,
        input: &mut impl Input<'a>,
        records: SparseRecords<'_>,
        stored: &mut u64,
    ) -> Result<Sparse> {
        let size = records.size.ok_or_else(|| Error::corrupt("a sparse file without its size"))?;
        if records.major == 0 {
            return Sparse::new(size, &records.numbers, *stored);
        }
        if records.major > 1 {
            return Err(Error::unsupported(format!("a sparse file of version {}", records.major)));
        }
        let mut map = Map::default();
        loop {
            let left = stored.checked_sub(BLOCK as u64);
            *stored =
                left.ok_or_else(|| Error::corrupt("the map of a sparse file is longer than the file"))?;
            let block = input.head(self.at, BLOCK as u64)?;
            self.pass("sparse map", BLOCK as u64, block.len() as u64)?;
            if !map.read(&block)? {
                return Sparse::new(size, &map.numbers, *stored);
            }
        }
    }

    fn padding<'a>(&mut self, input: &mut impl Input<'a>, what: &str, size: u64) -> Result<()> {
        let padding = size.wrapping_neg() % BLOCK as u64;
        let found = input.skip(self.at, padding)?;
        self.pass(&format_args!("the padding of a {what}"), padding, found)
    }

    /// Goes on by `wanted` bytes if so many were found.
    fn pass(&mut self, what: &(impl std::fmt::Display + ?Sized), wanted: u64, found: u64) -> Result<()> {
        if found < wanted {
            let end = self.at.saturating_add(found);
            return Err(
                Error::corrupt(format!("truncated {what}: {found} bytes of {wanted}")).context("end", end)
            );
        }
        // No overflow: so many bytes were there.
        self.at = self.at.saturating_add(wanted);
        Ok(())
    }
}

impl<'a> Pending<'a> {
    fn is_empty(&self) -> bool {
        let Self { start: _, name, link, pax: Pax { path, link: pax_link, size, sparse } } = self;
        sparse.is_none()
            && name.is_none()
            && link.is_none()
            && path.is_none()
            && pax_link.is_none()
            && size.is_none()
    }

    /// The name that extended headers give: pax before GNU, the member's own before global.
    fn name(&self, global: &Pax<'static>, sparse: Option<&SparseRecords<'a>>) -> Option<Cow<'a, [u8]>> {
        let Self { name, pax, .. } = self;
        let whole = sparse.and_then(|records| records.name.clone());
        whole.or(pax.path.clone()).or(name.clone()).or(global.path.clone())
    }

    fn link(&self, global: &Pax<'static>) -> Option<Cow<'a, [u8]>> {
        self.pax.link.clone().or(self.link.clone()).or(global.link.clone())
    }
}

fn until_nul<'a>(body: &Cow<'a, [u8]>) -> Cow<'a, [u8]> {
    header::part(body, 0..body.iter().position(|&byte| byte == 0).unwrap_or(body.len()))
}
