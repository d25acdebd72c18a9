//! A snapshot taken at any sample, on any executor, goes on anywhere with exactly what would have come.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::{Error, ErrorKind, Graph, Loader, Registry, Rng, Snapshot};
use forebay_tests::{ALL, Setting, build, kill_any, line, placed, read, registry, with_random_graphs};

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
    // Where a node runs is no part of what the graph is; processes take a while to start.
    let mut anywhere = || if rng.bool(0.1) { placed(graph, rng) } else { graph.clone() };
    let graphs = [anywhere(), anywhere(), anywhere()];
    let mut loader = build(&graphs[0], registry, settings[0]).unwrap();
    let mut epoch = loader.epoch(2);
    let begin = read(epoch.by_ref().take(first as usize));
    if begin.1.is_some() || begin.0.len() < first as usize {
        assert_eq!(begin, truth, "{graph}: {settings:?}");
        return;
    }
    let snapshot = saved(&epoch);
    drop(epoch);
    drop(loader);
    let mut loader = build(&graphs[1], registry, settings[1]).unwrap();
    let mut epoch = loader.resume(&snapshot).unwrap();
    let middle = read(epoch.by_ref().take(second as usize));
    let again = (middle.1.is_none() && middle.0.len() == second as usize).then(|| saved(&epoch));
    let rest = match &again {
        Some(snapshot) => {
            let mut loader = build(&graphs[2], registry, settings[2]).unwrap();
            read(loader.resume(snapshot).unwrap())
        }
        None => (Vec::new(), middle.1.clone()),
    };
    let whole = ([begin.0, middle.0, rest.0].concat(), rest.1);
    let (expected, found) = (&truth.1, &whole.1);
    let at = whole.0.iter().zip(&truth.0).position(|(one, two)| one != two);
    assert!(
        whole == truth,
        "{graphs:#?}\nstopped after {first} and {second} of {count}, gave {}, differs at {at:?}\n\
         ended with {found:?}, expected {expected:?}\n{settings:?}\n{}\n{:?}",
        whole.0.len(),
        snapshot.to_json(),
        again.map(|snapshot| snapshot.to_json()),
    );
}

#[test]
fn a_resume_gives_exactly_what_would_have_come() {
    with_random_graphs(1000, |graph, registry, rng| (0..3).for_each(|_| check(graph, registry, rng)));
}

/// Takes samples ahead, and goes on from where a user was who had fewer: what comes must be what came in one go.
fn check_behind(graph: &Graph, registry: &Registry, rng: &mut Rng) {
    let truth = read(build(graph, registry, Setting::INLINE).unwrap().epoch(1));
    let (first, more) = (rng.below(truth.0.len() as u64 + 2) as usize, rng.below(3) as usize);
    let setting = setting(rng);
    // Processes take a while to start.
    let elsewhere = rng.bool(0.1).then(|| placed(graph, rng));
    let mut loader = build(elsewhere.as_ref().unwrap_or(graph), registry, setting).unwrap();
    loader.taken_ahead(2);
    let mut epoch = loader.epoch(1);
    let mut got = read(epoch.by_ref().take(first)).0.len();
    kill_any(&epoch, rng);
    got += read(epoch.by_ref().take(more)).0.len();
    for back in 0..=got.min(2) {
        let snapshot = epoch.snapshot_at((got - back) as u64).unwrap();
        let rest = read(build(graph, registry, Setting::INLINE).unwrap().resume(&snapshot).unwrap());
        let expected = (truth.0[got - back..].to_vec(), truth.1.clone());
        assert_eq!(rest, expected, "{graph}: {setting:?}, {back} back of {got}\n{}", snapshot.to_json());
    }
    let error = epoch.snapshot_at(got as u64 + 1).unwrap_err();
    assert!(error.message().contains("after") && error.kind() == ErrorKind::Invalid, "{error}");
}

#[test]
fn a_resume_from_a_place_before_the_consumers_gives_what_came_after_it() {
    with_random_graphs(500, check_behind);
}

/// Nodes with state note where they are after each sample, so that nothing is done again.
const EXACT: Setting = Setting { chunk: Some(1), marks: true, ..Setting::INLINE };

/// A snapshot after so many samples of an epoch.
fn stopped(text: &str, registry: &Registry, after: usize) -> Snapshot {
    let mut loader = build(&line(text), registry, EXACT).unwrap();
    let mut epoch = loader.epoch(0);
    assert_eq!(epoch.by_ref().take(after).filter(Result::is_ok).count(), after);
    epoch.snapshot().unwrap()
}

