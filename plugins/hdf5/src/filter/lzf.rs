//! LZF, as h5py writes it.
//!
//! Source: the format as liblzf's `lzf_d.c` describes it (BSD licence); the code is our own.

use forebay_core::{Error, Result};

use super::copy_back;

pub(super) fn undo(input: &[u8], out: &mut [u8]) -> Result<usize> {
    decode(input, out).ok_or_else(|| Error::corrupt("a chunk whose LZF data is damaged"))
}

fn decode(input: &[u8], out: &mut [u8]) -> Option<usize> {
    let (mut from, mut to) = (0, 0);
    while let Some(&control) = input.get(from) {
        from += 1;
        let control = usize::from(control);
        if control < 32 {
            let len = control + 1;
            out.get_mut(to..to + len)?.copy_from_slice(input.get(from..from + len)?);
            from += len;
            to += len;
            continue;
        }
        let mut len = control >> 5;
        if len == 7 {
            len += usize::from(*input.get(from)?);
            from += 1;
        }
        let distance = (control & 31) << 8 | usize::from(*input.get(from)?);
        from += 1;
        to = copy_back(out, to, distance + 1, len + 2)?;
    }
    Some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_matches() {
        let mut out = [0; 11];
        // Three letters, then eight more from three back.
        assert_eq!(undo(&[2, b'a', b'b', b'c', 6 << 5, 2], &mut out).unwrap(), 11);
        assert_eq!(&out, b"abcabcabcab");
        assert!(undo(&[6 << 5, 2], &mut out).is_err(), "from before the start");
        assert!(undo(&[31, 1], &mut out).is_err(), "beyond the end");
    }
}
