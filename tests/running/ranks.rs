//! Ranks share the data: disjoint and whole for any number of them, and snapshots go from one number to another.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::BTreeSet, time::Duration};

use forebay_loader::{Executor, Loader, Registry, Snapshot, Value};
use forebay_tests::{Setting, builder, line, registry, within_deadline, worker};

fn loader(text: &str, registry: &Registry, (rank, world): (u32, u32), executor: Executor) -> Loader {
    let builder = Loader::builder(line(text)).executor(executor).seed(7).ranks(rank, world);
    let builder = builder.worker(worker());
    builder.checkpoint_every(Duration::from_millis(1)).build(registry).unwrap()
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
fn shares_of_a_distributed_sampler_are_whole_and_of_one_length() {
    within_deadline(|| {
        let registry = registry();
        for order in ["", " shuffle=false", " order=torch"] {
            let graph = |drop_last: bool| {
                format!(
                    "range 150 | distributed_sampler{order} drop_last={drop_last} | rogue_map at=-1 | batch 4"
                )
            };
            let whole = take(loader(&graph(false), &registry, (0, 1), Executor::Inline).epoch(1), usize::MAX);
            let distinct: BTreeSet<_> = whole.iter().copied().collect();
            assert!(whole.len() == 150 && distinct.into_iter().eq(0..150), "{order}: {whole:?}");
            assert_eq!(whole.is_sorted(), order == " shuffle=false", "{order}");
            for world in [1, 2, 3, 5, 8, 16, 63, 64, 200] {
                for drop_last in [false, true] {
                    let dealt = match drop_last {
                        true => 150 / world as usize * world as usize,
                        false => 150_usize.next_multiple_of(world as usize),
                    };
                    for rank in 0..world {
                        let mut loader =
                            loader(&graph(drop_last), &registry, (rank, world), Executor::Inline);
                        let pipes: Vec<_> =
                            loader.graph().nodes().iter().map(|node| node.pipe.clone()).collect();
                        assert!(!pipes.contains(&"shard".to_owned()), "{pipes:?}");
                        // Beyond its end the order begins again.
                        let share = (rank as usize..dealt).step_by(world as usize).map(|at| whole[at % 150]);
                        let found = take(loader.epoch(1), usize::MAX);
                        assert!(share.eq(found.iter().copied()), "{order}, {rank} of {world}: {found:?}");
                    }
                }
            }
        }
    });
}

/// What torch's `DistributedSampler` gives each rank of ten samples, with its defaults: seed, epoch, whether the last are dropped, and the shares.
///
/// The order is `torch.randperm(10)` of a generator whose seed is the sum of both, `perm[rank::world]` each rank's:
/// 0 gives 4 1 7 5 3 9 0 8 6 2, 1 gives 5 6 1 2 0 8 9 3 7 4, and 42 gives 2 6 1 8 4 5 0 9 3 7. What lacks is taken from its start.
const TORCH: [(u64, u64, bool, &[&[i64]]); 12] = [
    (0, 0, false, &[&[4, 5, 0, 2], &[1, 3, 8, 4], &[7, 9, 6, 1]]),
    (0, 0, true, &[&[4, 5, 0], &[1, 3, 8], &[7, 9, 6]]),
    (0, 0, false, &[&[4, 3, 6], &[1, 9, 2], &[7, 0, 4], &[5, 8, 1]]),
    (0, 0, true, &[&[4, 3], &[1, 9], &[7, 0], &[5, 8]]),
    (0, 1, false, &[&[5, 2, 9, 4], &[6, 0, 3, 5], &[1, 8, 7, 6]]),
    (0, 1, true, &[&[5, 2, 9], &[6, 0, 3], &[1, 8, 7]]),
    (0, 1, false, &[&[5, 0, 7], &[6, 8, 4], &[1, 9, 5], &[2, 3, 6]]),
    (0, 1, true, &[&[5, 0], &[6, 8], &[1, 9], &[2, 3]]),
    (42, 0, false, &[&[2, 8, 0, 7], &[6, 4, 9, 2], &[1, 5, 3, 6]]),
    (41, 1, false, &[&[2, 8, 0, 7], &[6, 4, 9, 2], &[1, 5, 3, 6]]),
    (42, 0, true, &[&[2, 4], &[6, 5], &[1, 0], &[8, 9]]),
    (41, 1, false, &[&[2, 4, 3], &[6, 5, 7], &[1, 0, 2], &[8, 9, 6]]),
];

#[test]
fn each_rank_gets_what_torch_gives_it() {
    within_deadline(|| {
        let registry = registry();
        for (seed, epoch, drop_last, shares) in TORCH {
            let graph = line(&format!("range 10 | distributed_sampler order=torch drop_last={drop_last}"));
            for (executor, rank) in [Executor::Inline, Executor::Threads(2)]
                .into_iter()
                .flat_map(|executor| (0..shares.len()).map(move |rank| (executor, rank)))
            {
                let setting = Setting { executor, ..Setting::INLINE.seed(seed) };
                let builder = builder(&graph, setting).ranks(rank as u32, shares.len() as u32);
                let found = take(builder.build(&registry).unwrap().epoch(epoch), usize::MAX);
                let of = format!("rank {rank} of {} with seed {seed} in epoch {epoch}", shares.len());
                assert_eq!(found, shares[rank], "{of}, drop_last={drop_last}, {executor}");
            }
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
        let alike = "range 403 | distributed_sampler | rogue_map at=-1 | batch 4";
        let fewer = "range 403 | distributed_sampler order=torch drop_last=true | rogue_map at=-1 | batch 4";
        let runs = [plain, drawn, alike, fewer]
            .into_iter()
            .flat_map(|text| [Executor::Inline, Executor::Threads(3)].map(|executor| (text, executor)));
        let solos = [elsewhere, own].map(|text| (text, Executor::Threads(2)));
        for (before, after) in [(1, 3), (3, 1), (2, 4), (4, 2), (3, 5), (8, 7)] {
            for (text, executor) in runs.clone().chain(solos) {
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
                // A distributed sampler gives as many as it gives ranks of this number.
                let (world, of) = (after as usize, |given: usize| (given, given.min(403)));
                let wanted = match text {
                    _ if text == alike => of(403_usize.next_multiple_of(world)),
                    _ if text == fewer => of(403 / world * world),
                    _ => of(403),
                };
                let distinct: BTreeSet<_> = seen.iter().copied().collect();
                let found = (seen.len(), distinct.len());
                assert_eq!(found, wanted, "{text}: {before} to {after} on {executor}: {seen:?}");
                assert!(distinct.iter().all(|number| (0..403).contains(number)), "{seen:?}");
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
