//! All damaged forms of a file, by number.

use std::ops::Range;

/// What a byte is changed by: its lowest bit, its highest, all.
const FLIPS: [u8; 3] = [0x01, 0x80, 0xff];
/// At each place it is cut off, and the byte there changed.
const KINDS: usize = 1 + FLIPS.len();

/// A file, and its damaged forms: cut off at a byte, or with one byte changed.
///
/// The numbers of the forms depend only on the file.
#[derive(Debug, Clone)]
pub struct Damage {
    whole: Vec<u8>,
    places: Vec<usize>,
}

impl Damage {
    /// Damages a file of up to `places` bytes at every byte, and a larger file at that many places, evenly spread.
    #[must_use]
    pub fn new(whole: Vec<u8>, places: usize) -> Self {
        let step = whole.len().div_ceil(places.max(1)).max(1);
        let places = (0..whole.len()).step_by(step).collect();
        Self { whole, places }
    }

    /// Damages a file at these places, if it has them.
    #[must_use]
    pub fn at(whole: Vec<u8>, places: impl IntoIterator<Item = usize>) -> Self {
        let places = places.into_iter().filter(|place| *place < whole.len()).collect();
        Self { whole, places }
    }

    /// The file as it was.
    #[must_use]
    pub fn whole(&self) -> &[u8] {
        &self.whole
    }

    /// How many forms there are.
    #[must_use]
    pub fn forms(&self) -> usize {
        self.places.len() * KINDS
    }

    /// The form with this number, from 0. Beyond the last, the undamaged file.
    #[must_use]
    pub fn form(&self, number: usize) -> Vec<u8> {
        self.done(&[number])
    }

    /// The file with the damage of all these forms.
    #[must_use]
    pub fn done(&self, numbers: &[usize]) -> Vec<u8> {
        let mut bytes = self.whole.clone();
        for (place, flip) in numbers.iter().filter_map(|number| self.place(*number)) {
            match flip {
                Some(flip) => bytes.get_mut(place).into_iter().for_each(|byte| *byte ^= flip),
                None => bytes.truncate(place),
            }
        }
        bytes
    }

    /// The bytes that differ in the form with this number: one byte, or all bytes from one on, including the end
    /// of the file at `usize::MAX`.
    #[must_use]
    pub fn reach(&self, number: usize) -> Range<usize> {
        match self.place(number) {
            None => 0..0,
            Some((place, None)) => place..usize::MAX,
            Some((place, Some(_))) => place..place + 1,
        }
    }

    /// Describes the damage of the form with this number.
    #[must_use]
    pub fn describe(&self, number: usize) -> String {
        match self.place(number) {
            None => "nothing changed".to_owned(),
            Some((place, None)) => format!("the first {place} bytes"),
            Some((place, Some(flip))) => format!("byte {place} changed by {flip:#04x}"),
        }
    }

    /// Where, and what the byte there is changed by; `None` cuts the file off.
    fn place(&self, number: usize) -> Option<(usize, Option<u8>)> {
        let flip = (number % KINDS).checked_sub(1).and_then(|flip| FLIPS.get(flip)).copied();
        self.places.get(number / KINDS).map(|place| (*place, flip))
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
    fn a_form_tells_what_it_lacks_and_several_are_done_to_one_file() {
        let damage = Damage::at(vec![1, 2, 3], [2, 0, 9]);
        assert_eq!((damage.forms(), damage.form(1)), (8, vec![1, 2, 2]));
        assert_eq!([damage.reach(0), damage.reach(3), damage.reach(8)], [2..usize::MAX, 2..3, 0..0]);
        assert_eq!((damage.done(&[0, 5]), damage.done(&[])), (vec![0, 2], vec![1, 2, 3]));
        assert_eq!(damage.done(&[3, 5, 8]), [0, 2, 0xfc]);
    }

    #[test]
    fn a_large_file_is_damaged_at_so_many_places() {
        let damage = Damage::new(vec![0; 1000], 300);
        assert_eq!(damage.forms(), 250 * 4);
        assert_eq!(damage.form(999).iter().position(|&byte| byte == 0xff), Some(996));
    }
}
