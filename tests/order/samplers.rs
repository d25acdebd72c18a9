//! Samplers, and the sources behind which they stand: only what is drawn is read, and it is the same on every executor.

use std::{collections::HashSet, fs};

use forebay_loader::{ErrorKind, Executor, Limits, Sample};
use forebay_tests::{ALL, Setting, build, builder, line, registry, root, run, within_deadline};

/// Graphs whose samples are drawn, and how many there are.
const GRAPHS: [(&str, usize); 8] = [
    ("range 1000000000000 | random_sampler num_samples=700 | increment | batch 64", 11),
    ("range 500 | random_sampler | increment on=process | shuffle 20", 500),
    ("range 90 | weighted_sampler num_samples=200 weights=[WEIGHTS] | rogue_map spin=500 at=-1", 200),
    ("range 280 step=3 start=-20 | subset_sampler start=-1 step=-2 | increment", 50),
    ("range 40 | random_sampler | repeat 3 | increment | batch 7", 18),
    (
        "range 40 | sequential_sampler | increment ; range 30 | random_sampler ; mux <increment, random_sampler> stop=longest",
        70,
    ),
    ("files 'ROOT/plugins/*/src/*.rs' open=read | random_sampler num_samples=30 | select path", 30),
    ("range 10 | distributed_sampler order=torch", 10),
];

fn graph(text: &str) -> String {
    text.replace("WEIGHTS", &["0, 1, 2"; 30].join(", ")).replace("ROOT", &root().to_string_lossy())
}

#[test]
fn every_executor_draws_alike() {
    within_deadline(|| {
        let registry = registry();
        for (text, samples) in GRAPHS {
            let graph = line(&graph(text));
            let of = |executor| {
                let setting = Setting { executor, ..Setting::INLINE };
                run(&mut build(&graph, &registry, setting).unwrap(), 1).unwrap()
            };
            let truth = of(Executor::Inline);
            assert_eq!(truth.samples, samples, "{text}");
            for executor in ALL.into_iter().chain([Executor::Processes(2)]) {
                assert_eq!(of(executor), truth, "{text} on {executor}");
            }
        }
    });
}

#[test]
fn a_sample_is_that_of_its_source_drawn_again_it_is_another() {
    within_deadline(|| {
        let registry = registry();
        let samples = |text: &str| {
            let mut loader = build(&line(text), &registry, Setting::threads(2)).unwrap();
            loader.epoch(0).map(|sample| sample.unwrap()).collect::<Vec<Sample>>()
        };
        let named = |sample: &Sample| {
            (sample.uid(), sample.key().to_string(), sample.get("value").unwrap().as_i64().unwrap())
        };
        let plain: HashSet<_> = samples("range 300").iter().map(named).collect();
        let drawn: HashSet<_> = samples("range 300 | random_sampler").iter().map(named).collect();
        assert_eq!(plain, drawn);
        let often = samples("range 5 | random_sampler replacement=true num_samples=100");
        let uids: HashSet<_> = often.iter().map(Sample::uid).collect();
        assert_eq!(uids.len(), 100);
        let values: HashSet<_> = often.iter().map(|sample| sample.get("value").unwrap().as_i64()).collect();
        assert_eq!(values.len(), 5);
    });
}

#[test]
fn a_sampler_stands_behind_what_has_random_access() {
    let registry = registry();
    for text in [
        "range 5 | increment | batch 2 | increment | random_sampler",
        "range 5 | random_sampler | random_sampler",
        "range 5 | random_sampler | increment | random_sampler",
        "rogue_source count=3 | random_sampler",
    ] {
        let error = build(&line(text), &registry, Setting::INLINE).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("has no random access"), "{error}");
    }
    // Behind the sampler the maps follow one another.
    let text = "range 9 | increment @a unordered=true on=threads | random_sampler | increment @b unordered=true on=process";
    let error = build(&line(text), &registry, Setting::INLINE).err().unwrap();
    assert!(error.message().contains("expected one place"), "{error}");
    // A graph that was checked is the same when it is checked again, and says what runs.
    let once = line("range 5 | random_sampler | batch 2").check(&registry).unwrap();
    let pipes: Vec<_> = once.nodes().iter().map(|node| node.pipe.as_str()).collect();
    assert_eq!(pipes, ["range.len", "random_sampler", "range.get", "batch"]);
    assert_eq!(once.check(&registry).unwrap().fingerprint(), once.fingerprint());
    assert!(forebay_loader::graph::Catalog::names(&registry).iter().all(|name| !name.contains('.')));
}