/// Why a graph with this seed does not go on after the snapshot.
fn refusal(text: &str, registry: &Registry, seed: u64, snapshot: &Snapshot) -> Error {
    let mut loader = build(&line(text), registry, Setting::INLINE.seed(seed)).unwrap();
    let refused = loader.resume(snapshot).err();
    refused.unwrap_or_else(|| panic!("{text} goes on after {}", snapshot.to_json()))
}

#[test]
fn another_seed_graph_or_form_is_refused_with_every_difference() {
    let registry = registry();
    let snapshot = stopped("range 100 | shuffle 10 | batch 4", &registry, 5);
    let error = refusal("range 100 | shuffle 10 | batch 4", &registry, 8, &snapshot);
    assert!(error.message().contains("seed: was 7, is 8"), "{error}");
    let error = refusal("range 90 | shuffle 10 | increment | batch 5", &registry, 8, &snapshot);
    for says in [
        "seed: was 7, is 8",
        "node range: was `range stop=100`, is `range stop=90`",
        "node batch: was `batch size=4`, is `batch size=5`",
        "node increment: new, is `increment`",
    ] {
        assert!(error.message().contains(says), "{error}");
    }
    assert!(!error.message().contains("node shuffle"), "{error}");
    let error = refusal("range 100 | batch 4", &registry, 7, &snapshot);
    assert!(error.message().contains("node shuffle: was `shuffle size=10`, is gone"), "{error}");
    let bytes = snapshot.to_bytes();
    for length in 0..bytes.len() {
        assert!(Snapshot::from_bytes(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
    }
}

#[test]
fn a_snapshot_of_which_a_digit_was_changed_is_refused() {
    let registry = registry();
    let text = stopped("range 100 | shuffle 10 | batch 4", &registry, 5).to_json();
    let digits: Vec<_> = text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit()).collect();
    assert!(digits.len() > 90, "{text}");
    for (at, digit) in digits {
        let mut changed = text.clone().into_bytes();
        changed[at] = b'0' + (digit - b'0' + 1) % 10;
        let changed = String::from_utf8(changed).unwrap();
        assert!(Snapshot::from_json(&changed).is_err(), "byte {at} of {changed}");
    }
    // How it is laid out does not matter.
    let laid_out: serde_json::Value = serde_json::from_str(&text).unwrap();
    let laid_out = serde_json::to_string_pretty(&laid_out).unwrap();
    assert_eq!(Snapshot::from_json(&laid_out).unwrap(), Snapshot::from_json(&text).unwrap());
    let mut bare: serde_json::Value = serde_json::from_str(&text).unwrap();
    bare.as_object_mut().unwrap().remove("checksum");
    let error = Snapshot::from_json(&bare.to_string()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

/// As version 1 wrote it.
const OLD: &str = r#"{"version":1,"seed":7,"epoch":0,"delivered":5,"ended":false,"rank":0,"world_size":1,
    "graph":"GRAPH","plugins":{"forebay-pipes":{"version":"0.1.0","hash":"HASH"}},
    "nodes":[{"name":"range","what":"range stop=100","fingerprint":"RANGE","taken":[],"given":[20],"state":{"version":1,"text":"STATE"}},
    {"name":"batch","what":"batch size=4","fingerprint":"BATCH","taken":[20],"given":[5]}]}"#;

#[test]
fn a_snapshot_of_the_version_before_is_read_and_others_say_what_to_do() {
    let registry = registry();
    let now = stopped("range 100 | batch 4", &registry, 5);
    let pipes = registry.plugins().iter().find(|plugin| plugin.manifest().name == "forebay-pipes").unwrap();
    let state = now.nodes[0].state.as_ref().unwrap();
    let old = OLD
        .replace("GRAPH", &now.graph)
        .replace("RANGE", &now.nodes[0].fingerprint)
        .replace("BATCH", &now.nodes[1].fingerprint)
        .replace("STATE", &String::from_utf8_lossy(&state.bytes).replace('"', "\\\""))
        .replace("0.1.0", &pipes.manifest().version);
    let hash = pipes.hash().unwrap();
    let read_old = Snapshot::from_json(&old.replace("HASH", &hash)).unwrap();
    let mut loader = build(&line("range 100 | batch 4"), &registry, Setting::INLINE).unwrap();
    assert_eq!(read(loader.resume(&read_old).unwrap()).0.len(), 20);
    // It knows the file alone.
    let other = Snapshot::from_json(&old.replace("HASH", &"0".repeat(32))).unwrap();
    let error = refusal("range 100 | batch 4", &registry, 7, &other);
    assert!(
        error.message().contains("plugin forebay-pipes: ") && error.message().contains("another build"),
        "{error}"
    );
    // One of a plugin that was linked in then.
    let linked = Snapshot::from_json(&old.replace("HASH", "")).unwrap();
    assert_eq!(read(loader.resume(&linked).unwrap()).0.len(), 20);
    for (version, says) in [(0, "start again without one"), (3, "a later one"), (9, "a later one")] {
        let other =
            now.to_json().replacen("\"version\":2", &format!("\"version\":{version},\"parts\":[]"), 1);
        let error = Snapshot::from_json(&other).unwrap_err();
        assert!(
            error.message().contains(&format!("version {version}, this program reads 1 to 2")),
            "{error}"
        );
        assert!(error.get("next").unwrap().ends_with(says), "{error}");
    }
}

#[test]
fn a_node_that_looks_the_same_says_what_differs() {
    let registry = registry();
    let graph = |of: &str| {
        format!(
            "range @a 100 ; range @b 100 ; batch @batch <{of}> 4 ; take @other <{}> 1 ; zip <batch, other>",
            if of == "a" { "b" } else { "a" }
        )
    };
    let snapshot = stopped(&graph("a"), &registry, 0);
    let error = refusal(&graph("b"), &registry, 7, &snapshot);
    assert!(
        error.message().contains("node batch: is `batch size=4` as before; read `a`, reads `b`"),
        "{error}"
    );
    let long = |last: &str| {
        format!(
            "range 9 | filter '{} || value == {last}'",
            "value > 1 || ".repeat(20).trim_end_matches(" || ")
        )
    };
    let snapshot = stopped(&long("1"), &registry, 0);
    let error = refusal(&long("2"), &registry, 7, &snapshot);
    assert!(
        error.message().contains("; option `") && error.message().contains("` has another value"),
        "{error}"
    );
}

#[test]
fn what_is_linked_in_and_what_is_found_as_a_file_go_on_from_each_other() {
    let (found, linked) = (registry(), Registry::linked(forebay_pipes::register).unwrap());
    assert!(linked.plugins().iter().all(|plugin| plugin.path().is_none()));
    let text = "range 100 | shuffle 10 | batch 4";
    for (from, to) in [(&found, &linked), (&linked, &found)] {
        let snapshot = Snapshot::from_json(&stopped(text, from, 5).to_json()).unwrap();
        let mut loader = build(&line(text), to, Setting::INLINE).unwrap();
        assert_eq!(read(loader.resume(&snapshot).unwrap()).0.len(), 20);
    }
}

#[test]
fn a_plugin_is_known_by_the_version_of_its_states() {
    let registry = registry();
    let snapshot = stopped("range 100 | batch 4", &registry, 5);
    let mark = &snapshot.plugins["forebay-pipes"];
    assert_eq!((mark.state_version, mark.hash.as_str()), (Some(1), ""));
    let mut newer = snapshot.clone();
    newer.plugins.get_mut("forebay-pipes").unwrap().version = "0.0.9".to_owned();
    let mut loader = build(&line("range 100 | batch 4"), &registry, Setting::INLINE).unwrap();
    assert_eq!(read(loader.resume(&newer).unwrap()).0.len(), 20, "of another version with the same states");
    newer.plugins.get_mut("forebay-pipes").unwrap().state_version = Some(2);
    let error = refusal("range 100 | batch 4", &registry, 7, &newer);
    assert!(error.message().contains("was 0.0.9 with states of version 2, is "), "{error}");
}

#[test]
fn what_is_allowed_by_name_may_differ() {
    let registry = registry();
    let snapshot = stopped("range 100 | shuffle 10 | batch 4", &registry, 5);
    let resumed = |text: &str, allowed: &[&str]| {
        let mut loader = build(&line(text), &registry, Setting::INLINE).unwrap();
        let allowed: Vec<_> = allowed.iter().map(|&name| name.to_owned()).collect();
        loader.resume_allowing(&snapshot, &allowed).map(|epoch| read(epoch).0.len())
    };
    // 80 of the 100 samples are left, in batches of five.
    let rest = resumed("range 100 | shuffle 10 | batch 5", &["batch"]).unwrap();
    assert_eq!(rest, 16, "{}", snapshot.to_json());
    let error = resumed("range 90 | shuffle 10 | batch 5", &["batch"]).unwrap_err();
    assert!(error.message().contains("node range") && !error.message().contains("node batch"), "{error}");
    assert_eq!(resumed("range 90 | shuffle 10 | batch 5", &["batch", "range"]).unwrap(), 14);
    // It declares no version of its states.
    let text = "range 100 | rogue_lag hold=3 state=true | batch 4";
    let mut built_anew = stopped(text, &registry, 5);
    let rogue = built_anew.plugins.get_mut("forebay-rogue").unwrap();
    assert_eq!((rogue.state_version, rogue.hash.len()), (None, 32));
    rogue.hash = "0".repeat(32);
    let mut loader = build(&line(text), &registry, Setting::INLINE).unwrap();
    let error = loader.resume(&built_anew).err().unwrap();
    assert!(
        error.message().contains("plugin forebay-rogue: ") && error.message().contains("of another build"),
        "{error}"
    );
    let allowed = ["forebay-rogue".to_owned()];
    assert_eq!(read(loader.resume_allowing(&built_anew, &allowed).unwrap()).0.len(), 20);
}

#[test]
fn a_mix_goes_on_with_other_weights_n1() {
    let registry = registry();
    let graph = |weights: &str| {
        format!(
            "range @a 900 ; range @b 900 ; mix <a, b> {weights} stop=first_exhausted draw=proportional tag=from"
        )
    };
    let snapshot = stopped(&graph("[1, 1]"), &registry, 40);
    for executor in ALL {
        let setting = Setting { executor, ..Setting::INLINE };
        let mut loader = build(&line(&graph("[1, 3]")), &registry, setting).unwrap();
        assert!(loader.resume(&snapshot).is_err(), "who does not say so changes no graph");
        let rest = loader.resume_allowing(&snapshot, &["mix".to_owned()]).unwrap();
        let from = rest.take(40).map(|sample| sample.unwrap().get("from").unwrap().as_i64().unwrap());
        assert_eq!(from.sum::<i64>(), 30, "{executor}");
    }
}

/// What a changed node gave in its old form it does not give again in the new one.
#[test]
fn an_allowed_change_holds_for_later_snapshots_too() {
    let registry = registry();
    let mut seen = Vec::new();
    let mut snapshot = stopped("range 60 | shuffle 10 | rogue_lag hold=3 state=true", &registry, 0);
    let mut go_on = |size: u64, setting: Setting, count: usize| {
        let graph = line(&format!("range 60 | shuffle 10 | rogue_lag hold={size} state=true"));
        let mut loader = build(&graph, &registry, setting).unwrap();
        let mut epoch = loader.resume_allowing(&snapshot, &["rogue_lag".to_owned()]).unwrap();
        seen.extend(epoch.by_ref().take(count).map(|sample| sample.unwrap().uid()));
        snapshot = saved(&epoch);
    };
    for executor in ALL {
        go_on(3, Setting { executor, ..EXACT }, 3);
        go_on(9, Setting { executor, ..EXACT }, 3);
        // Long before its first mark of its own.
        go_on(9, Setting { executor, ..Setting::INLINE }, 0);
    }
    go_on(9, Setting::INLINE, 60);
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(0..60), "{seen:?}");
}

#[test]
fn a_snapshot_at_either_end_of_an_epoch_begins_one() {
    let registry = registry();
    let graph = line("range 50 | shuffle 10 | rogue_map spin=100 | batch 4");
    let truth: Vec<_> =
        (0..4).map(|epoch| read(build(&graph, &registry, Setting::INLINE).unwrap().epoch(epoch))).collect();
    for executor in ALL {
        let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
        let mut epoch = loader.epoch(2);
        let before = saved(&epoch);
        assert_eq!((before.epoch, before.delivered, before.ended), (2, 0, false));
        assert_eq!(read(epoch.by_ref()), truth[2], "{executor}");
        let after = saved(&epoch);
        assert_eq!((after.epoch, after.delivered, after.ended), (2, 13, true));
        drop(epoch);
        assert_eq!(saved(&loader), after, "the loader says it as well");
        assert_eq!(read(loader.remainder(&after).unwrap()), (Vec::new(), None), "nothing is left");
        assert_eq!(saved(&loader), after, "{executor}");
        assert_eq!(read(loader.remainder(&before).unwrap()), truth[2], "{executor}");
        // The same loader takes both, in any order and more than once.
        for (snapshot, epoch) in [(&before, 2), (&after, 3), (&after, 3), (&before, 2)] {
            assert_eq!(read(loader.resume(snapshot).unwrap()), truth[epoch], "{executor}");
        }
        assert_eq!(read(loader.epoch(1)), truth[1], "{executor}");
    }
}

#[test]
fn all_samples_delivered_is_not_yet_the_end() {
    let registry = registry();
    let snapshot = stopped("range 50 | shuffle 10", &registry, 50);
    assert!(!snapshot.ended);
    for executor in ALL {
        let mut loader =
            build(&line("range 50 | shuffle 10"), &registry, Setting { executor, ..Setting::INLINE })
                .unwrap();
        assert_eq!(read(loader.resume(&snapshot).unwrap()), (Vec::new(), None), "{executor}");
        assert!(loader.snapshot().unwrap().ended);
    }
}

#[test]
fn an_epoch_that_failed_goes_on_before_the_sample_that_failed() {
    let registry = registry();
    let bad = line("range 50 | shuffle 10 | rogue_map @map fault=error at=33");
    let good = line("range 50 | shuffle 10 | rogue_map @map at=33");
    let truth = read(build(&good, &registry, Setting::INLINE).unwrap().epoch(0));
    for executor in ALL {
        let mut loader = build(&bad, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
        let mut epoch = loader.epoch(0);
        let begin = read(epoch.by_ref());
        assert!(begin.1.is_some());
        let snapshot = saved(&epoch);
        assert_eq!((snapshot.delivered, snapshot.ended), (begin.0.len() as u64, false), "{executor}");
        drop(epoch);
        let again = read(loader.resume(&snapshot).unwrap());
        assert_eq!(again, (Vec::new(), begin.1), "{executor}: it fails again");
        let mut mended = build(&good, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
        let rest = read(mended.resume_allowing(&snapshot, &["map".to_owned()]).unwrap());
        assert_eq!(([begin.0, rest.0].concat(), rest.1), truth, "{executor}");
    }
}

#[test]
fn snapshots_are_small() {
    let registry = registry();
    for (text, most) in [
        ("range 100000 | batch 64", 1000),
        ("range 100000 | shuffle 100 | increment | rogue_map spin=10 | batch 64", 2500),
    ] {
        for executor in ALL {
            let setting = Setting { executor, marks: true, ..Setting::INLINE };
            let mut loader = build(&line(text), &registry, setting).unwrap();
            let mut epoch = loader.epoch(0);
            assert_eq!(epoch.by_ref().take(1000).count(), 1000);
            let size = epoch.snapshot().unwrap().to_bytes().len();
            assert!(size < most, "{text} on {executor}: {size} bytes");
        }
    }
}

/// The samples that come before the end, or before so many, and where they leave off.
fn part(
    graph: &Graph,
    registry: &Registry,
    from: Option<(&Snapshot, &[String])>,
    count: usize,
) -> (Vec<String>, Snapshot) {
    let mut loader = build(graph, registry, Setting::INLINE).unwrap();
    let mut epoch = match from {
        Some((snapshot, allowed)) => loader.resume_allowing(snapshot, allowed).unwrap(),
        None => loader.epoch(0),
    };
    let (samples, failed) = read(epoch.by_ref().take(count));
    assert!(failed.is_none(), "{failed:?}");
    (samples, epoch.snapshot().unwrap())
}

#[test]
fn stand_ins_are_the_same_after_any_two_resumes() {
    let registry = registry();
    let lose = |at| format!("rogue_map at={at} fault=error on_error=skip");
    let skips: Vec<_> = [7, 8, 9, 10, 11].map(lose).into();
    for text in [
        format!("range 30 | {} | rogue_map at=-1 refuse=6 on_error=replace", skips.join(" | ")),
        "range 40 | rogue_map @a at=-1 refuse=3 on_error=skip | rogue_map @b at=-1 refuse=2 on_error=replace".into(),
        "range 9 | rogue_map @a at=-1 refuse=2 on_error=replace | rogue_map @b at=-1 refuse=3 on_error=replace | repeat 3".into(),
    ] {
        let graph = line(&text);
        let truth = part(&graph, &registry, None, usize::MAX).0;
        for first in 0..truth.len() {
            for second in 0..truth.len() - first {
                let (mut all, snapshot) = part(&graph, &registry, None, first);
                let (more, snapshot) = part(&graph, &registry, Some((&snapshot, &[])), second);
                all.extend(more);
                all.extend(part(&graph, &registry, Some((&snapshot, &[])), usize::MAX).0);
                assert_eq!(all, truth, "{text}, after {first} and {second}");
            }
        }
    }
}

#[test]
fn a_map_that_no_longer_replaces_is_refused() {
    let registry = registry();
    let graph =
        |policy| line(&format!("range 10 | rogue_map @b at=7 fault=error on_error={policy} | increment"));
    let snapshot = part(&graph("replace"), &registry, None, 5).1;
    let mut loader = build(&graph("skip"), &registry, Setting::INLINE).unwrap();
    let error = loader.resume_allowing(&snapshot, &["b".to_owned()]).err().unwrap().to_string();
    assert!(error.contains("node b: was `rogue_map") && error.contains("would give twice"), "{error}");
}
