//! Unpacked bytes, read forwards: you can look at a part of any length before you take it.

use std::io::{self, BufReader, Read};

use forebay_core::{Blob, Buffer, BufferMut, Error, Result};

use crate::{Codec, Input, Unpacked, stream::error_of};

/// So much is read at once, at least.
const LEAST: usize = 64 << 10;
/// As much memory is asked for at first for a longer part, and more as that fills.
const FIRST: usize = 1 << 20;

/// The contents of a [`Blob`] beneath all layers of packing, read from the start without going back.
///
/// Memory: the bytes that you look at ahead, and a few hundred KiB. It grows with the bytes that arrive, not with
/// the length that you ask for.
///
/// ```
/// use forebay_core::{Blob, Buffer, BufferMut};
/// use forebay_unpack::Forward;
///
/// // "heron\n", written by gzip.
/// let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH-\xca\xcf\xe3\x02\0\x94\x9f\xa1\x9d\x06\0\0\0";
/// let mut alloc = |len| Ok(BufferMut::zeroed(len));
/// let mut text = Forward::open(&Buffer::from(packed.to_vec()).into())?.unwrap();
/// assert_eq!(&text.ahead(3, &mut alloc)?[..3], b"her");
/// text.go_to(2)?;
/// assert_eq!(&text.part(100, &mut alloc)?[..], b"ron\n");
/// assert!(Forward::open(&Blob::from(Buffer::from(b"heron".to_vec())))?.is_none());
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub struct Forward {
    reader: BufReader<Unpacked>,
    /// What was read and not taken.
    held: Buffer,
    /// Where the first byte of that lies in all that is unpacked.
    at: u64,
    /// How the packed bytes ended, once they have.
    end: Option<Result<()>>,
}

impl Forward {
    /// The contents of `blob`. `None` if it is not packed and can be read in other ways; a stream cannot.
    ///
    /// # Errors
    /// As [`Unpacked::open`].
    pub fn open(blob: &Blob) -> Result<Option<Self>> {
        let reader = Unpacked::open(blob)?;
        Ok(reader.map(|reader| Self { reader, held: Buffer::EMPTY, at: 0, end: None }))
    }

    /// The bytes of `blob` as they are, without unpacking.
    #[must_use]
    pub fn plain(blob: &Blob) -> Self {
        let reader = BufReader::new(Unpacked::plain(Box::new(Input::new(blob.clone(), 0))));
        Self { reader, held: Buffer::EMPTY, at: 0, end: None }
    }

    /// The bytes that `codec` packed in `blob`, one layer only.
    ///
    /// # Errors
    /// As [`Unpacked::new`].
    pub fn of(codec: Codec, blob: &Blob) -> Result<Self> {
        let reader = BufReader::new(Unpacked::new(codec, Box::new(Input::new(blob.clone(), 0)))?);
        Ok(Self { reader, held: Buffer::EMPTY, at: 0, end: None })
    }

