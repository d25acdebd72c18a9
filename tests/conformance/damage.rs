//! All damaged forms of a file, by number.

/// What a byte is changed by: its lowest bit, its highest, all.
const FLIPS: [u8; 3] = [0x01, 0x80, 0xff];
/// Up to so many bytes, a file is damaged at every one; a larger one at so many places at most.
const PLACES: usize = 4096;

/// A file, and what becomes of it when it is cut off at a byte, or a byte is changed.
pub(crate) struct Damage {
    whole: Vec<u8>,
    step: usize,
}

impl Damage {
    pub(crate) fn new(whole: Vec<u8>) -> Self {
        let step = whole.len().div_ceil(PLACES).max(1);
        Self { whole, step }
    }

    /// How many forms there are.
    pub(crate) fn forms(&self) -> usize {
        self.whole.len().div_ceil(self.step) * (1 + FLIPS.len())
    }

    /// One of them.
    pub(crate) fn form(&self, number: usize) -> Vec<u8> {
        let (place, kind) = (number / (1 + FLIPS.len()) * self.step, number % (1 + FLIPS.len()));
        match kind.checked_sub(1) {
            None => self.whole[..place].to_vec(),
            Some(flip) => {
                let mut bytes = self.whole.clone();
                bytes[place] ^= FLIPS[flip];
                bytes
            }
        }
    }
}
