//! Shuffle: the bytes of elements, sorted by their place in the element.

use forebay_core::Result;

use crate::structure::pipeline::Filter;

pub(super) fn undo(filter: &Filter, input: &[u8], out: &mut [u8]) -> Result<usize> {
    // As many bytes as there are, which are those of compressed ones where the filters stand the other way round.
    let out = super::as_many(input.len(), out)?;
    unshuffle(filter.options.first().map_or(1, |&width| width as usize), input, out);
    Ok(out.len())
}

/// Puts the bytes of elements of `width` bytes together again; what is left at the end stays as it is.
pub(super) fn unshuffle(width: usize, input: &[u8], out: &mut [u8]) {
    let count = if width < 2 { 0 } else { out.len() / width };
    let whole = count * width;
    let (elements, rest) = out.split_at_mut(whole);
    rest.copy_from_slice(&input[whole..]);
    match width {
        _ if count == 0 => {}
        2 => interleave::<2>(input, count, elements),
        4 => interleave::<4>(input, count, elements),
        8 => interleave::<8>(input, count, elements),
        _ => {
            for (byte, plane) in input[..whole].chunks_exact(count).enumerate() {
                for (element, value) in elements.chunks_exact_mut(width).zip(plane) {
                    element[byte] = *value;
                }
            }
        }
    }
}

/// With the width known, the compiler turns this into vector code.
fn interleave<const WIDTH: usize>(input: &[u8], count: usize, out: &mut [u8]) {
    let planes: [&[u8]; WIDTH] = std::array::from_fn(|byte| &input[byte * count..][..count]);
    let (elements, _) = out.as_chunks_mut::<WIDTH>();
    for (at, element) in elements.iter_mut().enumerate().take(count) {
        *element = std::array::from_fn(|byte| planes[byte][at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back() {
        let plain: Vec<u8> = (0..241).map(|at| (at * 7 % 251) as u8).collect();
        for width in 1..=20 {
            let count = plain.len() / width;
            let mut shuffled = plain.clone();
            for at in 0..if width == 1 { 0 } else { count * width } {
                shuffled[at % width * count + at / width] = plain[at];
            }
            let mut out = vec![0; plain.len()];
            unshuffle(width, &shuffled, &mut out);
            assert_eq!(out, plain, "width {width}");
        }
    }
}
