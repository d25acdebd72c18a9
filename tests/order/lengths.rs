//! `Loader::len`: how many samples an epoch has, known before any is read, is how many come.

use std::fs;

use forebay_loader::{Executor, Loader, Registry};
use forebay_tests::{Setting, build, line, registry, within_deadline};

/// Graphs whose length is known, over `N` and `M` samples.
const KNOWN: &[&str] = &[
    "range N",
    "range N | map 'x=value' | shuffle 5 | sort '-value' size=3 | enumerate",
    "range N | batch 3",
    "range N | batch 3 drop_last=true",
    "range N | map 'x=value' | padded_batch 4",
    "range N | map 'x=[value]' | ragged_batch 4 fields=x drop_last=true",
    "range N | repeat 3",
    "range N | repeat_each 4",
    "range N | repeat | take 7",
    "range @a N ; range @b M ; mix <a, b> stop=cycle_forever | take 9",
    "range 0 | repeat",
    "range N | take 5 | skip 2",
    "range N | slice 2 stop=9 step=3",
    "range N | slice 2 stop=-2",
    "range N | slice -5 step=2",
    "range N | slice -5 stop=7",
    "range N | slice -6 stop=-2 step=3",
    "range N | window 4 shift=2",
    "range N | window 2 shift=5",
    "range N | window 3 stride=2",
    "range N | window 2 shift=5 drop_last=false",
    "range N | window 4 shift=1 drop_last=false",
    "range N | pad_to_length 6 multiple=4",
    "range N | pad_to_length ranks=true",
    "range N | fork @f 2 ; batch @b <f.1> 2 ; concat <f, b>",
    "range @a N ; range @b M ; concat <a, b, b2> ; range @b2 2",
    "range @a N ; range @b M ; zip <a, b> prefix=['', 'b-']",
    "range @a N ; range @b M ; zip <a, b> prefix=['', 'b-'] mode=longest",
    "range @a N ; range @b M ; mux <a, b>",
    "range @a N ; range @b M ; mux <a, b> block=3",
    "range @a N ; range @b M ; range @c 4 ; mux <a, b, c> block=2",
    "range @a N ; range @b M ; mux <a, b> stop=longest block=2",
    "range @a N ; range @b M ; mix <a, b> stop=all_exhausted weights=[3, 1]",
    "range @a N ; range @b M ; zip_by_key <a, b> key=value join=left prefix=['', 'b-']",
    "range @a N ; range @b M ; lookup <a, b> key=value join=left prefix=['', 'b-']",
    "range N | scan 't=t+value' init='t=0' | window_shuffle 4 | cache",
    "range N | sequential_sampler",
    "range N | random_sampler",
    "range N | random_sampler num_samples=9",
    "range N | subset_sampler start=-7 step=2",
    "range 3 | subset_sampler indices=[0, 2, 2, 1] shuffle=true",
    "range 3 | weighted_sampler [1, 2, 3] num_samples=8",
    "range N | distributed_sampler",
    "range N | distributed_sampler drop_last=true",
    "range N | distributed_sampler order=torch | batch 2",
    "range N | collect | random_sampler | batch 4",
    "range N | map 'x=value' on_error=quarantine | batch 5",
    "range N | shard drop_last=true | batch 2",
    "range N | shuffle 4 | map 'x=value' | batch 2",
    "files 'FOLDER/*.txt' open=none | sequential_sampler | batch 2",
    "files 'FOLDER/*.txt' | random_sampler",
    "files 'FOLDER/*.txt' | batch 2",
];

/// Graphs of which nobody knows before they are read, or that have no end.
const UNKNOWN: &[&str] = &[
    "range 9 | filter 'value < 3'",
    "range 9 | filter 'value < 3' | batch 2",
    "range 9 | flat_map '[value]' | take 5",
    "range 9 | repeat",
    "range 9 | repeat | slice 2 stop=-2",
    "range 9 | repeat | slice -2",
    "range @a 9 ; filter @b <a2> 'value < 3' ; range @a2 4 ; concat <a, b>",
    "range @a 9 ; range @b 9 ; mix <a, b>",
    "range @a 9 ; range @b 9 ; mix <a, b> stop=cycle_forever",
    "range 9 | repeat | batch 4 | repeat_each 2",
];

fn loader(text: &str, registry: &Registry, ranks: Option<(u32, u32)>) -> Loader {
    let mut builder = Loader::builder(line(text)).executor(Executor::Inline).epochs(2);
    if let Some((rank, world)) = ranks {
        builder = builder.ranks(rank, world);
    }
    builder.build(registry).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn as_many_come_as_were_said_b016_b063_b065() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for number in 0..5 {
            fs::write(folder.path().join(format!("{number}.txt")), "text").unwrap();
        }
        let mut checked = 0;
        for text in KNOWN {
            for (count, other) in (0..=12).flat_map(|count| [(count, 5), (count, count), (count, 0)]) {
                for ranks in [None, Some((0, 3)), Some((1, 3)), Some((2, 3))] {
                    let text = text.replace('N', &count.to_string()).replace('M', &other.to_string());
                    let text = text.replace("FOLDER", folder.path().to_str().unwrap());
                    let mut loader = loader(&text, &registry, ranks);
                    let said = loader.len().unwrap_or_else(|error| panic!("{text}: {error}"));
                    match loader.epoch(1).collect::<Result<Vec<_>, _>>() {
                        Ok(samples) => {
                            assert_eq!(said, Some(samples.len() as u64), "{text} at {ranks:?}");
                            checked += 1;
                        }
                        // What is drawn of nothing, and padded from nothing.
                        Err(error) => assert_eq!(count, 0, "{text} at {ranks:?}: {error}"),
                    }
                }
            }
        }
        assert!(checked > 3000, "{checked}");
    });
}

#[test]
fn what_depends_on_the_samples_or_has_no_end_is_not_known() {
    let registry = registry();
    for text in UNKNOWN {
        assert_eq!(loader(text, &registry, None).len().unwrap(), None, "{text}");
    }
}

#[test]
fn it_is_known_wherever_the_graph_runs_and_files_that_are_not_there_are_an_error() {
    within_deadline(|| {
        let registry = registry();
        for executor in [Executor::Inline, Executor::Threads(2), Executor::Processes(2)] {
            let graph = line("range 100 on=own_thread | shuffle 9 | map 'x=value' on=process | batch 8");
            let loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            assert_eq!(loader.len().unwrap(), Some(13), "{executor}");
        }
        let missing = loader("files 'nowhere/at/all/1.txt' | batch 2", &registry, None);
        let error = missing.len().unwrap_err().to_string();
        assert!(error.contains("nowhere/at/all") && error.contains("files"), "{error}");
    });
}
