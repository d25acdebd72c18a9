//! Checks of pipes, in the graphs that they are tested in.

use std::{collections::BTreeMap, thread, time::Duration};

use forebay_loader::{
    ErrorKind, Executor, Loader, audit,
    graph::{Catalog as _, Class, PipeSpec, Uids},
};

use super::{Check, Found, Kind, Miss, decoder::grows, expect};
use crate::conformance::bench::{Bench, Given, MOST, digest, given, take};

/// So many ranks at most share the samples.
const RANKS_AT_MOST: u32 = 64;
/// After so many samples, one after the other, a run is given up.
const GIVEN_UP: usize = 12;

pub(super) const RUNS: Check = Check {
    name: "runs",
    kind: Kind::Pipe,
    promise: "the graph gives as many samples as it says, and at least one",
    run: |bench| {
        let mut loader = bench.loader(Executor::Inline)?;
        let len = loader.len()?;
        let whole = given(&mut loader, 0)?;
        loader.finish()?;
        expect(!whole.samples.is_empty(), || {
            "gives no samples; name a graph in which it does with `--graph`".to_owned()
        })?;
        let count = whole.samples.len() as u64;
        match len {
            Some(len) if whole.ended => {
                expect(len == count, || format!("says that it has {len} samples, but has {count}"))?
            }
            Some(len) => {
                expect(len >= count, || format!("says that it has {len} samples, but has at least {count}"))?
            }
            None => {}
        }
        Ok(if whole.ended { format!("{count} samples") } else { format!("{count} samples and more") })
    },
};

pub(super) const AGAIN: Check = Check {
    name: "again",
    kind: Kind::Pipe,
    promise: "an epoch is the same in every run, whatever ran before",
    run: |bench| {
        let whole = bench.whole()?;
        let mut loader = bench.loader(Executor::Inline)?;
        for (epoch, what) in [(0, "a second run"), (1, ""), (0, "a run after another epoch")] {
            let again = given(&mut loader, epoch)?;
            if epoch == 0 {
                same(&again, &whole, what)?;
            }
        }
        // An epoch that was left in its middle.
        drop(take(loader.epoch(1), whole.samples.len() / 2)?);
        same(&given(&mut loader, 0)?, &whole, "a run after another that was given up")?;
        loader.finish()?;
        Ok(String::new())
    },
};

/// Two runs of the same must give the same; says where they part.
fn same(one: &Given, other: &Given, what: &str) -> Result<(), Miss> {
    let parts = one.samples.iter().zip(&other.samples).position(|(one, other)| one != other);
    let (found, wanted) = (one.samples.len(), other.samples.len());
    match parts {
        Some(at) => Err(Miss::Failed(format!("{what} differs at sample {at}"))),
        None => expect(one == other, || {
            format!("{what} gives {found} samples, but {wanted} on the consumer's thread")
        }),
    }
}

fn on(bench: &Bench, executors: &[(Executor, &str)]) -> Found {
    let whole = bench.whole()?;
    for (executor, what) in executors {
        let mut loader = bench.loader(*executor)?;
        for _ in 0..2 {
            same(&given(&mut loader, 0)?, &whole, what)?;
        }
        loader.finish()?;
    }
    Ok(format!("{} samples", whole.samples.len()))
}

pub(super) const THREADS: Check = Check {
    name: "threads",
    kind: Kind::Pipe,
    promise: "it gives the same on any number of threads",
    run: |bench| {
        on(
            bench,
            &[
                (Executor::Threads(1), "on one thread"),
                (Executor::Threads(2), "on two threads"),
                (Executor::Threads(5), "on five threads"),
            ],
        )
    },
};

pub(super) const WORKERS: Check = Check {
    name: "workers",
    kind: Kind::Pipe,
    promise: "it gives the same in worker processes",
    run: |bench| {
        if !bench.is_file() {
            return Err(Miss::Skipped(
                "it is linked in: `forebay plugins test FILE.so` checks this".to_owned(),
            ));
        }
        on(bench, &[(Executor::Processes(2), "in two processes")])
    },
};

