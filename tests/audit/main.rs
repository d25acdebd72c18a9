//! An audit proves that every sample came exactly once, whatever ran it, or names who did not see to that.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod alone;
mod merged;
mod uids;

use std::path::Path;

use forebay_loader::{
    Digest, EpochAudit, Error, Executor, Graph, Loader, LoaderBuilder, Registry, Snapshot, What, audit,
};
use forebay_tests::{
    Setting, build, kill_any, line, placed, random_graph, registry, root, with_random_graphs, within_deadline,
};

const WORKER: &str = env!("CARGO_BIN_EXE_forebay-test-worker");

/// One of each kind.
const KINDS: [Executor; 3] = [Executor::Inline, Executor::Threads(3), Executor::Processes(2)];

fn audited(graph: &Graph, executor: Executor, file: &Path) -> LoaderBuilder {
    Loader::builder(graph.clone()).executor(executor).seed(7).worker(WORKER).audit(file)
}

/// What is delivered of an epoch, up to so many: how many, their digest, and the error that ended it.
fn outcome(loader: &mut Loader, epoch: u64, most: usize) -> (usize, String, Option<Error>) {
    read(loader.epoch(epoch).take(most))
}

fn read(
    samples: impl Iterator<Item = Result<forebay_loader::Sample, Error>>,
) -> (usize, String, Option<Error>) {
    let (mut digest, mut count, mut failed) = (Digest::default(), 0, None);
    for sample in samples {
        match sample {
            Ok(sample) => {
                digest.update(&sample);
                count += 1;
            }
            Err(error) => failed = Some(error),
        }
    }
    (count, digest.finish(), failed)
}

/// The audit of the first epoch of a graph.
fn audit_of(text: &str, registry: &Registry, executor: Executor) -> EpochAudit {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit");
    let mut loader = audited(&line(text), executor, &file).build(registry).unwrap();
    let (_, _, failed) = outcome(&mut loader, 0, usize::MAX);
    assert!(failed.is_none(), "{text}: {failed:?}");
    loader.finish().unwrap();
    audit(&[&file]).unwrap().remove(0)
}

#[test]
fn what_comes_exactly_once_is_said_to() {
    within_deadline(|| {
        let registry = registry();
        for (text, given, delivered) in [
            ("range 1000 | shuffle 100 | increment | batch 16", 1000, 1000),
            ("range 100 | repeat 3 | shuffle 9 | batch 7 | shuffle 5", 300, 300),
            ("range 100 | batch 4 | batch 3 drop_last=true", 100, 96),
            ("range 100 | batch 4 | unbatch | increment", 100, 100),
            ("range @a 30 ; range @b 40 ; concat <a, b> | fork @f ; mux <f, f.1> | batch 9", 140, 140),
            ("range 50 | shuffle 20 | skip 5 | batch 4 uids=ids", 50, 45),
        ] {
            for executor in KINDS {
                let found = audit_of(text, &registry, executor);
                assert!(found.exactly_once, "{text} on {executor}: {found}");
                assert_eq!(
                    (found.given, found.delivered),
                    (given, delivered),
                    "{text} on {executor}: {found}"
                );
            }
        }
    });
}

#[test]
fn the_rest_of_a_batch_and_what_failed_are_counted_at_their_node() {
    within_deadline(|| {
        let registry = registry();
        for executor in KINDS {
            let text = "range 100 | rogue_map at=-1 refuse=9 on_error=skip | rogue_lag refuse=10 on_error=skip | batch 8 drop_last=true";
            let found = audit_of(text, &registry, executor);
            assert!(found.exactly_once, "{executor}: {found}");
            let left = |node: &str| {
                let of: Vec<_> = found.left_out.iter().filter(|left| left.node == node).collect();
                of.iter().map(|left| (left.samples, left.failed)).collect::<Vec<_>>()
            };
            // 12 multiples of 9; 8 multiples of 10 that are none of 9; 80 are left.
            assert_eq!(left("rogue_map"), [(12, true)], "{executor}: {found}");
            assert_eq!(left("rogue_lag"), [(8, true)], "{executor}: {found}");
            assert_eq!((left("batch"), found.delivered), (vec![], 80), "{executor}: {found}");
            let found = audit_of("range 100 | shuffle 10 | batch 8 drop_last=true", &registry, executor);
            assert_eq!(found.left_out.len(), 1, "{executor}: {found}");
            assert_eq!((&*found.left_out[0].node, found.left_out[0].samples), ("batch", 4), "{executor}");
            assert!(
                found.exactly_once && found.to_string().contains("4 samples left out by `batch`"),
                "{found}"
            );
        }
    });
}

