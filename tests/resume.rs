//! A snapshot taken at any sample, on any executor, goes on anywhere with exactly what would have come.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::{Digest, Error, Graph, Loader, Registry, Rng, Sample, Snapshot};
use forebay_tests::{ALL, Setting, build, line, random_line, registry, within_deadline};

/// The digest of each sample of an epoch, and the error that ended it.
type Outcome = (Vec<String>, Option<Error>);

fn read(samples: impl Iterator<Item = Result<Sample, Error>>) -> Outcome {
    let (mut digests, mut failed) = (Vec::new(), None);
    for sample in samples {
        match sample {
            Ok(sample) => {
                let mut digest = Digest::default();
                digest.update(&sample);
                digests.push(format!("{} {}", sample.uid(), digest.finish()));
            }
            Err(error) => failed = Some(error),
        }
    }
    (digests, failed)
}

fn setting(rng: &mut Rng) -> Setting {
    let chunks = [None, Some(1), Some(2), Some(7), Some(64)];
    Setting {
        executor: ALL[rng.below(ALL.len() as u64) as usize],
        chunk: chunks[rng.below(5) as usize],
        marks: rng.bool(0.7),
        ..Setting::INLINE
    }
}

/// The snapshot as it comes back from a file.
fn saved(loader: &Loader) -> Snapshot {
    let snapshot = loader.snapshot().unwrap();
    let read = Snapshot::from_bytes(&snapshot.to_bytes()).unwrap();
    assert_eq!(read, snapshot);
    Snapshot::from_json(&snapshot.to_json()).unwrap()
}

/// Stops after some samples, goes on elsewhere, and does so again; what comes must be what came in one go.
fn check(graph: &Graph, registry: &Registry, rng: &mut Rng) {
    let truth = read(build(graph, registry, Setting::INLINE).unwrap().epoch(2));
    let count = truth.0.len() as u64;
    let (first, second) = (rng.below(count + 2), rng.below(count / 2 + 2));
    let settings = [setting(rng), setting(rng), setting(rng)];
    let mut loader = build(graph, registry, settings[0]).unwrap();
    let mut epoch = loader.epoch(2);
    let begin = read(epoch.by_ref().take(first as usize));
    if begin.1.is_some() || begin.0.len() < first as usize {
        assert_eq!(begin, truth, "{graph}: {settings:?}");
        return;
    }
    let snapshot = saved(&epoch);
    drop(epoch);
    drop(loader);
    let mut loader = build(graph, registry, settings[1]).unwrap();
    let mut epoch = loader.resume(&snapshot).unwrap();
    let middle = read(epoch.by_ref().take(second as usize));
    let again = (middle.1.is_none() && middle.0.len() == second as usize).then(|| saved(&epoch));
    let rest = match &again {
        Some(snapshot) => {
            let mut loader = build(graph, registry, settings[2]).unwrap();
            read(loader.resume(snapshot).unwrap())
        }
        None => (Vec::new(), middle.1.clone()),
    };
    let whole = ([begin.0, middle.0, rest.0].concat(), rest.1);
    let at = whole.0.iter().zip(&truth.0).position(|(one, two)| one != two);
    assert!(
        whole == truth,
        "{graph}\nstopped after {first} and {second} of {count}, gave {}, differs at {at:?}\n{settings:#?}\n{}\n{:?}",
        whole.0.len(),
        snapshot.to_json(),
        again.map(|snapshot| snapshot.to_json()),
    );
}

#[test]
fn a_resume_gives_exactly_what_would_have_come() {
    within_deadline(|| {
        let registry = registry();
        let seeds = std::env::var("FOREBAY_GRAPHS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
        let first = std::env::var("FOREBAY_GRAPH").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
        for seed in first..first + seeds {
            let mut rng = Rng::new(seed, 1);
            let graph = line(&random_line(&mut rng));
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                (0..4).for_each(|_| check(&graph, &registry, &mut rng));
            }));
            if let Err(panic) = outcome {
                eprintln!("graph {seed}: run it alone with FOREBAY_GRAPH={seed} FOREBAY_GRAPHS=1");
                std::panic::resume_unwind(panic);
            }
        }
    });
}
