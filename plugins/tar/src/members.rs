//! The plain Rust face: iterators over the members of an archive in memory or of one that comes as a stream.

use std::{
    borrow::Cow,
    io::{self, Read},
};

use forebay_core::{Error, Result};

use crate::walk::{Input, Member, Place};

/// Walks the members of an archive in memory. Nothing is copied: names and contents are slices of `archive`,
/// but for a name that ustar splits in two.
///
/// Any mix of V7, ustar, GNU and pax headers is read. The archive ends at two blocks of zeros or where the bytes
/// end; what follows two blocks of zeros is not looked at, as in GNU tar.
///
/// ```
/// let mut writer = tar::Builder::new(Vec::new());
/// let mut header = tar::Header::new_gnu();
/// header.set_size(5);
/// writer.append_data(&mut header, "train/0001.txt", &b"heron"[..])?;
/// let archive = writer.into_inner()?;
///
/// for member in forebay_tar::walk(&archive) {
///     let member = member?;
///     assert_eq!(&*member.name, b"train/0001.txt");
///     assert_eq!(&*member.data, b"heron");
///     assert_eq!(member.data_offset, 512);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The iterator gives `Corrupt` for a wrong header or a member that is cut short, naming the byte, the member, and
/// how many bytes were found and wanted, and then ends.
#[must_use]
pub fn walk(archive: &[u8]) -> Walk<'_> {
    Walk { archive, place: Place::default() }
}

/// The members of an archive in memory; made by [`walk`].
#[derive(Debug, Clone)]
pub struct Walk<'a> {
    archive: &'a [u8],
    place: Place,
}

impl Walk<'_> {
    /// Goes on behind the end of an archive, where another one may follow.
    #[must_use]
    pub fn concatenated(mut self) -> Self {
        self.place = Place::new(0, true);
        self
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Member<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.place.next(&mut self.archive).transpose()
    }
}

/// Reads the members of an archive that comes as a stream, such as a pipe or a decompressor.
///
/// The same members as [`walk`] gives, in memory of their own. A file longer than `limit_bytes` is refused
/// before it is read, so memory stays bounded whatever a header says. No byte after the end mark is read.
///
/// ```
/// # let archive = tar::Builder::new(Vec::new()).into_inner()?;
/// let mut names = Vec::new();
/// for member in forebay_tar::read(&archive[..], 1 << 30) {
///     names.push(member?.name);
/// }
/// assert!(names.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The iterator gives what [`walk`] gives, `Io` when the stream fails, and `Limit` for a longer file; after
/// those it ends.
pub fn read<R: Read>(stream: R, limit_bytes: u64) -> Members<R> {
    Members { input: Stream { stream, limit_bytes }, place: Place::default() }
}

/// The members of an archive that comes as a stream; made by [`read`].
#[derive(Debug)]
pub struct Members<R> {
    input: Stream<R>,
    place: Place,
}

impl<R: Read> Iterator for Members<R> {
    type Item = Result<Member<'static>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.place.next(&mut self.input).transpose()
    }
}

#[derive(Debug)]
struct Stream<R> {
    stream: R,
    limit_bytes: u64,
}

impl<R: Read> Input<'static> for Stream<R> {
    type Data = Cow<'static, [u8]>;

    fn head(&mut self, at: u64, len: u64) -> Result<Cow<'static, [u8]>> {
        self.take(at, len)
    }

    fn take(&mut self, _at: u64, len: u64) -> Result<Cow<'static, [u8]>> {
        if len > self.limit_bytes.max(1 << 20) {
            let limit = self.limit_bytes;
            return Err(Error::limit(format!(
                "a file of {len} bytes, at most {limit} are taken into memory"
            )));
        }
        // Grows with what arrives, not with what a header claims.
        let mut bytes = Vec::new();
        self.stream.by_ref().take(len).read_to_end(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    fn skip(&mut self, _at: u64, len: u64) -> Result<u64> {
        Ok(io::copy(&mut self.stream.by_ref().take(len), &mut io::sink())?)
    }
}
