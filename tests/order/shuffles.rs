//! What can be shuffled, from shards to rows, and how that is composed: each graph of the README's section on shuffles.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use forebay_loader::Executor;
use forebay_tests::{ALL, Setting, build, line, registry, within_deadline};
use tempfile::TempDir;

const SHARDS: usize = 12;
const SAMPLES: usize = 30;

/// A folder with tar shards, and the graph that reads their paths.
fn shards() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    for shard in 0..SHARDS {
        let mut archive = tar::Builder::new(Vec::new());
        for at in 0..SAMPLES {
            let text = format!("{shard} {at}");
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, format!("{at:03}.txt"), text.as_bytes()).unwrap();
        }
        fs::write(folder.path().join(format!("train-{shard:02}.tar")), archive.into_inner().unwrap())
            .unwrap();
    }
    let files = format!("files '{}/train-*.tar' open=none", folder.path().display());
    (folder, files)
}

/// The shard of each sample, and its place there, after checking that this is the same wherever it runs, that each came once, and that
/// another epoch has another order.
fn order(graph: &str) -> Vec<(usize, usize)> {
    let registry = registry();
    let graph = line(&format!("{graph} | decode"));
    let epoch = |executor: Executor, epoch: u64| {
        let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
        let texts = loader
            .epoch(epoch)
            .map(|sample| sample.unwrap().get("txt").unwrap().as_str().unwrap().to_owned());
        let places = texts.map(|text| {
            let (shard, at) = text.split_once(' ').unwrap();
            (shard.parse().unwrap(), at.parse().unwrap())
        });
        places.collect::<Vec<(usize, usize)>>()
    };
    let found = epoch(Executor::Inline, 0);
    for executor in ALL {
        assert_eq!(epoch(executor, 0), found, "{graph} on {executor}");
    }
    let mut sorted = found.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq((0..SHARDS).flat_map(|shard| (0..SAMPLES).map(move |at| (shard, at)))));
    assert_ne!(epoch(Executor::Inline, 1), found, "{graph}");
    found
}

/// The shards in their order, if all samples of each come together.
fn whole(order: &[(usize, usize)]) -> Option<Vec<usize>> {
    let parts: Vec<_> = order.chunk_by(|one, other| one.0 == other.0).collect();
    parts.iter().all(|part| part.len() == SAMPLES).then(|| parts.iter().map(|part| part[0].0).collect())
}

/// Of neighbours, the share that is of one shard.
fn together(order: &[(usize, usize)]) -> f64 {
    order.windows(2).filter(|pair| pair[0].0 == pair[1].0).count() as f64 / (order.len() - 1) as f64
}

#[test]
fn shards_are_shuffled_and_not_what_is_in_them() {
    within_deadline(|| {
        let (_folder, files) = shards();
        for shuffle in ["shuffle 100000", "random_sampler"] {
            let found = order(&format!("{files} | {shuffle} | untar"));
            let shards = whole(&found).unwrap();
            assert_ne!(shards, (0..SHARDS).collect::<Vec<_>>());
            assert!(found.chunks(SAMPLES).all(|part| part.is_sorted()), "{shuffle}");
        }
    });
}

#[test]
fn what_is_in_shards_is_shuffled_and_not_they() {
    within_deadline(|| {
        let (_folder, files) = shards();
        let found = order(&format!("{files} | untar | window_shuffle 100000 within='origin()'"));
        assert_eq!(whole(&found), Some((0..SHARDS).collect()));
        assert!(found.chunks(SAMPLES).all(|part| !part.is_sorted()));
        let orders: std::collections::BTreeSet<Vec<usize>> =
            found.chunks(SAMPLES).map(|part| part.iter().map(|(_, at)| *at).collect()).collect();
        assert_eq!(orders.len(), SHARDS, "each shard has an order of its own");
    });
}

#[test]
fn shards_are_shuffled_several_are_open_and_their_samples_shuffled() {
    within_deadline(|| {
        let (_folder, files) = shards();
        let found = order(&format!("{files} | shuffle 100000 | untar interleave=4 | shuffle 40 initial=10"));
        let without = order(&format!("{files} | untar | shuffle 40 initial=10"));
        assert!(
            together(&found) < 0.25 && together(&without) > 0.35,
            "{} {}",
            together(&found),
            together(&without)
        );
        // The first samples are of the shards that are opened first, which are others than the first.
        let first: std::collections::BTreeSet<usize> = found[..20].iter().map(|(shard, _)| *shard).collect();
        assert!(first.len() == 4 && *first.last().unwrap() >= 4, "{first:?}");
        assert_eq!(whole(&found), None);
    });
}

/// The numbers that come, epoch by epoch.
fn epochs(graph: &str, count: u64) -> Vec<Vec<i64>> {
    let mut loader = build(&line(graph), &registry(), Setting::INLINE).unwrap();
    let value = |sample: forebay_loader::Sample| sample.get("value").unwrap().as_i64().unwrap();
    (0..count).map(|epoch| loader.epoch(epoch).map(|sample| value(sample.unwrap())).collect()).collect()
}

#[test]
fn a_sampler_and_a_buffer_of_all_give_every_order_alike_f3_h4() {
    within_deadline(|| {
        const EPOCHS: u64 = 4800;
        for graph in ["range 4 | random_sampler", "range 4 | shuffle 4", "range 4 | window_shuffle 9"] {
            let mut counts = std::collections::BTreeMap::new();
            epochs(graph, EPOCHS).into_iter().for_each(|order| *counts.entry(order).or_insert(0.0) += 1.0);
            let wanted = EPOCHS as f64 / 24.0;
            assert_eq!(counts.len(), 24, "{graph}");
            let chi: f64 = counts.values().map(|count: &f64| (count - wanted).powi(2) / wanted).sum();
            // 23 degrees of freedom: above 58.6 once in ten thousand.
            assert!(chi < 58.6, "{graph}: {chi}");
        }
    });
}

#[test]
fn an_input_of_a_mix_that_starts_over_has_another_order_and_leaves_the_others_theirs_n5() {
    within_deadline(|| {
        let long = "range @b 200 start=100 | shuffle @mine 100";
        let mixed = format!(
            "range @a 4 | shuffle @few 4 ; {long} ; mix <few, mine> stop=cycle_forever draw=proportional | take 80"
        );
        let mixed = epochs(&mixed, 1).remove(0);
        let (few, many): (Vec<i64>, Vec<i64>) = mixed.into_iter().partition(|value| *value < 100);
        assert_eq!(many, epochs(long, 1)[0][..40], "its own epoch is what it was");
        let orders: std::collections::BTreeSet<&[i64]> = few.chunks(4).collect();
        assert!((3..=10).contains(&orders.len()), "{orders:?}");
        for order in &orders {
            let mut sorted = order.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3], "each pass gives all");
        }
    });
}
