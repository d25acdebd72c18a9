//! N-bit: only the bits of each number that mean something (section IV.A.2.l, filter 5).

use forebay_core::{Error, Result};

use super::bits::{Bits, put};
use crate::structure::pipeline::Filter;

/// How deep the descriptions of types may lie in one another.
const DEPTH_LIMIT: usize = 32;

pub(super) fn undo(filter: &Filter, input: &[u8], out: &mut [u8]) -> Result<usize> {
    let options = &filter.options;
    if options.get(1).is_some_and(|&whole| whole != 0) {
        let out = super::as_many(input.len(), out)?;
        out.copy_from_slice(input);
        return Ok(out.len());
    }
    let damaged = || Error::corrupt("a chunk whose n-bit data is damaged");
    let count = *options.get(2).ok_or_else(damaged)? as usize;
    let width = *options.get(4).ok_or_else(damaged)? as usize;
    if width == 0 || count.checked_mul(width) != Some(out.len()) {
        return Err(Error::corrupt(format!("{count} elements of {width} bytes, expected {}", out.len())));
    }
    let mut bits = Bits::new(input);
    for element in out.chunks_exact_mut(width) {
        element.fill(0);
        one(options, &mut 3, &mut bits, element, 0).ok_or_else(damaged)?;
    }
    Ok(out.len())
}

/// One value of the type described from `at` on, which is left after the description.
fn one(options: &[u32], at: &mut usize, bits: &mut Bits<'_>, out: &mut [u8], depth: usize) -> Option<()> {
    if depth > DEPTH_LIMIT {
        return None;
    }
    let mut next = || {
        let option = options.get(*at).copied();
        *at += 1;
        option
    };
    let (class, size) = (next()?, next()? as usize);
    let out = out.get_mut(..size).filter(|out| !out.is_empty())?;
    match class {
        1 => {
            let (order, precision, offset) = (next()?, next()?, next()?);
            // Each number takes bits, so that these bound the work.
            if precision == 0 || precision.checked_add(offset)? > 64 || size > 8 {
                return None;
            }
            let value = bits.take(precision)?.checked_shl(offset)?;
            put(value, order == 1, out);
        }
        2 => {
            let start = *at;
            let width = *options.get(start + 1)? as usize;
            if width == 0 {
                return None;
            }
            for element in out.chunks_exact_mut(width) {
                *at = start;
                one(options, at, bits, element, depth + 1)?;
            }
        }
        3 => {
            let members = next().filter(|&members| members > 0)?;
            for _ in 0..members {
                let offset = *options.get(*at)? as usize;
                *at += 1;
                one(options, at, bits, out.get_mut(offset..)?, depth + 1)?;
            }
        }
        4 => {
            for byte in out {
                *byte = bits.take(8)? as u8;
            }
        }
        _ => return None,
    }
    Some(())
}
