//! Frames of LZ4 blocks: the LZ4 Frame Format 1.6.4, and the legacy format of `lz4 -l`.

use std::io::{self, BufRead, Read};

use lz4_flex::block::{decompress_into, decompress_into_with_dict};
use xxhash_rust::xxh32::Xxh32;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const LEGACY: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];
/// The most that a legacy block unpacks to.
const LEGACY_BLOCK: usize = 8 << 20;
/// How far back a block may reach into those before it.
const REACH: usize = 64 << 10;

/// The bytes of LZ4 frames, unpacked.
pub(crate) struct Lz4<R> {
    source: R,
    frame: Option<Frame>,
    packed: Vec<u8>,
    /// The last bytes of the blocks before, then the block that was unpacked last, then room.
    text: Vec<u8>,
    taken: usize,
    end: usize,
}

struct Frame {
    legacy: bool,
    linked: bool,
    block_sums: bool,
    content_sum: Option<Xxh32>,
    /// How many bytes it still has to give, where its header says so.
    left: Option<u64>,
    block: usize,
}

impl<R: BufRead> Lz4<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, frame: None, packed: Vec::new(), text: Vec::new(), taken: 0, end: 0 }
    }

    /// Unpacks one block, or goes over to the next frame; says whether there may be more.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(frame) = &mut self.frame else {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let magic = self.take()?;
            return self.open(magic).map(|()| true);
        };
        if frame.legacy {
            // It has no end: the next frame's magic stands where the next block's length would.
            if self.source.fill_buf()?.is_empty() {
                self.frame = None;
                return Ok(true);
            }
            let head: [u8; 4] = take(&mut self.source)?;
            if head == LEGACY || head == MAGIC {
                self.frame = None;
                return self.open(head).map(|()| true);
            }
            let len = u32::from_le_bytes(head);
            return self.block(len as usize, false).map(|()| true);
        }
        let head = u32::from_le_bytes(take(&mut self.source)?);
        if head != 0 {
            // The highest bit: the block is stored as it is.
            return self.block((head & 0x7fff_ffff) as usize, head >> 31 == 1).map(|()| true);
        }
        if let Some(sum) = &frame.content_sum {
            let found = u32::from_le_bytes(take(&mut self.source)?);
            check("contents", found, sum.digest())?;
        }
        if let Some(left) = frame.left.filter(|&left| left > 0) {
            return Err(broken(format!("the frame ends {left} bytes too early")));
        }
        self.frame = None;
        Ok(true)
    }

    fn open(&mut self, magic: [u8; 4]) -> io::Result<()> {
        (self.taken, self.end) = (0, 0);
        let skippable = matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]);
        if skippable {
            let len = u64::from(u32::from_le_bytes(self.take()?));
            let passed = io::copy(&mut self.source.by_ref().take(len), &mut io::sink())?;
            return if passed == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        let frame = match magic {
            MAGIC => header(&mut self.source)?,
            LEGACY => Frame {
                legacy: true,
                linked: false,
                block_sums: false,
                content_sum: None,
                left: None,
                block: LEGACY_BLOCK,
            },
            [a, b, c, d] => {
                return Err(broken(format!(
                    "found {a:02x} {b:02x} {c:02x} {d:02x}, expected a frame's magic"
                )));
            }
        };
        self.text.resize(if frame.linked { REACH + frame.block } else { frame.block }, 0);
        self.frame = Some(frame);
        Ok(())
    }

    fn block(&mut self, len: usize, stored: bool) -> io::Result<()> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        // What does not become smaller is stored, but for legacy frames, which have no such mark.
        let most = if frame.legacy { frame.block + frame.block / 255 + 16 } else { frame.block };
        if len > most {
            return Err(broken(format!("a block of {len} bytes, expected at most {most}")));
        }
        self.packed.resize(len, 0);
        self.source.read_exact(&mut self.packed)?;
        if frame.block_sums {
            let found = u32::from_le_bytes(take(&mut self.source)?);
            check("a block", found, xxhash_rust::xxh32::xxh32(&self.packed, 0))?;
        }
        let start = if frame.linked { self.end.min(REACH) } else { 0 };
        self.text.copy_within(self.end - start..self.end, 0);
        let (before, room) = self.text.split_at_mut(start);
        let room = room.get_mut(..frame.block).unwrap_or_default();
        let count = if stored {
            room.get_mut(..len).unwrap_or_default().copy_from_slice(&self.packed);
            len
        } else {
            let found = match before.is_empty() {
                true => decompress_into(&self.packed, room),
                false => decompress_into_with_dict(&self.packed, room, before),
            };
            found.map_err(|error| broken(error.to_string()))?
        };
        let text = room.get(..count).unwrap_or_default();
        if let Some(sum) = &mut frame.content_sum {
            sum.update(text);
        }
        if let Some(left) = &mut frame.left {
            *left = left
                .checked_sub(count as u64)
                .ok_or_else(|| broken("more bytes than the frame says".into()))?;
        }
        (self.taken, self.end) = (start, start + count);
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        take(&mut self.source)
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.end && !out.is_empty() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let count = self.text.get(self.taken..self.end).unwrap_or_default().read(out)?;
        self.taken += count;
        Ok(count)
    }
}

/// The header of a frame, behind its magic.
fn header(source: &mut impl Read) -> io::Result<Frame> {
    let [flags, block] = take(source)?;
    let mut bytes = vec![flags, block];
    let has = |bit: u8| flags >> bit & 1 == 1;
    if flags >> 6 != 1 || has(1) {
        return Err(broken(format!("flags 0x{flags:02x}, expected those of version 1")));
    }
    let mut left = None;
    if has(3) {
        let size: [u8; 8] = take(source)?;
        bytes.extend(size);
        left = Some(u64::from_le_bytes(size));
    }
    if has(0) {
        return Err(broken("it needs a dictionary, which is not supported".into()));
    }
    let [sum] = take(source)?;
    let found = (xxhash_rust::xxh32::xxh32(&bytes, 0) >> 8) as u8;
    check("the header", u32::from(sum), u32::from(found))?;
    let size = block >> 4 & 7;
    if size < 4 || block & 0x8f != 0 {
        return Err(broken(format!("block descriptor 0x{block:02x}, expected 0x40 to 0x70")));
    }
    Ok(Frame {
        legacy: false,
        linked: !has(5),
        block_sums: has(4),
        content_sum: has(2).then(|| Xxh32::new(0)),
        left,
        block: 1 << (8 + 2 * size),
    })
}

fn take<const N: usize>(source: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn check(what: &str, stated: u32, found: u32) -> io::Result<()> {
    if stated == found {
        return Ok(());
    }
    Err(broken(format!("the checksum of {what} is {found:08x}, expected {stated:08x}")))
}

fn broken(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
