//! The first bytes of a frame, and the receiver's answers.

use forebay_core::{Error, Result, codec::LARGE};

use crate::{Load, ending};

/// The length of a frame's head.
pub(super) const HEADER: usize = 40;
/// The length of a receiver's answer.
pub(super) const ANSWER: usize = 16;

const MESSAGE: u32 = 1;
/// A frame that says how the sender left has this added to it.
const ENDING: u32 = 16;

/// What a frame begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameHeader {
    Message { parts: u32, head: u64, flat: u64, load: Load },
    Ending(u32),
}

impl FrameHeader {
    pub(super) fn to_bytes(self) -> [u8; HEADER] {
        let (kind, parts, words) = match self {
            Self::Message { parts, head, flat, load } => {
                (MESSAGE, parts, [head, flat, load.items, load.bytes])
            }
            Self::Ending(how) => (ENDING + how, 0, [0; 4]),
        };
        let mut bytes = [0; HEADER];
        let numbers = [u64::from(kind) | u64::from(parts) << 32].into_iter().chain(words);
        for (place, number) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        bytes
    }

    /// The header, if what it announces is within `limit`.
    pub(super) fn from_bytes(bytes: &[u8], limit: usize) -> Result<Self> {
        let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut word = || words.next().ok_or_else(|| Error::bug("a frame's head was cut"));
        let first = word()?;
        let (kind, parts) = (first as u32, (first >> 32) as u32);
        match kind {
            MESSAGE => {
                let (head, flat) = (word()?, word()?);
                let load = Load { items: word()?, bytes: word()? };
                let large = u64::from(parts).saturating_mul(LARGE as u64);
                within(head.saturating_add(flat).saturating_add(large), limit)?;
                Ok(Self::Message { parts, head, flat, load })
            }
            _ if (ENDING + ending::CLOSED..=ENDING + ending::PANICKED).contains(&kind) => {
                Ok(Self::Ending(kind - ENDING))
            }
            _ => Err(Error::corrupt(format!("a frame is of the unknown kind {kind}"))),
        }
    }
}

/// Refuses a message that is too long before memory is taken for it.
pub(super) fn within(len: u64, limit: usize) -> Result<()> {
    if len > limit as u64 {
        return Err(Error::limit(format!("a message of at least {len} bytes, at most {limit} allowed")));
    }
    Ok(())
}

/// What a receiver says: how much it has taken since the start.
pub(super) fn answer(taken: Load) -> [u8; ANSWER] {
    let mut bytes = [0; ANSWER];
    for (place, number) in bytes.as_chunks_mut::<8>().0.iter_mut().zip([taken.items, taken.bytes]) {
        *place = number.to_le_bytes();
    }
    bytes
}

pub(super) fn from_answer(bytes: [u8; ANSWER]) -> Load {
    let number = u128::from_le_bytes(bytes);
    Load { items: number as u64, bytes: (number >> 64) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_greedy_ones_are_refused() {
        let load = Load { items: 3, bytes: 1 << 40 };
        let header = FrameHeader::Message { parts: 2, head: 100, flat: 200, load };
        let bytes = header.to_bytes();
        assert_eq!(FrameHeader::from_bytes(&bytes, 300 + 2 * LARGE).unwrap(), header);
        assert!(FrameHeader::from_bytes(&bytes, 299 + 2 * LARGE).is_err());
        let ended = FrameHeader::Ending(ending::DROPPED);
        assert_eq!(FrameHeader::from_bytes(&ended.to_bytes(), 0).unwrap(), ended);
        for kind in [0, 2, 15, 16, 20, u32::MAX] {
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(&kind.to_le_bytes());
            assert!(FrameHeader::from_bytes(&bytes, 1 << 20).is_err());
        }
        let greedy = FrameHeader::Message { parts: u32::MAX, head: u64::MAX, flat: u64::MAX, load };
        assert!(FrameHeader::from_bytes(&greedy.to_bytes(), usize::MAX >> 1).is_err());
        assert_eq!(from_answer(answer(load)), load);
    }
}