    /// How many layers of packing were removed.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.reader.get_ref().layers()
    }

    /// How many bytes were taken or skipped.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Skips all bytes before byte `at`.
    ///
    /// Cost: all of them are unpacked.
    ///
    /// # Errors
    /// `Invalid` if it lies before the bytes that were taken, or behind the end; those of the packed bytes.
    pub fn go_to(&mut self, at: u64) -> Result<()> {
        if let Some(wanted) = at.checked_sub(self.at)
            && self.pass(wanted)? == wanted
        {
            return Ok(());
        }
        Err(Error::invalid(format!("the saved place is byte {at}, found byte {}", self.at)))
    }

    /// Skips `len` bytes, or as many as there are, and returns how many.
    ///
    /// # Errors
    /// Those of the packed bytes.
    pub fn pass(&mut self, len: u64) -> Result<u64> {
        io::copy(&mut self.by_ref().take(len), &mut io::sink()).map_err(error_of)
    }

    /// The next bytes, without taking them: at least `len`, or all there are before the end or before damage,
    /// which [`ended`](Self::ended) reports.
    ///
    /// # Errors
    /// Those of `alloc`.
    pub fn ahead(&mut self, len: usize, alloc: &mut dyn FnMut(usize) -> Result<BufferMut>) -> Result<Buffer> {
        if self.held.len() >= len || self.end.is_some() {
            return Ok(self.held.clone());
        }
        let (len, mut filled) = (len.max(LEAST), self.held.len());
        let mut memory = alloc(len.min(filled.saturating_mul(4).max(FIRST)))?;
        memory[..filled].copy_from_slice(&self.held);
        self.held = Buffer::EMPTY;
        while filled < len {
            if filled == memory.len() {
                // What was read is lost where there is no more memory, so nothing may follow.
                let more = alloc(filled.saturating_mul(4).min(len));
                let mut more = more.inspect_err(|error| self.end = Some(Err(error.clone())))?;
                more[..filled].copy_from_slice(&memory);
                memory = more;
            }
            match self.reader.read(&mut memory[filled..]) {
                Ok(0) => self.end = Some(Ok(())),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.end = Some(Err(error_of(error))),
            }
            if self.end.is_some() {
                break;
            }
        }
        memory.truncate(filled);
        self.held = if filled == 0 { Buffer::EMPTY } else { memory.freeze() };
        Ok(self.held.clone())
    }

    /// The next `len` bytes, or as many as there are. A small part of the bytes held is copied, so that it does
    /// not keep the rest in memory.
    ///
    /// # Errors
    /// Those of the packed bytes, if they end too early; those of `alloc`.
    pub fn part(&mut self, len: usize, alloc: &mut dyn FnMut(usize) -> Result<BufferMut>) -> Result<Buffer> {
        let held = self.ahead(len, alloc)?;
        if held.len() < len {
            self.ended()?;
        }
        let len = len.min(held.len());
        let mut part = held.slice(..len);
        if len == 0 {
            part = Buffer::EMPTY;
        } else if len < held.len() / 2 {
            let mut copy = alloc(len)?;
            copy.copy_from_slice(&part);
            part = copy.freeze();
        }
        self.consume(len);
        Ok(part)
    }

    /// Whether the packed bytes end behind what [`ahead`](Self::ahead) gives.
    ///
    /// # Errors
    /// If they did not end as they should.
    pub fn ended(&self) -> Result<bool> {
        self.end.clone().map_or(Ok(false), |end| end.map(|()| true))
    }

    /// Gives up `len` bytes of those held.
    fn consume(&mut self, len: usize) {
        self.held = if len == self.held.len() { Buffer::EMPTY } else { self.held.slice(len..) };
        self.at = self.at.saturating_add(len as u64);
    }
}

impl Read for Forward {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.held.is_empty() {
            let count = out.len().min(self.held.len());
            out[..count].copy_from_slice(&self.held[..count]);
            self.consume(count);
            return Ok(count);
        }
        if let Some(end) = &self.end {
            return end.clone().map(|()| 0).map_err(io::Error::other);
        }
        let count = self.reader.read(out)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}

