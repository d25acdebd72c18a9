//! Where records lie: in a plain file, of which any range can be read, or in a packed one, which is unpacked as it is read.

use std::ops::Range;

use forebay_core::{Blob, Buffer, BufferMut, Error, Result};
use forebay_unpack::{Codec, Forward};

/// The length and its checksum.
pub(crate) const HEAD: u64 = 12;
/// The checksum of the data.
const TAIL: u64 = 4;
/// How much of a file far away is read at once.
const WINDOW: u64 = 4 << 20;
/// The place behind the last record.
pub(crate) const ENDED: u64 = u64::MAX;

/// Gives memory for so many bytes.
pub(crate) type Alloc<'a> = &'a mut dyn FnMut(usize) -> Result<BufferMut>;

/// A file of records.
pub(crate) enum Source {
    /// Nobody has looked at it.
    New(Blob),
    Plain(Window),
    Packed(Box<Forward>),
}

impl Source {
    /// Looks at its first bytes, once.
    pub(crate) fn open(&mut self) -> Result<()> {
        if let Self::New(file) = self {
            let window = Window { file: file.clone(), start: 0, bytes: Buffer::EMPTY };
            let head = file.ahead(0, HEAD)?;
            // The length of a record may begin as packed bytes do.
            let packed = match (first_record(&head), file.is_stream()) {
                (Some(_), true) => Some(Forward::plain(file)),
                (None, _) if Codec::of(&head).is_some() => Forward::open(file)?,
                (None, true) => Some(Forward::plain(file)),
                _ => None,
            };
            *self = packed.map_or(Self::Plain(window), |packed| Self::Packed(Box::new(packed)));
        }
        Ok(())
    }

    /// The data of the record at `at` of a file that is open, if there is one, and where the next begins: [`ENDED`] where nobody
    /// knows. Of what is unpacked `at` is where the last call or [`go_to`](Self::go_to) left off.
    pub(crate) fn record(
        &mut self,
        at: u64,
        limit: u64,
        check: bool,
        alloc: Alloc<'_>,
    ) -> (Result<Option<Buffer>>, u64) {
        let found = match self {
            Self::New(_) => Err(Error::bug("a file that nobody looked at")),
            Self::Plain(window) => window.len(at),
            Self::Packed(packed) => packed_len(packed, alloc),
        };
        let len = match found {
            Ok(Some(len)) => len,
            Ok(None) => return (Ok(None), ENDED),
            Err(error) => return (Err(error), ENDED),
        };
        let next = at.saturating_add(HEAD + TAIL).saturating_add(len);
        let whole = match self {
            _ if len > limit => {
                let error = Error::limit(format!("a record of {len} bytes, expected at most {limit}"));
                return match self.pass(len) {
                    Ok(()) => (Err(error), next),
                    Err(error) => (Err(error), ENDED),
                };
            }
            Self::Packed(packed) => packed
                .part((len + TAIL) as usize, alloc)
                .and_then(|whole| is_whole(whole.len() as u64, len).map(|()| whole)),
            // `len` has found that all of it lies in the file.
            Self::Plain(window) => window.read(at + HEAD..next),
            Self::New(file) => file.read(at + HEAD..next),
        };
        match whole {
            Ok(whole) => (checked(&whole, check).map(Some), next),
            Err(error) => (Err(error), ENDED),
        }
    }

    /// Passes over the data of a record of which the length was read.
    fn pass(&mut self, len: u64) -> Result<()> {
        match self {
            Self::Packed(packed) => is_whole(packed.pass(len.saturating_add(TAIL))?, len),
            _ => Ok(()),
        }
    }

    /// Goes to where a record begins.
    pub(crate) fn go_to(&mut self, at: u64) -> Result<()> {
        self.open()?;
        match self {
            _ if at == ENDED => Ok(()),
            Self::Packed(packed) => packed.go_to(at),
            Self::Plain(Window { file, .. }) | Self::New(file) if at > file.len() => {
                Err(Error::invalid(format!("the saved place is byte {at} of {}", file.len())))
            }
            _ => Ok(()),
        }
    }
}

