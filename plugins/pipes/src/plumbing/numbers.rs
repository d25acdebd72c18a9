//! Numbers as bytes, for saved positions that hold many: seven bits to a byte, the lowest first, the eighth bit says that more
//! follow (LEB128).

/// The bytes of these numbers.
pub(crate) fn write(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + 3 * numbers.size_hint().0);
    for mut number in numbers {
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
    bytes
}

/// The numbers, unless one is cut off or too large.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0, 0);
    for &byte in bytes {
        let part = u64::from(byte & 0x7f);
        if shift > 63 || part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        shift += 7;
        if byte < 0x80 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let numbers = [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX];
        let bytes = write(numbers.into_iter());
        assert_eq!(read(&bytes), Some(numbers.to_vec()));
        assert_eq!(bytes.len(), 3 + 2 + 2 + 6 + 10 + 10);
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
    }
}
