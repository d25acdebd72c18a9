//! Mu-law and A-law to 16 bits.
//!
//! ITU-T G.711, tables 1 and 2, scaled to 16 bits.

/// The value of a byte in mu-law.
pub(crate) fn mu_law(byte: u8) -> i16 {
    let byte = !byte;
    let (exponent, mantissa) = (byte >> 4 & 7, i16::from(byte & 15));
    let size = (((mantissa << 3) + 0x84) << exponent) - 0x84;
    if byte & 0x80 != 0 { -size } else { size }
}

/// The value of a byte in A-law.
pub(crate) fn a_law(byte: u8) -> i16 {
    let byte = byte ^ 0x55;
    let (exponent, mantissa) = (byte >> 4 & 7, i16::from(byte & 15));
    let size = match exponent {
        0 => (mantissa << 4) + 8,
        _ => ((mantissa << 4) + 0x108) << (exponent - 1),
    };
    if byte & 0x80 != 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_and_the_middle_are_those_of_the_tables() {
        let mu: Vec<_> = [0x00, 0x80, 0x7f, 0xff, 0x8f, 0xf0].map(mu_law).to_vec();
        assert_eq!(mu, [-32124, 32124, 0, 0, 16764, 120]);
        let a: Vec<_> = [0x55, 0xd5, 0x2a, 0xaa, 0x80].map(a_law).to_vec();
        assert_eq!(a, [-8, 8, -32256, 32256, 5504]);
    }

    #[test]
    fn both_are_odd() {
        for byte in 0..128 {
            assert_eq!(mu_law(byte), -mu_law(byte | 0x80));
            assert_eq!(a_law(byte), -a_law(byte | 0x80));
        }
    }
}
