//! Inline execution is the truth: every executor gives the same samples, whatever the chunks and the budget.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use forebay_loader::{Error, ErrorKind, Executor, Graph, Registry, Rng};
use forebay_tests::{
    ALL, Run, Setting, build, error_of, line, placed, registry, root, run, uids, with_random_graphs,
    within_deadline,
};

const CHUNKS: [Option<usize>; 4] = [Some(1), Some(3), Some(64), None];

/// Graphs that each have something of their own; the generator below mixes the rest.
const GRAPHS: [&str; 16] = [
    "range 0",
    "range 1000",
    "range 1000 | batch 64",
    "range 1000 | increment | batch 64 drop_last=true",
    "range 1000 | shuffle 100 | increment | increment | batch 7",
    "range 1000 | rogue_map spin=5000 | shuffle 10",
    "range 300 | rogue_map spin=20000",
    "range 300 | increment | take 5",
    "range 10 | increment | shuffle 4 | repeat 3 | batch 4",
    "range 1000000000 | increment | take 50 | increment | repeat 4",
    "range 1000000000 | rogue_map spin=2000 | take 20 | shuffle 8 | repeat 5 | increment | take 93 | repeat 2",
    "range 100 | skip 90 | repeat 5 | skip 3 | rogue_map spin=3000 | shuffle 7",
    "range 50 | repeat | increment | take 333",
    "range 500 | rogue_stream | increment | rogue_stream fault=swallow",
    "range 40 | increment | rogue_stream fault=pending | increment | rogue_stream fault=pending",
    "rogue_source count=100 payload=abc | decode | rename 'rogue=length' | batch 9",
];

/// What an epoch gave, and the error that ended it.
fn outcome(graph: &Graph, registry: &Registry, setting: Setting, epoch: u64) -> (Run, Option<Error>) {
    let mut loader = build(graph, registry, setting).unwrap_or_else(|error| panic!("{graph}: {error}"));
    let outcome = forebay_tests::outcome(&mut loader, epoch, |_, _| {});
    loader.finish().unwrap();
    outcome
}

/// Compares every executor and every chunk size with inline execution.
fn compare(graph: &Graph, registry: &Registry, executors: &[Executor], epoch: u64) {
    let truth = outcome(graph, registry, Setting::INLINE, epoch);
    for &executor in executors {
        for chunk in CHUNKS {
            let setting = Setting { executor, chunk, ..Setting::INLINE };
            assert_eq!(outcome(graph, registry, setting, epoch), truth, "{graph}: {setting:?}");
        }
    }
}

#[test]
fn every_executor_gives_what_inline_gives() {
    within_deadline(|| {
        let registry = registry();
        for text in GRAPHS {
            compare(&line(text), &registry, &ALL, 1);
        }
    });
}

/// Any executor, with any chunks and budget.
fn any_setting(rng: &mut Rng) -> Setting {
    let mut one = |count| rng.below(count) as usize;
    let chunks = [Some(1), Some(2), Some(3), Some(7), Some(64), None];
    let budgets = [None, None, Some(1), Some(2000)];
    let executor = match one(9) {
        0 => Executor::Inline,
        threads => Executor::Threads(threads),
    };
    Setting { executor, chunk: chunks[one(6)], budget: budgets[one(4)], ..Setting::INLINE }
}

#[test]
fn every_executor_gives_what_inline_gives_for_random_graphs() {
    let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let counted = Arc::clone(&counts);
    with_random_graphs(1000, move |graph, registry, rng| {
        let truth = outcome(graph, registry, Setting::INLINE, 3);
        counted[usize::from(truth.1.is_some())].fetch_add(1, Ordering::Relaxed);
        for _ in 0..8 {
            let setting = any_setting(rng);
            // Processes take a while to start.
            let graph = if rng.bool(0.05) { &placed(graph, rng) } else { graph };
            assert_eq!(outcome(graph, registry, setting, 3), truth, "{graph}: {setting:?}");
        }
    });
    let [whole, failing] = [0, 1].map(|at| counts[at].load(Ordering::Relaxed));
    assert!(
        whole + failing < 100 || (whole > failing && 20 * failing > whole),
        "{failing} fail, {whole} do not"
    );
}

