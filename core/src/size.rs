//! Sizes as people write them.

use crate::{Error, Result};

/// Reads a size in bytes: a whole number, alone or with a unit. `kB`, `MB`, `GB`, `TB`, or `K`, `M`, `G`, `T`, count in thousands;
/// `KiB`, `MiB`, `GiB`, `TiB`, or `Ki`, `Mi`, `Gi`, `Ti`, in 1024. Upper and lower case are the same.
///
/// ```
/// use forebay_core::parse_bytes;
///
/// assert_eq!(parse_bytes("512 MiB")?, 512 << 20);
/// assert_eq!(parse_bytes("2GB")?, 2_000_000_000);
/// assert_eq!(parse_bytes("64M")?, parse_bytes("64MB")?);
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Invalid` for anything else, and for a size above 2^64 - 1.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let bad = || {
        Error::invalid(format!("size is `{text}`, expected a whole number of bytes such as 512MiB or 2GB"))
    };
    let digits = text.trim();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        _ => return Err(bad()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_units_are_the_long_ones() {
        for (short, long) in
            [("64M", "64MB"), ("64Mi", "64MiB"), ("1k", "1000"), ("3 G", "3GB"), ("2ti", "2TiB")]
        {
            assert_eq!(parse_bytes(short).unwrap(), parse_bytes(long).unwrap(), "{short}");
        }
        assert_eq!(parse_bytes("64M").unwrap(), 64_000_000);
        for bad in ["", "M", "1.5G", "-1", "64X", "64Mb/s", "99999999999T"] {
            assert!(parse_bytes(bad).unwrap_err().to_string().contains("expected a whole number"), "{bad}");
        }
    }
}
