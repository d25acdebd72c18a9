//! Ranks share the data: disjoint and whole for any number of them, and snapshots go from one number to another.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use forebay_loader::{Executor, Loader, Registry, Snapshot, Value};
use forebay_tests::{line, registry, within_deadline, worker};

fn loader(text: &str, registry: &Registry, (rank, world): (u32, u32), executor: Executor) -> Loader {
    let builder = Loader::builder(line(text)).executor(executor).seed(7).ranks(rank, world);
    let builder = builder.worker(worker());
    builder.marks(Duration::from_millis(1)).build(registry).unwrap()
}

/// The numbers in one sample or batch.
fn numbers(value: &Value) -> Vec<i64> {
    match value.as_tensor() {
        Some(tensor) => {
            let words = tensor.data().chunks_exact(8);
            words.map(|word| i64::from_ne_bytes(word.try_into().unwrap())).collect()
        }
        None => vec![value.as_i64().unwrap()],
    }
}

/// The numbers of the next samples, up to so many samples.
fn take(
    samples: impl Iterator<Item = forebay_loader::Result<forebay_loader::Sample>>,
    most: usize,
) -> Vec<i64> {
    samples.take(most).flat_map(|sample| numbers(sample.unwrap().get("value").unwrap())).collect()
}

#[test]
fn shares_are_disjoint_and_whole() {
    within_deadline(|| {
        let registry = registry();
        let whole = {
            let mut one = Loader::builder(line("range 150 | shuffle 20")).seed(7).build(&registry).unwrap();
            take(one.epoch(0), usize::MAX)
        };
        for world in [1, 2, 3, 5, 8, 16, 63, 64, 200] {
            let text = "range 150 | shuffle 20 | rogue_map at=-1 | batch 4";
            let mut shares = Vec::new();
            for rank in 0..world {
                let mut loader = loader(text, &registry, (rank, world), Executor::Inline);
                let nodes: Vec<_> = loader.graph().nodes().iter().map(|node| node.pipe.clone()).collect();
                assert_eq!(nodes, ["range", "shuffle", "shard", "rogue_map", "batch"]);
                shares.push(take(loader.epoch(0), usize::MAX));
            }
            let rounds = whole.len().div_ceil(world as usize);
            let dealt: Vec<_> = (0..rounds)
                .flat_map(|round| shares.iter().filter_map(move |share| share.get(round).copied()))
                .collect();
            assert_eq!(dealt, whole, "{world} ranks");
        }
    });
}

#[test]
fn a_snapshot_goes_from_some_ranks_to_others() {
    within_deadline(|| {
        let registry = registry();
        let plain = "range 403 | shuffle 50 | rogue_map at=-1 | batch 4";
        // The pipe that deals out is put behind the shuffle, on threads.
        let elsewhere = "range 403 | shuffle 50 on=process | rogue_map at=-1 | batch 4 on=process";
        let own = "range 403 | shuffle 50 | shard on=process | rogue_map at=-1 | batch 4";
        let drawn = "range 403 | random_sampler | rogue_map at=-1 | batch 4";
        let runs = [
            (plain, Executor::Inline),
            (plain, Executor::Threads(3)),
            (drawn, Executor::Inline),
            (drawn, Executor::Threads(3)),
        ];
        let solos = [elsewhere, own].map(|text| (text, Executor::Threads(2)));
        for (before, after) in [(1, 3), (3, 1), (2, 4), (4, 2), (3, 5), (8, 7)] {
            for (text, executor) in runs.into_iter().chain(solos) {
                let batches = 5;
                let mut seen = Vec::new();
                let mut snapshots: Vec<Snapshot> = Vec::new();
                for rank in 0..before {
                    let mut loader = loader(text, &registry, (rank, before), executor);
                    let mut epoch = loader.epoch(3);
                    seen.extend(take(epoch.by_ref(), batches));
                    snapshots.push(epoch.snapshot().unwrap());
                }
                for rank in 0..after {
                    // The snapshot of any rank serves for all.
                    let snapshot = &snapshots[rank as usize % snapshots.len()];
                    let mut loader = loader(text, &registry, (rank, after), executor);
                    seen.extend(take(loader.resume(snapshot).unwrap(), usize::MAX));
                }
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..403), "{before} to {after} on {executor}: {seen:?}");
            }
        }
    });
}

#[test]
fn what_one_rank_holds_is_not_given_to_others() {
    within_deadline(|| {
        let registry = registry();
        let text = "range 403 | shard | shuffle 50 | batch 4";
        let mut two = loader(text, &registry, (0, 2), Executor::Inline);
        let mut epoch = two.epoch(0);
        take(epoch.by_ref(), 5);
        let snapshot = epoch.snapshot().unwrap();
        drop(epoch);
        let rest = take(two.resume(&snapshot).unwrap(), usize::MAX);
        let mut same = loader(text, &registry, (0, 2), Executor::Threads(2));
        assert_eq!(take(same.resume(&snapshot).unwrap(), usize::MAX), rest);
        let mut other = loader(text, &registry, (0, 3), Executor::Inline);
        let error = other.resume(&snapshot).err().unwrap().to_string();
        assert!(error.contains("shuffle") && error.contains('3'), "{error}");
    });
}