#[test]
fn seed_and_epoch_decide_and_nothing_else() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 500 | shuffle 50 | rogue_map spin=2000 | batch 10");
        let of = |executor, seed, epoch| {
            let setting = Setting { executor, ..Setting::INLINE.seed(seed) };
            run(&mut build(&graph, &registry, setting).unwrap(), epoch).unwrap().digest
        };
        let mut seen: Vec<String> = Vec::new();
        for (seed, epoch) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            let digest = of(Executor::Inline, seed, epoch);
            assert!(!seen.contains(&digest), "seed {seed}, epoch {epoch}");
            for executor in ALL {
                assert_eq!(of(executor, seed, epoch), digest, "{executor} with seed {seed}, epoch {epoch}");
            }
            seen.push(digest);
        }
    });
}

#[test]
fn one_loader_gives_any_epochs_in_any_order() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 300 | increment | shuffle 30 | increment | repeat 2 | batch 8");
        let mut inline = build(&graph, &registry, Setting::INLINE).unwrap();
        let truth: Vec<_> = (0..3).map(|epoch| run(&mut inline, epoch).unwrap()).collect();
        for executor in ALL {
            let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            for epoch in [2, 0, 1, 1, 0] {
                assert_eq!(
                    run(&mut loader, epoch).unwrap(),
                    truth[epoch as usize],
                    "{executor}, epoch {epoch}"
                );
            }
        }
    });
}

#[test]
fn every_uid_comes_exactly_once() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 2000 | increment | shuffle 300 | rogue_map spin=1000 | shuffle 5");
        for executor in ALL {
            let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            for epoch in 0..2 {
                let mut uids = uids(&mut loader, epoch).unwrap();
                assert!(!uids.is_sorted());
                uids.sort_unstable();
                assert!(uids.into_iter().eq(0..2000), "{executor}");
            }
        }
    });
}

#[test]
fn a_budget_of_one_byte_is_enough() {
    within_deadline(|| {
        let registry = registry();
        for text in GRAPHS {
            let graph = line(text);
            let truth = outcome(&graph, &registry, Setting::INLINE, 0);
            for executor in ALL {
                let setting = Setting { executor, budget: Some(1), ..Setting::INLINE };
                assert_eq!(outcome(&graph, &registry, setting, 0), truth, "{graph}: {executor}");
            }
        }
    });
}

/// One branch asks for far more than the other before it gives anything, in each way that a fork may lean.
#[test]
fn a_branch_far_behind_locks_nothing_up() {
    within_deadline(|| {
        let registry = registry();
        for text in [
            "range 3000 | fork @f ; skip @s <f> 1000 ; zip <s, f.1> prefix=['', 'b']",
            "range 3000 | fork @f ; skip @s <f.1> 1000 ; zip <f, s> prefix=['', 'b']",
            "range 3000 | fork @f ; batch @s <f.1> 1000 ; increment @i <f> ; mux <s, i> stop=longest",
            "range 3000 | fork @f ; shuffle @s <f> 1000 ; rogue_map @m <f.1> spin=300 ; zip <s, m> prefix=['', 'b']",
            "range 3000 | fork @f ; increment @i <f.1> ; concat <f, i>",
            "range 3000 | fork @f ; take @t <f.1> 3 ; concat <t, f>",
            "range 3000 | demux @f field=value values=['5', '2000'] other=drop ; increment @i <f.1> ; concat <i, f>",
        ] {
            let graph = line(text);
            let truth = outcome(&graph, &registry, Setting::INLINE, 0);
            assert!(truth.1.is_none() && truth.0.samples > 1, "{text}: {truth:?}");
            for executor in ALL {
                for chunk in [Some(1), None] {
                    let setting = Setting { executor, chunk, budget: Some(1), ..Setting::INLINE };
                    assert_eq!(outcome(&graph, &registry, setting, 0), truth, "{text}: {setting:?}");
                }
            }
        }
    });
}