pub(super) const STATE: Check = Check {
    name: "state",
    kind: Kind::Pipe,
    promise: "a resume after any sample gives the same as a run without a stop, on another executor too",
    run: |bench| {
        let whole = bench.whole()?;
        let registry = bench.registry()?;
        let loader = |executor| {
            // Each pipe says where it is after every call, and is called for one sample at a time, or for three.
            let chunk = if executor == Executor::Inline { 1 } else { 3 };
            bench.builder(executor)?.chunk(chunk).checkpoint_every(Duration::ZERO).build(&registry)
        };
        let executors = [Executor::Inline, Executor::Threads(2)];
        let mut places = 0;
        for (executor, other) in [(executors[0], executors[1]), (executors[1], executors[0])] {
            let mut first = loader(executor)?;
            let mut epoch = first.epoch(0);
            let mut snapshots = Vec::new();
            for _ in 0..whole.samples.len() {
                epoch.next().transpose()?;
                snapshots.push(epoch.snapshot()?);
            }
            drop(epoch);
            // Of what writes files one must be gone before another goes on.
            first.finish()?;
            for (at, snapshot) in (1..).zip(snapshots).take_while(|(at, _)| *at < 3 || !bench.is_late()) {
                places = places.max(at);
                let rest = take(loader(other)?.remainder(&snapshot)?, whole.samples.len() - at)?;
                goes_on(&rest.samples, &whole.samples[at..], || format!("after sample {at}"))?;
                // What it saves right after it was restored leads to the same place.
                let again = loader(executor)?.remainder(&snapshot)?.snapshot()?;
                let rest = take(loader(other)?.remainder(&again)?, whole.samples.len() - at)?;
                goes_on(&rest.samples, &whole.samples[at..], || {
                    format!("after sample {at}, restored twice,")
                })?;
            }
        }
        Ok(format!("{places} places"))
    },
};

fn goes_on(rest: &[String], wanted: &[String], place: impl FnOnce() -> String) -> Result<(), Miss> {
    expect(rest == wanted, || {
        let parts = rest.iter().zip(wanted).position(|(one, other)| one != other);
        let parts = parts.map_or(String::new(), |parts| format!(", others from number {parts} on"));
        format!("{} it gives {} more{parts}; without a stop {}", place(), rest.len(), wanted.len())
    })
}

pub(super) const RANKS: Check = Check {
    name: "ranks",
    kind: Kind::Pipe,
    promise: "for any number of ranks, each gets its share: no sample is lost or comes twice",
    run: |bench| {
        let registry = bench.registry()?;
        let graph = bench.graph()?;
        let merged =
            graph.nodes().iter().find(|node| registry.pipe(&node.pipe).is_some_and(makes_one_of_several));
        if let Some(node) = merged {
            return Err(Miss::Skipped(format!(
                "`{}` makes one sample of several, so it differs on each rank",
                node.name
            )));
        }
        let deals = |name: &String| registry.pipe(name).is_some_and(|spec| spec.order.shards);
        if !registry.names().iter().any(deals) {
            let why = "found no pipe that shards; add a plugin with one";
            return Err(Miss::Skipped(why.to_owned()));
        }
        let share = |rank, ranks| -> Result<Given, forebay_loader::Error> {
            let mut loader = bench.builder(Executor::Inline)?.ranks(rank, ranks).build(&registry)?;
            let share = given(&mut loader, 0)?;
            loader.finish()?;
            Ok(share)
        };
        let whole = share(0, 1)?;
        if !whole.ended {
            return Err(Miss::Skipped(format!("more than {MOST} samples")));
        }
        let whole = [whole];
        let wanted = counted(&whole);
        let mut most = 1;
        for ranks in (2..=RANKS_AT_MOST).take_while(|ranks| *ranks == 2 || !bench.is_late()) {
            most = ranks;
            let shares = (0..ranks).map(|rank| share(rank, ranks)).collect::<Result<Vec<_>, _>>()?;
            let found = counted(&shares);
            let lost = wanted
                .iter()
                .filter(|(sample, count)| found.get(*sample).is_none_or(|found| found < *count))
                .count();
            let more = found
                .iter()
                .filter(|(sample, count)| wanted.get(*sample).is_none_or(|wanted| wanted < *count))
                .count();
            expect(lost + more == 0, || {
                format!(
                    "of {} samples, {ranks} ranks lack {lost}, and {more} come twice or from nowhere",
                    wanted.len()
                )
            })?;
        }
        Ok(format!("2 to {most} ranks, {} samples", wanted.len()))
    },
};

/// Whether what it gives depends on which samples come one after the other.
fn makes_one_of_several(spec: &PipeSpec) -> bool {
    let makes = spec.class == Class::Stream && spec.audit.uids == Uids::Made && !spec.is_sampler();
    makes || spec.stacks()
}

