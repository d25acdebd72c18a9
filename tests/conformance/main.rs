//! What every format must do, whatever plugin reads it: refuse or read damaged files, alike on every executor and within a bound of memory,
//! go on from a snapshot at every sample, and lose no more of a file than damage to it costs.
//!
//! Each plugin has the readers of its formats in its `format.rs`; a decoder or a pipe that is not there fails the test. Each is checked in a
//! child process, through the plugin's library, as any graph runs it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod behind;

use std::{collections::BTreeSet, fs, path::Path, sync::OnceLock};

use forebay_formats::{FORMATS, Reader, readers};
use forebay_loader::{ErrorKind, Executor, Graph, Limits, Registry, Sample, Snapshot, Value, graph::Class};
use forebay_testkit::Damage;
use forebay_tests::{
    Run, Setting, build, builder,
    child::{self, Outcome},
    digest, line, outcome, registry, root, seed,
};
use serde_json::json;

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
/// The plugin that misbehaves, which has a decoder.
const ROGUE: &str = "forebay-rogue";

#[test]
fn every_decoder_and_every_pipe_of_a_format_is_described() {
    let (mut checked, mut names) = (BTreeSet::new(), BTreeSet::new());
    for reader in FORMATS.iter().flat_map(|(_, format)| format.readers) {
        assert!(names.insert(reader.name), "two readers are called {}", reader.name);
        let graph = graph(reader, "range 1");
        checked.extend(graph.nodes().iter().map(|node| node.pipe.clone()));
        let pinned = graph.nodes().iter().filter_map(|node| node.options.get("decoders")?.as_array());
        let pinned = pinned.flatten().filter_map(|pin| pin.as_str()?.split_once('='));
        checked.extend(pinned.map(|(_, decoder)| format!("decoder {decoder}")));
        reader.files.iter().for_each(|file| drop(read(file)));
    }
    let registry = registry();
    let mut there = BTreeSet::new();
    for plugin in registry.plugins() {
        let manifest = plugin.manifest();
        let describes = FORMATS.iter().any(|(name, _)| manifest.name == format!("forebay-{name}"));
        // Without a description it must know no format: no decoder, and no pipe that opens files.
        let reads = manifest.pipes.iter().filter(|pipe| {
            matches!(pipe.class, Class::Map | Class::FlatMap) && (describes || pipe.opens.is_some())
        });
        if manifest.name != ROGUE {
            there.extend(reads.map(|pipe| pipe.name.clone()));
            there.extend(manifest.decoders.iter().map(|decoder| format!("decoder {}", decoder.name)));
        }
    }
    let missing: Vec<_> = there.difference(&checked).collect();
    assert!(missing.is_empty(), "in no plugins/*/format.rs: {missing:?}");
}

#[test]
fn damaged_files_are_refused_or_read_alike_on_every_executor() {
    each_reader("damaged_files_are_refused_or_read_alike_on_every_executor", |reader| {
        let mut forms = 0;
        for file in reader.files {
            let damage = Damage::new(read(file), PLACES);
            let count = damage.forms();
            let registry = with_bytes(reader.field, move |number| damage.form(number));
            for first in (0..count).step_by(AT_ONCE) {
                let source = format!("range {} start={first}", AT_ONCE.min(count - first));
                let graph = graph(reader, &source);
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
    each_reader("whole_files_go_on_at_every_sample_on_another_executor", |reader| {
        let files: Vec<_> = reader.files.iter().map(|file| read(file)).collect();
        // Each twice, since a pipe may keep what it knows of a file.
        let source = format!("range {}", 2 * files.len());
        let registry = with_bytes(reader.field, move |number| files[number % files.len()].clone());
        let graph = graph(reader, &source);
        let executors = [Executor::Inline, Executor::Threads(2)];
        let whole = executors.map(|executor| whole(&graph, &registry, executor));
        assert_eq!(whole[0].0, whole[1].0, "on two executors");
        for ((all, snapshots), other) in whole.iter().zip([executors[1], executors[0]]) {
            assert!(!all.is_empty() || reader.refuses, "gives nothing");
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

/// Checks every reader in a child process; `check` says how much there was to check.
fn each_reader(test: &str, check: fn(&Reader) -> usize) {
    let readers = readers();
    if child::is_child() {
        let of = |name: &Path| readers.iter().find(|reader| Path::new(reader.name) == name).unwrap();
        return child::serve(|name| Ok(json!(check(of(name)))), SECONDS);
    }
    let names: Vec<_> = readers.iter().map(|reader| reader.name).collect();
    let mut failed = Vec::new();
    for (reader, outcome) in readers.iter().zip(child::read_all(test, &root(), &names)) {
        let name = reader.name;
        match outcome {
            Outcome::Read(count) if count != json!(0) || reader.refuses => {}
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

/// The reader's pipes behind this source; samples that one fails on are set aside.
fn graph(reader: &Reader, source: &str) -> Graph {
    let pipes: String = reader.pipes.iter().map(|pipe| format!(" | {pipe} on_error=quarantine")).collect();
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