/// The first bytes of the contents of a packed file, up to `most`, as far as its own first bytes give them. `None`
/// if they are not packed.
///
/// Use it to choose a reader by the head of a file. For codecs that pack in blocks the result is often empty,
/// because a block can have several MB.
#[must_use]
pub fn peek(head: &[u8], most: usize) -> Option<Vec<u8>> {
    Codec::of(head)?;
    let mut inside = Vec::new();
    if let Ok(Some(reader)) = Unpacked::open(&Buffer::from(head.to_vec()).into()) {
        // It breaks off with an error where the head does.
        let _ = reader.take(most as u64).read_to_end(&mut inside);
    }
    Some(inside)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use forebay_core::ErrorKind;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn open(packed: Vec<u8>) -> Forward {
        Forward::open(&Buffer::from(packed).into()).unwrap().unwrap()
    }

    fn alloc(len: usize) -> Result<BufferMut> {
        Ok(BufferMut::zeroed(len))
    }

    fn numbers(count: u32) -> Vec<u8> {
        (0..count).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
    }

    #[test]
    fn parts_of_any_length_are_those_of_the_whole() {
        let text = numbers(1 << 19);
        for step in [1, 4095, LEAST, FIRST - 1, FIRST + 1, 5 << 20] {
            let mut forward = open(gzip(&text));
            let (mut at, mut round) = (0, 0);
            while at < text.len() {
                let part = match round % 4 {
                    0 => forward.part(step, &mut alloc).unwrap().to_vec(),
                    1 => {
                        let held = forward.ahead(step, &mut alloc).unwrap();
                        assert_eq!(held[..], text[at..at + held.len()], "{step}");
                        assert!(held.len() >= step.min(text.len() - at));
                        Vec::new()
                    }
                    2 => {
                        let mut part = vec![0; step.min(1000)];
                        let count = forward.read(&mut part).unwrap();
                        part.truncate(count);
                        part
                    }
                    _ => {
                        let passed = forward.pass(50_000).unwrap() as usize;
                        text[at..at + passed].to_vec()
                    }
                };
                assert_eq!(part[..], text[at..at + part.len()], "{step}");
                at += part.len();
                assert_eq!(forward.at(), at as u64);
                round += 1;
            }
            assert!(forward.part(1, &mut alloc).unwrap().is_empty() && forward.ended().unwrap());
        }
    }

    #[test]
    fn what_is_asked_for_does_not_make_it_take_more_memory_than_there_is() {
        let mut most = 0;
        let mut count = |len: usize| {
            most = most.max(len);
            alloc(len)
        };
        let mut forward = open(gzip(&numbers(3 << 18)));
        assert_eq!(forward.part(1 << 40, &mut count).unwrap().len(), 3 << 20);
        assert_eq!(most, 4 << 20);
        assert!(forward.held.is_empty());
    }

    #[test]
    fn small_parts_do_not_keep_what_was_read_with_them() {
        let mut forward = open(gzip(&numbers(1 << 14)));
        let part = forward.part(10, &mut alloc).unwrap();
        assert!(!part.same_owner(&forward.held));
        let held = forward.held.clone();
        assert!(forward.part(held.len() - 1, &mut alloc).unwrap().same_owner(&held));
    }

    #[test]
    fn damage_is_told_behind_what_came_before_it() {
        let text = numbers(1 << 16);
        let packed = gzip(&text);
        for cut in [packed.len() / 3, packed.len() / 2, packed.len() - 1] {
            let mut forward = open(packed[..cut].to_vec());
            let held = forward.ahead(text.len() + 1, &mut alloc).unwrap();
            assert!(text.starts_with(&held) && !held.is_empty(), "{cut}");
            assert_eq!(forward.ended().unwrap_err().kind(), ErrorKind::Corrupt);
            assert_eq!(forward.part(held.len() + 1, &mut alloc).unwrap_err().kind(), ErrorKind::Corrupt);
            assert_eq!(forward.part(held.len(), &mut alloc).unwrap()[..], held[..]);
            assert!(forward.part(1, &mut alloc).is_err() && forward.read(&mut [0]).is_err());
        }
        let mut forward = open(packed);
        forward.go_to(text.len() as u64).unwrap();
        for wrong in [0, text.len() as u64 + 1] {
            assert_eq!(forward.go_to(wrong).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }

    #[test]
    fn a_head_gives_what_is_in_it() {
        let text = numbers(1 << 14);
        let packed = gzip(&text);
        let inside = peek(&packed[..4096], 1000).unwrap();
        assert_eq!(inside, text[..1000]);
        assert!(text.starts_with(&peek(&packed[..4096], 1 << 20).unwrap()));
        assert_eq!(peek(&packed[..10], 1000).unwrap(), b"");
        assert!(peek(&text, 1000).is_none());
    }
}
