//! What every format must do, whatever plugin reads it: refuse or read damaged files, alike on every executor and within a bound of memory,
//! go on from a snapshot at every sample, and lose no more of a file than damage to it costs.
//!
//! The formats are in `table.rs`; a decoder or a pipe that is not there fails the test. Each is checked in a child process, through
//! the plugin's library, as any graph runs it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod behind;
mod framing;
mod table;

use std::{collections::BTreeSet, fs, path::Path, sync::OnceLock};

use forebay_loader::{ErrorKind, Executor, Graph, Limits, Registry, Sample, Snapshot, Value, graph::Class};
use forebay_testkit::Damage;
use forebay_tests::{
    Run, Setting, build, builder,
    child::{self, Outcome},
    digest, line, outcome, registry, root, seed,
};
use serde_json::json;
use table::{FORMATS, Format};

/// What one value may take. The address space of a child is 1 GiB.
const LIMITS: Limits = Limits { bytes: 4 << 20, pixels: 1 << 18 };
/// Up to so many bytes, a file is damaged at every one; a larger one at so many places.
const PLACES: usize = 4096;
/// The processor's seconds for one format.
const SECONDS: u64 = 60;
/// How many damaged files one run reads: few enough that all its losses are listed.
const AT_ONCE: usize = 500;
/// So many losses are listed.
const LISTED: usize = 10_000;
/// Plugins whose pipes know no format, and the one that misbehaves.
const NO_FORMATS: [&str; 4] = ["forebay-files", "forebay-pipes", "forebay-remote", "forebay-rogue"];
/// What refuses whatever it is given.
const REFUSES: &str = "pickle";

#[test]
fn every_decoder_and_every_pipe_of_a_format_is_in_the_table() {
    let mut checked = BTreeSet::new();
    for format in FORMATS {
        let graph = graph(format, "range 1");
        checked.extend(graph.nodes().iter().map(|node| node.pipe.clone()));
        let pinned = graph.nodes().iter().filter_map(|node| node.options.get("decoders")?.as_array());
        let pinned = pinned.flatten().filter_map(|pin| pin.as_str()?.split_once('='));
        checked.extend(pinned.map(|(_, decoder)| format!("decoder {decoder}")));
        format.files.iter().for_each(|file| drop(read(file)));
    }
    let registry = registry();
    let mut there = BTreeSet::new();
    for plugin in registry.plugins() {
        let manifest = plugin.manifest();
        if !NO_FORMATS.contains(&&*manifest.name) {
            let pipes = manifest.pipes.iter();
            let reads = pipes.filter(|pipe| matches!(pipe.class, Class::Map | Class::FlatMap));
            there.extend(reads.map(|pipe| pipe.name.clone()));
            there.extend(manifest.decoders.iter().map(|decoder| format!("decoder {}", decoder.name)));
        }
    }
    let missing: Vec<_> = there.difference(&checked).collect();
    assert!(missing.is_empty(), "not in tests/conformance/table.rs: {missing:?}");
}

#[test]
fn damaged_files_are_refused_or_read_alike_on_every_executor() {
    each_format("damaged_files_are_refused_or_read_alike_on_every_executor", |format| {
        let mut forms = 0;
        for file in format.files {
            let damage = Damage::new(read(file), PLACES);
            let count = damage.forms();
            let registry = with_bytes(format.field, move |number| damage.form(number));
            for first in (0..count).step_by(AT_ONCE) {
                let source = format!("range {} start={first}", AT_ONCE.min(count - first));
                let graph = graph(format, &source);
                let inline = losses(&graph, &registry, Executor::Inline);
                let threads = losses(&graph, &registry, Executor::Threads(2));
                assert_eq!(inline, threads, "{file} from form {first} on");
            }
            forms += count;
        }
        forms
    });
}

