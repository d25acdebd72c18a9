//! All damaged forms of a file, by number.

/// What a byte is changed by: its lowest bit, its highest, all.
const FLIPS: [u8; 3] = [0x01, 0x80, 0xff];
/// At each place it is cut off, and the byte there changed.
const KINDS: usize = 1 + FLIPS.len();

/// A file, and what becomes of it when it is cut off at a byte, or a byte is changed.
///
/// Which form has which number depends on the file alone.
#[derive(Debug, Clone)]
pub struct Damage {
    whole: Vec<u8>,
    step: usize,
}

impl Damage {
    /// A file of up to `places` bytes is damaged at every one; a larger one at so many at most, evenly spread.
    #[must_use]
    pub fn new(whole: Vec<u8>, places: usize) -> Self {
        let step = whole.len().div_ceil(places.max(1)).max(1);
        Self { whole, step }
    }

    /// The file as it was.
    #[must_use]
    pub fn whole(&self) -> &[u8] {
        &self.whole
    }

    /// How many forms there are.
    #[must_use]
    pub fn forms(&self) -> usize {
        self.whole.len().div_ceil(self.step) * KINDS
    }

    /// The form with this number, from 0; the file as it was beyond the last.
    #[must_use]
    pub fn form(&self, number: usize) -> Vec<u8> {
        let (place, flip) = self.place(number);
        let Some(flip) = flip else {
            return self.whole.get(..place).unwrap_or(&self.whole).to_vec();
        };
        let mut bytes = self.whole.clone();
        bytes.get_mut(place).into_iter().for_each(|byte| *byte ^= flip);
        bytes
    }

    /// What is done to the form with this number, in words.
    #[must_use]
    pub fn describe(&self, number: usize) -> String {
        match self.place(number) {
            (place, None) => format!("the first {place} bytes"),
            (place, Some(flip)) => format!("byte {place} changed by {flip:#04x}"),
        }
    }

    /// Where, and what the byte there is changed by; `None` cuts the file off.
    fn place(&self, number: usize) -> (usize, Option<u8>) {
        let flip = (number % KINDS).checked_sub(1).and_then(|flip| FLIPS.get(flip)).copied();
        ((number / KINDS).saturating_mul(self.step), flip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_cut_and_changed_three_times() {
        let damage = Damage::new(vec![0, 0], 10);
        let forms: Vec<_> = (0..damage.forms()).map(|form| damage.form(form)).collect();
        let wanted: [&[u8]; 8] =
            [&[], &[1, 0], &[0x80, 0], &[0xff, 0], &[0], &[0, 1], &[0, 0x80], &[0, 0xff]];
        assert_eq!(forms, wanted);
        assert_eq!(damage.describe(4), "the first 1 bytes");
        assert_eq!(damage.describe(6), "byte 1 changed by 0x80");
        assert_eq!([damage.form(8), damage.form(usize::MAX)], [[0, 0], [0, 0]]);
        assert_eq!(Damage::new(Vec::new(), 0).forms(), 0);
    }

    #[test]
    fn a_large_file_is_damaged_at_so_many_places() {
        let damage = Damage::new(vec![0; 1000], 300);
        assert_eq!(damage.forms(), 250 * 4);
        assert_eq!(damage.form(999).iter().position(|&byte| byte == 0xff), Some(996));
    }
}