#[test]
fn an_audit_changes_nothing_of_what_comes_out() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        for (at, text) in [
            "range 1000 | shuffle 100 | increment | batch 16",
            "range 100 | batch 4 | select value | batch 2",
            "range @a 30 ; batch @x <a> 4 ; range @b 30 field=w ; batch @y <b> 4 ; zip <x, y>",
        ]
        .into_iter()
        .enumerate()
        {
            let graph = line(text);
            let mut plain = build(&graph, &registry, Setting::INLINE).unwrap();
            let truth = outcome(&mut plain, 1, usize::MAX);
            for executor in KINDS {
                let file = folder.path().join(at.to_string());
                let mut loader = audited(&graph, executor, &file).build(&registry).unwrap();
                assert_eq!(outcome(&mut loader, 1, usize::MAX), truth, "{text} on {executor}");
                assert_eq!(loader.graph().fingerprint(), plain.graph().fingerprint());
                // A snapshot of either goes on in the other.
                let read = plain.epoch(1).take(3).count();
                let snapshot = plain.snapshot().unwrap();
                let rest = loader.resume(&snapshot).unwrap().count();
                assert_eq!(read + rest, truth.0, "{text} on {executor}");
            }
        }
    });
}

/// Checks a random graph: in one go, and stopped and gone on with elsewhere.
fn check(graph: &Graph, registry: &Registry, kinds: &[Executor], at: u64) {
    let (_, _, failed) = outcome(&mut build(graph, registry, Setting::INLINE).unwrap(), 2, usize::MAX);
    let count = build(graph, registry, Setting::INLINE).unwrap().epoch(2).filter(Result::is_ok).count();
    let folder = tempfile::tempdir().unwrap();
    for (number, &executor) in kinds.iter().enumerate() {
        let (whole, parts) =
            (folder.path().join(format!("w{number}")), folder.path().join(format!("p{number}")));
        let mut loader = audited(graph, executor, &whole).build(registry).unwrap();
        drop(outcome(&mut loader, 2, usize::MAX));
        loader.finish().unwrap();
        let found = audit(&[&whole]).unwrap().remove(0);
        assert!(found.offences.is_empty(), "{graph} on {executor}: {found}");
        assert_eq!(found.exactly_once, failed.is_none(), "{graph} on {executor}: {found}");

        let mut loader = audited(graph, executor, &parts).build(registry).unwrap();
        let first = (at as usize) % (count + 1);
        assert_eq!(loader.epoch(2).take(first).count(), first);
        let snapshot = loader.snapshot().unwrap();
        drop(loader);
        let found = audit(&[&parts]).unwrap().remove(0);
        assert!(
            found.offences.is_empty() && !found.exactly_once,
            "{graph} on {executor} after {first}: {found}"
        );
        let other = kinds[(number + 1) % kinds.len()];
        let mut loader = audited(graph, other, &parts).build(registry).unwrap();
        drop(read(loader.resume(&snapshot).unwrap()));
        loader.finish().unwrap();
        let found = audit(&[&parts]).unwrap().remove(0);
        assert!(found.offences.is_empty(), "{graph} on {executor}, then {other} after {first}: {found}");
        assert_eq!(
            found.exactly_once,
            failed.is_none(),
            "{graph} on {executor}, {other} after {first}: {found}"
        );
    }
}

#[test]
fn random_graphs_give_every_sample_once_also_across_a_resume() {
    with_random_graphs(300, |graph, registry, rng| {
        check(
            graph,
            registry,
            &[Executor::Inline, Executor::Threads(1 + rng.below(4) as usize)],
            rng.below(200),
        );
    });
}

