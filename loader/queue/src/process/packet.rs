//! What the socket of a lane carries: where a message lies, and the message itself if it is small.

use forebay_core::{Error, Result};

/// The most bytes of one packet.
pub(super) const PACKET: usize = 48 << 10;
/// What every message begins with: the protocol and its version.
const MAGIC: u32 = u32::from_le_bytes(*b"FBQ1");

/// The first packet of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketHeader {
    pub(super) items: u64,
    pub(super) bytes: u64,
    /// How long the control bytes at the start of the body are.
    pub(super) head: u32,
    /// How many places follow them.
    pub(super) parts: u32,
    /// Where the body is; within this packet if there is none.
    pub(super) body: Option<BytesAt>,
}

/// Where bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BytesAt {
    /// In a block of the sender's lane: the block's number, where it begins and ends in the arena, and the part of it.
    Block { slot: u32, start: u64, end: u64, offset: u64, len: u64 },
    /// As `Block`, in the receiver's own lane: it comes back from where it was sent.
    Back { slot: u32, start: u64, end: u64, offset: u64, len: u64 },
    /// In memory that the receiver lent.
    Loan { offset: u64, len: u64 },
    /// In the packets that follow.
    Stream { len: u64 },
}

/// The length of a written header without a body's place.
pub(super) const HEADER: usize = 29;
/// The length of a written place.
pub(super) const PLACE: usize = 37;

impl PacketHeader {
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&MAGIC.to_le_bytes());
        to.extend_from_slice(&self.items.to_le_bytes());
        to.extend_from_slice(&self.bytes.to_le_bytes());
        to.extend_from_slice(&self.head.to_le_bytes());
        to.extend_from_slice(&self.parts.to_le_bytes());
        to.push(u8::from(self.body.is_some()));
        if let Some(place) = &self.body {
            place.write(to);
        }
    }

    /// The header and what follows it in the packet.
    pub(super) fn read(packet: &[u8]) -> Result<(Self, &[u8])> {
        let mut rest = packet;
        let magic = u32::from_le_bytes(take(&mut rest)?);
        if magic != MAGIC {
            return Err(Error::corrupt(format!("a message begins with {magic:#x}, {MAGIC:#x} expected")));
        }
        let items = u64::from_le_bytes(take(&mut rest)?);
        let bytes = u64::from_le_bytes(take(&mut rest)?);
        let head = u32::from_le_bytes(take(&mut rest)?);
        let parts = u32::from_le_bytes(take(&mut rest)?);
        let body = match take(&mut rest)? {
            [0] => None,
            [1] => Some(BytesAt::read(&mut rest)?),
            [other] => {
                return Err(Error::corrupt(format!("a message's body is of the unknown kind {other}")));
            }
        };
        Ok((Self { items, bytes, head, parts, body }, rest))
    }
}

impl BytesAt {
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let (kind, slot, words) = match *self {
            Self::Block { slot, start, end, offset, len } => (0, slot, [start, end, offset, len]),
            Self::Loan { offset, len } => (1, 0, [offset, len, 0, 0]),
            Self::Stream { len } => (2, 0, [len, 0, 0, 0]),
            Self::Back { slot, start, end, offset, len } => (3, slot, [start, end, offset, len]),
        };
        to.push(kind);
        to.extend_from_slice(&u32::to_le_bytes(slot));
        words.iter().for_each(|word| to.extend_from_slice(&u64::to_le_bytes(*word)));
    }

    pub(super) fn read(from: &mut &[u8]) -> Result<Self> {
        let [kind] = take(from)?;
        let slot = u32::from_le_bytes(take(from)?);
        let mut word = || take(from).map(u64::from_le_bytes);
        let words = [word()?, word()?, word()?, word()?];
        match (kind, words) {
            (0, [start, end, offset, len]) => Ok(Self::Block { slot, start, end, offset, len }),
            (1, [offset, len, _, _]) => Ok(Self::Loan { offset, len }),
            (2, [len, ..]) => Ok(Self::Stream { len }),
            (3, [start, end, offset, len]) => Ok(Self::Back { slot, start, end, offset, len }),
            _ => Err(Error::corrupt(format!("a place is of the unknown kind {kind}"))),
        }
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N]> {
    let Some((taken, rest)) = from.split_first_chunk() else {
        return Err(Error::corrupt(format!("{N} bytes expected, {} are left", from.len())));
    };
    *from = rest;
    Ok(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_places_come_back_and_cut_ones_are_refused() {
        let places = [
            None,
            Some(BytesAt::Block { slot: 7, start: 4096, end: 8192, offset: 64, len: 100 }),
            Some(BytesAt::Back { slot: 7, start: 4096, end: 8192, offset: 64, len: 100 }),
            Some(BytesAt::Loan { offset: 1 << 40, len: 3 }),
            Some(BytesAt::Stream { len: u64::MAX }),
        ];
        for body in places {
            let header = PacketHeader { items: 3, bytes: 1 << 33, head: 4, parts: 5, body };
            let mut written = Vec::new();
            header.write(&mut written);
            assert_eq!(written.len(), HEADER + body.map_or(0, |_| PLACE));
            let (read, rest) = PacketHeader::read(&written).unwrap();
            assert_eq!((read, rest.len()), (header, 0));
            assert!((0..written.len()).all(|len| PacketHeader::read(&written[..len]).is_err()));
            written[0] ^= 1;
            assert!(PacketHeader::read(&written).is_err());
        }
    }
}
