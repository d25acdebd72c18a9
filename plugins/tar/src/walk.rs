//! From header to header: one member after the other, whether the bytes lie in memory or come as a stream.

use std::borrow::Cow;

use forebay_core::{Error, Result};

use crate::{
    header::{self, BLOCK, Header, Kind, Role},
    pax::Pax,
};

/// Names and pax records longer than this are refused: no program writes them.
const EXTENSION_LIMIT: u64 = 1 << 20;

/// One member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member<'a> {
    /// The whole name, as it is written: any bytes but, in all sane archives, NUL.
    pub name: Cow<'a, [u8]>,
    /// What a hard or symbolic link points at; empty for all others.
    pub link: Cow<'a, [u8]>,
    /// What it is.
    pub kind: Kind,
    /// The contents of a file; empty for all others.
    pub data: Cow<'a, [u8]>,
    /// Where its first header starts, extended ones included.
    pub offset: u64,
    /// Where its contents start.
    pub data_offset: u64,
}

impl Member<'_> {
    pub(crate) fn sparse_error(&self) -> Error {
        Error::unsupported("a sparse file, stored without its holes; pack it again without --sparse")
            .context("member", String::from_utf8_lossy(&self.name))
            .context("byte", self.offset)
    }
}

/// Where bytes come from.
pub(crate) trait Input<'a> {
    /// The `len` bytes of a header from `at` on, fewer where the input ends.
    fn head(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>> {
        self.take(at, len)
    }
    /// The `len` bytes of contents from `at` on, fewer where the input ends.
    fn take(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>>;
    /// Passes over `len` bytes from `at` on, and says how many there were.
    fn skip(&mut self, at: u64, len: u64) -> Result<u64>;
}

/// Bytes in memory.
impl<'a> Input<'a> for &'a [u8] {
    fn take(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
        Ok(Cow::Borrowed(rest.get(..len).unwrap_or_default()))
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

    /// A walk that goes on with the header at `at`.
    pub(crate) fn going_on(at: u64) -> Self {
        Self { at, ..Self::default() }
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
    pub(crate) fn next<'a>(&mut self, input: &mut impl Input<'a>) -> Result<Option<Member<'a>>> {
        if self.done {
            return Ok(None);
        }
        let found = self.find(input);
        self.done = !matches!(found, Ok(Some(_)));
        found
    }

    fn find<'a>(&mut self, input: &mut impl Input<'a>) -> Result<Option<Member<'a>>> {
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
                if after_zeros || block.len() < BLOCK {
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
        let packed = if self.at == 0 { packed_by(&block) } else { None };
        Header::parse(block).map_err(|error| match packed {
            Some(program) => {
                Error::unsupported(format!("these bytes are packed by {program}, expected a tar header"))
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

    fn member<'a>(
        &mut self,
        input: &mut impl Input<'a>,
        header: &Header<'a>,
        kind: Kind,
        pending: Pending<'a>,
    ) -> Result<Member<'a>> {
        let offset = pending.start.unwrap_or(self.at - BLOCK as u64);
        let stated_size = pending.pax.size.or(self.global.size);
        let sparse = pending.pax.sparse || kind == Kind::Sparse;
        let mut member = Member {
            name: pending.name(&self.global).unwrap_or_else(|| header.name()),
            link: Cow::Borrowed(&[]),
            kind: if sparse { Kind::Sparse } else { kind },
            data: Cow::Borrowed(&[]),
            offset,
            data_offset: self.at,
        };
        if matches!(kind, Kind::HardLink | Kind::SymLink) {
            member.link = pending.link(&self.global).unwrap_or_else(|| header.link());
        }
        if kind.has_contents() {
            self.contents(input, header, stated_size, &mut member).map_err(|error| {
                error.context("member", String::from_utf8_lossy(&member.name)).context("byte", offset)
            })?;
        }
        Ok(member)
    }

    fn contents<'a>(
        &mut self,
        input: &mut impl Input<'a>,
        header: &Header<'a>,
        stated_size: Option<u64>,
        member: &mut Member<'a>,
    ) -> Result<()> {
        let size = match stated_size {
            Some(size) => size,
            None => header.size()?,
        };
        let mut more = header.sparse_goes_on();
        while more {
            let map = input.head(self.at, BLOCK as u64)?;
            self.pass("sparse map", BLOCK as u64, map.len() as u64)?;
            more = header::sparse_map_goes_on(&map);
        }
        member.data_offset = self.at;
        if member.kind == Kind::File {
            member.data = input.take(self.at, size)?;
            self.pass("member", size, member.data.len() as u64)?;
        } else {
            let found = input.skip(self.at, size)?;
            self.pass("member", size, found)?;
        }
        self.padding(input, "member", size)
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
        let Self { start: _, name, link, pax: Pax { path, link: pax_link, size, sparse, sparse_name: _ } } =
            self;
        !*sparse && name.is_none() && link.is_none() && path.is_none() && pax_link.is_none() && size.is_none()
    }

    /// The name that extended headers give: pax before GNU, the member's own before global.
    fn name(&self, global: &Pax<'static>) -> Option<Cow<'a, [u8]>> {
        let Self { name, pax, .. } = self;
        pax.sparse_name.clone().or(pax.path.clone()).or(name.clone()).or(global.path.clone())
    }

    fn link(&self, global: &Pax<'static>) -> Option<Cow<'a, [u8]>> {
        self.pax.link.clone().or(self.link.clone()).or(global.link.clone())
    }
}

fn until_nul<'a>(body: &Cow<'a, [u8]>) -> Cow<'a, [u8]> {
    header::part(body, 0..body.iter().position(|&byte| byte == 0).unwrap_or(body.len()))
}

/// The program that packed a file that starts so.
fn packed_by(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], _); 6] = [
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"\x1f\x9d", "compress"),
    ];
    known.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, program)| program)
}