/// The data of a record, without the checksum behind it.
fn checked(whole: &Buffer, check: bool) -> Result<Buffer> {
    let len = whole.len().saturating_sub(TAIL as usize);
    if check {
        let (bytes, sum) = whole.split_at(len);
        verify(bytes, sum, "data")?;
    }
    Ok(if len == 0 { Buffer::EMPTY } else { whole.slice(..len) })
}

/// Checks that as many bytes came as a record and its checksum have.
fn is_whole(found: u64, len: u64) -> Result<()> {
    if found == len.saturating_add(TAIL) { Ok(()) } else { Err(cut(len, found.saturating_sub(TAIL))) }
}

fn cut(len: u64, left: u64) -> Error {
    Error::corrupt(format!("a record of {len} bytes, and the file ends after {left}"))
}

fn cut_head(left: u64) -> Error {
    Error::corrupt(format!("the file ends {left} bytes into a record, expected at least 16"))
}

/// Takes the length of the next record of what is unpacked.
fn packed_len(packed: &mut Forward, alloc: Alloc<'_>) -> Result<Option<u64>> {
    let head = packed.part(HEAD as usize, alloc)?;
    match head.len() as u64 {
        0 => Ok(None),
        HEAD => length(&head).map(Some),
        left => Err(cut_head(left)),
    }
}

/// A file, and the part of it that was read last, where it is far away.
pub(crate) struct Window {
    file: Blob,
    start: u64,
    bytes: Buffer,
}

impl Window {
    /// How long the data of the record at `at` is, which lies in the file.
    fn len(&mut self, at: u64) -> Result<Option<u64>> {
        let left = self.file.len() - at;
        match left {
            0 => return Ok(None),
            _ if left < HEAD + TAIL => return Err(cut_head(left)),
            _ => {}
        }
        let len = length(&self.read(at..at + HEAD)?)?;
        if len > left - HEAD - TAIL { Err(cut(len, left - HEAD - TAIL)) } else { Ok(Some(len)) }
    }

    /// The bytes in `range`, which lies in the file: of one far away much is read at once.
    fn read(&mut self, range: Range<u64>) -> Result<Buffer> {
        if self.file.in_memory().is_some() {
            return self.file.read(range);
        }
        let end = self.start + self.bytes.len() as u64;
        if range.start < self.start || range.end > end {
            let much = range.start.saturating_add(WINDOW).min(self.file.len());
            self.bytes = self.file.read(range.start..range.end.max(much))?;
            self.start = range.start;
        }
        let (start, end) = ((range.start - self.start) as usize, (range.end - self.start) as usize);
        self.bytes.get(start..end).ok_or_else(|| Error::bug("fewer bytes than were asked for"))
    }
}

/// The length of the first record of a file that begins with `head`, and what of its data is in there; `None` if it is no such file.
pub(crate) fn first_record(head: &[u8]) -> Option<(u64, &[u8])> {
    let (frame, data) = head.split_at_checked(HEAD as usize)?;
    let len = length(frame).ok()?;
    let most = usize::try_from(len).unwrap_or(usize::MAX).min(data.len());
    Some((len, data.get(..most)?))
}

/// The length that stands before a record, with its checksum.
fn length(head: &[u8]) -> Result<u64> {
    let (len, sum) = head.split_at(8);
    verify(len, sum, "length")?;
    Ok(len.iter().rev().fold(0, |len, &byte| len << 8 | u64::from(byte)))
}

/// Compares the masked CRC-32C of `bytes` with the one that stands behind them.
fn verify(bytes: &[u8], sum: &[u8], what: &str) -> Result<()> {
    let crc = crc32c::crc32c(bytes);
    let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
    if sum != masked.to_le_bytes() {
        let sum = sum.iter().rev().fold(0_u32, |sum, &byte| sum << 8 | u32::from(byte));
        return Err(Error::corrupt(format!(
            "the checksum of the {what} is {masked:08x}, expected {sum:08x}"
        )));
    }
    Ok(())
}
