//! Unordered maps hold up nobody, give every sample once whatever happens, and go on where they were.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::{Executor, Loader, Registry, Result, Rng, Sample, Snapshot};
use forebay_tests::{Gate, Setting, build, error_of, kill_any, line, registry, within_deadline};

const PROCESSES: Executor = Executor::Processes(2);

/// The numbers in the field `value` of a sample or batch, and of others that end so.
fn numbers(sample: &Sample) -> Vec<i64> {
    let fields = sample.fields().filter(|(name, _)| name.ends_with("value"));
    fields
        .flat_map(|(_, value)| match value.as_tensor() {
            Some(tensor) => {
                let words = tensor.data().chunks_exact(8);
                words.map(|word| i64::from_ne_bytes(word.try_into().unwrap())).collect()
            }
            None => value.as_i64().into_iter().collect::<Vec<_>>(),
        })
        .collect()
}

/// Some of the next samples, after a snapshot or of epoch 0, and where they leave off.
fn take(loader: &mut Loader, from: Option<&Snapshot>, count: usize) -> (Vec<Vec<i64>>, Snapshot) {
    if let Some(over) = from.filter(|snapshot| snapshot.ended) {
        return (Vec::new(), over.clone());
    }
    let mut epoch = match from {
        Some(snapshot) => loader.resume(snapshot).unwrap(),
        None => loader.epoch(0),
    };
    let samples = epoch.by_ref().take(count).map(|sample| numbers(&sample.unwrap())).collect();
    let snapshot = epoch.snapshot().unwrap();
    let read = Snapshot::from_bytes(&snapshot.to_bytes()).unwrap();
    assert_eq!(read, snapshot);
    (samples, read)
}

fn sorted(samples: &[Vec<i64>]) -> Vec<i64> {
    let mut all = samples.concat();
    all.sort_unstable();
    all
}

/// Stops after every number of samples, and after some more, and goes on each time on another executor: all that came is
/// what comes in order.
fn check_resumes(text: &str, registry: &Registry, settings: &[Setting]) {
    let graph = line(text);
    let ordered = line(&text.replace(" unordered=true", ""));
    let truth = sorted(&take(&mut build(&ordered, registry, Setting::INLINE).unwrap(), None, usize::MAX).0);
    let mut loaders: Vec<_> =
        settings.iter().map(|&setting| build(&graph, registry, setting).unwrap()).collect();
    let whole = take(&mut loaders[0], None, usize::MAX).0.len();
    for first in 0..=whole {
        let count = loaders.len();
        let (mut all, snapshot) = take(&mut loaders[first % count], None, first);
        let (more, again) = take(&mut loaders[(first / 2) % count], Some(&snapshot), first % 5);
        all.extend(more);
        all.extend(take(&mut loaders[(first + 1) % count], Some(&again), usize::MAX).0);
        assert_eq!(sorted(&all), truth, "{text}, after {first}\n{}\n{}", snapshot.to_json(), again.to_json());
    }
}

const SETTINGS: [Setting; 4] = [
    Setting { chunk: Some(1), marks: true, epochs: 2, ..Setting::threads(4) },
    Setting { chunk: Some(3), ..Setting::threads(3) },
    Setting { executor: PROCESSES, chunk: Some(2), marks: true, epochs: 2, ..Setting::INLINE },
    Setting::INLINE,
];

/// A map that takes its time, so that samples come in another order.
const SLOW: &str = "spin=200000 at=-1 unordered=true";

#[test]
fn a_resume_gives_each_sample_once() {
    within_deadline(|| {
        let registry = registry();
        for text in [
            format!("range 60 | rogue_map {SLOW}"),
            format!("range 60 | rogue_map {SLOW} | shuffle 10 | batch 4"),
            format!("range 60 | rogue_map {SLOW} | rogue_lag hold=7 | batch 4"),
            format!(
                "range 40 | rogue_map {SLOW} | fork @f ; shuffle @s <f> 9 ; zip <s, f.1> prefix=['', 'b-'] | batch 3"
            ),
            format!("range 12 | shuffle 5 | rogue_map {SLOW} | repeat 4 | increment | batch 5"),
            format!(
                "range 40 | rogue_map {SLOW} | increment unordered=true | rogue_map @c {SLOW} on=process | shuffle 4 | rogue_map @d {SLOW}"
            ),
            format!(
                "range 60 | rogue_map {SLOW} refuse=7 on_error=skip | rogue_map @b {SLOW} refuse=5 on_error=quarantine | shuffle 8"
            ),
            format!(
                "range 60 | rogue_map {SLOW} refuse=7 on_error=skip | rogue_map @b at=-1 refuse=4 on_error=skip | batch 4"
            ),
        ] {
            check_resumes(&text, &registry, &SETTINGS);
        }
    });
}

