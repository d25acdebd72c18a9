//! What a plugin in C may do wrong in a call becomes an error, and all memory goes back, once.

use forebay_core::{Buffer, DType, View};
use forebay_loader::{Error, ErrorKind, Executor, Loader, Registry, Snapshot};
use forebay_tests::{Setting, build, error_of, line, read};

use super::{decode, registry_of, rogue_in};

fn load() -> (tempfile::TempDir, Registry) {
    let folder = tempfile::tempdir().unwrap();
    rogue_in(folder.path(), &[]);
    let registry = registry_of(folder.path());
    (folder, registry)
}

/// How many times memory and columns of the plugin were given back.
fn released(registry: &Registry) -> i64 {
    let decoder = registry.choose("rogue_c", b"?", None).unwrap();
    decode(&decoder, b"?".to_vec(), "").unwrap().as_i64().unwrap()
}

#[test]
fn every_kind_of_value_comes_through_and_its_memory_goes_back_once() {
    let (_folder, registry) = load();
    let decoder = registry.choose("rogue_c", b"v", None).unwrap();
    let input = Buffer::from(b"vanellus".to_vec());
    let value = decode(&decoder, input.clone(), "rogue_c").unwrap();
    let View::Struct(fields) = value.view() else { panic!("{value:?}") };
    let view = |name: &str| fields.get(name).unwrap().view();
    assert_eq!((view("null"), view("bool"), view("int")), (View::Null, View::Bool(true), View::Int(-3)));
    assert_eq!((view("uint"), view("float")), (View::UInt(u64::MAX), View::Float(0.5)));
    assert_eq!((view("text"), view("extension")), (View::Str("heron"), View::Str("rogue_c")));
    let (View::Bytes(own), View::Bytes(part)) = (view("own"), view("part")) else { panic!("{value:?}") };
    assert_eq!((own.as_slice(), part.as_slice()), (&[7; 5][..], &b"anellus"[..]));
    assert!(part.same_owner(&input));
    let tensor = fields.get("tensor").unwrap().as_tensor().unwrap();
    assert_eq!((tensor.dtype(), tensor.shape(), tensor.data()[0]), (DType::I32, &[2, 2][..], 1));
    assert_eq!(format!("{:?}", view("list")), "List([Struct({\"a\": Int(2)}), Int(1)])");
    assert_eq!(view("nothing"), View::List(&[]));
    assert_eq!(fields.get("columns").unwrap().arrow().unwrap().length, 3);

    assert_eq!(released(&registry), 0, "still in use");
    let copy = value.clone();
    drop(value);
    assert_eq!(released(&registry), 0, "still in use");
    std::thread::spawn(move || drop(copy)).join().unwrap();
    assert_eq!(released(&registry), 3);
}

/// What the input has a decoder do, what the error says, and how much is given back.
const DEEDS: [(&str, ErrorKind, &str, i64); 22] = [
    ("n", ErrorKind::Abi, "succeeded, but gave no value", 0),
    ("s", ErrorKind::Abi, "value 0 was set twice", 1),
    ("d", ErrorKind::Abi, "the unknown dtype 0x12003", 1),
    ("l", ErrorKind::Abi, "int16 [4] does not fill a buffer of 9 bytes", 1),
    ("a", ErrorKind::Abi, "a negative axis: [-4, -1]", 1),
    ("9", ErrorKind::Abi, "a tensor of 9 axes", 1),
    ("u", ErrorKind::Abi, "text that is not UTF-8: byte 3", 0),
    ("N", ErrorKind::Abi, "a name of a field that is not UTF-8", 0),
    ("x", ErrorKind::Abi, "its `decode` gave status 77, which C 1.0 does not have", 1),
    ("e", ErrorKind::Abi, "its `decode` gave FOREBAY_END", 0),
    ("p", ErrorKind::Abi, "gave 4 bytes at a null pointer", 1),
    ("m", ErrorKind::Abi, "without a release, expected bytes of the input or of `alloc`", 0),
    ("f", ErrorKind::Abi, "field `hole` was added but not set", 1),
    ("t", ErrorKind::Abi, "field `twin` was added twice", 1),
    ("i", ErrorKind::Abi, "added an item to value 0, which is no list", 0),
    ("o", ErrorKind::Limit, "asked for 1073741825 bytes of output, at most 1073741824", 0),
    ("h", ErrorKind::Abi, "there is no value 99 in this call", 1),
    ("D", ErrorKind::Limit, "more than 128 levels", 0),
    ("r", ErrorKind::Abi, "columns that were released before", 1),
    ("q", ErrorKind::Corrupt, "its `decode` failed and did not say why", 0),
    ("b", ErrorKind::Unsupported, "caf\u{fffd}", 0),
    ("c", ErrorKind::Corrupt, "byte 3", 1),
];