#[test]
fn whole_files_go_on_at_every_sample_on_another_executor() {
    each_format("whole_files_go_on_at_every_sample_on_another_executor", |format| {
        let files: Vec<_> = format.files.iter().map(|file| read(file)).collect();
        // Each twice, since a pipe may keep what it knows of a file.
        let source = format!("range {}", 2 * files.len());
        let registry = with_bytes(format.field, move |number| files[number % files.len()].clone());
        let graph = graph(format, &source);
        let executors = [Executor::Inline, Executor::Threads(2)];
        let whole = executors.map(|executor| whole(&graph, &registry, executor));
        assert_eq!(whole[0].0, whole[1].0, "on two executors");
        for ((all, snapshots), other) in whole.iter().zip([executors[1], executors[0]]) {
            assert!(!all.is_empty() || format.name == REFUSES, "gives nothing");
            for (at, snapshot) in snapshots.iter().enumerate() {
                let mut loader = build(&graph, &registry, setting(other)).unwrap();
                let rest: Vec<_> =
                    loader.resume(snapshot).unwrap().map(|sample| digest(&sample.unwrap())).collect();
                assert_eq!(rest, all[at + 1..], "after sample {at} on {other:?}");
            }
        }
        whole[0].0.len()
    });
}

/// Checks every format in a child process; `check` says how much there was to check.
fn each_format(test: &str, check: fn(&Format) -> usize) {
    if child::is_child() {
        let of = |name: &Path| FORMATS.iter().find(|format| Path::new(format.name) == name).unwrap();
        return child::serve(|name| Ok(json!(check(of(name)))), SECONDS);
    }
    let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
    let mut failed = Vec::new();
    for (name, outcome) in names.iter().zip(child::read_all(test, &root(), &names)) {
        match outcome {
            Outcome::Read(count) if count != json!(0) || *name == REFUSES => {}
            Outcome::Read(count) => failed.push(format!("{name}: {count} checked")),
            Outcome::Refused(why) | Outcome::Crashed(why) => failed.push(format!("{name}: {why}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The plugins, which all formats share.
fn plugins() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(registry)
}

/// The plugins, and the map `with_bytes`, which sets this field to the bytes that `make` makes of the sample's number.
fn with_bytes(field: &'static str, make: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static) -> Registry {
    let set = move |sample: &mut Sample| {
        let number = sample.take("value").and_then(|value| value.as_i64()).unwrap();
        sample.set(field, Value::from(forebay_loader::Buffer::from(make(usize::try_from(number).unwrap()))));
    };
    plugins()
        .with_map("with_bytes", move |sample, _| {
            set(sample);
            Ok(())
        })
        .unwrap()
}

/// The format's pipes behind this source; samples that one fails on are set aside.
fn graph(format: &Format, source: &str) -> Graph {
    let pipes: String = format.pipes.iter().map(|pipe| format!(" | {pipe} on_error=quarantine")).collect();
    line(&format!("{source} | with_bytes{pipes}"))
}

const fn setting(executor: Executor) -> Setting {
    Setting { executor, ..Setting::INLINE }
}

/// What a graph gives, and why it sets samples aside.
fn losses(graph: &Graph, registry: &Registry, executor: Executor) -> (Run, Vec<String>) {
    let mut loader = builder(graph, setting(executor)).limits(LIMITS).build(registry).unwrap();
    let (run, failed) = outcome(&mut loader, 0, |_, _| {});
    assert!(failed.is_none(), "{failed:?}");
    let lost = loader.quarantine();
    assert!(lost.len() < LISTED, "more losses than are listed");
    for one in &lost {
        let kind = one.error.kind();
        let refused = matches!(kind, ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Limit);
        assert!(refused, "{} is no reason to refuse a file: {}", kind.name(), one.error);
    }
    let mut lost: Vec<_> =
        lost.iter().map(|one| format!("{} {:?} {}", one.node, one.key, one.error)).collect();
    lost.sort();
    (run, lost)
}

/// What a graph over whole files gives, and a snapshot after each sample.
fn whole(graph: &Graph, registry: &Registry, executor: Executor) -> (Vec<String>, Vec<Snapshot>) {
    let mut loader = build(graph, registry, setting(executor)).unwrap();
    let (mut all, mut snapshots) = (Vec::new(), Vec::new());
    let mut epoch = loader.epoch(0);
    while let Some(sample) = epoch.next() {
        all.push(digest(&sample.unwrap()));
        snapshots.push(epoch.snapshot().unwrap());
    }
    drop(epoch);
    let lost = loader.quarantine();
    assert!(all.is_empty() || lost.is_empty(), "{:?}", lost);
    (all, snapshots)
}

/// A seed.
fn read(name: &str) -> Vec<u8> {
    fs::read(seed(name)).unwrap()
}