#[test]
fn random_graphs_give_every_sample_once_in_processes() {
    within_deadline(|| {
        let registry = registry();
        for seed in 0..20 {
            let mut rng = forebay_loader::Rng::new(seed, 3);
            let graph = placed(&line(&random_graph(&mut rng)), &mut rng);
            check(&graph, &registry, &[Executor::Processes(2), Executor::Inline], rng.below(100));
        }
    });
}

#[test]
fn photographs_come_once() {
    within_deadline(|| {
        let registry = registry();
        let text = std::fs::read_to_string(root().join("examples/photos.toml")).unwrap();
        let text = text.replace("examples/photos", root().join("examples/photos").to_str().unwrap());
        let graph = Graph::from_toml(&text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for executor in KINDS {
            let file = folder.path().join(executor.to_string());
            let mut loader = audited(&graph, executor, &file).build(&registry).unwrap();
            let (count, ..) = outcome(&mut loader, 0, usize::MAX);
            loader.finish().unwrap();
            let found = audit(&[&file]).unwrap().remove(0);
            assert!(found.exactly_once && found.delivered > count as u64 && count > 0, "{executor}: {found}");
            assert_eq!(found.deliveries, count as u64);
        }
    });
}

#[test]
fn who_does_not_keep_to_it_is_named_with_uid_key_and_places() {
    within_deadline(|| {
        let registry = registry();
        for executor in KINDS {
            for tail in ["", " | increment | shuffle 9 | batch 4"] {
                let of = |fault: &str| {
                    let text = format!(
                        "range 50 | shuffle 5 | increment | rogue_keep @bad fault={fault} at=33{tail}"
                    );
                    let found = audit_of(&text, &registry, executor);
                    assert!(!found.exactly_once, "{found}");
                    found
                };
                let found = of("twice");
                assert_eq!(found.offences.len(), 1, "{found}");
                let offence = &found.offences[0];
                assert_eq!((offence.what, &*offence.node, offence.samples), (What::Twice, "bad", 1));
                let named = &offence.named[0];
                assert_eq!((&*named.uid, named.key.as_deref()), ("21", Some("range#33")), "{found}");
                assert_eq!(named.given.len(), 2, "{found}");
                assert!(!named.delivered.is_empty(), "{found}");
                if tail.is_empty() {
                    let places: Vec<u64> = named.delivered.iter().map(|place| place.1).collect();
                    assert_eq!(places, named.given, "{found}");
                }
                let found = of("drop");
                let told = found.to_string();
                assert_eq!(found.offences.len(), 1, "{found}");
                assert_eq!((found.offences[0].what, found.delivered), (What::Missing, 49), "{found}");
                assert!(
                    told.contains(
                        "1 sample not delivered: last seen leaving `shuffle`, `increment`, lost by `bad`"
                    ),
                    "{told}"
                );
                assert!(told.contains("uid 21, range#33"), "{told}");
                let found = of("invent");
                let whats: Vec<What> = found.offences.iter().map(|offence| offence.what).collect();
                assert_eq!(whats, [What::Missing, What::Unknown], "{found}");
            }
        }
    });
}

#[test]
fn a_node_that_ends_before_its_input_is_named() {
    let registry = registry();
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let found = audit_of("range 5000000 | rogue_keep fault=end at=33 | batch 4", &registry, executor);
        assert!(!found.exactly_once, "{found}");
        assert!(
            found.offences.iter().any(|offence| offence.what == What::Early && offence.node == "rogue_keep"),
            "{found}"
        );
        assert_eq!(found.delivered, 34);
    }
}

/// Runs one rank from where a snapshot says up to so many deliveries, and gives a snapshot.
fn rank(
    text: &str,
    registry: &Registry,
    (rank, world): (u32, u32),
    file: &Path,
    from: Option<&Snapshot>,
    most: usize,
) -> Snapshot {
    let mut loader =
        audited(&line(text), Executor::Threads(2), file).ranks(rank, world).build(registry).unwrap();
    let mut epoch = match from {
        Some(snapshot) => loader.resume(snapshot).unwrap(),
        None => loader.epoch(0),
    };
    assert!(epoch.by_ref().take(most).all(|sample| sample.is_ok()));
    let snapshot = epoch.snapshot().unwrap();
    drop(epoch);
    loader.finish().unwrap();
    snapshot
}