/// How often each sample came.
fn counted(shares: &[Given]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for sample in shares.iter().flat_map(|share| &share.samples) {
        *counts.entry(sample.as_str()).or_default() += 1;
    }
    counts
}

pub(super) const APART: Check = Check {
    name: "apart",
    kind: Kind::Pipe,
    promise: "two instances are independent, and each can be dropped at any sample, on any thread",
    run: |bench| {
        let whole = bench.whole()?;
        let (mut one, mut other) = (bench.loader(Executor::Inline)?, bench.loader(Executor::Inline)?);
        let (mut one, mut other) = (one.epoch(0), other.epoch(0));
        let mut found = [Vec::new(), Vec::new()];
        for _ in 0..whole.samples.len() {
            // One is ahead of the other.
            for (samples, into, turns) in [(&mut one, 0, 2), (&mut other, 1, 1)] {
                for sample in samples.take(turns) {
                    found[into].push(digest(&sample?));
                }
            }
        }
        for (samples, what) in found.iter_mut().zip(["the one", "the other"]) {
            samples.truncate(whole.samples.len());
            expect(samples[..] == whole.samples, || {
                format!("two instances run in turns: {what} gives other samples")
            })?;
        }
        for executor in [Executor::Inline, Executor::Threads(2)] {
            for samples in 0..GIVEN_UP.min(whole.samples.len()) {
                let mut loader = bench.loader(executor)?;
                take(loader.epoch(0), samples)?;
                loader
                    .finish()
                    .map_err(|error| Miss::Failed(format!("dropped after {samples} samples: {error}")))?;
                let mut loader = bench.loader(executor)?;
                take(loader.epoch(0), samples)?;
                let dropped = thread::spawn(move || Loader::finish(loader)).join();
                let dropped = dropped.map_err(|_| Miss::Failed("a thread panicked".to_owned()))?;
                dropped.map_err(|error| Miss::Failed(format!("dropped on another thread: {error}")))?;
            }
        }
        same(&bench.whole()?, &whole, "a run after all that")?;
        Ok(String::new())
    },
};

pub(super) const ONCE: Check = Check {
    name: "once",
    kind: Kind::Pipe,
    promise: "every sample passes it exactly once, except those that its options leave out",
    run: |bench| {
        let folder = tempfile::tempdir().map_err(forebay_loader::Error::from)?;
        let file = folder.path().join("audit");
        let mut loader = bench.builder(Executor::Threads(2))?.audit(&file).build(&bench.registry()?)?;
        let whole = given(&mut loader, 0)?;
        loader.finish()?;
        for epoch in audit(&[&file])? {
            expect(epoch.offences.is_empty(), || epoch.to_string().replace('\n', ";"))?;
            expect(epoch.exactly_once || !whole.ended, || epoch.to_string().replace('\n', ";"))?;
        }
        Ok(format!("{} samples", whole.samples.len()))
    },
};

pub(super) const STOP: Check = Check {
    name: "stop",
    kind: Kind::Pipe,
    promise: "it ends when it is stopped",
    run: |bench| {
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let mut loader = bench.loader(executor)?;
            let stopper = loader.stopper();
            let mut epoch = loader.epoch(0);
            epoch.next().transpose()?;
            stopper.stop();
            // What is under way may still come.
            let mut more = 0;
            let end = epoch.by_ref().inspect(|_| more += 1).take(2 * MOST).find_map(Result::err);
            expect(end.is_some() || more < 2 * MOST, || {
                format!("gave {more} more samples after it was stopped")
            })?;
            drop(epoch);
            expect(end.as_ref().is_none_or(|error| error.kind() == ErrorKind::Cancelled), || {
                format!("ended with another error when it was stopped: {end:?}")
            })?;
            loader.finish()?;
        }
        Ok(String::new())
    },
};

pub(super) const MEMORY: Check = Check {
    name: "memory",
    kind: Kind::Pipe,
    promise: "it frees all of its memory when it is dropped",
    run: |bench| {
        let registry = bench.registry()?;
        // A kilobyte of each sample would be seen.
        let runs = (10 * MOST).div_ceil(bench.whole()?.samples.len().max(1)).min(10 * MOST);
        grows(|| {
            for _ in (0..runs).take_while(|at| *at == 0 || !bench.is_late()) {
                let mut loader = bench.builder(Executor::Inline)?.build(&registry)?;
                given(&mut loader, 0)?;
                loader.finish()?;
            }
            Ok(())
        })
    },
};