#[test]
fn every_broken_rule_is_an_error_and_memory_goes_back_once() {
    let (_folder, registry) = load();
    let decoder = registry.choose("rogue_c", b"x", None).unwrap();
    for (deed, kind, says, back) in DEEDS {
        let before = released(&registry);
        let error = decode(&decoder, deed.as_bytes().to_vec(), "rogue_c").unwrap_err();
        assert_eq!(error.kind(), kind, "{deed}: {error}");
        assert!(error.message().contains(says), "{deed}: {error}");
        assert_eq!(error.get("decoder"), Some("rogue_c of rogue-c 0.1.0"), "{error}");
        assert_eq!(released(&registry) - before, back, "{deed}: {error}");
    }
    let error = decoder.probe(b"x", "unsure").unwrap_err();
    assert!(error.message().contains("its `probe` gave 300, expected 0 to 255"), "{error}");
    assert_eq!(decoder.probe(b"x", "a\0unsure").unwrap(), 200);
}

fn failure(registry: &Registry, graph: &str) -> (Error, usize) {
    error_of(&line(graph), registry, Setting::INLINE)
}

#[test]
fn a_source_that_breaks_rules_fails_its_pipe() {
    let (_folder, registry) = load();
    for (what, kind, says) in [
        ("none", ErrorKind::Abi, "succeeded, but gave no sample"),
        ("value", ErrorKind::Abi, "gave a value for a sample"),
        ("status", ErrorKind::Abi, "its `next` gave status -1"),
        ("end_reset", ErrorKind::Abi, "its `reset` gave FOREBAY_END"),
        ("refuse", ErrorKind::Invalid, "\"scale\":1.5"),
        ("odd", ErrorKind::Io, "sample 1 is odd"),
    ] {
        let (error, samples) = failure(&registry, &format!("rogue_source {what}"));
        assert_eq!((error.kind(), error.get("pipe")), (kind, Some("rogue_source")), "{error}");
        assert!(error.message().contains(says), "{what}: {error}");
        assert_eq!(samples, usize::from(what == "odd"), "{error}");
    }
    // Behind a failure it goes on.
    let mut loader = build(&line("rogue_source odd on_error=skip"), &registry, Setting::INLINE).unwrap();
    assert_eq!(read(loader.epoch(0)).0.len(), 4);
}

#[test]
fn a_source_has_its_options_its_numbers_and_its_columns() {
    let (_folder, registry) = load();
    let graph = line("rogue_source columns count=4 scale=2");
    let mut loader = Loader::builder(graph).seed(40).build(&registry).unwrap();
    let samples: Vec<_> = loader.epoch(2).map(Result::unwrap).collect();
    let uids: Vec<_> = samples.iter().map(|sample| sample.uid()).collect();
    assert_eq!(uids, [0, 10, 20, 30]);
    assert_eq!(samples[3].key().to_string(), "rogue_source#3");
    assert_eq!(samples[2].get("value").unwrap().view(), View::Float(4.0));
    assert_eq!(samples[3].get("other").unwrap().view(), View::Float(6.0));
    assert_eq!(samples[1].get("seed").unwrap().view(), View::UInt(42));
    assert_eq!(samples[1].get("columns").unwrap().arrow().unwrap().length, 3);
    drop(samples);
    assert_eq!(released(&registry), 8);
    // Above what a signed integer holds.
    let graph = line(&format!("rogue_source count=1 salt={}", u64::MAX));
    let mut loader = Loader::builder(graph).seed(40).build(&registry).unwrap();
    let sample = loader.epoch(2).next().unwrap().unwrap();
    assert_eq!(sample.get("seed").unwrap().view(), View::UInt(42_u64.wrapping_add(u64::MAX)));
}

#[test]
fn states_of_any_length_are_saved_and_bad_ones_refused() {
    let (_folder, registry) = load();
    let exact = Setting { chunk: Some(1), marks: true, ..Setting::INLINE };
    for what in ["well", "long"] {
        let graph = line(&format!("rogue_source {what} count=9"));
        let truth = read(build(&graph, &registry, exact).unwrap().epoch(0)).0;
        for at in 0..=9 {
            let mut loader = build(&graph, &registry, exact).unwrap();
            let mut epoch = loader.epoch(0);
            assert_eq!(read(epoch.by_ref().take(at)).0, truth[..at]);
            let snapshot: Snapshot = epoch.snapshot().unwrap();
            drop(epoch);
            let setting = Setting { executor: Executor::Threads(2), ..exact };
            let mut loader = build(&graph, &registry, setting).unwrap();
            assert_eq!(read(loader.resume(&snapshot).unwrap()).0, truth[at..], "{what} after {at}");
        }
    }
    // One that cannot be saved is told, and a resume reads from the start.
    for (what, says) in [("grows", "at most 16777216"), ("unsaved", "lost its place")] {
        let graph = line(&format!("rogue_source {what}"));
        let mut loader = build(&graph, &registry, exact).unwrap();
        let mut epoch = loader.epoch(0);
        let begin = read(epoch.by_ref().take(3)).0;
        let snapshot = epoch.snapshot().unwrap();
        drop(epoch);
        let log = loader.take_log();
        assert!(log.iter().any(|(level, line)| *level == 2 && line.contains(says)), "{what}: {log:?}");
        let rest = read(build(&graph, &registry, exact).unwrap().resume(&snapshot).unwrap()).0;
        let whole = read(build(&graph, &registry, exact).unwrap().epoch(0)).0;
        assert_eq!([begin, rest].concat(), whole, "{what}");
    }
}
