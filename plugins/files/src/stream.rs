//! Pipes and devices: bytes that come once, from front to back.

use std::{
    collections::HashMap,
    fs::{self, File, Metadata},
    io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use forebay_core::{Buffer, Error, Result};

use crate::map::at;

/// So many of the first bytes are waited for: they are looked at to see what there is, and then read.
const HEAD: usize = 4096;
/// So many of the first bytes are kept: where they are packed, more of them are looked at.
const KEPT: usize = 4 << 20;
/// The most that is read at once.
const MOST: usize = 1 << 20;

/// Whether there is a pipe or a device at `path`, as `/dev/stdin` often is.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| is_streamed(&metadata))
}

/// Whether a file is a pipe or a device.
pub(crate) fn is_streamed(metadata: &Metadata) -> bool {
    let kind = metadata.file_type();
    kind.is_fifo() || kind.is_char_device()
}

/// What was done with a regular file at `path`; where it was refused since there is a stream, what `other` does with that.
///
/// Looked at only after a failure, so that it costs other files nothing.
pub(crate) fn stream_or<T>(path: &Path, done: Result<T>, other: impl FnOnce() -> Result<T>) -> Result<T> {
    if done.is_err() && is_stream(path) { other() } else { done }
}

/// The streams that are being read, by device and number there: each is opened once.
#[derive(Default)]
pub(crate) struct Streams(Mutex<HashMap<(u64, u64), Shared>>);

/// A stream that threads take turns to read; none before it is opened.
type Shared = Arc<Mutex<Option<Stream>>>;

impl Streams {
    /// What has come of the stream at `path` from byte `offset` on, at most `len` bytes, once some have; none at its end.
    pub(crate) fn read(&self, path: &Path, offset: u64, len: u64) -> Result<Buffer> {
        let metadata = fs::metadata(path).map_err(|error| at(path, error))?;
        let known = {
            let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            streams.entry((metadata.dev(), metadata.ino())).or_default().clone()
        };
        // Opening and reading wait for who writes, and hold up nobody who reads another one.
        let mut stream = known.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = match &mut *stream {
            Some(stream) => stream,
            none => none.insert(Stream::new(File::open(path).map_err(|error| at(path, error))?)),
        };
        let found = stream.read(offset, usize::try_from(len).unwrap_or(MOST).min(MOST));
        found.map_err(|error| error.context("file", path.display()))
    }
}

/// A stream that was opened.
struct Stream<F = File> {
    file: F,
    /// The first bytes.
    head: Vec<u8>,
    /// Where the next byte lies, and whether there is none.
    at: u64,
    ended: bool,
}

impl<F: io::Read> Stream<F> {
    fn new(file: F) -> Self {
        Self { file, head: Vec::new(), at: 0, ended: false }
    }

    fn read(&mut self, offset: u64, len: usize) -> Result<Buffer> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        while start < HEAD && self.head.len() < start.saturating_add(len).min(HEAD) && !self.ended {
            self.next(HEAD - self.head.len())?;
        }
        if start < self.head.len() {
            let end = start.saturating_add(len).min(self.head.len());
            return Ok(self.head.get(start..end).unwrap_or_default().to_vec().into());
        }
        if offset < self.at {
            let error = format!(
                "byte {offset} of a pipe was read before, and it gives its bytes once: save it to a file first"
            );
            return Err(Error::unsupported(error));
        }
        // A resume goes on further behind.
        while self.at < offset && !self.ended {
            self.next(usize::try_from(offset - self.at).unwrap_or(MOST).min(MOST))?;
        }
        self.next(len).map(Buffer::from)
    }

    /// The next bytes, at most `most`; none at the end, behind which nothing is asked for: at a terminal one could write on.
    fn next(&mut self, most: usize) -> Result<Vec<u8>> {
        if self.ended || most == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; most];
        let count = loop {
            match self.file.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                found => break found?,
            }
        };
        bytes.truncate(count);
        self.ended = count == 0;
        if self.at == self.head.len() as u64 {
            self.head.extend_from_slice(&bytes[..count.min(KEPT - self.head.len())]);
        }
        self.at = self.at.saturating_add(count as u64);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::ErrorKind;

    use super::*;

    /// Gives at most 777 bytes at a time.
    struct Slow(u64);

    const LEN: u64 = KEPT as u64 + 10_000;

    impl io::Read for Slow {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = out.len().min(777).min((LEN - self.0) as usize);
            for byte in &mut out[..count] {
                *byte = byte_at(self.0);
                self.0 += 1;
            }
            Ok(count)
        }
    }

    fn byte_at(at: u64) -> u8 {
        (at % 251) as u8
    }

    #[track_caller]
    fn check(found: &Buffer, at: u64) {
        assert!(found.iter().zip(at..).all(|(&byte, at)| byte == byte_at(at)), "{at}");
    }

    #[test]
    fn the_head_is_there_again_and_the_rest_comes_once() {
        let mut stream = Stream::new(Slow(0));
        for (at, len) in [(0, 12), (5, 4), (0, HEAD), (4000, 96)] {
            let found = stream.read(at, len).unwrap();
            assert_eq!(found.len(), len);
            check(&found, at);
        }
        let mut at = HEAD as u64;
        while at < LEN {
            let found = stream.read(at, 1000).unwrap();
            check(&found, at);
            assert!((1..=1000).contains(&found.len()));
            at += found.len() as u64;
        }
        assert!(stream.read(at, 9).unwrap().is_empty());
        assert_eq!(stream.read(KEPT as u64, 1).unwrap_err().kind(), ErrorKind::Unsupported);
        let kept = stream.read(0, KEPT).unwrap();
        assert_eq!(kept.len(), KEPT);
        check(&kept, 0);
    }

    #[test]
    fn what_lies_before_a_place_further_on_is_dropped() {
        for place in [HEAD as u64, 5003, KEPT as u64 + 9, LEN, LEN + 9] {
            let mut stream = Stream::new(Slow(0));
            let found = stream.read(place, 100).unwrap();
            assert_eq!(found.is_empty(), place >= LEN);
            check(&found, place);
            assert_eq!(stream.read(0, HEAD).unwrap().len(), HEAD);
        }
    }
}