#[test]
fn ranks_are_put_together_also_when_their_number_changes() {
    within_deadline(|| {
        let registry = registry();
        let text = "range 403 | shuffle 50 | rogue_map at=-1 | batch 4";
        let folder = tempfile::tempdir().unwrap();
        let file = |name: String| folder.path().join(name);
        let files: Vec<_> = (0..3).map(|at| file(format!("whole{at}"))).collect();
        for at in 0..3 {
            rank(text, &registry, (at, 3), &files[at as usize], None, usize::MAX);
        }
        let found = audit(&files).unwrap().remove(0);
        assert!(found.exactly_once, "{found}");
        assert_eq!((found.given, found.delivered), (403, 403), "{found}");
        let two = audit(&files[..2]).unwrap().remove(0);
        assert!(!two.exactly_once && two.to_string().contains("rank 2 of 3"), "{two}");
        for (before, after) in [(2, 3), (3, 2), (1, 2), (3, 3)] {
            let name = |at| file(format!("{before}-{after}-{at}"));
            let old: Vec<_> =
                (0..before).map(|at| rank(text, &registry, (at, before), &name(at), None, 5)).collect();
            // More that nobody kept: what comes after the snapshot replaces it.
            for at in 0..before {
                rank(text, &registry, (at, before), &name(at), Some(&old[at as usize]), 7);
            }
            for at in 0..after {
                let snapshot = &old[at as usize % old.len()];
                rank(text, &registry, (at, after), &name(at), Some(snapshot), usize::MAX);
            }
            let all: Vec<_> = (0..before.max(after)).map(name).collect();
            let found = audit(&all).unwrap().remove(0);
            assert!(found.exactly_once, "{before} to {after}: {found}");
            assert_eq!((found.given, found.delivered), (403, 403), "{before} to {after}: {found}");
        }
    });
}

#[test]
fn what_two_ranks_both_deliver_is_named() {
    let registry = registry();
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..2).map(|at| folder.path().join(at.to_string())).collect();
    let text = "range 40 | shard | rogue_keep fault=drop at=7 | batch 4";
    for at in 0..2 {
        rank(text, &registry, (at, 2), &files[at as usize], None, usize::MAX);
    }
    // Rank 0 once more, as if it were rank 1.
    let text = std::fs::read_to_string(&files[0]).unwrap().replace("\"rank\":0", "\"rank\":1");
    std::fs::write(&files[1], text).unwrap();
    let found = audit(&files).unwrap().remove(0);
    let twice = found.offences.iter().find(|offence| offence.what == What::Twice).unwrap();
    assert_eq!((&*twice.node, twice.samples), ("shard", 20), "{found}");
    assert_eq!(twice.named[0].delivered.len(), 2, "{found}");
}

#[test]
fn a_killed_worker_changes_nothing() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit");
        let graph = line(
            "range 300 | rogue_map fault=signal signal=9 at=77 on_error=quarantine | shuffle 20 | increment | batch 8",
        );
        let mut loader = audited(&graph, Executor::Processes(2), &file).build(&registry).unwrap();
        let (count, _, failed) = outcome(&mut loader, 0, usize::MAX);
        assert!(failed.is_none() && count == 38);
        loader.finish().unwrap();
        let found = audit(&[&file]).unwrap().remove(0);
        assert!(found.exactly_once && found.delivered == 299, "{found}");
        assert!(found.to_string().contains("1 sample failed at `rogue_map`"), "{found}");
    });
}

#[test]
fn killed_workers_with_state_change_nothing() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        for (at, text) in [
            "range 3000 on=process | shuffle 90 | increment | batch 8 on=process",
            "range 900 | rogue_expand most=4 on=process | rogue_lag hold=9 on=threads | batch 8",
            "range 3000 | shuffle 90 on=process | repeat 2 on=process | rogue_lag hold=9 refuse=50 on_error=skip",
        ]
        .into_iter()
        .enumerate()
        {
            let file = folder.path().join(at.to_string());
            let mut loader = audited(&line(text), Executor::Threads(2), &file).build(&registry).unwrap();
            let (mut rng, mut wanted, mut kills) = (forebay_loader::Rng::new(5, 9), 0, 0);
            let (_, failed) = forebay_tests::outcome(&mut loader, 0, |loader, samples| {
                wanted += u32::from(samples % 30 == 0);
                // The worker that takes a dead one's place may not be there yet.
                kills += u32::from(kills < wanted && kill_any(loader, &mut rng));
            });
            assert!(failed.is_none() && kills > 3, "{text}: {failed:?} after {kills}");
            loader.finish().unwrap();
            let found = audit(&[&file]).unwrap().remove(0);
            assert!(found.exactly_once && found.offences.is_empty(), "{text}: {found}");
        }
    });
}

