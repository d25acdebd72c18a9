//! Object headers, versions 1 and 2: the messages that say what an object is (section IV.A).

use forebay_core::{Buffer, Error, Result};

use crate::{
    bytes::{checksum, size},
    file::{Budget, File},
    structure::shared,
};

/// The numbers of messages.
pub(crate) mod kind {
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL: u16 = 0x04;
    pub(crate) const FILL: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL_FILES: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const PIPELINE: u16 = 0x0b;
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    pub(crate) const SHARED_TABLE: u16 = 0x0f;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
    /// The last one there is.
    pub(crate) const LAST: u16 = 0x18;
}

/// The message's body lies somewhere else.
pub(crate) const SHARED: u8 = 0x02;
/// Whoever does not know the message must not read the object.
const MUST_KNOW: u8 = 0x80;

/// One message of a header.
pub(crate) struct Message {
    pub(crate) kind: u16,
    flags: u8,
    body: Buffer,
    /// Where the body lies.
    address: u64,
}

/// What a header says.
pub(crate) struct Header {
    pub(crate) messages: Vec<Message>,
    pub(crate) address: u64,
}

/// The body of a message, and where it lies.
pub(crate) type Body = (Buffer, u64);

impl Message {
    /// The body, wherever it lies.
    pub(crate) fn body(&self, file: &File) -> Result<Body> {
        let here = (self.body.clone(), self.address);
        if self.flags & SHARED == 0 { Ok(here) } else { shared::resolve(file, self.kind, here) }
    }

    /// The body as it stands here, unless it lies somewhere else.
    pub(crate) fn own_body(&self) -> Option<Body> {
        (self.flags & SHARED == 0).then(|| (self.body.clone(), self.address))
    }
}

impl Header {
    /// Reads the header at `address`.
    pub(crate) fn read(file: &File, address: u64) -> Result<Self> {
        let head = file.read_up_to(address, 64)?;
        let mut messages = Vec::new();
        if head.starts_with(b"OHDR") {
            read_new(file, address, &head, &mut messages)?;
        } else {
            read_old(file, address, &head, &mut messages)?;
        }
        if let Some(odd) =
            messages.iter().find(|message| message.kind > kind::LAST && message.flags & MUST_KNOW != 0)
        {
            let number = odd.kind;
            return Err(Error::unsupported(format!(
                "message {number:#x} is unknown, and must be known to read the object"
            ))
            .context("byte", address));
        }
        Ok(Self { messages, address })
    }

    /// The first message of this kind.
    pub(crate) fn find(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|message| message.kind == kind)
    }

    /// The body of the first message of this kind.
    pub(crate) fn body(&self, file: &File, kind: u16) -> Result<Option<Body>> {
        self.find(kind).map(|message| message.body(file)).transpose()
    }
}

/// Where a header goes on, and for how many bytes.
type Block = (u64, u64);

fn read_old(file: &File, address: u64, head: &[u8], messages: &mut Vec<Message>) -> Result<()> {
    let mut cursor = file.cursor(head, address);
    cursor.version("the object header", 1..=1)?;
    // The number of messages is wrong in some files that are read well without it.
    cursor.skip(1 + 2 + 4)?;
    let len = cursor.u32()?;
    cursor.skip(4)?;
    let mut blocks = vec![(address + cursor.taken() as u64, u64::from(len))];
    let mut budget = Budget::of(file);
    while let Some((at, len)) = blocks.pop() {
        budget.spend(len.max(8))?;
        let block = file.read(at, len)?;
        let mut cursor = file.cursor(&block, at);
        while cursor.left() >= 8 {
            let (kind, len, flags) = (cursor.u16()?, usize::from(cursor.u16()?), cursor.u8()?);
            cursor.skip(3)?;
            push(file, &block, at, cursor.taken(), (kind, len, flags), messages, &mut blocks)?;
            cursor.skip(len)?;
        }
    }
    Ok(())
}

fn read_new(file: &File, address: u64, head: &[u8], messages: &mut Vec<Message>) -> Result<()> {
    let mut cursor = file.cursor(head, address);
    cursor.skip(4)?;
    cursor.version("the object header", 2..=2)?;
    let flags = cursor.u8()?;
    let (times, phases) = (usize::from(flags >> 5 & 1) * 16, usize::from(flags >> 4 & 1) * 4);
    cursor.skip(times + phases)?;
    let len = cursor.uint(1 << (flags & 3))?;
    let whole = len
        .checked_add(cursor.taken() as u64 + 4)
        .ok_or_else(|| cursor.corrupt("a header without an end"))?;
    let mut blocks = Vec::new();
    read_block(file, (address, whole), cursor.taken(), flags, messages, &mut blocks)?;
    let mut budget = Budget::of(file);
    while let Some((at, len)) = blocks.pop() {
        budget.spend(len.max(8))?;
        if !file.read(at, len)?.starts_with(b"OCHK") {
            return Err(Error::corrupt("no block of a header where one should go on").context("byte", at));
        }
        read_block(file, (at, len), 4, flags, messages, &mut blocks)?;
    }
    Ok(())
}

fn read_block(
    file: &File,
    (at, len): Block,
    skip: usize,
    flags: u8,
    messages: &mut Vec<Message>,
    blocks: &mut Vec<Block>,
) -> Result<()> {
    let block = file.read(at, len)?;
    let body = block.len().saturating_sub(4);
    let (expected, mut end) = (checksum(&block[..body]), file.cursor(&block, at));
    end.skip(body)?;
    let found = end.u32()?;
    if found != expected {
        return Err(
            end.corrupt(format!("the checksum of the object header is {found:#x}, expected {expected:#x}"))
        );
    }
    let mut cursor = file.cursor(&block[..body], at);
    cursor.skip(skip)?;
    let head = if flags & 4 == 0 { 4 } else { 6 };
    while cursor.left() >= head {
        let (kind, len, flags) = (u16::from(cursor.u8()?), usize::from(cursor.u16()?), cursor.u8()?);
        cursor.skip(head - 4)?;
        push(file, &block, at, cursor.taken(), (kind, len, flags), messages, blocks)?;
        cursor.skip(len)?;
    }
    Ok(())
}

/// Adds the message whose body starts at `start` of `block`, or the block that it leads to.
fn push(
    file: &File,
    block: &Buffer,
    at: u64,
    start: usize,
    (kind, len, flags): (u16, usize, u8),
    messages: &mut Vec<Message>,
    blocks: &mut Vec<Block>,
) -> Result<()> {
    let address = at + start as u64;
    let Some(body) = block.get(start..start.saturating_add(len)) else {
        return Err(Error::corrupt(format!("message {kind:#x} of {len} bytes goes beyond its header"))
            .context("byte", address));
    };
    if kind == kind::CONTINUATION {
        let mut cursor = file.cursor(&body, address);
        blocks.push((cursor.address_of("the header's next block")?, cursor.length()?));
    }
    messages.push(Message { kind, flags, body, address });
    size(address).map(|_| ())
}