/// A file of 256 MiB that is given a hundred times: to the budget that is 25 GiB, in memory no more than once.
#[test]
fn a_branch_too_far_behind_is_an_error() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let path = folder.path().join("big.bin");
        File::create(&path).unwrap().set_len(256 << 20).unwrap();
        let files = format!("files '{}' open=read | repeat_each 100 | fork @f", path.display());
        let graph = line(&format!("{files} ; skip @s <f> 60 ; zip <s, f.1> prefix=['', 'b'] | select path"));
        let near = line(&format!("{files} ; skip @s <f> 15 ; zip <s, f.1> prefix=['', 'b'] | select path"));
        // Nothing waits for a branch that has ended, nor for what worked for it alone.
        let ended = line(&format!(
            "{files} ; fork @g <f> ; map @m <g> 'x=1' ; zip @z <m, g.1> prefix=['', 'b'] | take @t 3 ; concat <t, f.1> | select path"
        ));
        // At the bound itself: the seventeenth may come, and nothing more.
        let bound = |count| {
            let files = format!("files '{}' open=read | repeat_each {count} | fork @f", path.display());
            line(&format!("{files} ; skip @s <f> 60 ; concat <s, f.1> | select path"))
        };
        for executor in ALL {
            let setting = Setting { executor, chunk: Some(1), ..Setting::INLINE };
            let (error, given) = error_of(&graph, &registry, setting);
            assert_eq!((error.kind(), given), (ErrorKind::Limit, 0), "{executor}: {error}");
            assert_eq!(error.get("pipe"), Some("f"), "{executor}: {error}");
            assert_eq!(outcome(&bound(17), &registry, setting, 0).0.samples, 17, "{executor}");
            assert_eq!(error_of(&bound(18), &registry, setting).0.kind(), ErrorKind::Limit, "{executor}");
            assert!(error.to_string().contains("bytes wait at output 1"), "{executor}: {error}");
            assert_eq!(
                outcome(&near, &registry, setting, 0).0.samples,
                85,
                "{executor}: few may always wait"
            );
            assert_eq!(outcome(&ended, &registry, setting, 0).0.samples, 103, "{executor}");
            // Sixteen budgets may wait, if that is more.
            let setting = Setting { budget: Some(1 << 30), ..setting };
            assert_eq!(outcome(&graph, &registry, setting, 0).0.samples, 40, "{executor}");
        }
    });
}

#[test]
fn an_epoch_may_be_left_at_any_time() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 400 | rogue_map spin=3000 | shuffle 40 | increment | repeat 2 | batch 3");
        let truth = run(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 1).unwrap();
        for executor in ALL {
            let setting = Setting { executor, ..Setting::INLINE };
            for left in [0, 1, 7, 130, 260] {
                let mut loader = build(&graph, &registry, setting).unwrap();
                assert_eq!(loader.epoch(0).take(left).filter(Result::is_ok).count(), left);
                assert_eq!(run(&mut loader, 1).unwrap(), truth, "{executor}, after {left} of epoch 0");
            }
        }
    });
}

#[test]
fn a_loader_may_be_dropped_at_any_time() {
    within_deadline(|| {
        let registry = registry();
        let endless = line("rogue_source | increment | shuffle 64 | rogue_map spin=500 | batch 4");
        for executor in ALL {
            for (read, finish) in [(0, false), (0, true), (1, true), (50, false), (50, true)] {
                let setting = Setting { executor, budget: Some(100_000), ..Setting::INLINE };
                let mut loader = build(&endless, &registry, setting).unwrap();
                assert_eq!(loader.epoch(0).take(read).filter(Result::is_ok).count(), read);
                // With threads, the pipeline fills up behind the consumer's back by now, or is about to.
                if finish {
                    loader.finish().unwrap();
                }
            }
        }
    });
}

#[test]
fn photos_are_the_same_on_every_executor() {
    within_deadline(|| {
        let registry = registry();
        let text = std::fs::read_to_string(root().join("examples/photos.toml")).unwrap();
        // The example's paths are relative to the root; tests run elsewhere.
        let photos = root().join("examples/photos");
        let graph = Graph::from_toml(&text.replace("examples/photos", photos.to_str().unwrap())).unwrap();
        let mut digests = Vec::new();
        for executor in [Executor::Inline, Executor::Threads(1), Executor::Threads(2), Executor::Threads(4)] {
            let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            let (first, second) = (run(&mut loader, 0).unwrap(), run(&mut loader, 0).unwrap());
            assert_eq!(first, second, "{executor}, twice");
            assert!(first.samples >= 2, "{first:?}");
            digests.push(first);
        }
        digests.dedup();
        assert_eq!(digests.len(), 1, "{digests:?}");
    });
}
