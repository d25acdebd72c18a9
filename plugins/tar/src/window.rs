//! The headers of a mapped archive, read a few at a time: to touch them where they lie would cost a page fault for nearly
//! every member, and the mapping of all pages around.

use std::{borrow::Cow, cell::Cell, fs::File, io, os::unix::fs::FileExt};

use forebay_core::{Buffer, Error, Result};

use crate::{header::BLOCK, walk::Input};

/// How much is read at once at first: a few headers, and the small members between them. Most of its cost is the copy.
const WINDOW: usize = 6 * BLOCK;
/// How much it may grow to, where headers are long.
const WINDOW_LIMIT: usize = 16 * 1024;

/// What was last read of an archive's file; nothing, where the archive lies in memory.
pub(crate) struct Window {
    /// The file, and where in it the archive starts.
    file: Option<(File, u64)>,
    bytes: Vec<u8>,
    at: u64,
    /// How much the next reading takes.
    size: Cell<usize>,
}

impl Window {
    pub(crate) fn new(archive: &Buffer) -> Self {
        let file = if archive.len() > WINDOW { archive.file() } else { None };
        Self { file, bytes: Vec::new(), at: 0, size: Cell::new(WINDOW) }
    }

    /// Reads on, unless the block at `at` was read already or there is nothing to read.
    pub(crate) fn cover(&mut self, archive: &Buffer, at: u64) -> Result<()> {
        let Some((file, start)) = &self.file else { return Ok(()) };
        if self.get(at, BLOCK as u64).is_some() {
            return Ok(());
        }
        let left = (archive.len() as u64).saturating_sub(at);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(self.size.get());
        self.at = at;
        self.bytes.resize(wanted, 0);
        file.read_exact_at(&mut self.bytes, start.saturating_add(at)).map_err(|error| {
            let error = match error.kind() {
                io::ErrorKind::UnexpectedEof => Error::corrupt("the file was cut short while it was open"),
                _ => error.into(),
            };
            error.context("byte", at)
        })
    }

    /// The `len` bytes from `at` on, if they were read.
    fn get(&self, at: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }
}

/// An archive and what was read of it.
pub(crate) struct Windowed<'a> {
    pub(crate) archive: &'a Buffer,
    pub(crate) window: &'a Window,
    /// Where in the whole archive the bytes start.
    pub(crate) start: u64,
}

impl<'a> Input<'a> for Windowed<'a> {
    type Data = Buffer;

    fn head(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>> {
        let at = at.saturating_sub(self.start);
        match self.window.get(at, len) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => {
                // An extended header that goes on where the window ends; the next window is to hold such a one.
                self.window.size.set((2 * self.window.size.get()).min(WINDOW_LIMIT));
                self.archive.as_slice().head(at, len)
            }
        }
    }

    fn take(&mut self, at: u64, len: u64) -> Result<Buffer> {
        let (at, there) = (at.saturating_sub(self.start), self.archive.len());
        let start = usize::try_from(at).unwrap_or(there).min(there);
        let end = usize::try_from(at.saturating_add(len)).unwrap_or(there).clamp(start, there);
        Ok(if start == end { Buffer::EMPTY } else { self.archive.get(start..end).unwrap_or_default() })
    }

    fn skip(&mut self, at: u64, len: u64) -> Result<u64> {
        self.archive.as_slice().skip(at.saturating_sub(self.start), len)
    }
}
