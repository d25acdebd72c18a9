//! The random order of `torch.randperm`, for who moves from torch and wants the same samples on the same rank.

use forebay_core::{Context, Error, Result};
use rand_mt::Mt;

/// The numbers below `count` as `torch.randperm(count, generator=g)` orders them on the CPU, where `g` has the seed `seed + epoch`, as
/// `DistributedSampler` does.
///
/// Source: `randperm_cpu` of PyTorch's ATen: each number changes places with one of those behind it or itself, drawn as 32 bits
/// of a Mersenne Twister modulo how many these are.
pub(super) fn randperm(count: u64, cx: &Context) -> Result<Vec<u64>> {
    // Beyond, torch draws 64 bits.
    let most = u64::from(u32::MAX / 20);
    let limit = cx.limits().bytes / 8;
    if count >= most || count > limit {
        let error = format!(
            "the source has {count} samples, in the order of torch at most {} are shuffled",
            most.min(limit)
        );
        return Err(Error::limit(error).context("option", "order"));
    }
    // torch seeds its twister with the lower 32 bits.
    let mut twister = Mt::new(cx.seed().wrapping_add(cx.epoch()) as u32);
    let mut numbers: Vec<u64> = (0..count).collect();
    for at in 0..numbers.len().saturating_sub(1) {
        let behind = numbers.len() - at;
        numbers.swap(at, at + twister.next_u32() as usize % behind);
    }
    Ok(numbers)
}