#[test]
fn killed_workers_lose_nothing() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 6000 | rogue_map spin=60000 at=-1 unordered=true | shuffle 500 | batch 16");
        let mut rng = Rng::new(5, 9);
        let mut kills = 0;
        let setting = Setting { executor: Executor::Processes(3), ..Setting::INLINE };
        let mut loader = build(&graph, &registry, setting).unwrap();
        let mut epoch = loader.epoch(0);
        let mut all = Vec::new();
        while let Some(batch) = epoch.next() {
            all.extend(numbers(&batch.unwrap()));
            kills += u32::from(all.len() % 320 == 0 && kill_any(&epoch, &mut rng));
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..6000));
        assert!(kills >= 10, "only {kills} were killed");
    });
}

/// What nobody can ask for any more is forgotten.
#[test]
fn snapshots_of_an_unordered_map_are_small() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 100000 | rogue_map spin=3000 at=-1 unordered=true | shuffle 100 | batch 64");
        for executor in [Executor::Threads(4), PROCESSES] {
            let setting = Setting { executor, chunk: Some(1), marks: true, ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            let mut epoch = loader.epoch(0);
            let mut sizes = Vec::new();
            for _ in 0..5 {
                assert_eq!(epoch.by_ref().take(60).filter(Result::is_ok).count(), 60);
                sizes.push(epoch.snapshot().unwrap().to_bytes().len());
            }
            assert!(sizes.iter().all(|&size| size < 8000), "{executor}: {sizes:?} bytes");
        }
    });
}

/// A sample that waits at its gate lets all others pass, and is the last; after a snapshot it alone comes.
#[test]
fn a_slow_sample_holds_up_no_other() {
    within_deadline(|| {
        let registry = registry();
        // A worker process has the next chunk already, behind the slow one.
        for (executor, held) in [(Executor::Threads(2), 1), (PROCESSES, 2)] {
            let gate = Gate::new();
            let graph = line(&format!("range 300 | rogue_map at=0 gate='{}' unordered=true", gate.path()));
            let setting = Setting { executor, chunk: Some(1), marks: true, ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            let mut epoch = loader.epoch(0);
            let mut first: Vec<_> =
                epoch.by_ref().take(300 - held).map(|sample| numbers(&sample.unwrap())[0]).collect();
            assert!(!first.contains(&0), "{executor}");
            let snapshot = epoch.snapshot().unwrap();
            drop(gate.arrival());
            let last: Vec<_> = epoch.map(|sample| numbers(&sample.unwrap())[0]).collect();
            assert!(last.len() == held && last.contains(&0), "{executor}: {last:?}");
            let open = line("range 300 | rogue_map at=0 unordered=true");
            for executor in [Executor::Inline, Executor::Threads(3), PROCESSES] {
                let mut loader = build(&open, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
                let rest = loader.resume_allowing(&snapshot, &["rogue_map".to_owned()]).unwrap();
                let mut rest: Vec<_> = rest.map(|sample| numbers(&sample.unwrap())[0]).collect();
                let mut last = last.clone();
                rest.sort_unstable();
                last.sort_unstable();
                assert_eq!(rest, last, "on {executor}");
            }
            first.extend(last);
            first.sort_unstable();
            assert!(first.into_iter().eq(0..300));
        }
    });
}

#[test]
fn what_cannot_be_unordered_is_refused_by_name() {
    let registry = registry();
    for (text, says) in [
        ("range 5 unordered=true", "option `unordered` is for maps; range sees samples in order"),
        ("range 5 | shuffle 3 unordered=true", "is for maps; shuffle sees"),
        ("range 5 | increment unordered=yes", "option `unordered` is \"yes\", expected true or false"),
        (
            "range 5 | increment unordered=true on_error=replace",
            "no sample is before another, but `on_error` is replace",
        ),
        (
            "range 5 | increment @a unordered=true on=process | increment @b unordered=true on=threads",
            "option `on` is threads, and that of `a` is process",
        ),
    ] {
        let (error, samples) = error_of(&line(text), &registry, Setting::INLINE);
        assert!(error.to_string().contains(says) && samples == 0, "{text}: {error}");
    }
    let ranked = |text: &str, world| {
        Loader::builder(line(text)).executor(Executor::Inline).ranks(0, world).build(&registry)
    };
    for text in
        ["range 90 | increment unordered=true | shuffle 5", "range 90 | increment unordered=true | shard"]
    {
        let error = ranked(text, 2).err().unwrap().to_string();
        assert!(
            error.contains("`increment` is unordered, and samples are assigned to ranks after it"),
            "{error}"
        );
    }
    let text = "range 90 | shuffle 9 | increment unordered=true | batch 2";
    let mut two = ranked(text, 2).unwrap();
    let snapshot = take(&mut two, None, 3).1;
    assert_eq!(take(&mut two, Some(&snapshot), usize::MAX).0.len(), 20);
    let error = ranked(text, 3).unwrap().resume(&snapshot).err().unwrap().to_string();
    assert!(error.contains("`increment` is unordered"), "{error}");
    // One that was ordered has no order to give again.
    let ordered =
        take(&mut build(&line("range 9 | increment"), &registry, Setting::INLINE).unwrap(), None, 3).1;
    let mut loader = build(&line("range 9 | increment unordered=true"), &registry, Setting::INLINE).unwrap();
    let error = loader.resume_allowing(&ordered, &["increment".to_owned()]).err().unwrap().to_string();
    assert!(error.contains("cannot become unordered"), "{error}");
}
