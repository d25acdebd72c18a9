//! A blob as a stream of bytes. Remote blobs are read a window at a time.

use std::io::{self, BufRead, Read};

use forebay_core::{Blob, Buffer, Result};

/// How much of a blob far away is fetched at once.
const WINDOW: u64 = 1 << 20;

/// The bytes of a [`Blob`] from some byte on, in order: shared if they are in memory, else fetched 1 MiB at a
/// time.
pub struct Input {
    blob: Blob,
    /// Where the first byte that was not taken lies.
    at: u64,
    /// What was fetched and not taken.
    window: Buffer,
}

impl Input {
    /// The bytes of `blob` from `at` on.
    #[must_use]
    pub fn new(blob: Blob, at: u64) -> Self {
        Self { blob, at, window: Buffer::EMPTY }
    }

    fn fetch(&mut self) -> Result<()> {
        if self.window.is_empty() && self.at < self.blob.len() {
            let most = if self.blob.in_memory().is_some() { self.blob.len() } else { WINDOW };
            self.window = self.blob.ahead(self.at, most)?;
        }
        Ok(())
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fetch().map_err(io::Error::other)?;
        Ok(&self.window)
    }

    fn consume(&mut self, count: usize) {
        self.window = self.window.get(count..).unwrap_or_default();
        self.at = self.at.saturating_add(count as u64);
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}