/// Whatever is wrong with what any node says it took or gave, it shows.
#[test]
fn no_change_of_a_record_goes_unseen() {
    let registry = registry();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit");
    let graph = line(
        "range 9 | rogue_lag hold=2 | repeat 2 | rogue_expand most=3 | fork @f 2 ; mux <f, f.1> stop=longest | shuffle 4 | batch 4 | shuffle 2",
    );
    let mut loader = audited(&graph, Executor::Threads(2), &file).build(&registry).unwrap();
    outcome(&mut loader, 0, usize::MAX);
    loader.finish().unwrap();
    assert!(audit(&[&file]).unwrap()[0].exactly_once);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut tried = 0;
    for (number, row) in text.lines().enumerate() {
        let kind = row.split('"').nth(1).unwrap();
        let Some(uids) = row.split('"').nth(3).filter(|_| ["gave", "took", "delivered"].contains(&kind))
        else {
            continue;
        };
        let (first, rest) = uids.split_once(' ').unwrap_or((uids, ""));
        let (uid, members) = first.split_once('=').map_or((first, ""), |(uid, members)| (uid, members));
        let mut changes = vec![rest.to_owned()];
        match members {
            "" => changes.push(format!("{:x} {rest}", u64::from_str_radix(uid, 16).unwrap() ^ 1 << 60)),
            members => changes.push(format!("{uid}={members},{members} {rest}")),
        }
        for change in changes {
            let changed = row.replacen(&format!("\"{uids}\""), &format!("\"{}\"", change.trim_end()), 1);
            let rows = text.lines().enumerate().map(|(at, row)| if at == number { &*changed } else { row });
            let changed_text = rows.collect::<Vec<_>>().join("\n") + "\n";
            std::fs::write(&file, changed_text).unwrap();
            let found = audit(&[&file]).unwrap().remove(0);
            assert!(!found.exactly_once, "{row}\n{changed}\n{found}");
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
}

#[test]
fn files_that_do_not_fit_are_refused_and_half_lines_are_not_read() {
    let registry = registry();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, text) in [("a", "range 30 | batch 4"), ("b", "range 31 | batch 4")] {
        let mut loader = audited(&line(text), Executor::Inline, &path(name)).build(&registry).unwrap();
        assert_eq!(outcome(&mut loader, 0, usize::MAX).0, 8);
        let other = audited(&line(text), Executor::Inline, &path(name)).build(&registry).err().unwrap();
        assert!(other.to_string().contains("another run"), "{other}");
    }
    let error = audit(&[path("a"), path("b")]).unwrap_err();
    assert!(
        error.message().contains("graph or seed of the file differs")
            && error.get("file").unwrap().ends_with("/b"),
        "{error}"
    );
    let mut whole = std::fs::read_to_string(path("a")).unwrap();
    whole.push_str("{\"gave\":[0,0,0,0,\"0 1");
    std::fs::write(path("a"), &whole).unwrap();
    assert!(audit(&[path("a")]).unwrap()[0].exactly_once);
    let mut loader =
        audited(&line("range 30 | batch 4"), Executor::Inline, &path("a")).build(&registry).unwrap();
    assert_eq!(outcome(&mut loader, 1, 3).0, 3);
    loader.finish().unwrap();
    let found = audit(&[path("a")]).unwrap();
    assert_eq!(found.iter().map(|found| found.exactly_once).collect::<Vec<_>>(), [true, false]);
    std::fs::write(path("c"), "{}\n").unwrap();
    assert!(audit(&[path("c")]).unwrap_err().to_string().contains("line"));
    assert!(audit(&[path("none")]).is_err());
}
