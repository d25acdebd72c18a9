//! Scale-offset: numbers less their minimum, in as few bits as they need (section IV.A.2.l, filter 6).

use forebay_core::{Error, Result};

use super::bits::{Bits, put};
use crate::{bytes::uint, structure::pipeline::Filter};

/// Bytes before the packed numbers: the count of bits, and the minimum after its length.
const HEAD: usize = 21;

/// What the filter was told of the numbers.
struct Numbers {
    /// A power of ten to divide by; `None` for integers.
    decimals: Option<i32>,
    width: usize,
    big: bool,
    fill: Option<u64>,
}

pub(super) fn undo(filter: &Filter, input: &[u8], out: &mut [u8]) -> Result<usize> {
    let option = |place: usize| filter.options.get(place).copied().unwrap_or(0);
    if option(0) == 1 {
        return Err(Error::unsupported("scale-offset of floats by binary exponents"));
    }
    let width = option(4) as usize;
    if !matches!((width, option(3)), (1 | 2 | 4 | 8, 0) | (4 | 8, 1)) {
        return Err(Error::corrupt(format!("scale-offset of numbers of {width} bytes")));
    }
    let fill = u64::from(option(8)) | if width == 8 { u64::from(option(9)) << 32 } else { 0 };
    let numbers = Numbers {
        decimals: (option(3) == 1).then_some(option(1) as i32),
        width,
        big: option(6) == 1,
        fill: (option(7) == 1).then_some(fill),
    };
    decode(&numbers, input, out).ok_or_else(|| Error::corrupt("a chunk whose scale-offset data is damaged"))
}

fn decode(numbers: &Numbers, input: &[u8], out: &mut [u8]) -> Option<usize> {
    let count = uint(input.get(..4)?) as u32;
    let least = uint(input.get(5..5 + usize::from(*input.get(4)?).min(8))?);
    let packed = input.get(HEAD..)?;
    let width = numbers.width;
    if !out.len().is_multiple_of(width) {
        return None;
    }
    if count as usize == width * 8 {
        let stored = packed.get(..out.len())?.chunks_exact(width);
        for (element, stored) in out.chunks_exact_mut(width).zip(stored) {
            put(uint(stored), numbers.big, element);
        }
        return Some(out.len());
    }
    if count as usize > width * 8 {
        return None;
    }
    let mut bits = Bits::new(packed);
    let missing = (1_u64 << count) - 1;
    for element in out.chunks_exact_mut(width) {
        let value = bits.take(count)?;
        let value = match numbers.fill {
            Some(fill) if value == missing && count > 0 => fill,
            _ => restore(numbers, value, least),
        };
        put(value, numbers.big, element);
    }
    Some(out.len())
}

/// The bits of the number that was `value` above the least.
fn restore(numbers: &Numbers, value: u64, least: u64) -> u64 {
    match (numbers.decimals, numbers.width) {
        (None, _) => value.wrapping_add(least),
        (Some(decimals), 4) => {
            let scaled = value as i32 as f32 / 10_f64.powi(decimals) as f32;
            (scaled + f32::from_bits(least as u32)).to_bits().into()
        }
        (Some(decimals), _) => {
            (value as i64 as f64 / 10_f64.powi(decimals) + f64::from_bits(least)).to_bits()
        }
    }
}