#[test]
fn maps_may_stand_before_a_sampler_and_work_on_what_is_drawn() {
    within_deadline(|| {
        let registry = registry();
        for (written, runs) in [
            ("range 50 | increment | random_sampler", "range 50 | random_sampler | increment"),
            (
                "range 50 | map 'draw=random()' | collate | random_sampler num_samples=80 replacement=true | batch 3",
                "range 50 | random_sampler num_samples=80 replacement=true | map 'draw=random()' | collate | batch 3",
            ),
            (
                "range 90 | filter 'value < 60' | collect | increment | distributed_sampler | shuffle 9",
                "range 90 | filter 'value < 60' | collect | distributed_sampler | increment | shuffle 9",
            ),
            (
                "range 20 | increment | random_sampler ; range 9 | sequential_sampler ; mux <sequential_sampler, random_sampler> stop=longest",
                "range 20 | random_sampler | increment ; range 9 | sequential_sampler ; mux <sequential_sampler, increment> stop=longest",
            ),
        ] {
            let [written, runs] = [written, runs].map(|text| line(text).check(&registry).unwrap());
            assert_eq!(written.fingerprint(), runs.fingerprint());
            assert_eq!(written.check(&registry).unwrap().fingerprint(), runs.fingerprint());
            let of = |graph, setting| run(&mut build(graph, &registry, setting).unwrap(), 2).unwrap();
            let truth = of(&runs, Setting::INLINE);
            for setting in [Setting::INLINE, Setting::threads(3)] {
                assert_eq!(of(&written, setting), truth);
            }
        }
    });
}

#[test]
fn a_file_that_cannot_be_read_fails_alone() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        for file in 0..20 {
            let len = if file % 5 == 3 { 5000 } else { 50 };
            fs::write(folder.path().join(format!("{file:02}")), vec![b'x'; len]).unwrap();
        }
        let pattern = folder.path().join("*").display().to_string();
        let limits = Limits { bytes: 1000, ..Limits::DEFAULT };
        for executor in [Executor::Inline, Executor::Threads(2), Executor::Processes(2)] {
            let setting = Setting { executor, ..Setting::INLINE };
            let text = format!("files '{pattern}' open=read on_error=skip | random_sampler");
            let mut loader = builder(&line(&text), setting).limits(limits).build(&registry).unwrap();
            assert_eq!(run(&mut loader, 0).unwrap().samples, 16);
            let text = format!("files '{pattern}' open=read | random_sampler");
            let mut loader = builder(&line(&text), setting).limits(limits).build(&registry).unwrap();
            let error = loader.epoch(0).find_map(Result::err).unwrap();
            assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
            assert!(error.get("file").is_some() && error.get("number").is_some(), "{error}");
        }
    });
}

#[test]
fn a_source_is_asked_for_many_at_a_time() {
    within_deadline(|| {
        let registry = registry();
        for executor in [Executor::Inline, Executor::Threads(2), Executor::Processes(2)] {
            let setting = Setting { executor, chunk: Some(64), ..Setting::INLINE };
            let graph = line("rogue_asked 1000 | random_sampler");
            let mut asked = Vec::new();
            for sample in build(&graph, &registry, setting).unwrap().epoch(0) {
                asked.push(sample.unwrap().get("asked").unwrap().as_i64().unwrap());
            }
            asked.sort_unstable();
            // Fifteen calls for 64, and the rest in one.
            assert_eq!(asked, [vec![40; 40], vec![64; 960]].concat(), "{executor}");
        }
    });
}

#[test]
fn a_batch_sampler_is_a_sampler_before_a_batch_and_both_do_without() {
    within_deadline(|| {
        let registry = registry();
        let values = |text: &str| -> Vec<Vec<i64>> {
            let mut loader = build(&line(text), &registry, Setting::threads(2)).unwrap();
            let of = |sample: Sample| match sample.get("value").unwrap().as_tensor() {
                Some(tensor) => tensor
                    .data()
                    .chunks_exact(8)
                    .map(|word| i64::from_ne_bytes(word.try_into().unwrap()))
                    .collect(),
                None => vec![sample.get("value").unwrap().as_i64().unwrap()],
            };
            loader.epoch(3).map(|sample| of(sample.unwrap())).collect()
        };
        // Of a source with random access and of a stream, with batches and without.
        for source in ["rogue_asked 10 | random_sampler", "range 10 | map 'value=value' | shuffle 10"] {
            let single = values(source);
            assert!(single.iter().all(|one| one.len() == 1) && single.len() == 10, "{single:?}");
            let single = single.concat();
            for (batch, wanted) in [
                ("batch 4", single.chunks(4).collect::<Vec<_>>()),
                ("batch 4 drop_last=true", single.chunks_exact(4).collect()),
            ] {
                assert_eq!(values(&format!("{source} | {batch}")), wanted, "{source} | {batch}");
            }
        }
    });
}
